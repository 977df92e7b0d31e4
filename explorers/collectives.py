"""Explorers of collectives: the ring at work, what a message costs by its size, and what cutting it into buckets adds."""

import sympy as sp

from formulary import glossary as g
from formulary.communication import (
    ALL_REDUCE,
    ALL_REDUCE_TIME,
    BUCKETED_TIME,
    EQUAL_COST,
    HALVING_TIME,
    REDUCE_SCATTER,
    REDUCE_SCATTER_TIME,
    RING_ROUND_TIME,
    TREE_TIME,
)
from formulary.hardware import NETWORKS

from .control import Slider, Step
from .curve import Curve
from .explorer import Explorer
from .plan import Blocks, counter
from .timeline import ALL, Timeline

NDR = NETWORKS["InfiniBand NDR"]["bandwidth"]
LINKS = {"network": NETWORKS}


def _controls(message_bytes, world_size, latency, bandwidth):
    return [
        Slider("message_bytes", message_bytes, "message"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("latency", latency, "latency of a message"),
        Slider("bandwidth", bandwidth, "bandwidth of a rank"),
    ]


_k, seat, turn = g.world_size, counter("seat"), counter("turn")
_left = sp.Mod(seat - 1, _k)
_of_a_round = {"length": RING_ROUND_TIME.expr, "tone": 0}
LARGEST_RING = 16

# In a round every rank passes on what it received in the round before: first sums on their way, then finished blocks.
RING = (
    Blocks(
        "reduce-scatter",
        {"seat": _k, "turn": _k - 1},
        row=seat,
        turn=turn,
        after=[("reduce-scatter", {"seat": _left, "turn": turn - 1})],
        mark=sp.Mod(seat - turn, _k) + 1,
        **_of_a_round,
    ),
    Blocks(
        "all-gather",
        {"seat": _k, "turn": _k - 1},
        row=seat,
        turn=_k - 1 + turn,
        after=[("all-gather", {"seat": _left, "turn": turn - 1}), ("reduce-scatter", {"seat": _left, "turn": _k - 2 + turn})],
        mark=sp.Mod(seat + 1 - turn, _k) + 1,
        **_of_a_round,
    ),
)


def ring_explorer(message_bytes=None, world_size=4, latency=None, bandwidth=NDR, moment=ALL, presets=LINKS):
    """The rounds of a ring all-reduce, played: which block each rank sends when, and the time the formula gives."""
    controls = _controls(message_bytes, world_size, latency, bandwidth)
    controls[1] = Slider("world_size", world_size, "ranks", span=(2, LARGEST_RING))
    controls.append(Step("moment", "percent of the time played", ALL, moment, pace=80))
    view = Timeline(
        RING, _k, "step", "for the all-reduce, counted in the picture", beside=(("the formula", ALL_REDUCE_TIME, {}),), now="moment"
    )
    return Explorer(
        [ALL_REDUCE_TIME, ALL_REDUCE], controls, view, title="A ring at work", presets=presets, made_by="explorers.ring_explorer"
    )


def message_explorer(message_bytes=None, world_size=8, latency=None, bandwidth=NDR, presets=LINKS):
    """Time of an all-reduce as the message grows: ring, recursive halving, tree. Where the ring's bends, latency equals bandwidth."""
    controls = _controls(message_bytes, world_size, latency, bandwidth)
    curves = {"ring": ALL_REDUCE_TIME, "halving and doubling": HALVING_TIME, "tree, whole messages": TREE_TIME}
    marks = {"latency equals bandwidth": EQUAL_COST}
    view = Curve(curves, controls[0], "time of an all-reduce", log=(True, True), marks=marks)
    subject = [*curves.values(), REDUCE_SCATTER_TIME, ALL_REDUCE, REDUCE_SCATTER]
    return Explorer(subject, controls, view, title="What a message costs", presets=presets, made_by="explorers.message_explorer")


def bucket_explorer(message_bytes=None, world_size=8, latency=None, bandwidth=NDR, num_buckets=100, presets=LINKS):
    """Time of an all-reduce as its message is cut into more and more buckets, one after the other, against one message."""
    buckets = Slider("num_buckets", num_buckets, "buckets")
    controls = [*_controls(message_bytes, world_size, latency, bandwidth), buckets]
    curves = {"in buckets": BUCKETED_TIME, "in one message": ALL_REDUCE_TIME}
    view = Curve(curves, buckets, "time of an all-reduce", log=(True, True))
    subject = [BUCKETED_TIME, ALL_REDUCE_TIME]
    return Explorer(subject, controls, view, title="What buckets cost", presets=presets, made_by="explorers.bucket_explorer")
