"""Layers cut across ranks: tensor and sequence parallelism, and what context and expert parallelism send instead.

A column cut followed by a row cut needs no communication in between; the sum after it is an all-reduce of the layer's
boundary tensor. Traffic is per micro-batch, counted in ring passes over that tensor: an all-reduce is two passes, an
all-gather or a reduce-scatter one.
"""

import sympy as sp

from . import glossary as g
from .attention import KORTHIKANTI, RESIDUAL_ELEMENTS, SCORE_ELEMENTS, SCORES
from .communication import ALL_GATHER, ALL_TO_ALL
from .convention import Alternative, Convention
from .data_parallel import GRAD_DTYPE
from .derivation import Derivation
from .formula import define
from .together import GROUPED_HEADS, TOKENS_FOR_ALL
from .units import BYTE, TOKEN

MEGATRON = "Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism, 2019, section 3"
RING_ATTENTION = "Liu, Zaharia and Abbeel, Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023"
ULYSSES = "Jacobs et al., DeepSpeed Ulysses, 2023"
GSHARD = "Lepikhin et al., GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding, 2020"

_t, _h, _L = g.tensor_parallel, g.hidden_size, g.num_layers


def _values(name, question, quantity, *rows):
    """A convention whose alternatives each give one value of `quantity`: rows of (name, meaning, who, value)."""
    return Convention(name, question, tuple(Alternative(*words, {str(quantity): value}) for *words, value in rows))


ACTIVATION_DTYPE = _values(
    "activation_dtype",
    "In which precision do activations travel?",
    g.bytes_per_activation,
    ("activations_16bit", "16 bits: 2 bytes", "mixed-precision training", 2),
    ("activations_8bit", "8 bits: 1 byte", "FP8 dispatch of DeepSeek-V3", 1),
    ("activations_32bit", "fp32: 4 bytes", "training in full precision", 4),
)

# --- traffic -------------------------------------------------------------------------------------------------------------

PASSES = _values(
    "passes",
    "How many ring passes does a layer take per micro-batch?",
    g.passes_per_layer,
    ("tensor_parallel", "an all-reduce per block, forward and backward: 8", "Megatron-LM", 8),
    ("tensor_parallel_recomputed", "and the two of the forward pass again: 12", "Megatron-LM with full recomputation", 12),
    (
        "sequence_parallel",
        "reduce-scatter and all-gather instead; inputs kept as shards are gathered once more per block in backward: 10",
        "Megatron-LM with sequence parallelism; the two extra ones can overlap",
        10,
    ),
    ("one_block", "one of the two blocks only: 4", "counts of 2 all-reduces per MLP or attention block", 4),
)

_TP = {
    "source": MEGATRON,
    "covers": ("F17",),
    "chapter": 9,
    "assumptions": ("heads and feed-forward width divide by t", "per micro-batch; embedding and loss not counted", "ring collectives"),
}

BOUNDARY = define(
    g.boundary_bytes,
    derivation=Derivation("A residual stream of s·b·h elements", RESIDUAL_ELEMENTS).multiply(
        "each of so many bytes", g.bytes_per_activation, RESIDUAL_ELEMENTS * g.bytes_per_activation
    ),
    conventions=(ACTIVATION_DTYPE,),
    **{**_TP, "covers": ("F16", "F17")},
)

_ONE_PASS = BOUNDARY.expr * (_t - 1) / _t

TP_LAYER = define(
    g.tp_layer_bytes,
    derivation=Derivation("One ring pass", ALL_GATHER.expr)
    .substitute("over the boundary tensor, among t ranks", {g.message_bytes: BOUNDARY.expr, g.world_size: _t}, _ONE_PASS)
    .multiply(
        "and as many as: row cuts leave partial sums in both blocks forward, column cuts in both backward, two passes each",
        g.passes_per_layer,
        g.passes_per_layer * _ONE_PASS,
    ),
    conventions=(PASSES, ACTIVATION_DTYPE),
    **_TP,
)

TP_MODEL = define(
    g.tp_model_bytes,
    derivation=Derivation("One layer", TP_LAYER.expr).multiply("and the others", _L, TP_LAYER.expr * _L),
    conventions=(PASSES, ACTIVATION_DTYPE),
    **_TP,
)

_CUTS, _TAKEN = g.row_cuts, g.column_inputs
_PLAN = {
    **_TP,
    "assumptions": (
        "a row-cut matrix leaves a partial sum in the forward pass, a column-cut one a partial gradient in the backward pass",
        "matrices that are given one copy of the activations together leave one gradient, those given a copy each one each",
    ),
}

PLAN_PASSES = define(
    g.passes_per_layer,
    name="plan_passes",
    derivation=Derivation("Each row cut has a sum to add up, each taking in of activations a gradient", _CUTS + _TAKEN).multiply(
        "by an all-reduce, or cut along the sequence by a reduce-scatter and an all-gather: two ring passes either way",
        2,
        2 * (_CUTS + _TAKEN),
    ),
    **_PLAN,
)

