"""What moves between card, host and drive when states or activations live elsewhere."""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define
from .memory import RECIPE
from .units import BYTE

REN = "Ren et al., ZeRO-Offload, 2021, section 3"
RAJBHANDARI = "Rajbhandari et al., ZeRO-Infinity, 2021, section 4"

_STEP = {
    "source": REN + "; DeepSpeed, runtime/zero/stage_1_and_2.py",
    "chapter": 8,
    "covers": ("F36",),
    "assumptions": (
        "ZeRO-2: a rank copies its own slice of the gradients and weights",
        "16-bit gradients and weights",
        "Adam runs on the host",
    ),
}
_GRADS = 2 * BYTE * g.num_params / g.world_size
_ACCUMULATES = sp.Piecewise((0, g.accumulation_steps <= 1), (1, True))

WIDENED_DOWN = define(
    g.offload_down_bytes,
    name="offload_down_bytes_widened",
    derivation=Derivation(
        "Every micro-batch sends its slice of the gradients, unless it is alone", _ACCUMULATES * g.accumulation_steps * _GRADS
    ).add(
        "The last copy goes as fp32, which Adam wants",
        2 * _GRADS,
        _GRADS * (2 + _ACCUMULATES * g.accumulation_steps),
    ),
    **_STEP,
)

OFFLOAD_DOWN = define(
    g.offload_down_bytes,
    derivation=Derivation("A rank's slice of the gradients goes to the host", _GRADS)
    .multiply("after every micro-batch", g.accumulation_steps, g.accumulation_steps * _GRADS)
    .add(
        "and once more, summed, into Adam's buffer, if there was more than one",
        _ACCUMULATES * _GRADS,
        _GRADS * (g.accumulation_steps + _ACCUMULATES),
    ),
    conventions=(
        Convention(
            "last_copy",
            "How wide is the last copy of the gradients?",
            (
                Alternative("sixteen_bit", "2 bytes each", "ZeRO-Offload, figure 3"),
                Alternative("widened", "turned to fp32 on the card first: 4 bytes each", "DeepSpeed's code in 2026", formula=WIDENED_DOWN),
            ),
        ),
    ),
    **_STEP,
)

OFFLOAD_UP = define(
    g.offload_up_bytes,
    derivation=Derivation("Every micro-batch but the first fetches the sum so far", (g.accumulation_steps - 1) * _GRADS).add(
        "and the updated weights come back, just as many bytes", _GRADS, g.accumulation_steps * _GRADS
    ),
    **_STEP,
)

DUPLEX_OFFLOAD_TIME = define(
    g.offload_time,
    name="duplex_offload_time",
    derivation=Derivation("Down", g.offload_down_bytes / g.host_bandwidth).at_least(
        "while the other direction carries what goes up",
        g.offload_up_bytes / g.host_bandwidth,
        sp.Max(g.offload_down_bytes, g.offload_up_bytes) / g.host_bandwidth,
    ),
    **_STEP,
)

OFFLOAD_TIME = define(
    g.offload_time,
    derivation=Derivation("Down", g.offload_down_bytes / g.host_bandwidth).add(
        "then up", g.offload_up_bytes / g.host_bandwidth, (g.offload_down_bytes + g.offload_up_bytes) / g.host_bandwidth
    ),
    conventions=(
        Convention(
            "direction_overlap",
            "Do the two directions overlap?",
            (
                Alternative("one_after_the_other", "no: the sum", "an upper bound"),
                Alternative("both_at_once", "yes: the longer of the two", "full duplex, layers in a pipeline", formula=DUPLEX_OFFLOAD_TIME),
            ),
        ),
    ),
    **_STEP,
)

_BOTH = [OFFLOAD_DOWN, OFFLOAD_UP]
_BYTES = {each.result: each.expr for each in _BOTH}

COPIES_TIME = define(
    g.offload_time,
    name="copies_time",
    derivation=Derivation("Down, then up", OFFLOAD_TIME.expr).substitute(
        "with what a step copies", _BOTH, OFFLOAD_TIME.expr.subs(_BYTES, simultaneous=True)
    ),
    **_STEP,
)

DUPLEX_COPIES_TIME = define(
    g.offload_time,
    name="duplex_copies_time",
    derivation=Derivation("The longer way", DUPLEX_OFFLOAD_TIME.expr).substitute(
        "with what a step copies", _BOTH, DUPLEX_OFFLOAD_TIME.expr.subs(_BYTES, simultaneous=True)
    ),
    **_STEP,
)

# --- layer by layer -----------------------------------------------------------------------------------------------------

_LAYERS = {**_STEP, "assumptions": ("layers alike", "one micro-batch", "a layer's update starts when its gradients are on the host")}


def _of_one_layer(result, because, whole, **details):
    """A time of all layers, divided among them."""
    return define(
        result, derivation=Derivation(because, whole).multiply("shared by all layers", 1 / g.num_layers, whole / g.num_layers), **details
    )


