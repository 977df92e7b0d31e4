"""Layers laid out along cards: how long cards idle, what they keep alive meanwhile, and what they send.

All schedules here flush: a step ends when every micro-batch is through. Stages take equally long and messages no time.
"""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .tensor_parallel import ACTIVATION_DTYPE, BOUNDARY
from .together import ONE_OF_THE_STAGES

GPIPE = "Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019"
NARAYANAN = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section 2.2"
ZERO_BUBBLE = "Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 2"

_P, _M, _V, _j, _L = g.num_stages, g.num_micro_batches, g.chunks_per_stage, g.stage_index, g.num_layers
_F, _B, _X, _W = g.stage_forward_time, g.stage_backward_time, g.input_grad_time, g.weight_grad_time

_SCHEDULE = (
    "all stages and micro-batches take equally long",
    "communication takes no time, or hides",
    "a share of the step's wall-clock time",
)

_BUBBLE = {"source": GPIPE, "covers": ("F13",), "chapter": 10, "assumptions": _SCHEDULE}
_INTERLEAVED = {
    "source": NARAYANAN,
    "covers": ("F14",),
    "chapter": 10,
    "assumptions": (*_SCHEDULE, "the number of micro-batches is a multiple of the stages", "chunks of equal size"),
}

# --- the bubble ----------------------------------------------------------------------------------------------------------

_WORK = _M * (_F + _B)
_IDLE = (_P - 1) * (_F + _B)

STEP_TIME = define(
    g.pipeline_step_time,
    derivation=Derivation("Filling: the first micro-batch reaches the last stage after P-1 forward passes", (_P - 1) * _F)
    .add("Working: the last stage computes all micro-batches without a pause", _WORK, (_P - 1) * _F + _WORK)
    .add("Draining: the last gradient returns to the first stage after P-1 backward passes", (_P - 1) * _B, _IDLE + _WORK)
    .rewrite("that is", (_M + _P - 1) * (_F + _B)),
    **_BUBBLE,
)

_BUBBLE_STEPS = (
    Derivation("Every stage works M times; filling and draining it waits for the rest of the step", STEP_TIME.expr - _WORK)
    .multiply("as a share of the step", 1 / STEP_TIME.expr, (STEP_TIME.expr - _WORK) / STEP_TIME.expr)
    .rewrite("in which the times cancel: GPipe and 1F1B order the work differently but fill and drain alike", (_P - 1) / (_M + _P - 1))
)

BUBBLE_RATIO = define(
    g.bubble_ratio,
    derivation=Derivation("Filling and draining take", _IDLE)
    .multiply("over the working time", 1 / _WORK, _IDLE / _WORK)
    .rewrite("in which the times cancel", (_P - 1) / _M),
    **_BUBBLE,
)

OVER_PRODUCT = Formula(
    g.bubble_ratio,
    (_P - 1) / (_P * _M),
    name="bubble over stages times micro-batches",
    empirical="in circulation, but follows from nothing",
    **_BUBBLE,
)


def _idle_over(ratio, *wrong):
    """What the bubble is measured against; the book measures against the whole step."""
    return Convention(
        "idle_over",
        "What is the idle time compared with?",
        (
            Alternative("step", "the whole step: a share below 1", "GPipe; this book"),
            Alternative("work", "the working time: a ratio", "Narayanan et al. (Megatron-LM); Ultra-Scale Playbook", formula=ratio),
            *wrong,
        ),
    )


_WRONG = Alternative(
    "product",
    "stages times micro-batches: neither the share nor the ratio, and wrong for both",
    "a widely read course text",
    formula=OVER_PRODUCT,
)

BUBBLE = define(g.pipeline_bubble, derivation=_BUBBLE_STEPS, conventions=(_idle_over(BUBBLE_RATIO, _WRONG),), **_BUBBLE)

_ENOUGH = (_P - 1) * (1 - g.pipeline_bubble) / g.pipeline_bubble

MICRO_BATCHES = define(
    g.num_micro_batches,
    name="needed_micro_batches",
    derivation=Derivation("The bubble", BUBBLE.expr)
    .solve("shrinks to the share allowed", _M, g.pipeline_bubble, _ENOUGH)
    .round_up("at the first whole number that is enough", sp.ceiling(_ENOUGH)),
    valid=((_P >= 2, "a single stage never idles"), (g.pipeline_bubble < 1, "some time must be left to work")),
    **_BUBBLE,
)

_CHUNK_IDLE = _IDLE / _V

INTERLEAVED_RATIO = define(
    g.interleaved_bubble_ratio,
    derivation=Derivation("With V chunks per stage, filling and draining pass P-1 chunks, each a V-th of a stage", _CHUNK_IDLE)
    .multiply("over the working time", 1 / _WORK, _CHUNK_IDLE / _WORK)
    .rewrite("in which the times cancel", (_P - 1) / (_V * _M)),
    **_INTERLEAVED,
)

