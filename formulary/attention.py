"""What the forward pass leaves behind for the backward pass, and what attention reads and writes on the way.

The ledger names the tensors of one Transformer layer. An activation of the residual stream has s·b·h elements; an
attention score belongs to a pair of tokens, so scores grow with the sequence squared.
"""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .units import BYTE, FLOP, TOKEN

KORTHIKANTI = "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022, section 4"

SCORES = Convention(
    "scores",
    "What does attention keep of its score matrix?",
    (
        Alternative(
            "standard_attention",
            "16-bit softmax output, one-byte dropout mask, 16-bit dropped output: 5 bytes",
            "Korthikanti et al.",
            {"bytes_per_score": 5},
        ),
        Alternative(
            "one_score_copy", "16-bit softmax output alone, no dropout: 2 bytes", "attention without dropout", {"bytes_per_score": 2}
        ),
        Alternative(
            "flash_attention",
            "nothing: the backward pass rebuilds the scores (its row statistics, 4 bytes per head and token, are counted apart)",
            "FlashAttention; torch scaled_dot_product_attention",
            {"bytes_per_score": 0},
        ),
    ),
)

# name: (bytes per element of the residual stream, why the backward pass needs it)
SAVED = {
    "attention norm input": (2, "The first LayerNorm keeps its 16-bit input"),
    "attention input": (2, "The query, key and value projections share one input"),
    "queries, keys, values": (6, "The product of queries and keys keeps both, the weighted sum keeps the values"),
    "output projection input": (2, "The output projection keeps what the heads return"),
    "attention dropout mask": (1, "Dropout keeps one byte an element"),
    "MLP norm input": (2, "The second LayerNorm keeps its input"),
    "MLP input": (2, "The first matrix of the MLP keeps its input"),
    "MLP pre-activation": (8, "GELU keeps its input, which is four times as wide"),
    "MLP activation": (8, "The second matrix keeps its input, just as wide"),
    "MLP dropout mask": (1, "The last dropout keeps its mask"),
}

RESIDUAL_ELEMENTS = g.seq_length * g.micro_batch * g.hidden_size / TOKEN
SCORE_ELEMENTS = g.num_heads * g.seq_length**2 * g.micro_batch / TOKEN**2

_LAYER = {
    "source": KORTHIKANTI,
    "chapter": 3,
    "covers": ("F20",),
    "assumptions": (
        "16-bit activations, one-byte dropout masks",
        "GELU MLP four times as wide as the model",
        "nothing recomputed, nothing sharded",
        "embeddings, logits and LayerNorm statistics not counted",
    ),
}


def _kept(name):
    return SAVED[name][0] * BYTE * RESIDUAL_ELEMENTS


def _one_layer():
    """Tensor after tensor, the activations of one layer that grow with the sequence."""
    names = list(SAVED)
    steps = Derivation(SAVED[names[0]][1], _kept(names[0]))
    for name in names[1:]:
        steps = steps.add(SAVED[name][1], _kept(name), steps.expr + _kept(name))
    return steps


_LINEAR_STEPS = _one_layer()

LINEAR_ACTIVATION = define(
    g.linear_activation_bytes,
    derivation=_LINEAR_STEPS.multiply("Every layer keeps its own", g.num_layers, _LINEAR_STEPS.expr * g.num_layers),
    **_LAYER,
)

SCORE_ACTIVATION = define(
    g.score_activation_bytes,
    conventions=(SCORES,),
    derivation=Derivation("Every head has one score for each pair of tokens", SCORE_ELEMENTS)
    .multiply("Each score costs what attention keeps of it", g.bytes_per_score, SCORE_ELEMENTS * g.bytes_per_score)
    .multiply("in every layer", g.num_layers, SCORE_ELEMENTS * g.bytes_per_score * g.num_layers),
    **_LAYER,
)

ACTIVATION = define(
    g.activation_bytes,
    conventions=(SCORES,),
    derivation=Derivation("The tensors of the residual stream and of the MLP", LINEAR_ACTIVATION.expr).add(
        "and the scores", SCORE_ACTIVATION.expr, LINEAR_ACTIVATION.expr + SCORE_ACTIVATION.expr
    ),
    **_LAYER,
)

