"""Adapters of low rank on frozen weights, and frozen weights of few bits."""

import math
from fractions import Fraction

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .memory import PARAM_STATE, RECIPE
from .together import GROUPED_HEADS
from .units import BYTE, FLOP, TOKEN

HU = "Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021, section 4"
DETTMERS = "Dettmers et al., QLoRA: Efficient Finetuning of Quantized LLMs, 2023, sections 2 and 3"

_LORA = {"source": HU, "chapter": 12, "covers": ("F24",), "assumptions": ("B starts at zero, A at random", "the base is frozen")}


def _adapter(inputs, outputs):
    return g.lora_rank * (inputs + outputs)


LORA_MATRIX = define(
    g.lora_matrix_params,
    derivation=Derivation("A has a row for each rank, as long as the input", g.lora_rank * g.in_features)
    .add(
        "B has a column for each rank, as long as the output",
        g.lora_rank * g.out_features,
        g.lora_rank * g.in_features + g.lora_rank * g.out_features,
    )
    .rewrite("together", _adapter(g.in_features, g.out_features)),
    **_LORA,
)

BREAK_EVEN_RANK = define(
    g.break_even_rank,
    derivation=Derivation("Parameters of an adapter", LORA_MATRIX.expr).solve(
        "as many as the matrix has",
        g.lora_rank,
        g.in_features * g.out_features,
        g.in_features * g.out_features / (g.in_features + g.out_features),
    ),
    **_LORA,
)

_SWITCHES = ("adapts_query", "adapts_key", "adapts_value", "adapts_output", "adapts_mlp")
TARGETS = Convention(
    "targets",
    "Which matrices get an adapter?",
    tuple(
        Alternative(name, meaning, who, dict(zip(_SWITCHES, switches, strict=True)))
        for name, switches, meaning, who in (
            ("query_value", (1, 0, 1, 0, 0), "queries and values", "Hu et al.; PEFT by default for Llama, Mistral and Qwen2"),
            ("attention", (1, 1, 1, 1, 0), "the four attention matrices", "common in recipes"),
            ("all_linear", (1, 1, 1, 1, 1), "every matrix of a layer", "QLoRA; PEFT's all-linear"),
        )
    ),
)

_QUERY_WIDTH, _KV_WIDTH = g.num_heads * g.head_dim, g.num_kv_heads * g.head_dim
# projection: (switch, widths in and out, matrices of that shape, why)
_PROJECTIONS = {
    "queries": (g.adapts_query, g.hidden_size, _QUERY_WIDTH, 1, "Queries: from the model's width to all heads"),
    "keys": (g.adapts_key, g.hidden_size, _KV_WIDTH, 1, "Keys: only as wide as the key-value heads"),
    "values": (g.adapts_value, g.hidden_size, _KV_WIDTH, 1, "Values: likewise"),
    "output": (g.adapts_output, _QUERY_WIDTH, g.hidden_size, 1, "Output: back from all heads"),
    "MLP": (g.adapts_mlp, g.hidden_size, g.ffn_size, 3, "Gate, up and down: between the model's width and the MLP's"),
}


def _projection(name):
    switch, inputs, outputs, matrices, _ = _PROJECTIONS[name]
    return switch * matrices * _adapter(inputs, outputs)


def _one_layer():
    first, *others = _PROJECTIONS
    steps = Derivation(_PROJECTIONS[first][-1], _projection(first))
    for name in others:
        steps = steps.add(_PROJECTIONS[name][-1], _projection(name), steps.expr + _projection(name))
    return steps


_LAYER = _one_layer()
_ADAPTED = sum(switch for switch, *_ in _PROJECTIONS.values())
LORA_PARAMS = define(
    g.lora_params,
    conventions=(TARGETS,),
    derivation=_LAYER.multiply("in every layer", g.num_layers, g.num_layers * _LAYER.expr),
    valid=(GROUPED_HEADS, (_ADAPTED >= 1, "some matrix must be adapted")),
    **{**_LORA, "assumptions": (*_LORA["assumptions"], "SwiGLU MLP; with a GELU MLP it has two matrices")},
)

_PARTS = {
    name: Formula(g.lora_projection_params, _projection(name) * g.num_layers, source=HU, name=f"{name} adapters", conventions=(TARGETS,))
    for name in _PROJECTIONS
}
LORA_LEDGER = Ledger("adapter parameters", _PARTS, LORA_PARAMS)

LORA_SHARE_OF_BASE = define(
    g.lora_share,
    name="lora_share_of_base",
    derivation=Derivation("Adapters beside the base", g.lora_params).multiply(
        "over the base alone", 1 / g.num_params, g.lora_params / g.num_params
    ),
    valid=((g.lora_params <= g.num_params, "adapters have no more parameters than the model"),),
    **_LORA,
)

LORA_SHARE = define(
    g.lora_share,
    derivation=Derivation("Base and adapters", g.num_params + g.lora_params)
    .power("each parameter is so much of the whole", -1, 1 / (g.num_params + g.lora_params))
    .multiply("and the adapters train", g.lora_params, g.lora_params / (g.num_params + g.lora_params)),
    conventions=(
        Convention(
            "total",
            "Share of what?",
            (
                Alternative("with_adapters", "base and adapters", "PEFT's print_trainable_parameters"),
                Alternative("base_only", "the base without them", "many articles", formula=LORA_SHARE_OF_BASE),
            ),
        ),
    ),
    **_LORA,
)

