"""Sixteen Psi's explorers: formulas under a reader's hands, live with and without a kernel."""

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .memory import memory_explorer, sharding_explorer
from .stacked_bar import StackedBar

__all__ = ["Choice", "Curve", "Explorer", "Slider", "StackedBar", "memory_explorer", "sharding_explorer"]