LAYER_BACKWARD = _of_one_layer(g.layer_backward_time, "The backward pass", g.backward_time, **_LAYERS)
LAYER_DOWN = _of_one_layer(g.layer_down_time, "A rank's gradients go down once", _GRADS / g.host_bandwidth, **_LAYERS)
LAYER_ADAM = _of_one_layer(g.layer_adam_time, "Adam on the host", g.host_adam_time, **_LAYERS)
LAYER_UP = _of_one_layer(g.layer_up_time, "Its weights come back, just as many bytes", _GRADS / g.host_bandwidth, **_LAYERS)

_STATIONS = [LAYER_BACKWARD, LAYER_DOWN, LAYER_ADAM, LAYER_UP]
_THROUGH = sum(station.result for station in _STATIONS)
_SLOWEST = sp.Max(*(station.result for station in _STATIONS))
_LINE = g.forward_time + _THROUGH + (g.num_layers - 1) * _SLOWEST

OFFLOAD_STEP = define(
    g.offload_step_time,
    derivation=Derivation("After the forward pass", g.forward_time)
    .add("the first layer goes through backward, down, Adam and up", _THROUGH, g.forward_time + _THROUGH)
    .add("and every other leaves the slowest of the four one turn later", (g.num_layers - 1) * _SLOWEST, _LINE)
    .substitute("each with its share", _STATIONS, _LINE.subs({station.result: station.expr for station in _STATIONS}, simultaneous=True)),
    **_LAYERS,
)

_OPTIMIZER = g.bytes_per_master + g.bytes_per_momentum + g.bytes_per_variance
HOST_STATE = define(
    g.host_state_bytes,
    conventions=(RECIPE,),
    derivation=Derivation("Master weight and moments", _OPTIMIZER)
    .add("and the gradient they wait for", g.bytes_per_grad, _OPTIMIZER + g.bytes_per_grad)
    .multiply("of every parameter, on all hosts together", g.num_params, (_OPTIMIZER + g.bytes_per_grad) * g.num_params),
    **_STEP,
)

NVME_TIME = define(
    g.nvme_time,
    conventions=(RECIPE,),
    derivation=Derivation("Optimizer state of all parameters", _OPTIMIZER * g.num_params)
    .multiply("is read and written back", 2, 2 * _OPTIMIZER * g.num_params)
    .multiply("at the drives' speed", 1 / g.storage_bandwidth, 2 * _OPTIMIZER * g.num_params / g.storage_bandwidth),
    source=RAJBHANDARI,
    chapter=8,
    covers=("F36",),
    assumptions=("reads and writes share one bandwidth", "drives slower than the PCIe link"),
)

PCIE_BANDWIDTH = define(
    g.pcie_bandwidth,
    derivation=Derivation("Each transfer of a lane is one bit", g.transfers_per_s * BYTE / 8)
    .multiply("of every 130 bits 128 are data", sp.Rational(128, 130), sp.Rational(128, 130) * g.transfers_per_s * BYTE / 8)
    .multiply("on every lane", g.num_lanes, sp.Rational(128, 130) * g.transfers_per_s * BYTE / 8 * g.num_lanes),
    source="PCI Express Base Specification, generations 3 to 5 (128b/130b encoding)",
    chapter=8,
    covers=("F36",),
    assumptions=("packet headers not counted: real copies reach some 80 to 90 percent",),
)

THROUGHPUT_LOSS = define(
    g.throughput_loss,
    derivation=Derivation("Steps per second, over what they were", 1 / g.step_time_growth)
    .multiply("what is lost", -1, -1 / g.step_time_growth)
    .add("of the whole", 1, 1 - 1 / g.step_time_growth),
    source="definition of throughput",
    chapter=8,
    covers=("F36",),
    assumptions=("the same batch",),
)

_ACTIVATIONS = {"source": RAJBHANDARI, "chapter": 8, "covers": ("F37",), "assumptions": ("asynchronous copies from pinned host memory",)}

EXPOSED_OFFLOAD = define(
    g.exposed_offload_time,
    derivation=Derivation("Copying the checkpoints out", g.moved_bytes / g.host_bandwidth)
    .add("beside the forward pass", -g.forward_time, g.moved_bytes / g.host_bandwidth - g.forward_time)
    .at_least("nothing waits if the copies are shorter", 0, sp.Max(0, g.moved_bytes / g.host_bandwidth - g.forward_time)),
    **_ACTIVATIONS,
)

HIDING_BANDWIDTH = define(
    g.hiding_bandwidth,
    derivation=Derivation("The copies take", g.moved_bytes / g.hiding_bandwidth).solve(
        "just as long as the forward pass", g.hiding_bandwidth, g.forward_time, g.moved_bytes / g.forward_time
    ),
    **_ACTIVATIONS,
)
