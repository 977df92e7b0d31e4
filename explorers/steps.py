"""A training step in time: the memory mountain of the activations, and FSDP gathering, freeing and sending unit by unit."""

import sympy as sp

from formulary import Alternative, Convention
from formulary import glossary as g
from formulary.attention import ACTIVATION, KEPT_INPUT, LAYER_ACTIVATION, SCORES, SEGMENTED_PEAK
from formulary.communication import ALL_GATHER_TIME, REDUCE_SCATTER_TIME
from formulary.hardware import NETWORKS
from formulary.shapes import MODELS
from formulary.units import BYTE
from formulary.zero import FSDP_GATHERED, TRAVEL

from .control import Choice, Slider
from .explorer import Explorer
from .plan import Blocks, counter
from .sharding import TRAVELS
from .timeline import Timeline

SHAPE = MODELS["LLaMA 7B"]
LENGTH = MODELS["GPT-3"]["num_positions"]
PASS = 0.001  # seconds of one layer's forward pass: only ratios show

layer = counter("layer")
_L, _rebuilds, _one_pass = g.num_layers, counter("rebuilds"), g.forward_time
_segments, _kept = g.num_segments, g.kept_input_bytes
_long = sp.ceiling(_L / _segments)  # layers of a segment
_segment = sp.floor(layer / _long)
_inside = layer - _segment * _long
_later = sp.ceiling(_L / _long) - 1 - _segment  # segments that backward goes through first
_input = _kept / _L
_starts = sp.Piecewise((_input, sp.Eq(_inside, 0)), (0, True))

# Forward leaves every layer's activations, or only each segment's input; then backward rebuilds a segment before it goes through it.
MOUNTAIN = (
    Blocks(
        "forward",
        {"layer": _L},
        row=0,
        turn=layer,
        length=_one_pass,
        takes=sp.Piecewise((_starts, sp.Eq(_rebuilds, 1)), (g.layer_activation_bytes, True)),
    ),
    Blocks(
        "rebuild",
        {"layer": _L * _rebuilds},
        row=0,
        turn=_L + 2 * _long * _later + _inside,
        length=_one_pass,
        takes=g.layer_activation_bytes,
    ),
    Blocks(
        "backward",
        {"layer": _L},
        row=0,
        turn=_L + 2 * _long * _later + 2 * _long - 1 - _inside,
        length=2 * _one_pass,
        frees=g.layer_activation_bytes + sp.Piecewise((_starts, sp.Eq(_rebuilds, 1)), (0, True)),
    ),
)

RECOMPUTE = Convention(
    "recompute",
    "What does forward leave behind?",
    (
        Alternative("everything", "All activations stay until backward uses them", "the plain way", {"rebuilds": 0}),
        Alternative("segments", "Only inputs of segments stay; backward rebuilds the rest", "activation checkpointing", {"rebuilds": 1}),
    ),
)


def mountain_explorer(
    num_layers=SHAPE["num_layers"],
    num_segments=8,
    recompute="everything",
    seq_length=LENGTH,
    micro_batch=1,
    hidden_size=SHAPE["hidden_size"],
    num_heads=SHAPE["num_heads"],
    scores="standard_attention",
):
    """What one micro-batch's activations occupy over a step, layer by layer: the mountain, and the ridge that rebuilding leaves."""
    controls = [
        Slider("num_layers", num_layers, "layers", span=(1, 96)),
        Choice(RECOMPUTE, recompute, "forward leaves"),
        Slider("num_segments", num_segments, "segments, if rebuilt", scale="doubling", span=(1, 96)),
        Slider("seq_length", seq_length, "sequence length", scale="doubling"),
        Slider("micro_batch", micro_batch, "sequences", scale="doubling"),
        Slider("hidden_size", hidden_size, "width of the model", scale="log"),
        Slider("num_heads", num_heads, "attention heads"),
        Choice(SCORES, scores, "attention scores"),
    ]
    view = Timeline(
        MOUNTAIN,
        ["one card"],
        "peak",
        "of activations at the peak, counted in the picture",
        beside=(
            ("the formula", ACTIVATION, {"rebuilds": 0}),
            ("the formula for segments of one length", SEGMENTED_PEAK, {"rebuilds": 1}),
        ),
        level_unit=BYTE,
        level_what="activations held",
        used=(LAYER_ACTIVATION, KEPT_INPUT),
    )
    return Explorer(
        [ACTIVATION, SEGMENTED_PEAK],
        controls,
        view,
        title="The memory mountain",
        fixed={"forward_time": PASS},
        made_by="explorers.mountain_explorer",
    )


