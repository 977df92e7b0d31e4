"""What a plan costs: the memory of its fullest card and the time of its step, put together from the formulas of its parts."""

import sympy as sp

from . import glossary as g
from .attention import LOGITS, SCORES
from .capacity import PARALLEL_STATE
from .compute import FLOP_WITH_ATTENTION
from .derivation import Derivation
from .formula import define
from .ledger import Ledger
from .memory import RECIPE
from .pipeline import IN_FLIGHT, NARAYANAN
from .scaling import COMPUTE_TIME
from .tensor_parallel import SP_ACTIVATION, TP_MODEL
from .units import BYTE, SECOND, TOKEN
from .zero import BUFFERS, FSDP_GATHERED, FSDP_GRADS, TRAVEL, ZERO_TRAFFIC

_t, _P, _M, _k, _z, _L = g.tensor_parallel, g.num_stages, g.num_micro_batches, g.world_size, g.stage, g.num_layers
_PLAN = {
    "source": f"this book, from the formulas of chapters 3, 7, 9, 10 and 13; {NARAYANAN}, section 3",
    "chapter": 11,
    "covers": ("F39",),
}
_MEMORY = {
    **_PLAN,
    "assumptions": (
        "1F1B, sequence parallelism over the tensor-parallel ranks, layers split evenly",
        "a GELU MLP four times as wide as the model, 16-bit activations, one-byte dropout masks",
        "the first stage's activations and the last stage's logits are counted on one card: an upper bound",
    ),
}

# --- memory ---------------------------------------------------------------------------------------------------------------

_LAYER = SP_ACTIVATION.expr
_INPUT = 2 * BYTE * g.seq_length / TOKEN * g.micro_batch * g.hidden_size / _t
_KEPT = sp.Piecewise((_INPUT, g.recomputed > 0), (_LAYER, True))
_ALIVE = IN_FLIGHT.expr.subs(g.stage_index, 1)
_REBUILT = sp.Piecewise((_LAYER, g.recomputed > 0), (0 * BYTE, True))

PLAN_ACTIVATION = define(
    g.plan_activation_bytes,
    conventions=(SCORES,),
    derivation=Derivation("A layer keeps its activations, or only its input if it is rebuilt later", _KEPT)
    .multiply("for every layer and micro-batch alive on the first stage", _ALIVE, _KEPT * _ALIVE)
    .add("and the layer that is being rebuilt is there as a whole", _REBUILT, _KEPT * _ALIVE + _REBUILT),
    **_MEMORY,
)

_ONE_LAYER = g.num_params / (_L * _t)
_WHOLE = (FSDP_GATHERED.expr + FSDP_GRADS.expr).subs(g.unit_params, _ONE_LAYER)

PLAN_GATHERED = define(
    g.plan_gathered_bytes,
    conventions=(BUFFERS, TRAVEL),
    derivation=Derivation("Weights that are fetched and gradients not yet reduced, of an FSDP unit", FSDP_GATHERED.expr + FSDP_GRADS.expr)
    .substitute("which is a layer's share of the model", {g.unit_params: _ONE_LAYER}, _WHOLE)
    .multiply(
        "and is there only where weights are sharded",
        sp.Piecewise((1, _z >= 3), (0, True)),
        sp.Piecewise((_WHOLE, _z >= 3), (0 * BYTE, True)),
    ),
    **_MEMORY,
)

PLAN_LOGITS = define(
    g.plan_logits_bytes,
    conventions=LOGITS.conventions,
    derivation=Derivation("The last layer's logits", LOGITS.expr).multiply("are cut along the vocabulary", 1 / _t, LOGITS.expr / _t),
    **_MEMORY,
)

PLAN_STATE = define(
    g.parallel_state_bytes,
    name="plan_state_bytes",
    conventions=(RECIPE,),
    derivation=Derivation("States cut by layers, by matrices and over replicas", PARALLEL_STATE.expr).substitute(
        "with whole sequences on every card", {g.context_parallel: 1}, PARALLEL_STATE.expr.subs(g.context_parallel, 1)
    ),
    **_MEMORY,
)

_UP_TO = [PLAN_STATE.expr, PLAN_ACTIVATION.expr, PLAN_GATHERED.expr, PLAN_LOGITS.expr]

