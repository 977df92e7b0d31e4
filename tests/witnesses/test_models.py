"""Published models built at full size on the meta device, and counted."""

import pytest
import torch
from torch import nn

from formulary import formula
from formulary.models import MODEL_LEDGER
from formulary.shapes import MODELS

# parameter counts that the makers or the checkpoints themselves state
STATED = {
    "GPT-2": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 large": 774_030_080,
    "GPT-2 XL": 1_557_611_200,
    "LLaMA 65B": 65_285_660_672,
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 13B": 13_015_864_320,
    "Llama 2 70B": 68_976_648_192,
    "Llama 3 8B": 8_030_261_248,
    "Llama 3 70B": 70_553_706_496,
    "Llama 3 405B": 405_853_388_800,
    "Mistral 7B": 7_241_732_096,
    "Mixtral 8x7B": 46_702_792_704,
    "Qwen2.5 0.5B": 494_032_768,
    "Qwen2.5 3B": 3_085_938_688,
    "Qwen2.5 7B": 7_615_616_512,
    "BLOOM 176B": 176_247_271_424,
}


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, heads, kv = shape["hidden_size"], shape["num_heads"] * shape["head_dim"], shape["num_kv_heads"] * shape["head_dim"]
        self.attention = nn.ModuleDict(
            {name: nn.Linear(width, out, bias=bool(shape["qkv_bias"])) for name, out in (("q", heads), ("k", kv), ("v", kv))}
        )
        self.attention["o"] = nn.Linear(heads, width, bias=bool(shape["output_bias"]))
        self.experts = nn.ModuleList(mlp(shape) for _ in range(shape["num_experts"]))
        self.router = nn.Linear(width, shape["num_experts"], bias=False) if shape["num_experts"] > 1 else None
        self.norms = nn.ModuleList(norm(shape) for _ in range(2))


def mlp(shape):
    width, ffn, bias = shape["hidden_size"], shape["ffn_size"], bool(shape["mlp_bias"])
    into = [nn.Linear(width, ffn, bias=bias) for _ in range(shape["mlp_matrices"] - 1)]
    return nn.ModuleList([*into, nn.Linear(ffn, width, bias=bias)])


def norm(shape):
    return (nn.RMSNorm if shape["norm_vectors"] == 1 else nn.LayerNorm)(shape["hidden_size"])


def build(shape):
    """The modules of a model of that shape, on the meta device: sizes without memory."""
    with torch.device("meta"):
        model = nn.ModuleDict({"embedding": nn.Embedding(shape["vocab_size"], shape["hidden_size"])})
        model["layers"] = nn.ModuleList(Layer(shape) for _ in range(shape["num_layers"]))
        model["norms"] = nn.ModuleList(norm(shape) for _ in range(1 + shape["extra_norms"]))
        model["head"] = nn.Linear(shape["hidden_size"], shape["vocab_size"], bias=False)
        if shape["tied_embeddings"]:
            model["head"].weight = model["embedding"].weight
        if shape["num_positions"]:
            model["positions"] = nn.Embedding(shape["num_positions"], shape["hidden_size"])
    return model


def numel(parameters):
    return sum(p.numel() for p in parameters)


@pytest.mark.witness("model_params")
@pytest.mark.parametrize("title", MODELS)
def test_full_size_models(title):
    count = numel(build(MODELS[title]).parameters())
    assert formula("model_params")(**MODELS[title].only(formula("model_params"))) == count
    assert STATED.get(title, count) == count


@pytest.mark.witness("active_params")
@pytest.mark.parametrize("title, experts, stated", [("Mixtral 8x7B", 2, 12_879_925_248), ("GPT-2", 1, 124_439_808)])
def test_parameters_that_meet_a_token(title, experts, stated):
    model = build(MODELS[title])
    idle = sum(numel(layer.experts[experts:].parameters()) for layer in model["layers"])
    made = formula("active_params")
    assert made(active_experts=experts, **MODELS[title].only(made)) == numel(model.parameters()) - idle == stated


@pytest.mark.witness("part_params")
@pytest.mark.parametrize("title", ["GPT-2", "Mixtral 8x7B", "Qwen2.5 0.5B", "BLOOM 176B"])
def test_every_part(title):
    model, shape = build(MODELS[title]), MODELS[title]
    named = dict(model["layers"].named_parameters())
    pick = lambda *words, bias: numel(p for n, p in named.items() if any(w in n for w in words) and n.endswith("bias") == bias)
    counted = {
        "token embedding": model["embedding"].weight.numel(),
        "output head": 0 if shape["tied_embeddings"] else model["head"].weight.numel(),
        "position embedding": numel(model["positions"].parameters()) if "positions" in model else 0,
        "attention": pick("attention", bias=False),
        "attention biases": pick("attention", bias=True),
        "MLP": pick("experts", bias=False),
        "MLP biases": pick("experts", bias=True),
        "router": pick("router", bias=False),
        "norms": pick(".norms.", bias=False) + pick(".norms.", bias=True) + numel(model["norms"].parameters()),
    }
    assert MODEL_LEDGER(**shape.only(MODEL_LEDGER)) == counted


def test_gpt3_is_what_its_paper_rounds_to():
    made = formula("model_params")
    assert round(made(**MODELS["GPT-3"].only(made)) / 1e9) == 175