_PARTS = {name: Formula(g.saved_tensor_bytes, _kept(name) * g.num_layers, source=KORTHIKANTI, name=f"{name} bytes") for name in SAVED} | {
    "attention scores": SCORE_ACTIVATION
}

ACTIVATION_LEDGER = Ledger("activations of one micro-batch", _PARTS, ACTIVATION)

LAYER_ACTIVATION = define(
    g.layer_activation_bytes,
    conventions=(SCORES,),
    derivation=Derivation("All layers together keep", ACTIVATION.expr).substitute(
        "Take one of them", {g.num_layers: 1}, 34 * BYTE * RESIDUAL_ELEMENTS + g.bytes_per_score * SCORE_ELEMENTS
    ),
    **_LAYER,
)

_FFN_ELEMENTS = g.seq_length * g.micro_batch * g.ffn_size / TOKEN
_SWIGLU_LAYER = 16 * BYTE * RESIDUAL_ELEMENTS + 8 * BYTE * _FFN_ELEMENTS

SWIGLU_ACTIVATION = define(
    g.swiglu_activation_bytes,
    derivation=Derivation("Two norm inputs, 16-bit", 4 * BYTE * RESIDUAL_ELEMENTS)
    .add("Attention: its input, queries, keys, values, the heads' output", 10 * BYTE * RESIDUAL_ELEMENTS, 14 * BYTE * RESIDUAL_ELEMENTS)
    .add("The gate and up matrices share one input", 2 * BYTE * RESIDUAL_ELEMENTS, 16 * BYTE * RESIDUAL_ELEMENTS)
    .add("Four tensors as wide as the MLP: gate, SiLU of the gate, up, their product", 8 * BYTE * _FFN_ELEMENTS, _SWIGLU_LAYER)
    .multiply("in every layer", g.num_layers, _SWIGLU_LAYER * g.num_layers),
    source="LLaMA architecture: Touvron et al., 2023, section 2.2; counted as Korthikanti et al. do",
    chapter=3,
    covers=("F20",),
    assumptions=(
        "16-bit activations, no dropout, scores not kept",
        "key-value heads as many as query heads",
        "SiLU not fused with the product",
    ),
)

ACTIVATION_HEADROOM = define(
    g.activation_headroom_bytes,
    conventions=(SCORES,),
    derivation=Derivation("What the model states leave free of a card", g.zero_headroom_bytes).add(
        "less the activations of a micro-batch", -ACTIVATION.expr, g.zero_headroom_bytes - ACTIVATION.expr
    ),
    **_LAYER,
)

# coarser parts, for a picture: (label, names of SAVED)
_GROUPS = {
    "norms": ("attention norm input", "MLP norm input"),
    "attention": ("attention input", "queries, keys, values", "output projection input"),
    "MLP": ("MLP input", "MLP pre-activation", "MLP activation"),
    "dropout masks": ("attention dropout mask", "MLP dropout mask"),
}
_GROUPED = {
    label: Formula(
        g.saved_tensor_bytes, sum(_PARTS[name].expr for name in names), source=KORTHIKANTI, name=f"{label.replace(' ', '_')}_kept_bytes"
    )
    for label, names in _GROUPS.items()
}
ACTIVATION_GROUPS = Ledger("activations of one micro-batch", _GROUPED | {"scores": SCORE_ACTIVATION}, ACTIVATION)

# --- doubling the sequence ---------------------------------------------------------------------------------------------

SCORE_SHARE = define(
    g.score_share,
    conventions=(SCORES,),
    derivation=Derivation("Scores over all", SCORE_ACTIVATION.expr / ACTIVATION.expr).rewrite(
        "Batch, layers and one factor of the sequence cancel",
        g.bytes_per_score
        * g.num_heads
        * g.seq_length
        / (34 * BYTE * TOKEN * g.hidden_size + g.bytes_per_score * g.num_heads * g.seq_length),
    ),
    **{**_LAYER, "covers": ("F22",)},
)

