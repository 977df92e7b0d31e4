"""What fits: the largest model, the fewest cards, head-room, and states cut three ways at once."""

import sympy as sp

from . import glossary as g
from .amounts import BINARY, DECIMAL
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define
from .memory import PARAM_STATE, RECIPE, ZERO_STATE
from .units import BYTE

_FIT = {
    "source": "the ZeRO paper's ledger, solved for the model",
    "chapter": 11,
    "covers": ("F35",),
    "conventions": (RECIPE,),
    "assumptions": ("states sharded evenly over all data-parallel ranks (ZeRO-3, FSDP)", "activations do not depend on the model's size"),
}
_LEFT = g.memory_capacity - g.activation_bytes - g.reserve_bytes - g.transient_bytes
_ROOM = (g.activation_bytes + g.reserve_bytes + g.transient_bytes <= g.memory_capacity, "a card must have room for these")

_FILLED = (
    Derivation("States of a model of that size, on one of the cards", PARAM_STATE.expr * g.largest_params / g.world_size)
    .add("its activations", g.activation_bytes, PARAM_STATE.expr * g.largest_params / g.world_size + g.activation_bytes)
    .add(
        "the reserve and what is gathered for a moment",
        g.reserve_bytes + g.transient_bytes,
        PARAM_STATE.expr * g.largest_params / g.world_size + g.activation_bytes + g.reserve_bytes + g.transient_bytes,
    )
)

UNSHARDED_LARGEST = define(
    g.largest_params,
    name="unsharded_largest_params",
    valid=((g.activation_bytes + g.reserve_bytes <= g.memory_capacity, "a card must have room for these"),),
    derivation=_FILLED.substitute(
        "One card, nothing sharded, nothing gathered",
        {g.world_size: 1, g.transient_bytes: 0},
        PARAM_STATE.expr * g.largest_params + g.activation_bytes + g.reserve_bytes,
    ).solve(
        "fills the card", g.largest_params, g.memory_capacity, (g.memory_capacity - g.activation_bytes - g.reserve_bytes) / PARAM_STATE.expr
    ),
    **{**_FIT, "assumptions": ("plain data parallelism: every card holds all states",)},
)

LARGEST_PARAMS = define(
    g.largest_params,
    derivation=_FILLED.solve("fills the card", g.largest_params, g.memory_capacity, g.world_size * _LEFT / PARAM_STATE.expr),
    valid=(_ROOM,),
    **_FIT,
)

FEWEST_GPUS = define(
    g.fewest_gpus,
    derivation=Derivation("All model states", PARAM_STATE.expr * g.num_params)
    .multiply("over what is left for them on each card", 1 / _LEFT, PARAM_STATE.expr * g.num_params / _LEFT)
    .round_up("whole cards", sp.ceiling(PARAM_STATE.expr * g.num_params / _LEFT)),
    valid=(_ROOM,),
    **_FIT,
)

# --- units and head-room ------------------------------------------------------------------------------------------------

_STEP = sp.Rational(BINARY["Ki"], DECIMAL["k"])
_UNITS = {"source": "IEC 80000-13 (binary prefixes)", "chapter": 0, "covers": ("F38",)}

PREFIX_RATIO = define(
    g.prefix_ratio,
    derivation=Derivation("A binary prefix multiplies by two to the tenth where a decimal one multiplies by ten cubed", _STEP).power(
        "once for each step from kilo up", g.prefix_power, _STEP**g.prefix_power
    ),
    assumptions=(),
    **_UNITS,
)

_DECIMAL = DECIMAL["k"] ** g.prefix_power

DECIMAL_BYTES = define(
    g.decimal_bytes,
    derivation=Derivation("A figure of single bytes", g.stated_figure * BYTE).multiply(
        "a thousand for each step of the prefix", _DECIMAL, g.stated_figure * BYTE * _DECIMAL
    ),
    assumptions=(),
    **_UNITS,
)

BINARY_BYTES = define(
    g.binary_bytes,
    derivation=Derivation("With a decimal prefix", DECIMAL_BYTES.expr).multiply(
        "a binary one is worth more, two to the tenth for each step",
        PREFIX_RATIO.expr,
        g.stated_figure * BYTE * BINARY["Ki"] ** g.prefix_power,
    ),
    assumptions=(),
    **_UNITS,
)

BIT_BYTES = define(
    g.decimal_bit_bytes,
    derivation=Derivation("With a decimal prefix, if they were bytes", DECIMAL_BYTES.expr).multiply(
        "a byte is eight bits", sp.Rational(1, 8), g.stated_figure * BYTE * _DECIMAL / 8
    ),
    assumptions=(),
    **_UNITS,
)

