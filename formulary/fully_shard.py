"""What PyTorch's `fully_shard` holds, to the byte: fp32 shards, 16-bit compute, every block recomputed.

The ZeRO paper counts states at rest. These formulas count the moments of a step at which a rank holds most, tensor by
tensor, and take the shards as a library makes them: by rows, rounded up.
"""

from collections import Counter

import sympy as sp

from . import glossary as g
from .attention import ATTENTION_STATISTICS, KEPT_INPUT, LOGITS, RESIDUAL_ELEMENTS, SWIGLU_ACTIVATION
from .derivation import Derivation
from .formula import define
from .sharding import FULLY_SHARD, SHARD_ROWS
from .units import BYTE, TOKEN

_S, _k, _h, _f, _v, _L = g.shard_params, g.world_size, g.hidden_size, g.ffn_size, g.vocab_size, g.num_layers
_TOKENS = g.seq_length * g.micro_batch / TOKEN
_SHARDS = {
    "source": FULLY_SHARD,
    "chapter": 7,
    "assumptions": ("fp32 parameters, MixedPrecisionPolicy with bf16 compute and fp32 reduction",),
}

SHARD_BYTES = define(
    g.zero_weight_bytes,
    name="fp32_shard_bytes",
    derivation=Derivation("Elements of the shards", _S).multiply("each in fp32, weights and gradients alike", 4 * BYTE, 4 * BYTE * _S),
    **_SHARDS,
)

ADAM_BYTES = define(
    g.fsdp_adam_bytes,
    derivation=Derivation("Adam's two moments in fp32, for each element of the shards", 8 * BYTE * _S).add(
        "and a count of steps for each tensor", 4 * BYTE * g.num_tensors, 8 * BYTE * _S + 4 * BYTE * g.num_tensors
    ),
    **_SHARDS,
)

GATHERED = define(
    g.fsdp_gathered_bytes,
    name="gathered_shards_bytes",
    derivation=Derivation("One rank's shards", _S)
    .multiply("and those of all others", _k, _k * _S)
    .multiply("in bf16", 2 * BYTE, 2 * BYTE * _k * _S),
    **_SHARDS,
)

REDUCE_INPUT = define(
    g.fsdp_grad_bytes,
    name="reduce_input_bytes",
    derivation=Derivation("Gradients of everybody's shards", _k * _S).multiply("in fp32, to be reduced", 4 * BYTE, 4 * BYTE * _k * _S),
    **_SHARDS,
)

_IDS, _SCALARS = 16 * BYTE * _TOKENS, 8 * BYTE
_INPUTS = Derivation("Token ids and targets, 8 bytes each", _IDS).add("the loss and the count it was divided by", _SCALARS, _IDS + _SCALARS)

_STEP = {
    "source": "PyTorch's autograd and fully_shard, followed tensor by tensor; measured by the lab paper_cluster",
    "chapter": 7,
    "assumptions": (
        "a LLaMA block: gated MLP, RMSNorm that keeps its 16-bit input and one fp32 number a token, no dropout",
        "every block recomputed, attention without stored scores, key-value heads repeated to as many as query heads",
        "loss in fp32 over all tokens at once",
        "query heads together as wide as the model",
    ),
}


def _sum(steps, *terms):
    """The derivation with (why, term) added one after the other."""
    for why, term in terms:
        steps = steps.add(why, term, steps.expr + term)
    return steps


# --- the moment of the loss ----------------------------------------------------------------------------------------------

_LOG_SOFTMAX = LOGITS.expr.subs(g.bytes_per_logit, 4 * BYTE)

LOSS_SAVED = define(
    g.fsdp_activation_bytes,
    name="saved_at_loss_bytes",
    derivation=_sum(
        _INPUTS,
        ("the input of every block", KEPT_INPUT.expr),
        ("that of the last norm and that of the head", 4 * BYTE * RESIDUAL_ELEMENTS),
        ("what the last norm keeps of each token", 4 * BYTE * _TOKENS),
        ("log-probabilities of the whole vocabulary in fp32", _LOG_SOFTMAX),
    ),
    **_STEP,
)

LOSS_WORKING = define(
    g.working_bytes,
    name="working_at_loss_bytes",
    derivation=Derivation("The gradient of the log-probabilities", _LOG_SOFTMAX).add(
        "and that of the logits, both fp32", _LOG_SOFTMAX, 2 * _LOG_SOFTMAX
    ),
    **_STEP,
)

