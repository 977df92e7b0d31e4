"""What a step holds in memory: after each operation, as a mountain; and what the forward pass leaves for the backward pass, term by term.

A GPU's allocator counts by itself. On a CPU nobody does, so there the storages that operations make are followed until they are gone.
"""

import json
import tempfile
import weakref
from collections import Counter
from itertools import accumulate
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Mountain(TorchDispatchMode):
    """Use as a context manager around a step; `heights` are the bytes held beyond those held before, one after each operation.

    before: the tensors that are there before the step.
    """

    def __init__(self, device, before):
        super().__init__()
        self.count = _Allocator(device) if device.type == "cuda" else _Storages(before)
        self.heights = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **kwargs or {})
        self.heights.append(self.count.after((args, kwargs), results))
        return results

    @property
    def peak(self):
        """The most bytes held at once; on a GPU also within an operation."""
        return self.count.peak(self.heights)


def allocator_peak(step, device):
    """The most bytes that the allocator gave out at once during `step()`, beyond those before it."""
    if device.type == "cuda":
        with Mountain(device, ()) as found:
            step()
        return found.peak
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    return max(accumulate(_given_out(watched)), default=0)


def _given_out(watched):
    """Bytes given out, or taken back, one number for each time."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        watched.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    return [event["args"]["Bytes"] for event in sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"])]


class _Allocator:
    def __init__(self, device):
        self.device = device
        torch.cuda.reset_peak_memory_stats(device)
        self.before = torch.cuda.memory_allocated(device)

    def after(self, arguments, results):
        return torch.cuda.memory_allocated(self.device) - self.before

    def peak(self, heights):
        return torch.cuda.max_memory_allocated(self.device) - self.before


class _Storages:
    """The storages that operations are seen to work on, for as long as somebody holds them, at the size that each has now.

    Now, since some storages are emptied and filled again: fully_shard keeps those of gathered weights from step to step.
    """

    def __init__(self, before):
        self.before, self.seen = {storage._cdata for storage in storages(before)}, {}

    def after(self, arguments, results):
        for storage in storages((arguments, results)):
            if storage._cdata not in self.before and storage._cdata not in self.seen:
                self.seen[storage._cdata] = weakref.ref(storage)
                weakref.finalize(storage, self.seen.pop, storage._cdata, None)
        return sum(storage.nbytes() for reference in list(self.seen.values()) if (storage := reference()) is not None)

    def peak(self, heights):
        return max(heights, default=0)


def storages(tree):
    """The storages of the tensors anywhere in `tree`; a tensor spread over ranks has none of its own, its parts have."""
    return [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and not isinstance(leaf, DTensor)]


class Saved:
    """Use as a context manager around a forward pass; `bytes` says how many autograd keeps for each term.

    term(place, tensor): what a tensor saved while the module called `place` runs is to be called. Storages of parameters are left out; one
    that several modules save counts once, for the last.
    """

    def __init__(self, module, term):
        self.term, self.place, self.kept = term, "", {}
        self.parameters = {parameter.untyped_storage()._cdata for parameter in module.parameters()}
        self.hooks = [
            part.register_forward_pre_hook(lambda *_, place=place: setattr(self, "place", place)) for place, part in module.named_modules()
        ]
        self.saving = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def __enter__(self):
        self.saving.__enter__()
        return self

    def __exit__(self, *error):
        self.saving.__exit__(*error)
        for hook in self.hooks:
            hook.remove()

    def _pack(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.parameters:
            self.kept[storage._cdata] = (self.term(self.place, tensor), tensor)
        return tensor

    @property
    def bytes(self):
        """{term: bytes}."""
        total = Counter()
        for term, tensor in self.kept.values():
            total[term] += tensor.untyped_storage().nbytes()
        return total
