"""ZeRO and FSDP in motion: what a rank sends in a step, what it holds at the worst moment, and sharding within nodes.

The memory between steps is in `memory`. Traffic is counted in ring passes: gathering the weights once and reducing
the gradients once are one pass each, an all-reduce is two.
"""

import sympy as sp

from . import glossary as g
from .communication import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from .convention import Alternative, Convention
from .data_parallel import DDP_BYTES
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .memory import PARAM_STATE, RECIPE, ZERO_PAPER, ZERO_STATE

FSDP_PAPER = "Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, 2023"
ZERO_PP = "Wang et al., ZeRO++: Extremely Efficient Collective Communication for Giant Model Training, 2023"

_N, _k, _K, _z = g.num_params, g.world_size, g.accumulation_steps, g.stage
_WEIGHTS, _GRADS = g.bytes_per_gathered_weight * _N, g.bytes_per_reduced_grad * _N

# --- how often: passes per optimizer step --------------------------------------------------------------------------------

# implementation: (what it does, who does it, (weight gathers, gradient passes) of stages 0 to 3)
_PASSES = {
    "zero_paper": (
        "reduce-scatter where a shard is enough; gradients whole until the last micro-batch up to stage 1",
        "ZeRO paper",
        ((0, 2), (1, 1), (1, _K), (2 * _K, _K)),
    ),
    "deepspeed": (
        "stages 1 and 2 all-reduce their gradient buckets, stage 2 after every micro-batch",
        "DeepSpeed with use_multi_rank_bucket_allreduce, its default",
        ((0, 2), (1, 2), (1, 2 * _K), (2 * _K, _K)),
    ),
    "torch": (
        "every backward pass synchronises: DDP, ZeroRedundancyOptimizer, SHARD_GRAD_OP, FULL_SHARD",
        "PyTorch without no_sync",
        ((0, 2 * _K), (1, 2 * _K), (_K, _K), (2 * _K, _K)),
    ),
    "torch_no_sync": (
        "only the last backward pass synchronises, and gradients stay whole until then",
        "PyTorch's DDP and FSDP1 with no_sync",
        ((0, 2), (1, 2), (1, 1), (2 * _K, 1)),
    ),
}


def _by_stage(values):
    """The value of each stage, stages of one value together."""
    ends = [stage for stage, value in enumerate(values[:-1]) if value != values[stage + 1]]
    return sp.Piecewise(*((values[stage], _z <= stage) for stage in ends), (values[-1], True))


def _from(stage, value):
    return sp.Piecewise((value, _z >= stage), (0, True))


def _gathers(implementation):
    return _by_stage([gathers for gathers, _ in _PASSES[implementation][2]])


def _reductions(implementation):
    return _by_stage([passes for _, passes in _PASSES[implementation][2]])


def _implementation(default, formula_of):
    """The convention whose first alternative is `default`; `formula_of(name)` makes the others' formulas."""
    return Convention(
        "implementation",
        "Which collectives does the library call, and when?",
        tuple(
            Alternative(name, meaning, who, formula=None if name == default else formula_of(name))
            for name, (meaning, who, _) in _PASSES.items()
        ),
    )


_TRAFFIC = {
    "source": ZERO_PAPER.replace("section 3", "section 7"),
    "covers": ("F05",),
    "chapter": 7,
    "assumptions": ("ring collectives, sent bytes only", "every parameter is trained", "recomputation gathers no weights again"),
}


def _counted(result, count, *conventions):
    """Formulas of one count for the other implementations, as their sources show it."""
    details = {"empirical": "read off the library's source", "conventions": conventions, **_TRAFFIC}
    return lambda name: Formula(result, count(name), name=f"{result.name} of {name}", **details)


