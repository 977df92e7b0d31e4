"""What the forward pass leaves behind for the backward pass, and what attention reads and writes on the way.

The ledger names the tensors of one Transformer layer. An activation of the residual stream has s·b·h elements; an
attention score belongs to a pair of tokens, so scores grow with the sequence squared.
"""

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .units import BYTE, TOKEN

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
_SAVED = {
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
    return _SAVED[name][0] * BYTE * RESIDUAL_ELEMENTS


def _one_layer():
    """Tensor after tensor, the activations of one layer that grow with the sequence."""
    names = list(_SAVED)
    steps = Derivation(_SAVED[names[0]][1], _kept(names[0]))
    for name in names[1:]:
        steps = steps.add(_SAVED[name][1], _kept(name), steps.expr + _kept(name))
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

_PARTS = {name: Formula(g.saved_tensor_bytes, _kept(name) * g.num_layers, source=KORTHIKANTI, name=f"{name} bytes") for name in _SAVED} | {
    "attention scores": SCORE_ACTIVATION
}

ACTIVATION_LEDGER = Ledger("activations of one micro-batch", _PARTS, ACTIVATION)
