"""The pipeline schedule player: one rule of order, which each schedule fills in with how many micro-batches a stage may hold."""

import sympy as sp

from formulary import Alternative, Convention
from formulary import glossary as g
from formulary.pipeline import (
    BUBBLE,
    GPIPE_IN_FLIGHT,
    IN_FLIGHT,
    INTERLEAVED_BUBBLE,
    INTERLEAVED_IN_FLIGHT,
    ZB_H1_BUBBLE,
    ZB_H2_IN_FLIGHT,
)
from formulary.units import PURE, without_units

from .control import Choice, Slider, Step
from .explorer import Explorer
from .plan import Blocks, counter
from .timeline import ALL, Timeline

piece, micro = counter("piece"), counter("micro")
_P, _M, _V = g.num_stages, g.num_micro_batches, g.chunks_per_stage
_F, _X, _W = g.stage_forward_time, g.input_grad_time, g.weight_grad_time
order, split = counter("order"), counter("split")
_row = sp.Mod(piece, _P)

# Forwards until the stage holds as many micro-batches as it may; from then on one backward for each forward. Where backward
# is split, a stage may put off as many weight gradients as it holds micro-batches fewer than the first stage.
HOLDS = (GPIPE_IN_FLIGHT, IN_FLIGHT, INTERLEAVED_IN_FLIGHT, ZB_H2_IN_FLIGHT)


def _held(stage):
    """How many micro-batches, of one piece of the model each, a stage counted from 0 may hold under the chosen order."""
    one_layer_a_piece = {g.num_layers: _P * _V, g.stage_index: stage + 1}
    exprs = [without_units(formula.expr).subs(one_layer_a_piece) for formula in HOLDS]
    return sp.Piecewise(*((sp.simplify(expr), sp.Eq(order, i)) for i, expr in enumerate(exprs[:-1])), (exprs[-1], True))


def _nth(chunk):
    """Which forward or backward of its stage a micro-batch's is: groups of P micro-batches go through one chunk after the other."""
    return sp.floor(micro / _P) * _P * _V + chunk * _P + sp.Mod(micro, _P)


_chunk = sp.floor(piece / _P)
_forth, _back, _may_hold = _nth(_chunk), _nth(_V - 1 - _chunk), _held(_row)
_late = _held(sp.Integer(0)) - _may_hold
_over = {"piece": _P * _V, "micro": _M}
_share = {"mark": micro + 1, "tone": _chunk / _V}

RULES = (
    Blocks(
        "forward",
        _over,
        row=_row,
        turn=3 * (_forth - _may_hold) + 2,
        length=_F / _V,
        after=[("forward", {"piece": piece - 1, "micro": micro})],
        takes=1,
        **_share,
    ),
    Blocks(
        "backward",
        _over,
        row=_row,
        turn=3 * _back,
        length=sp.Piecewise((_X, sp.Eq(split, 1)), (_X + _W, True)) / _V,
        after=[("backward", {"piece": piece + 1, "micro": micro}), ("forward", {"piece": piece, "micro": micro})],
        frees=1,
        **_share,
    ),
    Blocks(
        "weights",
        {"piece": _P * _V * split, "micro": _M},
        row=_row,
        turn=3 * (_back + _late) + 1,
        length=_W / _V,
        after=[("backward", {"piece": piece, "micro": micro})],
        **_share,
    ),
)

_ONE_CHUNK = {"chunks_per_stage": 1}


def _schedule(name, meaning, who, **values):
    return Alternative(name, meaning, who, {"order": 0, "split": 0, **values})


SCHEDULE = Convention(
    "schedule",
    "In which order does a stage work?",
    (
        _schedule("one_f_one_b", "One backward for each forward as soon as the pipeline is full", "PipeDream-flush", order=1, **_ONE_CHUNK),
        _schedule("gpipe", "All forwards, then all backwards", "GPipe", **_ONE_CHUNK),
        _schedule("interleaved", "1F1B over several chunks of the model on each card", "Megatron-LM", order=2),
        _schedule("zb_h1", "1F1B with the weights' gradients put off to fill the end", "Zero Bubble, H1", order=1, split=1, **_ONE_CHUNK),
        _schedule("zb_h2", "and more forwards to fill the start", "Zero Bubble, H2", order=3, split=1, **_ONE_CHUNK),
    ),
)
SHOWN = {"one_f_one_b": "1F1B", "gpipe": "GPipe", "interleaved": "interleaved 1F1B", "zb_h1": "ZB-H1", "zb_h2": "ZB-H2"}
SPANS = {"num_stages": (1, 16), "num_micro_batches": (1, 128), "chunks_per_stage": (1, 8)}  # of the glossary's, what can be seen
PASS = 0.001  # seconds; only ratios show


def pipeline_explorer(num_stages=4, num_micro_batches=8, schedule="one_f_one_b", chunks_per_stage=2, moment=ALL):
    """A pipeline's step played stage by stage: its bubble counted beside the formula's, and the micro-batches each stage holds.

    Forward, and each half of backward, take equally long. Interleaving wants micro-batches in multiples of the stages.
    """
    controls = [
        Slider("num_stages", num_stages, "stages", span=SPANS["num_stages"]),
        Slider("num_micro_batches", num_micro_batches, "micro-batches", scale="doubling", span=SPANS["num_micro_batches"]),
        Slider("chunks_per_stage", chunks_per_stage, "chunks per stage, if interleaved", span=SPANS["chunks_per_stage"]),
        Choice(SCHEDULE, schedule, "schedule", SHOWN),
        Step("moment", "percent of the step played", ALL, moment, pace=80),
    ]
    view = Timeline(
        RULES,
        _P,
        "idle",
        "of the step a stage idles, counted in the picture",
        row_label="stage {}",
        scale="%",
        beside=(
            ("the formula", BUBBLE, {"order": 0}),
            ("the formula", BUBBLE, {"order": 1, "split": 0}),
            ("the formula for multiples of the stages", INTERLEAVED_BUBBLE, {"order": 2}),
            ("the formula for enough micro-batches", ZB_H1_BUBBLE, {"order": 1, "split": 1}),
        ),
        level_unit=PURE,
        level_what="micro-batches held",
        now="moment",
        names={"weights": "backward of the weights"},
    )
    times = {"stage_forward_time": PASS, "input_grad_time": PASS, "weight_grad_time": PASS}
    return Explorer(
        [BUBBLE],
        controls,
        view,
        title="A pipeline's step",
        fixed=times,
        made_by="explorers.pipeline_explorer",
    )
