"""Explorers of what a forward pass leaves behind for the backward pass."""

from formulary.attention import (
    ACTIVATION,
    ACTIVATION_GROUPS,
    ACTIVATION_HEADROOM,
    FULL_RECOMPUTE_PEAK,
    KEPT_INPUT,
    LINEAR_ACTIVATION,
    RECOMPUTE_GROWTH,
    SEGMENTED_PEAK,
)
from formulary.hardware import GPUS
from formulary.shapes import MODELS

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .stacked_bar import StackedBar

KEPT = {5: "stored, with dropout", 2: "stored once", 0: "FlashAttention"}
BATCH = 4
LENGTH = MODELS["GPT-3"]["num_positions"]
ROOM = GPUS["A100 40GB"]["memory_capacity"]
PRESETS = {"model": MODELS}
SHAPE = MODELS["LLaMA 7B"].only(ACTIVATION)


def _controls(seq_length, micro_batch, hidden_size, num_heads, num_layers, bytes_per_score):
    return [
        Slider("micro_batch", micro_batch, "sequences per micro-batch", scale="doubling"),
        Slider("seq_length", seq_length, "tokens of a sequence", scale="doubling"),
        Slider("hidden_size", hidden_size, "width of the model", scale="log"),
        Slider("num_heads", num_heads, "attention heads"),
        Slider("num_layers", num_layers, "layers"),
        Choice("bytes_per_score", bytes_per_score, "attention scores", KEPT),
    ]


def activation_explorer(
    seq_length=LENGTH,
    micro_batch=BATCH,
    hidden_size=SHAPE["hidden_size"],
    num_heads=SHAPE["num_heads"],
    num_layers=SHAPE["num_layers"],
    bytes_per_score=5,
    zero_headroom_bytes=ROOM,
    presets=PRESETS,
):
    """Activations of one micro-batch by what attention keeps of its scores, against the room that the model states leave."""
    controls = [
        *_controls(seq_length, micro_batch, hidden_size, num_heads, num_layers, bytes_per_score),
        Slider("zero_headroom_bytes", zero_headroom_bytes, "room beside the model states"),
    ]
    view = StackedBar(
        ACTIVATION_GROUPS, "bytes_per_score", KEPT, "zero_headroom_bytes", ACTIVATION_HEADROOM, "activations of one micro-batch", "room"
    )
    title = "What the forward pass leaves behind"
    return Explorer(ACTIVATION_GROUPS, controls, view, title=title, presets=presets, made_by="explorers.activation_explorer")


def recompute_explorer(
    seq_length=LENGTH,
    micro_batch=BATCH,
    hidden_size=SHAPE["hidden_size"],
    num_heads=SHAPE["num_heads"],
    num_layers=SHAPE["num_layers"],
    bytes_per_score=5,
    num_segments=8,
    zero_headroom_bytes=ROOM,
    presets=PRESETS,
):
    """Peak of the activations over the sequence length, by how much is recomputed, against the room that the model states leave."""
    controls = [
        *_controls(seq_length, micro_batch, hidden_size, num_heads, num_layers, bytes_per_score),
        Slider("num_segments", num_segments, "segments", scale="doubling"),
        Slider("zero_headroom_bytes", zero_headroom_bytes, "room beside the model states"),
    ]
    curves = {
        "all kept": ACTIVATION,
        "scores rebuilt": LINEAR_ACTIVATION,
        "segments rebuilt": SEGMENTED_PEAK,
        "layers rebuilt": FULL_RECOMPUTE_PEAK,
    }
    view = Curve(curves, controls[1], "activations at the peak", limit="zero_headroom_bytes", limit_label="room", log=(True, True))
    title, fixed = "What recomputing saves", {"recomputed_share": 1}
    subject = [ACTIVATION, KEPT_INPUT, RECOMPUTE_GROWTH]
    return Explorer(subject, controls, view, title=title, presets=presets, fixed=fixed, made_by="explorers.recompute_explorer")
