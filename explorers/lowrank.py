"""Explorers of adapters: what they weigh beside a frozen model, and how strongly they act."""

from formulary import look_up
from formulary.hardware import GPUS
from formulary.lowrank import ADAPTED_MEMORY, ADAPTED_SHARE, FROZEN, LORA_PARAMS, LORA_SCALE, RSLORA_SCALE, TARGETS
from formulary.memory import RECIPE
from formulary.shapes import FAMILIES, MODELS

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .memory import sizes

_WIDTHS = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "ffn_size")
_SWIGLU = FAMILIES["llama"]["mlp_matrices"]
SMALL_CARD = GPUS["RTX 4090"]["memory_capacity"]
STORED = {4: "fp32 base", 2: "16-bit base", 1: "8-bit base", 0.5: "4-bit base"}


PRESETS = {"model": {title: sizes(shape, _WIDTHS) for title, shape in MODELS.items() if shape["mlp_matrices"] == _SWIGLU}, "card": GPUS}


def adapter_explorer(
    model="Llama 2 7B",
    lora_rank=8,
    targets="query_value",
    frozen="nf4_base",
    recipe="mixed_adam",
    memory_capacity=SMALL_CARD,
    presets=PRESETS,
):
    """Memory of a frozen model and its adapters over their rank, by how the model is stored, against a card.

    model: the title of a shape that the sliders start from.
    """
    start = PRESETS["model"][model]
    controls = [
        Slider("lora_rank", lora_rank, "rank", scale="doubling"),
        Choice(TARGETS, targets, "adapted"),
        Choice(FROZEN, frozen, "frozen model"),
        Choice(RECIPE, recipe, "adapters' training"),
        Slider("num_params", start["num_params"], "parameters"),
        *(Slider(name, start[name], span=look_up(name).span) for name in _WIDTHS),
        Slider("memory_capacity", memory_capacity, "memory of a card"),
    ]
    what = "frozen model and adapters' states"
    limits = {"limit": "memory_capacity", "limit_label": "card", "log": (True, False)}
    view = Curve({"memory": ADAPTED_MEMORY}, controls[0], what, "bytes_per_frozen", STORED, **limits)
    subject = [ADAPTED_MEMORY, LORA_PARAMS, ADAPTED_SHARE]
    return Explorer(subject, controls, view, title="What adapters weigh", presets=presets, made_by="explorers.adapter_explorer")


def rank_scale_explorer(lora_rank=16, lora_alpha=16):
    """The factor on an adapter's product over its rank: LoRA's, and the one that keeps steps of one size."""
    controls = [Slider("lora_rank", lora_rank, "rank", scale="doubling"), Slider("lora_alpha", lora_alpha, "alpha", scale="doubling")]
    curves = {"alpha over rank": LORA_SCALE, "alpha over its root": RSLORA_SCALE}
    view = Curve(curves, controls[0], "factor on the adapter's product", log=(True, True))
    title = "How strongly an adapter acts"
    return Explorer(list(curves.values()), controls, view, title=title, made_by="explorers.rank_scale_explorer")