DOUBLING_GROWTH = define(
    g.doubling_growth,
    derivation=Derivation("The rest grows in step with the sequence", 2 * (1 - g.score_share)).add(
        "the scores with its square", 4 * g.score_share, 2 + 2 * g.score_share
    ),
    source=KORTHIKANTI,
    chapter=3,
    covers=("F22",),
    assumptions=("same micro-batch",),
)

DOUBLED_SCORE_SHARE = define(
    g.doubled_score_share,
    derivation=Derivation("Scores are four times what they were", 4 * g.score_share).multiply(
        "in a total that has grown", 1 / DOUBLING_GROWTH.expr, 2 * g.score_share / (1 + g.score_share)
    ),
    source=KORTHIKANTI,
    chapter=3,
    covers=("F22",),
    assumptions=("same micro-batch",),
)

CROSSOVER_LENGTH = define(
    g.crossover_length,
    conventions=(SCORES,),
    derivation=Derivation("Scores over the rest", SCORE_ACTIVATION.expr / LINEAR_ACTIVATION.expr).solve(
        "Both weigh the same", g.seq_length, 1, 34 * BYTE * TOKEN * g.hidden_size / (g.bytes_per_score * g.num_heads)
    ),
    **_LAYER,
)

# --- checkpointing -----------------------------------------------------------------------------------------------------

CHEN = "Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, section 4"

KEPT_INPUT = define(
    g.kept_input_bytes,
    derivation=Derivation("One 16-bit layer input", 2 * BYTE * RESIDUAL_ELEMENTS).multiply(
        "for every layer", g.num_layers, 2 * BYTE * RESIDUAL_ELEMENTS * g.num_layers
    ),
    source=KORTHIKANTI + ", table 2",
    chapter=3,
    covers=("F21",),
    assumptions=("every layer is recomputed from its 16-bit input",),
    conventions=(
        Convention(
            "checkpointed_activations",
            "What stays when activations are checkpointed?",
            (
                Alternative(
                    "layer_inputs",
                    "the 16-bit input of every layer: 2 sbh",
                    "Korthikanti et al. (full recomputation); Ultra-Scale Playbook",
                ),
                Alternative(
                    "all_but_scores",
                    "everything but the scores: 34 sbh",
                    "Korthikanti et al. (selective); EleutherAI's calculator with --checkpoint-activations",
                    formula=LINEAR_ACTIVATION,
                ),
            ),
        ),
    ),
)

FULL_RECOMPUTE_PEAK = define(
    g.full_recompute_peak_bytes,
    conventions=(SCORES,),
    derivation=Derivation("The kept layer inputs", KEPT_INPUT.expr).add(
        "and the layer that is being rebuilt", LAYER_ACTIVATION.expr, KEPT_INPUT.expr + LAYER_ACTIVATION.expr
    ),
    **{**_LAYER, "covers": ("F21",), "assumptions": (*_LAYER["assumptions"], "the rebuilt layer's input is counted in both")},
)

_SEGMENT = {
    "source": CHEN,
    "chapter": 3,
    "covers": ("F21",),
    "assumptions": (
        "layers alike, segments of equal length",
        "no more segments than layers",
        "a segment's input is counted beside its layers",
    ),
}

CHECKPOINT_PEAK = define(
    g.checkpoint_peak_bytes,
    derivation=Derivation("One 16-bit input a segment stays", 2 * BYTE * RESIDUAL_ELEMENTS * g.num_segments).add(
        "and the layers of one segment are rebuilt at a time",
        g.num_layers / g.num_segments * g.layer_activation_bytes,
        2 * BYTE * RESIDUAL_ELEMENTS * g.num_segments + g.num_layers / g.num_segments * g.layer_activation_bytes,
    ),
    valid=((g.num_segments <= g.num_layers, "a segment has a layer at least"),),
    **_SEGMENT,
)