unit = counter("unit")
_U, _buffers = g.num_layers, g.gather_buffers
_forth, _back, _params = g.forward_time, g.backward_time, g.unit_params
_weight, _grad = g.bytes_per_gathered_weight, g.bytes_per_reduced_grad
_of_each = {"over": {"unit": _U}, "mark": unit + 1}
_weights, _grads = _weight * _params, _grad * _params
_last = sp.Eq(unit, _U - 1)


def _time(formula, message):
    """A collective's time for that message."""
    return formula.expr.subs(g.message_bytes, message)


# Units are gathered one after the other as long as a buffer is free: computing the unit so many places before frees one. Backward goes
# through the units in reverse; the last one is still there, the others are gathered again. Gradients leave when a unit's are complete.
GATHERS = (
    Blocks(
        "forward",
        row=0,
        turn=unit,
        length=_forth / _U,
        after=[("gather", {"unit": unit})],
        frees=sp.Piecewise((0, _last), (_weights, True)),
        **_of_each,
    ),
    Blocks(
        "backward",
        row=0,
        turn=2 * _U - unit,
        length=_back / _U,
        after=[("gather again", {"unit": unit})],
        frees=_weights,
        **_of_each,
    ),
    Blocks(
        "gather",
        row=1,
        turn=unit,
        length=_time(ALL_GATHER_TIME, _weights),
        after=[("forward", {"unit": unit - _buffers})],
        takes=_weights,
        **_of_each,
    ),
    Blocks(
        "gather again",
        {"unit": _U - 1},
        row=1,
        turn=2 * _U - unit,
        length=_time(ALL_GATHER_TIME, _weights),
        after=[("forward", {"unit": _U - 1}), ("backward", {"unit": unit + _buffers})],
        takes=_weights,
        mark=unit + 1,
    ),
    Blocks(
        "reduce-scatter",
        row=2,
        turn=_U - unit,
        length=_time(REDUCE_SCATTER_TIME, _grads),
        after=[("backward", {"unit": unit})],
        **_of_each,
    ),
)


def gather_explorer(
    num_layers=8,
    gather_buffers=2,
    unit_params="200M",
    forward_time=0.1,
    backward_time=0.2,
    world_size=8,
    bandwidth=NETWORKS["InfiniBand NDR"]["bandwidth"],
    latency=None,
    travel="travel_16bit",
):
    """An FSDP step: units gathered before they are computed and freed after, gradients sent behind, and what is whole meanwhile."""
    controls = [
        Slider("num_layers", num_layers, "units", span=(2, 64)),
        Slider("gather_buffers", gather_buffers, "units gathered at once", span=(1, 4)),
        Slider("unit_params", unit_params, "parameters of a unit"),
        Slider("forward_time", forward_time, "forward pass"),
        Slider("backward_time", backward_time, "backward pass"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("bandwidth", bandwidth, "bandwidth of a rank"),
        Slider("latency", latency, "latency of a message"),
        Choice(TRAVEL, travel, "travelling in", TRAVELS),
    ]
    view = Timeline(
        GATHERS,
        ["computation", "gathers", "reduces"],
        "peak",
        "of whole weights at the peak, counted in the picture",
        beside=(("the formula", FSDP_GATHERED, {}),),
        level_unit=BYTE,
        level_what="whole",
        together=True,
    )
    return Explorer([FSDP_GATHERED], controls, view, title="Gather, compute, free", made_by="explorers.gather_explorer")
