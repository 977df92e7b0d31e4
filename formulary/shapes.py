"""Shapes of published models, data for the formulas of `models`, and what was reported of their runs; each with its source.

A family says how its blocks are made; a shape adds widths and depths.
"""

from . import glossary  # noqa: F401  (the bundles name its quantities)
from .facts import Bundle

SEEN = "2026-11-29"

_BIASED = {"qkv_bias": 1, "output_bias": 1, "mlp_bias": 1}
_UNBIASED = {"qkv_bias": 0, "output_bias": 0, "mlp_bias": 0}
FAMILIES = {
    "llama": {
        **_UNBIASED,
        "mlp_matrices": 3,
        "norm_vectors": 1,
        "extra_norms": 0,
        "tied_embeddings": 0,
        "num_positions": 0,
        "num_experts": 1,
    },
    "gpt2": {
        **_BIASED,
        "mlp_matrices": 2,
        "norm_vectors": 2,
        "extra_norms": 0,
        "tied_embeddings": 1,
        "num_positions": 1024,
        "num_experts": 1,
    },
    "bloom": {
        **_BIASED,
        "mlp_matrices": 2,
        "norm_vectors": 2,
        "extra_norms": 1,
        "tied_embeddings": 1,
        "num_positions": 0,
        "num_experts": 1,
    },
    "qwen2": {
        **_UNBIASED,
        "qkv_bias": 1,
        "mlp_matrices": 3,
        "norm_vectors": 1,
        "extra_norms": 0,
        "tied_embeddings": 0,
        "num_positions": 0,
        "num_experts": 1,
    },
}

_WIDTHS = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "ffn_size", "vocab_size")


def _shape(title, source, family, widths, **changes):
    return Bundle(title, source, SEEN, **{**FAMILIES[family], **dict(zip(_WIDTHS, widths, strict=True)), **changes})


# (title, source, family, widths in the order above, what differs from the family)
_SHAPES = [
    ("GPT-2", "openai-community/gpt2, config.json", "gpt2", (12, 768, 12, 12, 64, 3072, 50257), {}),
    ("GPT-2 medium", "openai-community/gpt2-medium, config.json", "gpt2", (24, 1024, 16, 16, 64, 4096, 50257), {}),
    ("GPT-2 large", "openai-community/gpt2-large, config.json", "gpt2", (36, 1280, 20, 20, 64, 5120, 50257), {}),
    ("GPT-2 XL", "openai-community/gpt2-xl, config.json", "gpt2", (48, 1600, 25, 25, 64, 6400, 50257), {}),
    ("GPT-3", "Brown et al., 2020, table 2.1", "gpt2", (96, 12288, 96, 96, 128, 49152, 50257), {"num_positions": 2048}),
    ("LLaMA 7B", "Touvron et al., LLaMA, 2023, table 2", "llama", (32, 4096, 32, 32, 128, 11008, 32000), {}),
    ("LLaMA 13B", "Touvron et al., LLaMA, 2023, table 2", "llama", (40, 5120, 40, 40, 128, 13824, 32000), {}),
    ("LLaMA 33B", "Touvron et al., LLaMA, 2023, table 2", "llama", (60, 6656, 52, 52, 128, 17920, 32000), {}),
    ("LLaMA 65B", "Touvron et al., LLaMA, 2023, table 2", "llama", (80, 8192, 64, 64, 128, 22016, 32000), {}),
    ("Llama 2 7B", "meta-llama/Llama-2-7b-hf, config.json", "llama", (32, 4096, 32, 32, 128, 11008, 32000), {}),
    ("Llama 2 13B", "meta-llama/Llama-2-13b-hf, config.json", "llama", (40, 5120, 40, 40, 128, 13824, 32000), {}),
    ("Llama 2 70B", "meta-llama/Llama-2-70b-hf, config.json", "llama", (80, 8192, 64, 8, 128, 28672, 32000), {}),
    ("Llama 3 8B", "Llama Team, The Llama 3 Herd of Models, 2024, table 3", "llama", (32, 4096, 32, 8, 128, 14336, 128256), {}),
    ("Llama 3 70B", "Llama Team, The Llama 3 Herd of Models, 2024, table 3", "llama", (80, 8192, 64, 8, 128, 28672, 128256), {}),
    ("Llama 3 405B", "Llama Team, The Llama 3 Herd of Models, 2024, table 3", "llama", (126, 16384, 128, 8, 128, 53248, 128256), {}),
    ("Mistral 7B", "Jiang et al., Mistral 7B, 2023, table 1", "llama", (32, 4096, 32, 8, 128, 14336, 32000), {}),
    ("Mixtral 8x7B", "Jiang et al., Mixtral of Experts, 2024, table 1", "llama", (32, 4096, 32, 8, 128, 14336, 32000), {"num_experts": 8}),
    ("Qwen2.5 0.5B", "Qwen/Qwen2.5-0.5B, config.json", "qwen2", (24, 896, 14, 2, 64, 4864, 151936), {"tied_embeddings": 1}),
    ("Qwen2.5 3B", "Qwen/Qwen2.5-3B, config.json", "qwen2", (36, 2048, 16, 2, 128, 11008, 151936), {"tied_embeddings": 1}),
    ("Qwen2.5 7B", "Qwen/Qwen2.5-7B, config.json", "qwen2", (28, 3584, 28, 4, 128, 18944, 152064), {}),
    ("Qwen2.5 32B", "Qwen/Qwen2.5-32B, config.json", "qwen2", (64, 5120, 40, 8, 128, 27648, 152064), {}),
    ("Qwen2.5 72B", "Qwen/Qwen2.5-72B, config.json", "qwen2", (80, 8192, 64, 8, 128, 29568, 152064), {}),
    ("BLOOM 176B", "bigscience/bloom, config.json", "bloom", (70, 14336, 112, 112, 128, 57344, 250880), {}),
]

MODELS = {title: _shape(title, source, family, widths, **changes) for title, source, family, widths, changes in _SHAPES}

RUNS = {
    "Llama 3 405B pre-training": Bundle(
        "Llama 3 405B pre-training",
        "Llama Team, The Llama 3 Herd of Models, 2024, section 3.3.4: unexpected interruptions",
        SEEN,
        num_gpus=16384,
        training_time="54 days",
        expected_stops=419,
    )
}