SEGMENTED_PEAK = define(
    g.checkpoint_peak_bytes,
    name="segmented_peak_bytes",
    conventions=(SCORES,),
    derivation=Derivation("The peak with some number of segments", CHECKPOINT_PEAK.expr).substitute(
        "with what one layer keeps",
        [LAYER_ACTIVATION],
        2 * BYTE * RESIDUAL_ELEMENTS * g.num_segments + g.num_layers / g.num_segments * LAYER_ACTIVATION.expr,
    ),
    valid=CHECKPOINT_PEAK.valid,
    **_SEGMENT,
)

_BEST_SEGMENTS = sp.sqrt(g.num_layers * g.layer_activation_bytes / (2 * BYTE * RESIDUAL_ELEMENTS))

UNIT_COST_SEGMENTS = define(
    g.best_segments,
    name="unit_cost_segments",
    derivation=Derivation(
        "Checkpoints and layers of one size each: so many are held", g.num_segments + g.num_layers / g.num_segments
    ).stationary("The fewest", g.num_segments, sp.sqrt(g.num_layers)),
    **{**_SEGMENT, "assumptions": ("a checkpoint weighs as much as all that a layer keeps",)},
)

BEST_SEGMENTS = define(
    g.best_segments,
    conventions=(
        SCORES,
        Convention(
            "checkpoint_cost",
            "What does a checkpoint weigh beside a layer?",
            (
                Alternative("bytes", "its own bytes, 2 sbh: the optimum is near the square root of 17 L", "this book"),
                Alternative(
                    "unit_cost", "as much as a layer: the optimum is the square root of L", "Chen et al.", formula=UNIT_COST_SEGMENTS
                ),
            ),
        ),
    ),
    derivation=Derivation("The peak with some number of segments", CHECKPOINT_PEAK.expr)
    .stationary("The lowest peak", g.num_segments, _BEST_SEGMENTS)
    .substitute("with what one layer keeps", [LAYER_ACTIVATION], _BEST_SEGMENTS.subs(g.layer_activation_bytes, LAYER_ACTIVATION.expr))
    .rewrite(
        "Sequence and batch cancel",
        sp.sqrt(g.num_layers * (17 + g.bytes_per_score * g.num_heads * g.seq_length / (2 * BYTE * TOKEN * g.hidden_size))),
    ),
    **_SEGMENT,
)

RECOMPUTE_GROWTH = define(
    g.recompute_growth,
    derivation=Derivation("Forward is one part of a step, backward two: recomputing a share of the forward adds", g.recomputed_share)
    .multiply("of three", sp.Rational(1, 3), g.recomputed_share / 3)
    .add("to the step itself", 1, 1 + g.recomputed_share / 3),
    source=KORTHIKANTI,
    chapter=3,
    covers=("F21",),
    assumptions=("forward 2, backward 4 FLOP per parameter and token", "the recomputation hides nowhere"),
)

_ATTENTION_FLOP = 4 * g.seq_length**2 / TOKEN**2 * g.hidden_size

SELECTIVE_OVERHEAD = define(
    g.selective_overhead,
    derivation=Derivation("Rebuilding the scores repeats two products, s²h multiply-adds each", _ATTENTION_FLOP)
    .multiply(
        "over a step: three times those and the 24 sh² of the matrices",
        1 / (3 * (_ATTENTION_FLOP + 24 * g.seq_length / TOKEN * g.hidden_size**2)),
        g.seq_length / (3 * (g.seq_length + 6 * TOKEN * g.hidden_size)),
    )
    .rewrite("In the usual form", g.seq_length / (18 * TOKEN * g.hidden_size * (1 + g.seq_length / (6 * TOKEN * g.hidden_size)))),
    source=KORTHIKANTI,
    chapter=3,
    covers=("F21",),
    assumptions=("MLP four times as wide as the model", "embedding and logits not counted", "all scores computed, causal or not"),
)

# --- reads and writes ---------------------------------------------------------------------------------------------------

DAO = "Dao et al., FlashAttention, 2022, theorem 2 and algorithm 1"

_TOKENS = g.seq_length / TOKEN
_IO = {
    "source": DAO,
    "chapter": 4,
    "covers": ("F23",),
    "assumptions": ("one head, forward pass, elements", "on-chip memory between d and s·d elements", "block sizes divide evenly"),
}