ROW_CUT_CALLS = define(
    g.collective_calls,
    name="row_cut_calls",
    derivation=Derivation("One collective for each row cut of a layer", _CUTS).multiply("in every layer", _L, _CUTS * _L),
    **_PLAN,
)

COLUMN_INPUT_CALLS = define(
    g.collective_calls,
    name="column_input_calls",
    derivation=Derivation("One collective for each time a layer's column cuts take in activations", _TAKEN).multiply(
        "in every layer", _L, _TAKEN * _L
    ),
    **_PLAN,
)

REPEATS = _values(
    "repeats",
    "How often are the gradients of norms added up?",
    g.sums_per_step,
    ("summed_once", "once, before the optimizer", "Megatron-LM with sequence parallelism", 1),
    (
        "summed_in_adam",
        "by Adam whenever it uses one: once for the mean, twice for the square: 3",
        "PyTorch's SequenceParallel with Adam",
        3,
    ),
)

_NORMS = 2 * g.norm_vectors * _h * _L

NORM_GRADS = define(
    g.norm_grad_bytes,
    derivation=Derivation("Two norms a layer", _NORMS)
    .multiply("whose gradients each rank knows for its own tokens only", g.bytes_per_reduced_grad, _NORMS * g.bytes_per_reduced_grad)
    .multiply("An all-reduce sends", 2 * (_t - 1) / _t, 2 * _NORMS * g.bytes_per_reduced_grad * (_t - 1) / _t)
    .multiply("as often as they are added up", g.sums_per_step, 2 * g.sums_per_step * _NORMS * g.bytes_per_reduced_grad * (_t - 1) / _t),
    conventions=(REPEATS, GRAD_DTYPE),
    **{**_TP, "source": KORTHIKANTI, "assumptions": ("sequence parallelism; every layer's two norms", "ring collectives")},
)

# --- parameters ----------------------------------------------------------------------------------------------------------

MLP_KIND = _values(
    "mlp_kind",
    "How many matrices does the feed-forward layer have?",
    g.mlp_matrices,
    ("gelu_mlp", "up and down: 2", "GPT-2, GPT-3, BLOOM", 2),
    ("swiglu_mlp", "gate, up and down: 3", "Llama, Mistral, Qwen", 3),
)

TP_MLP = define(
    g.tp_mlp_params,
    derivation=Derivation("A matrix between model and feed-forward width", _h * g.ffn_size)
    .multiply("all matrices of the layer", g.mlp_matrices, g.mlp_matrices * _h * g.ffn_size)
    .multiply(
        "cut along the feed-forward width, by columns on the way up and by rows on the way down",
        1 / _t,
        g.mlp_matrices * _h * g.ffn_size / _t,
    ),
    conventions=(MLP_KIND,),
    **{**_TP, "assumptions": ("the feed-forward width divides by t", "biases not counted")},
)

_QUERY, _KV = 2 * _h * g.head_dim * g.num_heads, 2 * _h * g.head_dim * g.num_kv_heads

TP_ATTENTION = define(
    g.tp_attention_params,
    derivation=Derivation("A key-value head has a key and a value projection; each rank needs its share of them", _KV / _t)
    .at_least(
        "but at least one such head, or its queries have nothing to attend to", _KV / g.num_kv_heads, sp.Max(_KV / _t, 2 * _h * g.head_dim)
    )
    .add(
        "A query head has its projection and its rows of the output projection",
        _QUERY / _t,
        _QUERY / _t + sp.Max(_KV / _t, 2 * _h * g.head_dim),
    ),
    valid=(GROUPED_HEADS, (sp.Eq(sp.Mod(g.num_heads, _t), 0), "every rank needs as many query heads")),
    **{
        **_TP,
        "covers": ("F18",),
        "assumptions": ("query heads divide by t; key-value heads divide by t or t by them, then they are copied", "biases not counted"),
    },
)

_CUT_BIASES, _WHOLE_VECTORS = (3 * _h + g.ffn_size) / _t, 6 * _h

TP_VECTORS = define(
    g.tp_vector_params,
    derivation=Derivation("Biases of queries, keys, values and the MLP's first matrix are cut with their columns", _CUT_BIASES).add(
        "those of the two row-cut matrices, and scale and shift of two norms, are whole on every rank",
        _WHOLE_VECTORS,
        _CUT_BIASES + _WHOLE_VECTORS,
    ),
    **{**_TP, "assumptions": ("a GPT layer: biases everywhere, LayerNorm, as many key-value heads as heads",)},
)

# --- activations ---------------------------------------------------------------------------------------------------------

_SP = {
    "source": KORTHIKANTI,
    "covers": ("F19",),
    "chapter": 9,
    "conventions": (SCORES,),
    "assumptions": (
        "16-bit activations, one-byte dropout masks, GELU MLP four times as wide as the model",
        "sequence parallelism uses the tensor-parallel ranks; context parallelism is another technique",
    ),
}

