"""What a rank's collectives move, counted where torch calls them, whoever called: Python, DDP's C++ or a DTensor.

    with Collectives() as moved:
        loss.backward()
    moved.calls        # [Call("all-reduce", 4096, 2), …]
    moved.sent()       # {"all-reduce": bytes that this rank sends if the collectives go round a ring}

What torch calls its collectives inside is private, and nothing else here knows it: they are told by every name that torch 2.11 to
2.13 has for them, and one that has none of these names is an error.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
# torch 2.13 has new names for these two and warns at the old ones
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

# our word: how often a ring passes the whole tensor round, and how torch names the operation inside
KINDS = {
    "all-reduce": (2, "allreduce_ allreduce_coalesced_ all_reduce all_reduce_ all_reduce_coalesced all_reduce_coalesced_"),
    "all-gather": (
        1,
        "allgather_ _allgather_base_ allgather_into_tensor_coalesced_ "
        "all_gather_into_tensor all_gather_into_tensor_out all_gather_into_tensor_coalesced",
    ),
    "reduce-scatter": (
        1,
        "reduce_scatter_ _reduce_scatter_base_ reduce_scatter_tensor_coalesced_ "
        "reduce_scatter_tensor reduce_scatter_tensor_out reduce_scatter_tensor_coalesced",
    ),
    "broadcast": (1, "broadcast_ broadcast"),
}
KIND_OF = {f"{space}::{name}": kind for kind, (_, names) in KINDS.items() for name in names.split() for space in NAMESPACES}
# What moves nothing by itself, or is counted by whoever calls it.
QUIET = ("wait_tensor", "_wrap_tensor_autograd", "barrier", "monitored_barrier_", "send", "recv_", "recv_any_source_")
IGNORED = {f"{space}::{name}" for space in NAMESPACES for name in QUIET}


class UnknownCollective(RuntimeError):
    """An operation between ranks that nobody has said how to count."""


@dataclass(frozen=True)
class Call:
    """One collective: its kind, the bytes of the whole tensor, among how many ranks."""

    kind: str
    nbytes: int
    num_ranks: int

    @property
    def sent(self):
        """Bytes that one of the ranks sends on a ring, a Fraction; of a broadcast, on the average of the ranks."""
        return Fraction(KINDS[self.kind][0] * self.nbytes * (self.num_ranks - 1), self.num_ranks)


class Collectives(TorchDispatchMode):
    """Inside, every collective this rank takes part in is noted in `calls`, in order."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # it does its work with plain tensors, which come by here in their turn
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in KIND_OF:
            # one side of a gather or scatter is the whole tensor, the other a rank's part of it
            whole = max(_nbytes(side) for side in (*args, result))
            self.calls.append(Call(KIND_OF[name], whole, _group(args).size()))
        elif name.partition("::")[0] in NAMESPACES and name not in IGNORED:
            raise UnknownCollective(f"{name} is a collective that labs/collectives.py has no rule for")
        return result

    def count(self, kind):
        """How often a kind of collective was called."""
        return sum(call.kind == kind for call in self.calls)

    def sent(self):
        """{kind: bytes} that this rank sends on rings, Fractions; kinds that were not called left out."""
        total = Counter()
        for call in self.calls:
            total[call.kind] += call.sent
        return dict(total)


def plain(amounts):
    """The sum of Fractions as a number that JSON can have, whole where it is whole; many thirds of bytes make no rounding error."""
    total = sum(amounts, Fraction(0))
    return total.numerator if total.denominator == 1 else float(total)


def _nbytes(side):
    """Bytes of a tensor, or of all tensors in lists of them."""
    if isinstance(side, torch.Tensor):
        return side.nbytes
    return sum(map(_nbytes, side)) if isinstance(side, list | tuple) else 0


def _group(args):
    """The process group among an operation's arguments, boxed or by name. Raises UnknownCollective if there is none."""
    for arg in args:
        if isinstance(arg, dist.ProcessGroup):
            return arg
        if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()):
            return dist.ProcessGroup.unbox(arg)
        if isinstance(arg, str) and (group := _by_name(arg)):
            return group
    raise UnknownCollective(f"no process group among {args}")


def _by_name(name):
    try:
        return dist.distributed_c10d._resolve_process_group(name)
    except (ValueError, RuntimeError, KeyError):  # the name of a reduction, such as "sum"
        return None