WEIGHT_GATHERS = define(
    g.weight_gathers,
    derivation=Derivation("Plain data parallelism has all weights everywhere", 0)
    .add("From stage 1 on a rank updates its slice alone and must be told the others, once a step", _from(1, 1), _from(1, 1))
    .add(
        "Stage 3 keeps no others: it gathers before the forward and before the backward pass of every micro-batch instead",
        _from(3, 2 * _K - 1),
        _gathers("zero_paper"),
    ),
    conventions=(_implementation("zero_paper", _counted(g.weight_gathers, _gathers)),),
    **_TRAFFIC,
)

GRAD_PASSES = define(
    g.grad_passes,
    derivation=Derivation("Plain data parallelism all-reduces once a step: a reduce-scatter and an all-gather", 2)
    .add("From stage 1 on a rank needs the sum of its own slice only, and the second pass falls away", _from(1, -1), 2 + _from(1, -1))
    .add(
        "From stage 2 on no room is left to accumulate whole gradients: every micro-batch reduces",
        _from(2, _K - 1),
        _reductions("zero_paper"),
    ),
    conventions=(_implementation("zero_paper", _counted(g.grad_passes, _reductions)),),
    **_TRAFFIC,
)

# --- how much: bytes per optimizer step ----------------------------------------------------------------------------------

TRAVEL = Convention(
    "travel",
    "In which precision do weights and gradients travel?",
    tuple(
        Alternative(name, meaning, who, {"bytes_per_gathered_weight": weight, "bytes_per_reduced_grad": grad})
        for name, meaning, who, weight, grad in (
            ("travel_16bit", "both in 16 bits", "ZeRO paper; DeepSpeed by default", 2, 2),
            ("travel_grads_32bit", "16-bit weights, fp32 gradients", "FSDP with reduce_dtype=float32; Megatron-LM with bf16", 2, 4),
            ("travel_32bit", "both in fp32", "FSDP without MixedPrecision; DDP under autocast", 4, 4),
        )
    ),
)

_GATHER_ONCE = ALL_GATHER.expr.subs(g.message_bytes, _WEIGHTS)
_REDUCE_ONCE = REDUCE_SCATTER.expr.subs(g.message_bytes, _GRADS)

ZERO_GATHER = define(
    g.zero_gather_bytes,
    derivation=Derivation("To gather all weights once, a rank sends", _GATHER_ONCE).multiply(
        "as often as the stage asks for", WEIGHT_GATHERS.expr, _GATHER_ONCE * WEIGHT_GATHERS.expr
    ),
    conventions=(TRAVEL,),
    **_TRAFFIC,
)

ZERO_REDUCE = define(
    g.zero_reduce_bytes,
    derivation=Derivation("In one pass over the gradients a rank sends", _REDUCE_ONCE).multiply(
        "as often as the stage asks for", GRAD_PASSES.expr, _REDUCE_ONCE * GRAD_PASSES.expr
    ),
    conventions=(TRAVEL,),
    **_TRAFFIC,
)


def _traffic(implementation):
    return _GATHER_ONCE * _gathers(implementation) + _REDUCE_ONCE * _reductions(implementation)


_IMPLEMENTATION = _implementation("zero_paper", _counted(g.zero_traffic_bytes, _traffic, TRAVEL))

_BOTH_PASSES = WEIGHT_GATHERS.expr + GRAD_PASSES.expr

ZERO_ELEMENTS = define(
    g.zero_traffic_elements,
    derivation=Derivation("The part of a message that one ring pass sends", (_k - 1) / _k)
    .limit("is nearly all of it for many ranks", _k, sp.oo, 1)
    .multiply("The message has an element for every parameter", _N, _N)
    .multiply("and passes so many times", _BOTH_PASSES, _N * _BOTH_PASSES),
    **_TRAFFIC,
)

_ASYMPTOTIC = _WEIGHTS * WEIGHT_GATHERS.expr + _GRADS * GRAD_PASSES.expr

ZERO_MANY_RANKS = Formula(
    g.zero_traffic_bytes,
    name="zero_traffic_bytes of many ranks",
    derivation=Derivation("The part of a message that one ring pass sends", (_k - 1) / _k)
    .limit("is nearly all of it for many ranks", _k, sp.oo, 1)
    .multiply("The messages are the weights and the gradients, each as often as it goes round", _ASYMPTOTIC, _ASYMPTOTIC),
    conventions=(TRAVEL,),
    **_TRAFFIC,
)

