"""Explorers of what attention reads and writes."""

from formulary.attention import (
    ACCESS_SAVING,
    FLASH_ACCESSES,
    FLASH_INTENSITY,
    FLASH_ORDER,
    LEAST_ACCESSES,
    SRAM_ELEMENTS,
    STANDARD_ACCESSES,
    STANDARD_INTENSITY,
)
from formulary.hardware import GPUS
from formulary.scaling import MACHINE_BALANCE
from formulary.shapes import MODELS

from .control import Slider
from .curve import Curve
from .explorer import Explorer

A100 = GPUS["A100 80GB"]
LENGTH = MODELS["GPT-3"]["num_positions"]
WIDTH = MODELS["GPT-2"]["head_dim"]
CHIP = SRAM_ELEMENTS(**A100.only(SRAM_ELEMENTS))


def access_explorer(seq_length=LENGTH, head_dim=WIDTH, sram_elements=CHIP):
    """Elements that one head of attention moves over the sequence length: scores stored, tiled, the order alone, and at least."""
    controls = [
        Slider("seq_length", seq_length, "tokens of a sequence", scale="doubling"),
        Slider("head_dim", head_dim, "width of a head", scale="doubling"),
        Slider("sram_elements", sram_elements, "elements that fit on chip", scale="doubling"),
    ]
    curves = {"scores stored": STANDARD_ACCESSES, "tiled": FLASH_ACCESSES, "tiled, order alone": FLASH_ORDER, "at least": LEAST_ACCESSES}
    view = Curve(curves, controls[0], "elements moved", log=(True, True))
    return Explorer([ACCESS_SAVING], controls, view, title="What attention moves", made_by="explorers.access_explorer")


def intensity_explorer(
    seq_length=LENGTH,
    head_dim=WIDTH,
    sram_elements=CHIP,
    peak_flop_per_s=A100["peak_flop_per_s"],
    bandwidth=A100["memory_bandwidth"],
):
    """FLOP that attention does for each byte it moves, over the on-chip memory, beside what the machine could do."""
    controls = [
        Slider("sram_elements", sram_elements, "elements that fit on chip", scale="doubling"),
        Slider("seq_length", seq_length, "tokens of a sequence", scale="doubling"),
        Slider("head_dim", head_dim, "width of a head", scale="doubling"),
        Slider("peak_flop_per_s", peak_flop_per_s, "peak of the card"),
        Slider("bandwidth", bandwidth, "bandwidth of its memory"),
    ]
    curves = {"tiled": FLASH_INTENSITY, "scores stored": STANDARD_INTENSITY, "the machine's balance": MACHINE_BALANCE}
    view = Curve(curves, controls[0], "FLOP for each byte", log=(True, True))
    return Explorer([FLASH_INTENSITY], controls, view, title="What bounds attention", made_by="explorers.intensity_explorer")