STANDARD_ACCESSES = define(
    g.standard_accesses,
    derivation=Derivation("Queries, keys and values are read, the output is written", 4 * _TOKENS * g.head_dim).add(
        "Scores are written, read by softmax, written by it and read for the weighted sum",
        4 * _TOKENS**2,
        4 * _TOKENS**2 + 4 * _TOKENS * g.head_dim,
    ),
    **_IO,
)

SRAM_ELEMENTS = define(
    g.sram_elements,
    derivation=Derivation("On-chip memory of one multiprocessor", g.multiprocessor_memory).multiply(
        "two bytes an element", 1 / (2 * BYTE), g.multiprocessor_memory / (2 * BYTE)
    ),
    **{**_IO, "assumptions": ("16-bit elements, all of the memory for the kernel",)},
)

LEAST_ACCESSES = define(
    g.least_accesses,
    derivation=Derivation("Queries, keys and values are read once", 3 * _TOKENS * g.head_dim).add(
        "and the output is written once", _TOKENS * g.head_dim, 4 * _TOKENS * g.head_dim
    ),
    **_IO,
)

_BLOCKS = 4 * _TOKENS * g.head_dim / g.sram_elements
_ONCE, _STREAMED, _STATISTICS = 2 * _TOKENS * g.head_dim, 3 * _TOKENS * g.head_dim * _BLOCKS, 4 * _TOKENS * _BLOCKS

FLASH_ORDER = define(
    g.flash_accesses_order,
    derivation=Derivation("All queries stream past every block of keys and values", _TOKENS * g.head_dim).multiply(
        "and the sequence has that many blocks, up to a constant",
        _TOKENS * g.head_dim / g.sram_elements,
        _TOKENS**2 * g.head_dim**2 / g.sram_elements,
    ),
    **_IO,
)

_TILED = {**_IO, "assumptions": (*_IO["assumptions"], "keys and values in the outer loop, as in FlashAttention 1")}

FLASH_ACCESSES = define(
    g.flash_accesses,
    derivation=Derivation("A quarter of the chip holds keys: 4sd/M blocks of keys and values, each read once", _ONCE)
    .add("Past every block stream the queries, and the outputs in and out", _STREAMED, _ONCE + _STREAMED)
    .add("with two row statistics, read and written", _STATISTICS, _ONCE + _STREAMED + _STATISTICS)
    .rewrite(
        "Collected",
        2 * _TOKENS * g.head_dim + (12 * g.head_dim + 16) * g.head_dim * _TOKENS**2 / g.sram_elements,
    ),
    conventions=(
        Convention(
            "access_count",
            "Which accesses of tiled attention count?",
            (
                Alternative("every_access", "each element read or written, constants and all", "this book"),
                Alternative("order", "the order alone, with no constant", "Dao et al., theorem 2", formula=FLASH_ORDER),
            ),
        ),
    ),
    **_TILED,
)

ACCESS_SAVING = define(
    g.access_saving,
    derivation=Derivation("Accesses with the scores stored, over those with tiles", g.standard_accesses / g.flash_accesses)
    .substitute("Each counted", [STANDARD_ACCESSES, FLASH_ACCESSES], STANDARD_ACCESSES.expr / FLASH_ACCESSES.expr)
    .rewrite(
        "One factor of the sequence cancels",
        4 * (_TOKENS + g.head_dim) / (2 * g.head_dim + (12 * g.head_dim + 16) * g.head_dim * _TOKENS / g.sram_elements),
    ),
    **_TILED,
)

_PRODUCTS = Derivation("Queries times keys, and weights times values: a multiply-add each", 2 * FLOP * _TOKENS**2 * g.head_dim).multiply(
    "which is two FLOP", 2, 4 * FLOP * _TOKENS**2 * g.head_dim
)