PLAN_MEMORY = define(
    g.plan_memory_bytes,
    conventions=(RECIPE, SCORES, BUFFERS, TRAVEL, *LOGITS.conventions),
    derivation=Derivation("Model states", _UP_TO[0])
    .add("activations", _UP_TO[1], sum(_UP_TO[:2]))
    .add("what is gathered for a moment", _UP_TO[2], sum(_UP_TO[:3]))
    .add("and logits", _UP_TO[3], sum(_UP_TO)),
    **_MEMORY,
)

PLAN_LEDGER = Ledger(
    "memory of the fullest card",
    {"model states": PLAN_STATE, "activations": PLAN_ACTIVATION, "gathered layer": PLAN_GATHERED, "logits": PLAN_LOGITS},
    PLAN_MEMORY,
)

# --- time -----------------------------------------------------------------------------------------------------------------

_TIME = {
    **_PLAN,
    "assumptions": (
        "tensor-parallel traffic stays inside a node and waits for nothing to hide it",
        "each card has a network link of its own; transfers between stages take no time",
        "up to stage 1 gradients are exchanged once a step, behind the last micro-batch's backward pass",
    ),
}
_STEP_FLOP = FLOP_WITH_ATTENTION.expr * g.global_batch * g.seq_length
_REPEATED = sp.Piecewise((sp.Rational(4, 3), g.recomputed > 0), (1, True))
_WORK = COMPUTE_TIME.expr.subs(g.step_flop, _STEP_FLOP)

PLAN_COMPUTE = define(
    g.plan_compute_time,
    conventions=FLOP_WITH_ATTENTION.conventions,
    derivation=Derivation("Kernels", COMPUTE_TIME.expr)
    .substitute("for all tokens of a step", {g.step_flop: _STEP_FLOP}, _WORK)
    .multiply("with a second forward pass, a third of the work, where layers are rebuilt", _REPEATED, _WORK * _REPEATED)
    .multiply("and P-1 slots more than the M that work", (_M + _P - 1) / _M, _WORK * _REPEATED * (_M + _P - 1) / _M),
    **_TIME,
)

_TP = TP_MODEL.expr * _M / (_P * g.link_bandwidth)
PLAN_TP = define(
    g.plan_tp_time,
    conventions=TP_MODEL.conventions,
    derivation=Derivation("All layers' collectives for a micro-batch", TP_MODEL.expr)
    .multiply("a stage has its share of the layers, and every micro-batch", _M / _P, TP_MODEL.expr * _M / _P)
    .multiply("over the links inside the node", 1 / g.link_bandwidth, _TP),
    **_TIME,
)

_SENT = ZERO_TRAFFIC.expr.subs({g.num_params: g.num_params / (_t * _P), g.accumulation_steps: _M}, simultaneous=True)
PLAN_DP = define(
    g.plan_dp_time,
    conventions=ZERO_TRAFFIC.conventions,
    derivation=Derivation("What a rank sends under ZeRO", ZERO_TRAFFIC.expr)
    .substitute("of its share of the model", {g.num_params: g.num_params / (_t * _P), g.accumulation_steps: _M}, _SENT)
    .multiply("over its network link", 1 / g.bandwidth, _SENT / g.bandwidth),
    **_TIME,
)

_BACKWARD = sp.Rational(2, 3)
_BEHIND = sp.Piecewise((_BACKWARD / _M, _z <= 1), (_BACKWARD, _z <= 2), (1, True))
PLAN_HIDDEN = define(
    g.plan_hidden_time,
    derivation=Derivation("A step's computation", _WORK).multiply(
        "stage 3 has traffic in all of it, stage 2 in backward, two thirds, the others in one micro-batch's", _BEHIND, _WORK * _BEHIND
    ),
    conventions=FLOP_WITH_ATTENTION.conventions,
    **_TIME,
)

_SHOWS = sp.Max(0 * SECOND, g.plan_dp_time - g.plan_hidden_time)
PLAN_STEP = define(
    g.plan_step_time,
    derivation=Derivation("Between replicas the traffic takes", g.plan_dp_time)
    .add("of which computation hides", -g.plan_hidden_time, g.plan_dp_time - g.plan_hidden_time)
    .at_least("at most all", 0 * SECOND, _SHOWS)
    .add("Computation and idling", g.plan_compute_time, _SHOWS + g.plan_compute_time)
    .add("and the layers' own collectives come on top", g.plan_tp_time, _SHOWS + g.plan_compute_time + g.plan_tp_time),
    **_TIME,
)