LORA_STATE = define(
    g.lora_state_bytes,
    conventions=(RECIPE,),
    derivation=Derivation("Only adapters have gradients, master copies and moments", PARAM_STATE.expr).multiply(
        "so many of them", g.lora_params, PARAM_STATE.expr * g.lora_params
    ),
    **_LORA,
)

FROZEN = Convention(
    "frozen",
    "How is the frozen model stored?",
    (
        Alternative("bf16_base", "2 bytes a weight", "LoRA in 16 bit", {"bytes_per_frozen": 2}),
        Alternative("fp32_base", "4 bytes a weight", "LoRA in fp32", {"bytes_per_frozen": 4}),
        Alternative("int8_base", "1 byte a weight, scales not counted", "LLM.int8()", {"bytes_per_frozen": 1}),
        Alternative("nf4_base", "half a byte a weight, scales not counted", "QLoRA, roughly", {"bytes_per_frozen": 0.5}),
    ),
)

LORA_MEMORY = define(
    g.lora_memory_bytes,
    conventions=(
        RECIPE,
        FROZEN,
    ),
    derivation=Derivation("A frozen weight has neither gradient nor moments", g.bytes_per_frozen * g.num_params).add(
        "beside the adapters' states", LORA_STATE.expr, g.bytes_per_frozen * g.num_params + LORA_STATE.expr
    ),
    **_LORA,
)

_WHOLE = {**_LORA, "assumptions": LORA_PARAMS.assumptions, "valid": LORA_PARAMS.valid}

ADAPTED_SHARE = define(
    g.lora_share,
    name="adapted_share",
    conventions=(TARGETS,),
    derivation=Derivation("The adapters' share of all parameters", LORA_SHARE.expr).substitute(
        "which are those of the adapted matrices", {g.lora_params: LORA_PARAMS.expr}, LORA_SHARE.expr.subs(g.lora_params, LORA_PARAMS.expr)
    ),
    **_WHOLE,
)

ADAPTED_MEMORY = define(
    g.lora_memory_bytes,
    name="adapted_memory_bytes",
    conventions=(TARGETS, *LORA_MEMORY.conventions),
    derivation=Derivation("Frozen weights and adapters' states", LORA_MEMORY.expr).substitute(
        "with as many as the adapted matrices have",
        {g.lora_params: LORA_PARAMS.expr},
        LORA_MEMORY.expr.subs(g.lora_params, LORA_PARAMS.expr),
    ),
    **_WHOLE,
)

LORA_FLOP = define(
    g.lora_flop_per_token,
    derivation=Derivation("Forward through the base: a multiply-add a weight", 2 * FLOP / TOKEN * g.num_params)
    .add("Backward through it, for the activations' gradients alone", 2 * FLOP / TOKEN * g.num_params, 4 * FLOP / TOKEN * g.num_params)
    .add("Adapters pay in full", 6 * FLOP / TOKEN * g.lora_params, FLOP / TOKEN * (4 * g.num_params + 6 * g.lora_params)),
    **{**_LORA, "assumptions": (*_LORA["assumptions"], "attention scores not counted", "the first adapter sits in the first layer")},
)

# --- scales and magnitudes ----------------------------------------------------------------------------------------------

KALAJDZIEVSKI = "Kalajdzievski, A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA, 2023"

LORA_SCALE = define(
    g.rank_scale,
    name="lora_scale",
    derivation=Derivation("Alpha, shared out among the ranks", g.lora_alpha).multiply(
        "as a mean over them", 1 / g.lora_rank, g.lora_alpha / g.lora_rank
    ),
    **{**_LORA, "covers": ("F24", "F25")},
)

RSLORA_SCALE = define(
    g.rank_scale,
    name="rslora_scale",
    derivation=Derivation(
        "One step moves B by the learning rate, the gradient at the output and the scaled Ax",
        g.learning_rate * g.output_gradient * g.rank_scale,
    )
    .multiply(
        "The output moves by that times Ax again, whose square grows with the rank",
        g.lora_rank,
        g.learning_rate * g.output_gradient * g.rank_scale * g.lora_rank,
    )
    .multiply("scaled once more", g.rank_scale, g.learning_rate * g.output_gradient * g.rank_scale**2 * g.lora_rank)
    .solve(
        "It moves as far as with rank 1 and scale alpha",
        g.rank_scale,
        g.learning_rate * g.output_gradient * g.lora_alpha**2,
        g.lora_alpha / sp.sqrt(g.lora_rank),
    ),
    source=KALAJDZIEVSKI,
    chapter=12,
    covers=("F25",),
    assumptions=("entries of Ax independent and of one size, whatever the rank", "plain gradient steps from B = 0"),
    conventions=(
        Convention(
            "adapter_scale",
            "How does the adapter's scale depend on its rank?",
            (
                Alternative("rslora", "alpha over the root of the rank: steps of one size at every rank", "rsLoRA"),
                Alternative("lora", "alpha over the rank: steps shrink with the rank", "Hu et al.; PEFT by default", formula=LORA_SCALE),
            ),
        ),
    ),
)