COUNTED_IN = Convention(
    "counted_in",
    "What is counted?",
    (
        Alternative("bytes", "bytes, with (k-1)/k", "this book"),
        Alternative("many_ranks", "bytes, (k-1)/k dropped", "ml-engineering (stas00)", formula=ZERO_MANY_RANKS),
        Alternative("elements", "elements, (k-1)/k dropped", "ZeRO paper: 2, 2, 2 and 3 times the parameters", formula=ZERO_ELEMENTS),
    ),
)

ZERO_TRAFFIC = define(
    g.zero_traffic_bytes,
    derivation=Derivation("Gathering weights", ZERO_GATHER.expr).add(
        "and reducing gradients", ZERO_REDUCE.expr, ZERO_GATHER.expr + ZERO_REDUCE.expr
    ),
    conventions=(_IMPLEMENTATION, TRAVEL, COUNTED_IN),
    **_TRAFFIC,
)

ZERO_TRAFFIC_LEDGER = Ledger("traffic of one rank", {"gathering weights": ZERO_GATHER, "reducing gradients": ZERO_REDUCE}, ZERO_TRAFFIC)

ZERO_TRAFFIC_RATIO = define(
    g.zero_traffic_ratio,
    derivation=Derivation("Traffic of the stage over that of DDP with no_sync", ZERO_TRAFFIC.expr / DDP_BYTES.expr).rewrite(
        "Parameters and ranks cancel",
        (g.bytes_per_gathered_weight * WEIGHT_GATHERS.expr + g.bytes_per_reduced_grad * GRAD_PASSES.expr) / (2 * g.bytes_per_reduced_grad),
    ),
    conventions=(TRAVEL,),
    **_TRAFFIC,
)


def _passes(implementation):
    return _gathers(implementation) + _reductions(implementation)


def _passes_per_micro_batch(implementation):
    """With K micro-batches in a step, over those with one."""
    return _passes(implementation) / _K / _passes(implementation).subs(_K, 1)


_ACCUMULATION = {**_TRAFFIC, "covers": ("F10",), "assumptions": (*_TRAFFIC["assumptions"], "weights and gradients travel in one precision")}

ACCUMULATION_COMM = define(
    g.accumulation_comm_ratio,
    derivation=Derivation("Passes of a step, weights and gradients alike", _BOTH_PASSES)
    .multiply("spread over the computation of K micro-batches", 1 / _K, _BOTH_PASSES / _K)
    .multiply("over the passes of a step with one", 1 / _BOTH_PASSES.subs(_K, 1), _passes_per_micro_batch("zero_paper"))
    .rewrite(
        "Accumulation thins out communication up to stage 1, by half at most at stage 2, not at all at stage 3",
        _by_stage([1 / _K, 1 / _K, (_K + 1) / (2 * _K), 1]),
    ),
    conventions=(_implementation("zero_paper", _counted(g.accumulation_comm_ratio, _passes_per_micro_batch)),),
    **_ACCUMULATION,
)

# --- what is whole and what is cut ---------------------------------------------------------------------------------------

UNSHARDED = Convention(
    "unsharded",
    "How many bytes of a parameter stay whole under ZeRO-2?",
    tuple(
        Alternative(name, meaning, who, {"whole_bytes_per_param": whole, "cut_bytes_per_param": cut})
        for name, meaning, who, whole, cut in (
            ("zero2_paper", "the 16-bit weights: 2, and 14 are cut", "ZeRO paper", 2, 14),
            ("zero2_deepspeed_docs", "4, and 16 are cut", "DeepSpeed documentation, memory requirements", 4, 16),
            ("zero2_deepspeed_code", "2, and 18 are cut", "DeepSpeed's estimate_zero2_model_states_mem_needs", 2, 18),
        )
    ),
)

