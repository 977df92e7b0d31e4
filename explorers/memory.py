"""Explorers of what one card holds of a model in training."""

from formulary import look_up
from formulary.hardware import GPUS
from formulary.memory import RECIPE, ZERO_HEADROOM, ZERO_LEDGER, ZERO_STATE
from formulary.models import MODEL_PARAMS
from formulary.shapes import MODELS

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .stacked_bar import StackedBar

WHAT = "model states of one card"
STAGES = {stage: f"ZeRO-{stage}" if stage else "no ZeRO" for stage in look_up("stage").choices}
CARD = GPUS["A100 80GB"]["memory_capacity"]


def sizes(shape, names=()):
    """How many parameters a model has, and those figures of its shape that `names` asks for."""
    return {"num_params": MODEL_PARAMS(**shape.only(MODEL_PARAMS)), **{name: shape[name] for name in names}}


PRESETS = {
    "model": {title: sizes(shape) for title, shape in MODELS.items()},
    "card": GPUS,
}
SHARDED = {0: "0 · nothing is sharded", 1: "1 · optimizer states", 2: "2 · and gradients", 3: "3 · and weights"}


def _controls(num_params, recipe, world_size, stage, memory_capacity):
    return [
        Slider("num_params", num_params, "parameters"),
        Choice(RECIPE, recipe),
        Slider("world_size", world_size, "GPUs", scale="doubling"),
        Choice("stage", stage, "ZeRO stage", SHARDED),
        Slider("memory_capacity", memory_capacity, "memory of a card"),
    ]


def memory_explorer(num_params="7B", recipe="mixed_adam", world_size=8, stage=1, memory_capacity=CARD, presets=PRESETS):
    """Model states of one card by ZeRO stage, part by part, against the card's memory.

    presets: label to {title: values}, such as Bundles of facts; by default the published models and the cards of `formulary`.
    """
    controls = _controls(num_params, recipe, world_size, stage, memory_capacity)
    view = StackedBar(ZERO_LEDGER, "stage", STAGES, "memory_capacity", ZERO_HEADROOM, WHAT, "card")
    return Explorer(ZERO_LEDGER, controls, view, title="What one card holds", presets=presets, made_by="explorers.memory_explorer")


def sharding_explorer(num_params="7B", recipe="mixed_adam", world_size=8, stage=1, memory_capacity=CARD, presets=PRESETS):
    """Model states of one card as the number of GPUs grows, one curve per ZeRO stage, against the card's memory."""
    controls = _controls(num_params, recipe, world_size, stage, memory_capacity)
    curves = {"states": ZERO_STATE}
    view = Curve(curves, controls[2], WHAT, "stage", STAGES, limit="memory_capacity", limit_label="card", log=(True, True))
    return Explorer(ZERO_STATE, controls, view, title="What more cards save", presets=presets, made_by="explorers.sharding_explorer")
