"""Explorers of sharded data parallelism: what it sends, what is whole at the worst moment, what leaves a node."""

from math import prod

from formulary.fully_shard import block_tensors, root_tensors
from formulary.hardware import GPUS, NETWORKS
from formulary.memory import RECIPE, ZERO_STATE
from formulary.models import MODEL_PARAMS
from formulary.shapes import FAMILIES, MODELS
from formulary.zero import (
    FSDP_PEAK,
    FULL_SHARD_CROSSING_TIME,
    FULL_SHARD_EGRESS,
    HPZ_EGRESS,
    HSDP_CROSSING_TIME,
    HSDP_EGRESS,
    HSDP_INSIDE_TIME,
    TRAVEL,
    ZERO_TRAFFIC,
)

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .memory import CARD, PRESETS, SHARDED, STAGES

HDR = NETWORKS["InfiniBand HDR"]["bandwidth"]
LINKS = {"card": GPUS, "network": NETWORKS}
LARGEST_CARD = GPUS["B200"]["memory_capacity"]
MODEL = {"model": PRESETS["model"]}
TRAVELS = {"travel_16bit": "half precision", "travel_grads_32bit": "gradients in fp32", "travel_32bit": "fp32"}


def _plain_llama(shape):
    """Whether the model's blocks are those that `block_tensors` lists."""
    return all(shape[name] == value for name, value in FAMILIES["llama"].items())


def _units(shape):
    """A model cut as FSDP cuts it: its parameters, those of a block, and those that belong to no block."""
    count = lambda tensors: sum(map(prod, tensors))
    sizes = {"unit_params": count(block_tensors(**shape)), "root_params": count(root_tensors(**shape))}
    return {"num_params": MODEL_PARAMS(**shape.only(MODEL_PARAMS)), **sizes}


UNITS = {title: _units(shape) for title, shape in MODELS.items() if _plain_llama(shape)}


def traffic_explorer(num_params="7B", world_size=8, accumulation_steps=1, stage=1, travel="travel_16bit", presets=MODEL):
    """Bytes one rank sends per optimizer step as micro-batches are accumulated, one curve per ZeRO stage."""
    controls = [
        Slider("num_params", num_params, "parameters"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("accumulation_steps", accumulation_steps, "micro-batches per step", scale="doubling"),
        Choice("stage", stage, "ZeRO stage", SHARDED),
        Choice(TRAVEL, travel, "travelling in", TRAVELS),
    ]
    view = Curve({"sent": ZERO_TRAFFIC}, controls[2], "sent by one rank per step", "stage", STAGES, log=(True, True))
    return Explorer(ZERO_TRAFFIC, controls, view, title="What sharding sends", presets=presets, made_by="explorers.traffic_explorer")


def fsdp_peak_explorer(
    num_params=UNITS["Llama 2 7B"]["num_params"],
    unit_params=UNITS["Llama 2 7B"]["unit_params"],
    root_params=UNITS["Llama 2 7B"]["root_params"],
    activation_bytes=0,
    recipe="mixed_adam",
    world_size=8,
    memory_capacity=CARD,
    presets=None,
):
    """Memory of one rank at the worst moment of an FSDP step, and of its shards alone, as the ranks grow."""
    controls = [
        Slider("num_params", num_params, "parameters"),
        Slider("unit_params", unit_params, "parameters of a unit"),
        Slider("root_params", root_params, "parameters outside all units"),
        Slider("activation_bytes", activation_bytes, "activations", span=(0, LARGEST_CARD)),
        Choice(RECIPE, recipe),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("memory_capacity", memory_capacity, "memory of a card"),
    ]
    curves = {"at the peak": FSDP_PEAK, "sharded states alone": ZERO_STATE}
    view = Curve(curves, controls[5], "memory of one rank", limit="memory_capacity", limit_label="card", log=(True, True))
    return Explorer(
        [FSDP_PEAK, ZERO_STATE],
        controls,
        view,
        title="What stays whole",
        presets={"model": UNITS, "card": GPUS} if presets is None else presets,
        fixed={"stage": 3, "working_bytes": 0},
        made_by="explorers.fsdp_peak_explorer",
    )


def hybrid_explorer(num_params="7B", ranks_per_node=8, num_nodes=2, accumulation_steps=1, travel="travel_16bit", presets=MODEL):
    """Bytes that leave a node per step as nodes are added: one ring of all ranks, hybrid sharding, a second shard in the node."""
    controls = [
        Slider("num_params", num_params, "parameters"),
        Slider("ranks_per_node", ranks_per_node, "GPUs in a node", scale="doubling"),
        Slider("num_nodes", num_nodes, "nodes", scale="doubling"),
        Slider("accumulation_steps", accumulation_steps, "micro-batches per step", scale="doubling"),
        Choice(TRAVEL, travel, "travelling in", TRAVELS),
    ]
    curves = {"sharded over all ranks": FULL_SHARD_EGRESS, "hybrid": HSDP_EGRESS, "second shard in the node": HPZ_EGRESS}
    view = Curve(curves, controls[2], "leaves a node per step", log=(True, False))
    title = "What crosses between nodes"
    return Explorer(list(curves.values()), controls, view, title=title, presets=presets, made_by="explorers.hybrid_explorer")


def hybrid_time_explorer(
    num_params="7B",
    ranks_per_node=8,
    num_nodes=2,
    accumulation_steps=1,
    link_bandwidth=GPUS["A100 80GB"]["link_bandwidth"],
    bandwidth=HDR,
    travel="travel_16bit",
    presets=LINKS,
):
    """Seconds on the wire per step as nodes are added: one ring of all ranks, hybrid sharding between nodes and inside them."""
    controls = [
        Slider("num_params", num_params, "parameters"),
        Slider("ranks_per_node", ranks_per_node, "GPUs in a node", scale="doubling"),
        Slider("num_nodes", num_nodes, "nodes", scale="doubling"),
        Slider("accumulation_steps", accumulation_steps, "micro-batches per step", scale="doubling"),
        Slider("link_bandwidth", link_bandwidth, "bandwidth inside, per GPU"),
        Slider("bandwidth", bandwidth, "bandwidth of a node's network"),
        Choice(TRAVEL, travel, "travelling in", TRAVELS),
    ]
    curves = {
        "sharded over all ranks, between nodes": FULL_SHARD_CROSSING_TIME,
        "hybrid, between nodes": HSDP_CROSSING_TIME,
        "hybrid, inside nodes": HSDP_INSIDE_TIME,
    }
    view = Curve(curves, controls[2], "on the wire per step", log=(True, True))
    title = "How long it is on the wire"
    return Explorer(list(curves.values()), controls, view, title=title, presets=presets, made_by="explorers.hybrid_time_explorer")