ZERO2_STATE = define(
    g.zero2_state_bytes,
    derivation=Derivation("Of each parameter, this stays whole", g.whole_bytes_per_param)
    .add("and of this a rank holds one k-th", g.cut_bytes_per_param / _k, g.whole_bytes_per_param + g.cut_bytes_per_param / _k)
    .multiply("for every parameter", _N, (g.whole_bytes_per_param + g.cut_bytes_per_param / _k) * _N),
    source=ZERO_PAPER,
    covers=("F04",),
    chapter=7,
    assumptions=("even sharding, without padding",),
    conventions=(UNSHARDED,),
)

FLAT_SHARD = define(
    g.flat_shard_params,
    derivation=Derivation("All parameters laid end to end", _N)
    .multiply("divide among the ranks", 1 / _k, _N / _k)
    .round_up("and zeros pad the end, so that all shards are alike", sp.ceiling(_N / _k)),
    source=FSDP_PAPER,
    covers=("F06",),
    chapter=7,
    assumptions=("one flat parameter; each FSDP unit has its own", "libraries may pad further, to align addresses"),
)

# --- FSDP at its peak ----------------------------------------------------------------------------------------------------

_FSDP = {
    "source": FSDP_PAPER,
    "covers": ("F06",),
    "chapter": 7,
    "assumptions": (
        "full sharding; the worst moment is in the backward pass of the first unit it reaches",
        "activations saved so far count whole: with checkpointing they are the units' inputs",
        "allocator fragmentation, context and collective buffers come on top",
    ),
}

BUFFERS = Convention(
    "buffers",
    "How many units are whole at once?",
    tuple(
        Alternative(name, meaning, who, {"gather_buffers": gathers, "reduce_buffers": grads})
        for name, meaning, who, gathers, grads in (
            (
                "unit_and_prefetch",
                "this unit's weights and the next one's, and one unit's gradients",
                "FSDP with BACKWARD_PRE, its default",
                2,
                1,
            ),
            (
                "one_unit",
                "one unit's weights and gradients",
                "FSDP with BACKWARD_POST or no prefetch; DeepSpeed's ZeRO-3 estimate: 4 bytes a parameter of the largest layer",
                1,
                1,
            ),
            ("two_and_two", "two units' weights, two units' gradients", "efficient-dl-systems, week 6", 2, 2),
        )
    ),
)

FSDP_GATHERED = define(
    g.fsdp_gathered_bytes,
    derivation=Derivation("One unit's weights", g.unit_params)
    .multiply("each of so many bytes", g.bytes_per_gathered_weight, g.unit_params * g.bytes_per_gathered_weight)
    .multiply(
        "for the unit at work and those fetched ahead", g.gather_buffers, g.gather_buffers * g.unit_params * g.bytes_per_gathered_weight
    ),
    conventions=(BUFFERS, TRAVEL),
    **_FSDP,
)

FSDP_ROOT = define(
    g.fsdp_root_bytes,
    derivation=Derivation("Embedding, last norm and head belong to no inner unit", g.root_params).multiply(
        "and stay gathered after the forward pass", g.bytes_per_gathered_weight, g.root_params * g.bytes_per_gathered_weight
    ),
    conventions=(TRAVEL,),
    **_FSDP,
)

FSDP_GRADS = define(
    g.fsdp_grad_bytes,
    derivation=Derivation("Backward writes whole gradients of the unit", g.unit_params)
    .multiply("in the precision they are reduced in", g.bytes_per_reduced_grad, g.unit_params * g.bytes_per_reduced_grad)
    .multiply("which live until their reduce-scatter ends", g.reduce_buffers, g.reduce_buffers * g.unit_params * g.bytes_per_reduced_grad),
    conventions=(BUFFERS, TRAVEL),
    **_FSDP,
)

FSDP_ACTIVATIONS = define(
    g.fsdp_activation_bytes,
    derivation=Derivation("What the forward pass saved, of all layers", g.activation_bytes).add(
        "and what this unit's backward pass works with, recomputed tensors included", g.working_bytes, g.activation_bytes + g.working_bytes
    ),
    **_FSDP,
)