def _intensity(accesses, name, details):
    """FLOP of a head over the bytes of its 16-bit `accesses`."""
    return define(
        g.attention_intensity,
        name=name,
        derivation=_PRODUCTS.multiply(
            "over the accesses, two bytes each", 1 / (2 * BYTE * accesses.expr), _PRODUCTS.expr / (2 * BYTE * accesses.expr)
        ),
        **{**details, "assumptions": (*details["assumptions"], "16-bit elements, softmax's own FLOP not counted")},
    )


STANDARD_INTENSITY = _intensity(STANDARD_ACCESSES, "standard_intensity", _IO)
FLASH_INTENSITY = _intensity(FLASH_ACCESSES, "flash_intensity", _TILED)

_MERGED_MAX = sp.Max(g.row_max, g.block_max)
_OLD, _NEW = sp.exp(g.row_max - _MERGED_MAX), sp.exp(g.block_max - _MERGED_MAX)
_ONLINE = {
    "source": "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al., FlashAttention, 2022, section 3.1",
    "chapter": 4,
    "covers": ("F23",),
    "assumptions": ("the output so far is normalised, the new block's is not",),
}

MERGED_ROW_SUM = define(
    g.merged_row_sum,
    derivation=Derivation("The sum so far, its exponents counted from zero again", sp.exp(g.row_max) * g.row_sum)
    .add("with the block's", sp.exp(g.block_max) * g.block_sum, sp.exp(g.row_max) * g.row_sum + sp.exp(g.block_max) * g.block_sum)
    .multiply("and counted from the larger maximum", sp.exp(-_MERGED_MAX), _OLD * g.row_sum + _NEW * g.block_sum),
    **_ONLINE,
)

MERGED_OUTPUT = define(
    g.merged_output,
    derivation=Derivation("The mean so far, weighted again", g.row_sum * g.row_output)
    .multiply("and counted from the larger maximum", _OLD, _OLD * g.row_sum * g.row_output)
    .add("with the block's weighted sum", _NEW * g.block_output, _OLD * g.row_sum * g.row_output + _NEW * g.block_output)
    .multiply(
        "over the weights of both",
        1 / MERGED_ROW_SUM.expr,
        (_OLD * g.row_sum * g.row_output + _NEW * g.block_output) / (_OLD * g.row_sum + _NEW * g.block_sum),
    ),
    **_ONLINE,
)

ATTENTION_STATISTICS = define(
    g.attention_statistics_bytes,
    derivation=Derivation("One fp32 number", 4 * BYTE)
    .multiply("for each row of scores", _TOKENS * g.num_heads * g.micro_batch, 4 * BYTE * _TOKENS * g.num_heads * g.micro_batch)
    .multiply("of every layer", g.num_layers, 4 * BYTE * _TOKENS * g.num_heads * g.micro_batch * g.num_layers),
    source=DAO,
    chapter=3,
    covers=("F20", "F23"),
    assumptions=("FlashAttention keeps its output and each row's log-sum-exp",),
)

LOGITS = define(
    g.logits_bytes,
    derivation=Derivation("Every token has one logit for each word of the vocabulary", _TOKENS * g.micro_batch * g.vocab_size).multiply(
        "and each costs what the loss keeps of it", g.bytes_per_logit, _TOKENS * g.micro_batch * g.vocab_size * g.bytes_per_logit
    ),
    source=KORTHIKANTI + ".3",
    chapter=3,
    covers=("F20",),
    assumptions=("all tokens at once, nothing sharded or chunked",),
    conventions=(
        Convention(
            "logits",
            "What does the loss keep of a logit?",
            (
                Alternative("fp32_logits", "one fp32 copy: 4 bytes", "Korthikanti et al.; Megatron-LM", {"bytes_per_logit": 4}),
                Alternative(
                    "upcast_logits",
                    "16-bit logits and their fp32 log-probabilities: 6 bytes",
                    "torch under bf16 with a loss in fp32",
                    {"bytes_per_logit": 6},
                ),
                Alternative(
                    "bf16_logits",
                    "16-bit logits alone: 2 bytes",
                    "fused linear and cross-entropy kernels keep at most this",
                    {"bytes_per_logit": 2},
                ),
            ),
        ),
    ),
)
