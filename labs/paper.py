"""A cluster on paper: tensors without bytes, ranks without processes, and a count of what they would hold.

The only module that touches private parts of torch, which may change with any release: it refuses every other
version than the one it was written for, and only then imports them.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

TORCH = "2.13.0"
CPU = torch.device("cpu")
TOTAL = "Total"


class OtherTorch(RuntimeError):
    """A torch whose private parts this module does not know."""


def require(version=torch.__version__):
    """Raise OtherTorch unless `version` is the one this module was written for."""
    if version.partition("+")[0] != TORCH:
        raise OtherTorch(f"labs/paper.py uses private parts of torch {TORCH} and this is torch {version}; install torch=={TORCH}")


@contextlib.contextmanager
def cluster(num_ranks):
    """Inside, this process is rank 0 of `num_ranks`, its collectives move nothing, its tensors have no bytes; gives their mesh."""
    require()  # before any private part is looked for
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=num_ranks)
    try:
        mesh = init_device_mesh(CPU.type, (num_ranks,))
        with FakeTensorMode():
            yield mesh
    finally:
        dist.destroy_process_group()


def peak(model, optimizer, inputs, step):
    """Run `step` once on `inputs`; returns {category: bytes} of the moment at which rank 0 holds most, in the tracker's own words."""
    require()
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker

    tracker = FSDPMemTracker(model, optimizer)
    tracker.track_inputs(inputs)
    with tracker:
        step(*inputs)
    held = tracker.get_tracker_snapshot("peak")[CPU]
    return {str(getattr(kind, "value", kind)): nbytes for kind, nbytes in held.items() if kind != TOTAL}


def storage_bytes(tensors):
    """Bytes of the distinct storages behind `tensors`, which have no address to tell them apart."""
    return sum({storage._cdata: storage.nbytes() for storage in (tensor.untyped_storage() for tensor in tensors)}.values())