# --- the moment of a block: its MLP's product, with the block before it on its way and the one after it being reduced ------

_WIDE = 2 * BYTE * _TOKENS * _f
_ONE_BLOCK = SWIGLU_ACTIVATION.expr.subs(_L, 1)
_EARLIER = 2 * BYTE * RESIDUAL_ELEMENTS * (_L - 1 - g.reduced_units)

BLOCK_SAVED = define(
    g.fsdp_activation_bytes,
    name="saved_at_block_bytes",
    derivation=_sum(
        _INPUTS,
        ("the inputs of the blocks that are still to come", _EARLIER),
        ("all that this block saves, recomputed", _ONE_BLOCK),
        ("except the product of gate and up, which the down matrix has used already", -_WIDE),
        ("what attention keeps of each row of scores", ATTENTION_STATISTICS.expr.subs(_L, 1)),
        ("and the two norms of each token", 8 * BYTE * _TOKENS),
    ),
    valid=(
        (g.reduced_units >= 1, "a block must have been reduced before"),
        (g.reduced_units <= _L - 2, "a block must be left to be gathered"),
    ),
    **_STEP,
)

BLOCK_WORKING = define(
    g.working_bytes,
    name="working_at_block_bytes",
    derivation=_sum(
        Derivation("The gradient that came in, which goes around the MLP", 2 * BYTE * RESIDUAL_ELEMENTS),
        ("the gradients of the product and of its two factors", 3 * _WIDE),
        ("the down matrix's gradient in bf16", 2 * BYTE * _f * _h),
        ("and those of the head and the last norm, which wait for the root to end", 2 * BYTE * (_v * _h + _h)),
    ),
    valid=(
        (g.seq_length * g.micro_batch >= _h * TOKEN, "with fewer tokens than the model is wide, another moment of the block may hold more"),
        (_f >= 2 * _h, "with an MLP less than twice as wide as the model, another moment of the block may hold more"),
    ),
    **_STEP,
)

# --- the moment of the root: all is done but its own reduction -------------------------------------------------------------

ROOT_SAVED = define(g.fsdp_activation_bytes, name="saved_at_root_bytes", derivation=_INPUTS, **_STEP)

_ROOT_GRADS = 2 * BYTE * (2 * _v * _h + _h)
_RESULT = SHARD_BYTES.expr + 2 * BYTE * _v * _h

ROOT_WORKING = define(
    g.working_bytes,
    name="working_at_root_bytes",
    derivation=_sum(
        Derivation("Gradients of embedding, head and last norm in bf16", _ROOT_GRADS).at_least(
            "or what comes after them: the reduced shards, while a loop variable still holds the head's gradient",
            _RESULT,
            sp.Max(_ROOT_GRADS, _RESULT),
        ),
        ("and beside either the fp32 copy, padded, that is being reduced", REDUCE_INPUT.expr),
    ),
    **_STEP,
)

# --- shards ----------------------------------------------------------------------------------------------------------------


def block_tensors(*, hidden_size, ffn_size, num_heads, num_kv_heads, head_dim, **_):
    """(rows, columns) of each of a LLaMA block's tensors."""
    queries, keys, model, wide = num_heads * head_dim, num_kv_heads * head_dim, hidden_size, ffn_size
    attention = [(queries, model), (keys, model), (keys, model), (model, queries)]
    return [*attention, (wide, model), (wide, model), (model, wide), (model, 1), (model, 1)]


def root_tensors(*, hidden_size, vocab_size, **_):
    """(rows, columns) of embedding, head and last norm."""
    return [(vocab_size, hidden_size), (vocab_size, hidden_size), (hidden_size, 1)]


def model_tensors(*, num_layers, **sizes):
    """(rows, columns) of every tensor of the model."""
    return block_tensors(**sizes) * num_layers + root_tensors(**sizes)


def full_shard(tensors, world_size):
    """Elements of the shards that rank 0, which never gets less than others, holds of (rows, columns) `tensors`."""
    rows_of = lambda rows: SHARD_ROWS(num_rows=rows, world_size=world_size, rank_index=0)
    return sum(times * rows_of(rows) * columns for (rows, columns), times in Counter(tensors).items())
