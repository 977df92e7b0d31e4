"""Explorers of layers cut across ranks: what a rank keeps of a layer, and what it sends for it."""

from formulary.attention import SCORES
from formulary.shapes import MODELS
from formulary.tensor_parallel import MLP_KIND, PASSES, SP_ACTIVATION, TP_ACTIVATION, TP_ATTENTION, TP_LAYER, TP_MLP, TP_MODEL

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer

SHAPES = {"model": MODELS}
KEPT = {"flash_attention": "FlashAttention", "one_score_copy": "one copy of the scores", "standard_attention": "scores and masks"}
CALLS = {
    "tensor_parallel": "tensor parallelism",
    "tensor_parallel_recomputed": "and all recomputed",
    "sequence_parallel": "with sequence parallelism",
    "one_block": "one block only",
}
WIDTH = MODELS["LLaMA 7B"]["hidden_size"]
LARGE = MODELS["GPT-3"]


def _ranks(tensor_parallel):
    return Slider("tensor_parallel", tensor_parallel, "tensor-parallel ranks", scale="doubling")


def _tokens(seq_length, micro_batch, hidden_size):
    return [
        Slider("seq_length", seq_length, "sequence length", scale="doubling"),
        Slider("micro_batch", micro_batch, "sequences per micro-batch"),
        Slider("hidden_size", hidden_size, "width of the model", scale="doubling"),
    ]


def layer_params_explorer(
    tensor_parallel=2,
    hidden_size=LARGE["hidden_size"],
    ffn_size=LARGE["ffn_size"],
    mlp_kind="gelu_mlp",
    num_heads=LARGE["num_heads"],
    num_kv_heads=LARGE["num_kv_heads"],
    head_dim=LARGE["head_dim"],
    presets=SHAPES,
):
    """Parameters of a layer on one rank as ranks are added: the MLP by columns and rows, attention by heads."""
    ranks = _ranks(tensor_parallel)
    controls = [
        ranks,
        Slider("hidden_size", hidden_size, "width of the model", scale="doubling"),
        Slider("ffn_size", ffn_size, "width of the MLP", scale="doubling"),
        Choice(MLP_KIND, mlp_kind, "kind of MLP", {"gelu_mlp": "two matrices", "swiglu_mlp": "three matrices"}),
        Slider("num_heads", num_heads, "query heads", scale="doubling"),
        Slider("num_kv_heads", num_kv_heads, "key-value heads", scale="doubling"),
        Slider("head_dim", head_dim, "width of a head", scale="doubling"),
    ]
    curves = {"MLP": TP_MLP, "attention": TP_ATTENTION}
    view = Curve(curves, ranks, "parameters of a layer", log=(True, True), scale="M")
    made_by = "explorers.layer_params_explorer"
    return Explorer(list(curves.values()), controls, view, title="What a cut layer holds", presets=presets, made_by=made_by)


def layer_activation_explorer(
    tensor_parallel=8,
    seq_length=None,
    micro_batch=1,
    hidden_size=WIDTH,
    num_heads=32,
    scores="flash_attention",
    presets=SHAPES,
):
    """What one rank keeps of a layer's activations as ranks are added: tensor parallelism alone, and with sequence parallelism."""
    ranks = _ranks(tensor_parallel)
    controls = [ranks, *_tokens(seq_length, micro_batch, hidden_size), Slider("num_heads", num_heads), Choice(SCORES, scores, "kept", KEPT)]
    curves = {"tensor parallelism": TP_ACTIVATION, "and sequence parallelism": SP_ACTIVATION}
    view = Curve(curves, ranks, "activations of a layer", log=(True, True))
    made_by = "explorers.layer_activation_explorer"
    return Explorer(list(curves.values()), controls, view, title="What a cut layer keeps", presets=presets, made_by=made_by)


def layer_traffic_explorer(
    tensor_parallel=8,
    seq_length=None,
    micro_batch=1,
    hidden_size=WIDTH,
    num_layers=32,
    passes="tensor_parallel",
    presets=SHAPES,
):
    """Bytes one rank sends for a micro-batch as ranks are added: for one layer, and for all of them."""
    ranks = _ranks(tensor_parallel)
    controls = [
        ranks,
        *_tokens(seq_length, micro_batch, hidden_size),
        Slider("num_layers", num_layers),
        Choice(PASSES, passes, "plan", CALLS),
    ]
    curves = {"all layers": TP_MODEL, "one layer": TP_LAYER}
    view = Curve(curves, ranks, "sent per micro-batch", log=(True, True))
    made_by = "explorers.layer_traffic_explorer"
    return Explorer(list(curves.values()), controls, view, title="What a cut layer sends", presets=presets, made_by=made_by)