DORA_MATRIX = define(
    g.dora_matrix_params,
    derivation=Derivation("The adapter", LORA_MATRIX.expr).add(
        "and one learned length for each output", g.out_features, LORA_MATRIX.expr + g.out_features
    ),
    source="Liu et al., DoRA: Weight-Decomposed Low-Rank Adaptation, 2024, section 4; PEFT keeps one magnitude per output",
    chapter=12,
    covers=("F25",),
    assumptions=("magnitudes per output feature",),
)

# --- quantised bases ----------------------------------------------------------------------------------------------------

_QLORA = {"source": DETTMERS, "chapter": 12, "covers": ("F26",), "assumptions": ("absmax scales without zero points", "whole blocks")}
_SIZES = ("bytes_per_code", "bytes_per_scale", "bytes_per_group_scale", "quantizer_block", "scale_group")
QUANTIZER = Convention(
    "quantizer",
    "How are the frozen weights stored?",
    tuple(
        Alternative(name, meaning, who, dict(zip(_SIZES, sizes, strict=True)))
        for name, sizes, meaning, who in (
            ("nf4_double_quant", (0.5, 1, 4, 64, 256), "4-bit codes, 8-bit scales of 64, fp32 scales of 256 scales", "QLoRA"),
            ("nf4", (0.5, 4, 0, 64, 256), "4-bit codes, fp32 scales of 64", "bitsandbytes by default"),
        )
    ),
)

_BLOCK_SCALE = g.bytes_per_scale / g.quantizer_block
_GROUP_SCALE = g.bytes_per_group_scale / (g.quantizer_block * g.scale_group)
QUANTIZED_WEIGHT = define(
    g.quantized_weight_bytes,
    conventions=(QUANTIZER,),
    derivation=Derivation("The code", g.bytes_per_code)
    .add("its share of the block's scale", _BLOCK_SCALE, g.bytes_per_code + _BLOCK_SCALE)
    .add("and of the scale of scales", _GROUP_SCALE, g.bytes_per_code + _BLOCK_SCALE + _GROUP_SCALE),
    **_QLORA,
)


def scale_groups(matrices, quantizer_block, scale_group):
    """How many scales of scales (rows, columns) `matrices` need, each of its own: the last block and the last group may be short."""
    scales = [math.ceil(Fraction(rows * columns, quantizer_block)) for rows, columns in matrices]
    return sum(math.ceil(Fraction(number, scale_group)) for number in scales)


DOUBLE_QUANT_SAVING = define(
    g.double_quant_saving,
    derivation=Derivation("One fp32 scale a block", 4 * BYTE / g.quantizer_block).add(
        "becomes one byte and a share of an fp32 scale",
        -(BYTE / g.quantizer_block + 4 * BYTE / (g.quantizer_block * g.scale_group)),
        BYTE / g.quantizer_block * (3 - 4 / g.scale_group),
    ),
    valid=((g.scale_group >= 2, "at least two scales must share one"),),
    conventions=(QUANTIZER,),
    **_QLORA,
)

QLORA_BASE = define(
    g.qlora_base_bytes,
    conventions=(
        QUANTIZER,
        Convention(
            "unquantized",
            "How is the rest stored?",
            (
                Alternative("bf16_rest", "2 bytes", "the published ledger", {"bytes_per_unquantized": 2}),
                Alternative("fp32_rest", "4 bytes", "PEFT's prepare_model_for_kbit_training", {"bytes_per_unquantized": 4}),
            ),
        ),
    ),
    derivation=Derivation("A quantised weight", QUANTIZED_WEIGHT.expr)
    .multiply("for every weight of the quantised matrices", g.quantized_params, QUANTIZED_WEIGHT.expr * g.quantized_params)
    .add(
        "Embeddings, head and norms keep theirs",
        g.bytes_per_unquantized * g.unquantized_params,
        QUANTIZED_WEIGHT.expr * g.quantized_params + g.bytes_per_unquantized * g.unquantized_params,
    ),
    **_QLORA,
)

QLORA_MEMORY = define(
    g.qlora_memory_bytes,
    conventions=(*QLORA_BASE.conventions, RECIPE),
    derivation=Derivation("The quantised model", QLORA_BASE.expr).add(
        "and the adapters' states", LORA_STATE.expr, QLORA_BASE.expr + LORA_STATE.expr
    ),
    **_QLORA,
)

DEQUANTIZED = define(
    g.dequantized_bytes,
    derivation=Derivation("A product needs 16-bit weights", 2 * BYTE).multiply(
        "of one matrix at a time, forward and again backward",
        g.in_features * g.out_features,
        2 * BYTE * g.in_features * g.out_features,
    ),
    source="bitsandbytes, functional.dequantize_4bit",
    chapter=12,
    covers=("F26",),
    assumptions=("the whole matrix is rebuilt, not block by block",),
)