_CUT = 24 * BYTE * RESIDUAL_ELEMENTS / _t
_COPIED = 10 * BYTE * RESIDUAL_ELEMENTS
_SCORES = g.bytes_per_score * SCORE_ELEMENTS / _t

TP_ACTIVATION = define(
    g.tp_activation_bytes,
    derivation=Derivation("Queries, keys, values, their output and the MLP's inside are cut by heads or columns: 24 of 34 bytes", _CUT)
    .add("Scores belong to heads too", _SCORES, _CUT + _SCORES)
    .add("Norm inputs, block inputs and dropout masks are the same on every rank: 10 bytes", _COPIED, _CUT + _SCORES + _COPIED),
    **_SP,
)

SP_ACTIVATION = define(
    g.sp_activation_bytes,
    derivation=Derivation("Tensor parallelism", TP_ACTIVATION.expr)
    .add("cuts what every rank holds alike along the sequence too", _COPIED / _t - _COPIED, _CUT + _SCORES + _COPIED / _t)
    .rewrite("so that one t-th of everything is left", 34 * BYTE * RESIDUAL_ELEMENTS / _t + _SCORES),
    **_SP,
)

# --- context and expert parallelism --------------------------------------------------------------------------------------

KV_PASSES = _values(
    "kv_passes",
    "How often do keys and values go round?",
    g.kv_passes,
    ("kv_regathered", "forward, again in backward, and their gradients back: 3", "Megatron-LM and Llama 3, which gather them", 3),
    ("kv_kept", "forward, and their gradients back: 2", "implementations that keep the gathered keys and values", 2),
)

_c, _e = g.context_parallel, g.expert_parallel
_TOKENS = g.seq_length * g.micro_batch / TOKEN
_KV_TENSOR = 2 * _TOKENS * g.num_kv_heads * g.head_dim * g.bytes_per_activation

CP_LAYER = define(
    g.cp_layer_bytes,
    derivation=Derivation("A key and a value of every token and key-value head", _KV_TENSOR)
    .multiply("A ring pass shows every rank the parts that the others hold", (_c - 1) / _c, _KV_TENSOR * (_c - 1) / _c)
    .multiply("as often as they go round", g.kv_passes, g.kv_passes * _KV_TENSOR * (_c - 1) / _c),
    source=RING_ATTENTION,
    chapter=9,
    valid=(TOKENS_FOR_ALL,),
    conventions=(KV_PASSES, ACTIVATION_DTYPE),
    assumptions=(
        "s is the whole sequence, of which each rank holds s/c",
        "queries stay where they are",
        "gradients travel like activations",
    ),
)

_SHARD_TENSOR = _TOKENS / _c * g.head_dim * g.bytes_per_activation

ULYSSES_LAYER = define(
    g.ulysses_layer_bytes,
    derivation=Derivation("Queries and outputs of the rank's tokens, every head", 2 * _SHARD_TENSOR * g.num_heads)
    .add(
        "keys and values, every key-value head",
        2 * _SHARD_TENSOR * g.num_kv_heads,
        2 * _SHARD_TENSOR * (g.num_heads + g.num_kv_heads),
    )
    .multiply(
        "An all-to-all swaps tokens for heads and keeps one c-th at home",
        (ALL_TO_ALL.expr / g.message_bytes).subs(g.world_size, _c),
        2 * _SHARD_TENSOR * (g.num_heads + g.num_kv_heads) * (_c - 1) / _c,
    )
    .multiply("forward and backward", 2, 4 * _SHARD_TENSOR * (g.num_heads + g.num_kv_heads) * (_c - 1) / _c),
    source=ULYSSES,
    chapter=9,
    conventions=(ACTIVATION_DTYPE,),
    valid=(
        (sp.Eq(sp.Mod(g.num_heads, _c), 0), "every rank needs as many query heads"),
        (sp.Eq(sp.Mod(g.num_kv_heads, _c), 0), "every rank needs as many key-value heads"),
        TOKENS_FOR_ALL,
    ),
    assumptions=("heads and key-value heads divide by c", "gradients travel like activations"),
)

_ROUTED = g.experts_per_token * BOUNDARY.expr

EP_LAYER = define(
    g.ep_layer_bytes,
    derivation=Derivation("A rank sends each of its tokens to so many experts", _ROUTED)
    .multiply(
        "of which some live on the rank itself",
        (ALL_TO_ALL.expr / g.message_bytes).subs(g.world_size, _e),
        _ROUTED * (_e - 1) / _e,
    )
    .multiply("and, its own experts being as busy as any, sends as many results back", 2, 2 * _ROUTED * (_e - 1) / _e)
    .multiply("forward and backward", 2, 4 * _ROUTED * (_e - 1) / _e),
    source=GSHARD,
    chapter=9,
    conventions=(ACTIVATION_DTYPE,),
    assumptions=("experts are equally busy", "s·b tokens on each rank, none dropped", "gradients travel like activations"),
)
