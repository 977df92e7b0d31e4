"""Sixteen Psi's explorers: formulas under a reader's hands, live with and without a kernel."""

from .activations import activation_explorer, recompute_explorer
from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .memory import memory_explorer, sharding_explorer
from .sharding import fsdp_peak_explorer, hybrid_explorer, traffic_explorer
from .stacked_bar import StackedBar

__all__ = [
    "Choice",
    "Curve",
    "Explorer",
    "Slider",
    "StackedBar",
    "activation_explorer",
    "fsdp_peak_explorer",
    "hybrid_explorer",
    "memory_explorer",
    "recompute_explorer",
    "sharding_explorer",
    "traffic_explorer",
]