_RESIDENT = PARAM_STATE.expr * _N / _k
_SHARDS = Formula(
    g.zero_state_bytes,
    name="zero_state_bytes of full sharding",
    derivation=Derivation("Under ZeRO", ZERO_STATE.expr).substitute("at stage 3", {_z: 3}, _RESIDENT),
    conventions=(RECIPE,),
    **_FSDP,
)

_UPTO = [_RESIDENT, FSDP_GATHERED.expr, FSDP_ROOT.expr, FSDP_GRADS.expr, FSDP_ACTIVATIONS.expr]

FSDP_PEAK = define(
    g.fsdp_peak_bytes,
    derivation=Derivation("A rank always holds its shard of everything", _RESIDENT)
    .add("While a unit works its weights are whole, and the next one's may be on their way", _UPTO[1], sum(_UPTO[:2]))
    .add("The root unit stays whole", _UPTO[2], sum(_UPTO[:3]))
    .add("The unit's gradients are whole until they are reduced", _UPTO[3], sum(_UPTO[:4]))
    .add("and the activations are there in any case", _UPTO[4], sum(_UPTO)),
    conventions=(RECIPE, BUFFERS, TRAVEL),
    **_FSDP,
)

FSDP_LEDGER = Ledger(
    "FSDP at its peak",
    {
        "sharded states": _SHARDS,
        "gathered units": FSDP_GATHERED,
        "root unit": FSDP_ROOT,
        "whole gradients": FSDP_GRADS,
        "activations": FSDP_ACTIVATIONS,
    },
    FSDP_PEAK,
)

# --- what fully_shard gathers --------------------------------------------------------------------------------------------

_WHOLE = g.kept_params

FSDP_GATHER = define(
    g.zero_gather_bytes,
    name="fsdp_gather_bytes",
    derivation=Derivation("The forward pass gathers every parameter", _N)
    .add("and the backward pass those that were let go in between", _N - _WHOLE, 2 * _N - _WHOLE)
    .multiply("in the precision they travel in", g.bytes_per_gathered_weight, (2 * _N - _WHOLE) * g.bytes_per_gathered_weight)
    .multiply("of which a ring pass sends", (_k - 1) / _k, (2 * _N - _WHOLE) * g.bytes_per_gathered_weight * (_k - 1) / _k)
    .multiply("in every micro-batch", _K, _K * (2 * _N - _WHOLE) * g.bytes_per_gathered_weight * (_k - 1) / _k),
    valid=((_WHOLE <= _N, "no more parameters can stay whole than there are"),),
    conventions=(TRAVEL,),
    **{**_TRAFFIC, "source": FSDP_PAPER},
)

# --- sharding within nodes -----------------------------------------------------------------------------------------------

_s, _n = g.ranks_per_node, g.num_nodes
_ALL = _s * _n

_HYBRID = {
    "source": FSDP_PAPER,
    "covers": ("F07",),
    "chapter": 7,
    "assumptions": ("full sharding inside each node, replicas across nodes", "every micro-batch reduces its gradients"),
}


def _full_shard(ranks):
    """Bytes one rank sends in a step of full sharding over so many ranks."""
    return _K * (2 * _WEIGHTS + _GRADS) * (ranks - 1) / ranks


HSDP_STATE = define(
    g.hsdp_state_bytes,
    derivation=Derivation("The model states of a replica", PARAM_STATE.expr * _N).multiply(
        "divide among the ranks of one node; the other nodes hold copies", 1 / _s, PARAM_STATE.expr * _N / _s
    ),
    conventions=(RECIPE,),
    **_HYBRID,
)

HSDP_INTRA = define(
    g.hsdp_intra_bytes,
    derivation=Derivation("Under ZeRO a rank sends", ZERO_TRAFFIC.expr).substitute(
        "at stage 3, among the ranks of its node", {_z: 3, _k: _s}, _full_shard(_s)
    ),
    conventions=(TRAVEL,),
    **_HYBRID,
)

