"""Sharded training steps that really run: weights, gradients and updates on arrays, collective by collective.

Every implementation must end with the weights that plain data parallelism ends with; the network counts what it sent
on the way. Gradients are small integers, so that 16-bit sums are exact. No formula here.
"""

from dataclasses import dataclass

import numpy as np

from . import collectives as c


@dataclass(frozen=True)
class Policy:
    """How an implementation works: what it keeps whole, how and when it reduces, when it gathers weights.

    reduce: "all_reduce" or "reduce_scatter"; after: "every" or "last" micro-batch.
    gather: "never", "after_update", "forward", "first_forward" or "forward_and_backward".
    """

    reduce: str
    after: str
    gather: str


# implementation: its policies at ZeRO stages 0 to 3
POLICIES = {
    "zero_paper": (
        Policy("all_reduce", "last", "never"),
        Policy("reduce_scatter", "last", "after_update"),
        Policy("reduce_scatter", "every", "after_update"),
        Policy("reduce_scatter", "every", "forward_and_backward"),
    ),
    "deepspeed": (
        Policy("all_reduce", "last", "never"),
        Policy("all_reduce", "last", "after_update"),
        Policy("all_reduce", "every", "after_update"),
        Policy("reduce_scatter", "every", "forward_and_backward"),
    ),
    "torch": (
        Policy("all_reduce", "every", "never"),
        Policy("all_reduce", "every", "after_update"),
        Policy("reduce_scatter", "every", "forward"),
        Policy("reduce_scatter", "every", "forward_and_backward"),
    ),
    "torch_no_sync": (
        Policy("all_reduce", "last", "never"),
        Policy("all_reduce", "last", "after_update"),
        Policy("reduce_scatter", "last", "first_forward"),
        Policy("reduce_scatter", "last", "forward_and_backward"),
    ),
}


class Step:
    """One optimizer step of `ranks` replicas; `.net` has counted its traffic, `.weights()` are every rank's in the end."""

    def __init__(self, policy, start, ranks, micros, grad_dtype):
        self.policy, self.ranks, self.micros = policy, ranks, micros
        self.net = c.Network(ranks)
        self.start, self.grad_dtype = start, grad_dtype
        self.shards = [c.blocks(start, ranks)[self.own(rank)] for rank in range(ranks)]
        self.whole = [start.copy() for _ in range(ranks)] if policy.gather in ("never", "after_update") else [None] * ranks

    def own(self, rank):
        """The block that a ring reduce-scatter leaves finished on this rank."""
        return (rank + 1) % self.ranks

    def run(self):
        totals = self.accumulate()
        for rank in range(self.ranks):
            self.shards[rank] = (self.shards[rank] - totals[rank]).astype(self.start.dtype)
        if self.policy.gather == "never":
            self.whole = [self.start - np.concatenate(self._in_order(totals)) for _ in range(self.ranks)]
        elif self.policy.gather == "after_update":
            self.gather()
        return self

    def accumulate(self):
        """Every rank's own block of the gradients, summed over ranks and micro-batches."""
        kept, totals = None, [0] * self.ranks
        for micro in range(self.micros):
            self.before_forward(micro)
            grads = [self.gradient(rank, micro) for rank in range(self.ranks)]
            if self.policy.after == "every":
                totals = [total + block for total, block in zip(totals, self.reduced(grads), strict=True)]
            else:
                kept = grads if kept is None else [k + grad for k, grad in zip(kept, grads, strict=True)]
        return totals if kept is None else self.reduced(kept)

    def before_forward(self, micro):
        gathers = {"forward": 1, "forward_and_backward": 2, "first_forward": micro == 0}.get(self.policy.gather, 0)
        for _ in range(gathers):
            self.gather()

    def gather(self):
        held = [[None] * self.ranks for _ in range(self.ranks)]
        for rank, shard in enumerate(self.shards):
            held[rank][self.own(rank)] = shard
        self.whole = [np.concatenate(row) for row in c.ring_all_gather(self.net, held)]

    def gradient(self, rank, micro):
        """A gradient that depends on weights, rank and micro-batch, in small whole numbers."""
        position = np.arange(self.whole[rank].size)
        return ((self.whole[rank].astype(int) + position + rank + micro) % 3).astype(self.grad_dtype)

    def reduced(self, grads):
        """Every rank's own block of the sum over ranks."""
        if self.policy.reduce == "all_reduce":
            return [c.blocks(total, self.ranks)[self.own(rank)] for rank, total in enumerate(c.ring_all_reduce(self.net, grads))]
        return [held[self.own(rank)] for rank, held in enumerate(c.ring_reduce_scatter(self.net, grads))]

    def _in_order(self, own):
        return [own[(block - 1) % self.ranks] for block in range(self.ranks)]

    def weights(self):
        """Every rank's view of all weights, put together without counting."""
        whole = np.concatenate(self._in_order(self.shards))
        return [whole if self.policy.gather not in ("never", "after_update") else held for held in self.whole]


@dataclass(frozen=True)
class Unit:
    """An FSDP unit in bytes: its gathered weights, its whole gradients, what its forward saves, what its backward needs."""

    weights: int
    grads: int
    saved: int
    working: int


def fsdp_peak(resident, root, units, *, prefetch, reduce_lingers):
    """The most bytes held at once in one step, following each unit's weights and gradients as they come and go.

    prefetch: the next unit's weights arrive while a unit works. reduce_lingers: a unit's gradients stay until the next
    unit has written its own.
    """
    saved = sum(unit.saved for unit in units)
    held, peak, lingering = resident + root + saved, 0, 0
    backward = list(reversed(units))
    for unit, following in zip(backward, [*backward[1:], None], strict=True):
        ahead = following.weights if prefetch and following else 0
        peak = max(peak, held + unit.weights + ahead + unit.grads + lingering + unit.working)
        lingering = unit.grads if reduce_lingers else 0
        held -= unit.saved
    return max(peak, _forward_peak(resident + root, units, prefetch))


def _forward_peak(held, units, prefetch):
    peak = 0
    for unit, following in zip(units, [*units[1:], None], strict=True):
        held += unit.saved
        peak = max(peak, held + unit.weights + (following.weights if prefetch and following else 0))
    return peak
