"""How many parameters a Transformer of some shape has, part by part."""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .shapes import FAMILIES
from .together import GROUPED_HEADS

_COUNT = {
    "source": "Vaswani et al., Attention Is All You Need, 2017; Touvron et al., LLaMA, 2023; the models' public code",
    "chapter": 1,
    "covers": ("F30",),
    "assumptions": ("decoder only, two norms a layer and a last one", "rotary or no position embedding unless a table is given"),
}

FAMILY = Convention(
    "family",
    "How are the blocks made?",
    tuple(
        Alternative(name, meaning, who, FAMILIES[name])
        for name, meaning, who in (
            ("llama", "gated MLP, RMSNorm, no biases, head apart", "LLaMA, Llama 2 and 3, Mistral"),
            ("gpt2", "GELU MLP, LayerNorm, biases, learned positions, tied head", "GPT-2, GPT-3"),
            ("bloom", "like GPT-2, with a norm after the embedding and no position table", "BLOOM"),
            ("qwen2", "like LLaMA, with biases on queries, keys and values", "Qwen2, Qwen2.5"),
        )
    ),
)

_QUERY, _KV = g.num_heads * g.head_dim, g.num_kv_heads * g.head_dim
_MLP = g.mlp_matrices * g.hidden_size * g.ffn_size
_ROUTER = sp.Piecewise((0, g.num_experts <= 1), (g.hidden_size * g.num_experts, True))

# part: (parameters, why)
_PARTS = {
    "token embedding": (g.vocab_size * g.hidden_size, "A row for each word of the vocabulary"),
    "output head": ((1 - g.tied_embeddings) * g.vocab_size * g.hidden_size, "As many again, unless the head is the embedding"),
    "position embedding": (g.num_positions * g.hidden_size, "A row for each position, where positions are learned"),
    "attention": (
        2 * g.num_layers * g.hidden_size * (_QUERY + _KV),
        "In each layer queries and output, and keys and values, which may have fewer heads",
    ),
    "attention biases": (
        g.num_layers * (g.qkv_bias * (_QUERY + 2 * _KV) + g.output_bias * g.hidden_size),
        "Their biases, where there are any",
    ),
    "MLP": (g.num_layers * g.num_experts * _MLP, "The MLP's two or three matrices, once for each expert"),
    "MLP biases": (
        g.num_layers * g.num_experts * g.mlp_bias * ((g.mlp_matrices - 1) * g.ffn_size + g.hidden_size),
        "Their biases, where there are any",
    ),
    "router": (g.num_layers * _ROUTER, "With several experts, a row that scores each"),
    "norms": ((2 * g.num_layers + 1 + g.extra_norms) * g.norm_vectors * g.hidden_size, "Two norms a layer and a last one"),
}


def _all_parts():
    (first, why), *others = _PARTS.values()
    steps = Derivation(why, first)
    for part, why in others:
        steps = steps.add(why, part, steps.expr + part)
    return steps


MODEL_PARAMS = define(g.num_params, name="model_params", conventions=(FAMILY,), derivation=_all_parts(), valid=(GROUPED_HEADS,), **_COUNT)

MODEL_LEDGER = Ledger(
    "parameters of a model",
    {
        name: Formula(g.part_params, part, source=_COUNT["source"], name=f"{name} parameters", conventions=(FAMILY,))
        for name, (part, _) in _PARTS.items()
    },
    MODEL_PARAMS,
)

_IDLE = (g.num_experts - g.active_experts) * g.num_layers * (_MLP + g.mlp_bias * ((g.mlp_matrices - 1) * g.ffn_size + g.hidden_size))
ACTIVE_PARAMS = define(
    g.active_params,
    conventions=(FAMILY,),
    derivation=Derivation("All parameters", MODEL_PARAMS.expr).add(
        "without the experts that a token does not meet", -_IDLE, MODEL_PARAMS.expr - _IDLE
    ),
    valid=(GROUPED_HEADS, (g.active_experts <= g.num_experts, "no more experts can be active than there are")),
    **_COUNT,
)