INTERLEAVED_BUBBLE = define(
    g.interleaved_bubble,
    derivation=Derivation("With V chunks per stage, filling and draining pass P-1 chunks, each a V-th of a stage", _CHUNK_IDLE)
    .multiply("as a share of the step", 1 / (_WORK + _CHUNK_IDLE), _CHUNK_IDLE / (_WORK + _CHUNK_IDLE))
    .rewrite("in which the times cancel", (_P - 1) / (_V * _M + _P - 1)),
    conventions=(_idle_over(INTERLEAVED_RATIO),),
    **_INTERLEAVED,
)

BOUNDARIES = define(
    g.chunk_boundaries,
    derivation=Derivation("Every card has V chunks", _V)
    .multiply("on P cards", _P, _V * _P)
    .add("and between one chunk and the next there is one boundary, but none after the last", -1, _V * _P - 1),
    **_INTERLEAVED,
)

# --- zero-bubble schedules -----------------------------------------------------------------------------------------------

_ZB = {
    "source": ZERO_BUBBLE,
    "chapter": 10,
    "assumptions": (
        "backward is split: the gradient of the input goes on to the next stage at once, that of the weights can wait",
        "t_W no longer than t_F or t_X, and enough micro-batches: at least 2P-1",
        "the handcrafted order; where t_W is shorter, an order found by search idles less",
        "the optimizer does not wait for the other stages",
        "DeepSeek-V3 writes (P-1)(F+B-2W) for ZB-H1, where B is the whole backward pass: the same",
    ),
}

ZB_H1_TIME = define(
    g.zb_h1_bubble_time,
    derivation=Derivation("1F1B fills and drains", _IDLE)
    .substitute("with both halves of backward", {_B: _X + _W}, (_P - 1) * (_F + _X + _W))
    .add("Draining need not wait for weight gradients", -(_P - 1) * _W, (_P - 1) * (_F + _X))
    .add("and each stage puts off as many of its own as it would idle, to fill the gaps", -(_P - 1) * _W, (_P - 1) * (_F + _X - _W)),
    valid=((_W <= _F + _X, "weight gradients must not take longer than the passes they fill in for"),),
    **_ZB,
)

ZB_H2_TIME = define(
    g.zb_h2_bubble_time,
    derivation=Derivation("ZB-H1 idles", ZB_H1_TIME.expr)
    .add("P-1 more forward passes before the first backward fill the start", -(_P - 1) * _W, (_P - 1) * (_F + _X - 2 * _W))
    .at_least("and there is no less than nothing", 0, sp.Max(0, (_P - 1) * (_F + _X - 2 * _W))),
    **_ZB,
)

_ZB_WORK = _M * (_F + _X + _W)

ZB_H1_BUBBLE = define(
    g.zb_h1_bubble,
    derivation=Derivation("Idle time", ZB_H1_TIME.expr)
    .multiply("as a share of the step", 1 / (_ZB_WORK + ZB_H1_TIME.expr), ZB_H1_TIME.expr / (_ZB_WORK + ZB_H1_TIME.expr))
    .substitute("With forward and the two halves of backward equally long", {_X: _F, _W: _F}, (_P - 1) / (3 * _M + _P - 1)),
    **{**_ZB, "assumptions": (*_ZB["assumptions"], "t_F = t_X = t_W")},
)

_ZB_CHUNKS = {
    **_ZB,
    "source": f"{ZERO_BUBBLE}; PyTorch's ScheduleInterleavedZeroBubble",
    "assumptions": (*_SCHEDULE, "the number of micro-batches is a multiple of the stages", "t_F = t_X = t_W, of a chunk"),
}

INTERLEAVED_ZERO_BUBBLE = define(
    g.interleaved_zero_bubble,
    derivation=Derivation("Filling passes P-1 chunks, forward; draining is filled with weight gradients put off", _P - 1).multiply(
        "as a share of the step, in which each of V chunks passes M micro-batches three times",
        1 / (3 * _V * _M + _P - 1),
        (_P - 1) / (3 * _V * _M + _P - 1),
    ),
    **_ZB_CHUNKS,
)

OPERATIONS = define(
    g.stage_operations,
    derivation=Derivation("A micro-batch passes a chunk forward once", 1)
    .add("and backward, whole or in parts", g.backward_parts, 1 + g.backward_parts)
    .multiply("every chunk", _V, _V * (1 + g.backward_parts))
    .multiply("every micro-batch", _M, _M * _V * (1 + g.backward_parts)),
    source=NARAYANAN,
    chapter=10,
    assumptions=("a step that flushes",),
)

