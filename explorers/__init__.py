"""Sixteen Psi's explorers: formulas under a reader's hands, live with and without a kernel."""

from .activations import activation_explorer, recompute_explorer
from .allocator import allocator_explorer
from .attention import access_explorer, intensity_explorer
from .bits import bits_explorer
from .blocks import ring_blocks_explorer, split_explorer, tiles_explorer
from .bubbles import bubble_explorer, in_flight_explorer, micro_batches_explorer
from .collectives import bucket_explorer, message_explorer, ring_explorer
from .control import Choice, Number, Slider, Step
from .curve import Curve
from .dashboard import Dashboard
from .data_parallel import batch_explorer, exposed_explorer, overlap_explorer
from .explorer import Explorer
from .grid import Grid
from .lowrank import adapter_explorer, rank_scale_explorer
from .memory import memory_explorer, sharding_explorer
from .offload import copies_explorer, drives_explorer, hiding_explorer, offload_explorer
from .pipeline import pipeline_explorer
from .plan import Blocks, counter
from .planner import planner_explorer
from .precision import loss_scale_explorer, spacing_explorer, update_explorer
from .reliability import interval_explorer, saving_explorer
from .sharding import fsdp_peak_explorer, hybrid_explorer, hybrid_time_explorer, traffic_explorer
from .stacked_bar import StackedBar
from .steps import gather_explorer, mountain_explorer
from .tensor_parallel import layer_activation_explorer, layer_params_explorer, layer_traffic_explorer
from .throughput import mfu_explorer, scaling_explorer, training_time_explorer
from .timeline import Timeline
from .units import unit_explorer
from .walls import wall_explorer

__all__ = [
    "Blocks",
    "Choice",
    "Curve",
    "Dashboard",
    "Explorer",
    "Grid",
    "Number",
    "Slider",
    "StackedBar",
    "Step",
    "Timeline",
    "access_explorer",
    "activation_explorer",
    "adapter_explorer",
    "allocator_explorer",
    "batch_explorer",
    "bits_explorer",
    "bubble_explorer",
    "bucket_explorer",
    "copies_explorer",
    "counter",
    "drives_explorer",
    "exposed_explorer",
    "fsdp_peak_explorer",
    "gather_explorer",
    "hiding_explorer",
    "hybrid_explorer",
    "hybrid_time_explorer",
    "in_flight_explorer",
    "intensity_explorer",
    "interval_explorer",
    "layer_activation_explorer",
    "layer_params_explorer",
    "layer_traffic_explorer",
    "loss_scale_explorer",
    "memory_explorer",
    "message_explorer",
    "mfu_explorer",
    "micro_batches_explorer",
    "mountain_explorer",
    "offload_explorer",
    "overlap_explorer",
    "pipeline_explorer",
    "planner_explorer",
    "rank_scale_explorer",
    "recompute_explorer",
    "ring_blocks_explorer",
    "ring_explorer",
    "saving_explorer",
    "scaling_explorer",
    "sharding_explorer",
    "spacing_explorer",
    "split_explorer",
    "tiles_explorer",
    "traffic_explorer",
    "training_time_explorer",
    "unit_explorer",
    "update_explorer",
    "wall_explorer",
]

# name: the function that makes it; what tests and benchmarks go through
EXPLORERS = {name: globals()[name] for name in __all__ if name.endswith("_explorer")}