FREE_SHARE = define(
    g.free_share,
    derivation=Derivation("The prediction fills so much of what was planned for", 1 / g.safety_factor)
    .multiply("that is taken away", -1, -1 / g.safety_factor)
    .add("from the whole card, and the rest is free", 1, 1 - 1 / g.safety_factor),
    source="definition",
    chapter=0,
    covers=("F38",),
    assumptions=("the card is as large as what was planned for",),
)

SAFETY_FACTOR = define(
    g.safety_factor,
    derivation=Derivation("Free share for a margin", FREE_SHARE.expr).solve(
        "as wanted", g.safety_factor, g.free_share, 1 / (1 - g.free_share)
    ),
    source="definition",
    chapter=0,
    covers=("F38",),
    assumptions=FREE_SHARE.assumptions,
)

# --- three ways at once -------------------------------------------------------------------------------------------------

_3D = {
    "source": "Megatron-LM, docs: distributed optimizer; Narayanan et al., 2021",
    "chapter": 11,
    "covers": ("F39",),
    "assumptions": ("layers split evenly over stages, matrices evenly over tensor-parallel ranks", "embeddings split like the rest"),
}

NUM_GPUS = define(
    g.num_gpus,
    derivation=Derivation("A layer's matrices are cut", g.tensor_parallel)
    .multiply("and every stage is so many cards", g.num_stages, g.tensor_parallel * g.num_stages)
    .multiply("sequences may be cut as well", g.context_parallel, g.tensor_parallel * g.num_stages * g.context_parallel)
    .multiply("and there are so many replicas", g.world_size, g.tensor_parallel * g.num_stages * g.context_parallel * g.world_size),
    **_3D,
)

_SHARE = {g.num_params: g.num_params / (g.tensor_parallel * g.num_stages)}


def _cut(result, ranks, **details):
    """Model states of one card when ZeRO shards over `ranks`."""
    share = {**_SHARE, g.world_size: ranks}
    return define(
        result,
        conventions=(RECIPE, *details.pop("conventions", ())),
        derivation=Derivation("One rank under ZeRO", ZERO_STATE.expr).substitute(
            "of the share of the model that tensor and pipeline parallelism leave it", share, ZERO_STATE.expr.subs(share, simultaneous=True)
        ),
        **_3D,
        **details,
    )


DATA_ONLY_STATE = _cut(g.parallel_state_bytes, g.world_size, name="data_parallel_only_state_bytes")

PARALLEL_STATE = _cut(
    g.parallel_state_bytes,
    g.world_size * g.context_parallel,
    conventions=(
        Convention(
            "shard_over",
            "Over which ranks does the optimizer shard?",
            (
                Alternative("data_and_context", "data- and context-parallel ranks: they hold the same weights", "Megatron-LM; torchtitan"),
                Alternative("data_only", "data-parallel ranks alone", "plain ZeRO inside a context-parallel job", formula=DATA_ONLY_STATE),
            ),
        ),
    ),
)

# --- the allocator ------------------------------------------------------------------------------------------------------

_ALLOCATOR = {
    "source": "PyTorch, docs: CUDA semantics, memory management; c10/cuda/CUDACachingAllocator.cpp",
    "chapter": 14,
    "covers": ("F44",),
}

FRAGMENTATION = define(
    g.fragmentation,
    derivation=Derivation("Held from the driver but not in live tensors", g.reserved_bytes - g.allocated_bytes).multiply(
        "over all that is held", 1 / g.reserved_bytes, (g.reserved_bytes - g.allocated_bytes) / g.reserved_bytes
    ),
    valid=((g.allocated_bytes <= g.reserved_bytes, "tensors lie in memory that is held"),),
    assumptions=("an upper bound: free blocks that fit the next request are no waste",),
    **_ALLOCATOR,
)

BLOCK_BYTES = define(
    g.block_bytes,
    conventions=(
        Convention(
            "allocator",
            "Whose rounding?",
            (
                Alternative("cuda_caching_allocator", "512 bytes", "PyTorch on CUDA", {"allocation_unit": 512}),
                Alternative("cpu_allocator", "64 bytes", "PyTorch on CPU aligns to a cache line", {"allocation_unit": 64}),
            ),
        ),
    ),
    derivation=Derivation("A request in units", g.tensor_bytes / g.allocation_unit)
    .round_up("whole ones", sp.ceiling(g.tensor_bytes / g.allocation_unit))
    .multiply("of their size", g.allocation_unit, g.allocation_unit * sp.ceiling(g.tensor_bytes / g.allocation_unit)),
    assumptions=("a block that is split, not a segment of its own",),
    **_ALLOCATOR,
)