# --- activations in flight -----------------------------------------------------------------------------------------------

_IN_FLIGHT = {
    "covers": ("F15",),
    "chapter": 10,
    "assumptions": ("counted in activations of one layer and micro-batch", "layers split evenly", "nothing recomputed"),
}

GPIPE_IN_FLIGHT = define(
    g.gpipe_in_flight,
    derivation=Derivation("A card has", _L / _P).multiply(
        "and runs all forward passes before the first backward pass frees any", _M, _M * _L / _P
    ),
    source=GPIPE,
    **_IN_FLIGHT,
)

IN_FLIGHT = define(
    g.in_flight,
    derivation=Derivation("Before stage j's first backward pass, the stages behind it must each have a micro-batch to work on", _P - _j)
    .add("and stage j has the one whose backward pass comes next", 1, _P - _j + 1)
    .at_most("There are no more than all", _M, sp.Min(_M, _P - _j + 1))
    .multiply("in each of the card's layers", _L / _P, sp.Min(_M, _P - _j + 1) * _L / _P),
    valid=(ONE_OF_THE_STAGES,),
    source=NARAYANAN,
    **_IN_FLIGHT,
)

_AHEAD = (_V - 1) * _P + 2 * (_P - _j) + 1

INTERLEAVED_IN_FLIGHT = define(
    g.interleaved_in_flight,
    derivation=Derivation("P micro-batches pass all of the card's chunks but the last", (_V - 1) * _P)
    .add("Of the last chunk, two more for each stage behind it: one on its way there, one on its way back", 2 * (_P - _j), _AHEAD - 1)
    .add("and the one whose backward pass comes next", 1, _AHEAD)
    .at_most("There are no more than all", _V * _M, sp.Min(_V * _M, _AHEAD))
    .multiply("in each of a chunk's layers", _L / (_P * _V), sp.Min(_V * _M, _AHEAD) * _L / (_P * _V)),
    valid=(ONE_OF_THE_STAGES,),
    source=NARAYANAN,
    **{**_IN_FLIGHT, "assumptions": (*_IN_FLIGHT["assumptions"], "at least two chunks per stage, in Megatron-LM's order")},
)

ZB_H2_IN_FLIGHT = define(
    g.zb_h2_in_flight,
    derivation=Derivation("As in 1F1B", _P - _j + 1)
    .add("and one more for each stage behind it, to fill the start", _P - _j, 2 * (_P - _j) + 1)
    .at_most("There are no more than all", _M, sp.Min(_M, 2 * (_P - _j) + 1))
    .multiply("in each of the card's layers", _L / _P, sp.Min(_M, 2 * (_P - _j) + 1) * _L / _P),
    valid=(ONE_OF_THE_STAGES,),
    source=ZERO_BUBBLE,
    **{**_IN_FLIGHT, "covers": (), "assumptions": (*_IN_FLIGHT["assumptions"], "what only weight gradients need is not counted")},
)

_TO_FIRST = (_V - 1) * _P + _P - _j + 1

INTERLEAVED_ZERO_IN_FLIGHT = define(
    g.interleaved_zero_in_flight,
    derivation=Derivation("P micro-batches pass all of the card's chunks but the last", (_V - 1) * _P)
    .add("Of the last chunk, one more for each stage behind it", _P - _j, _TO_FIRST - 1)
    .add("and the one whose backward pass comes next", 1, _TO_FIRST)
    .add("Then weight gradients are put off, one for each stage before it, and keep what they need", _j - 1, _V * _P)
    .multiply("in each of a chunk's layers: as much as one micro-batch in all layers", _L / (_P * _V), _L),
    **{
        **_ZB_CHUNKS,
        "assumptions": (
            *_IN_FLIGHT["assumptions"],
            "the number of micro-batches is a multiple of the stages",
            "a micro-batch lives until its weight gradients are there",
        ),
    },
)

# --- traffic -------------------------------------------------------------------------------------------------------------

P2P = define(
    g.pipeline_p2p_bytes,
    derivation=Derivation("A micro-batch crosses a boundary with", BOUNDARY.expr)
    .multiply("An inner stage sends it on, and its gradient back", 2, 2 * BOUNDARY.expr)
    .multiply("for every chunk", _V, 2 * _V * BOUNDARY.expr)
    .multiply("and micro-batch", _M, 2 * _M * _V * BOUNDARY.expr),
    source=NARAYANAN,
    covers=("F16",),
    chapter=10,
    conventions=(ACTIVATION_DTYPE,),
    assumptions=(
        "an inner stage; the first one sends no gradients on and the last one no activations",
        "every tensor-parallel rank sends the whole boundary tensor; scattered, it is one t-th",
    ),
)