HSDP_INTER = define(
    g.hsdp_inter_bytes,
    derivation=Derivation("An all-reduce across the nodes", ALL_REDUCE.expr.subs(_k, _n))
    .substitute("of the gradient shard", {g.message_bytes: _GRADS / _s}, 2 * _GRADS / _s * (_n - 1) / _n)
    .multiply("after every micro-batch", _K, 2 * _K * _GRADS / _s * (_n - 1) / _n),
    conventions=(TRAVEL,),
    **_HYBRID,
)

HSDP_EGRESS = define(
    g.hsdp_egress_bytes,
    derivation=Derivation("Every rank of the node has its own ring across the nodes", HSDP_INTER.expr).multiply(
        "so a node sends, whatever its size", _s, 2 * _K * _GRADS * (_n - 1) / _n
    ),
    conventions=(TRAVEL,),
    **_HYBRID,
)

_ONE_RING = {**_HYBRID, "assumptions": ("the ring visits the nodes one after the other", "every micro-batch reduces its gradients")}

FULL_SHARD_EGRESS = define(
    g.full_shard_egress_bytes,
    derivation=Derivation("Under ZeRO a rank sends", ZERO_TRAFFIC.expr)
    .substitute("at stage 3, among all ranks", {_z: 3, _k: _ALL}, _full_shard(_ALL))
    .multiply("and one rank of each node has its neighbour outside", 1, _full_shard(_ALL)),
    conventions=(TRAVEL,),
    **_ONE_RING,
)

# --- and how long that takes ---------------------------------------------------------------------------------------------


def _on_the_wire(result, name, sent, because, bandwidth, **details):
    """Bytes of a formula over a bandwidth, with nothing hidden and no latency."""
    steps = Derivation(because, sent.expr).multiply("at that bandwidth", 1 / bandwidth, sent.expr / bandwidth)
    assumptions = (*details.pop("assumptions"), "one network link per node, shared by its ranks", "no latency, nothing hidden")
    return define(result, name=name, derivation=steps, conventions=(TRAVEL,), assumptions=assumptions, **details)


HSDP_INSIDE_TIME = _on_the_wire(g.inside_time, "hsdp_inside_time", HSDP_INTRA, "A rank sends to its own node", g.link_bandwidth, **_HYBRID)
HSDP_CROSSING_TIME = _on_the_wire(g.crossing_time, "hsdp_crossing_time", HSDP_EGRESS, "A node sends to the others", g.bandwidth, **_HYBRID)
FULL_SHARD_CROSSING_TIME = _on_the_wire(
    g.crossing_time, "full_shard_crossing_time", FULL_SHARD_EGRESS, "A node sends to the next one", g.bandwidth, **_ONE_RING
)

# --- a second shard ------------------------------------------------------------------------------------------------------

_HPZ = {
    **_HYBRID,
    "source": ZERO_PP,
    "assumptions": ("states sharded over all ranks, and a second 16-bit weight shard within the node", "rings that visit node after node"),
}

HPZ_STATE = define(
    g.hpz_state_bytes,
    derivation=Derivation("A rank holds its share of everything", PARAM_STATE.expr * _N / _ALL).add(
        "and of the weights once more, divided within the node only",
        g.bytes_per_gathered_weight * _N / _s,
        PARAM_STATE.expr * _N / _ALL + g.bytes_per_gathered_weight * _N / _s,
    ),
    conventions=(RECIPE, TRAVEL),
    **_HPZ,
)

HPZ_EGRESS = define(
    g.hpz_egress_bytes,
    derivation=Derivation("On one ring of all ranks, a node sends", FULL_SHARD_EGRESS.expr).add(
        "but for the backward pass the node gathers its own copy",
        -_K * _WEIGHTS * (_ALL - 1) / _ALL,
        _K * (_WEIGHTS + _GRADS) * (_ALL - 1) / _ALL,
    ),
    conventions=(TRAVEL,),
    **_HPZ,
)
