"""Explorers of what waits for a slow link: optimizer states on the host or on drives, activations on the host."""

import sympy as sp

from formulary import glossary as g
from formulary.attention import KEPT_INPUT
from formulary.hardware import PCIE
from formulary.memory import RECIPE
from formulary.offload import (
    COPIES_TIME,
    DUPLEX_COPIES_TIME,
    EXPOSED_OFFLOAD,
    HIDING_BANDWIDTH,
    HOST_STATE,
    LAYER_ADAM,
    LAYER_BACKWARD,
    LAYER_DOWN,
    LAYER_UP,
    NVME_TIME,
    OFFLOAD_STEP,
    PCIE_BANDWIDTH,
)
from formulary.shapes import MODELS

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer
from .plan import Blocks, counter
from .timeline import Timeline

LINKS = {"link": {title: {"host_bandwidth": PCIE_BANDWIDTH(**link)} for title, link in PCIE.items()}}
LINK = LINKS["link"]["PCIe 4.0 x16"]["host_bandwidth"]
GPT_3 = MODELS["GPT-3"]
MOVED = KEPT_INPUT(micro_batch=1, seq_length=GPT_3["num_positions"], **GPT_3.only(KEPT_INPUT))
FEW_LAYERS = 12  # as many as a reader can follow

_layer = counter("layer")
_last = {"layer": _layer}

# Backward frees one layer's gradients after the other; each goes down, is used by Adam on the host, and comes back as weights.
STATIONS = (
    Blocks("forward", {"once": sp.Integer(1)}, row=0, turn=counter("once"), length=g.forward_time),
    Blocks("backward", {"layer": g.num_layers}, row=0, turn=1 + _layer, length=g.layer_backward_time),
    Blocks("gradients", {"layer": g.num_layers}, row=1, turn=_layer, length=g.layer_down_time, after=[("backward", _last)]),
    Blocks("Adam", {"layer": g.num_layers}, row=2, turn=_layer, length=g.layer_adam_time, after=[("gradients", _last)]),
    Blocks("weights", {"layer": g.num_layers}, row=3, turn=_layer, length=g.layer_up_time, after=[("Adam", _last)]),
)


def offload_explorer(
    num_params="7B",
    world_size=1,
    host_bandwidth=LINK,
    forward_time=0.5,
    backward_time=1,
    host_adam_time=1,
    num_layers=FEW_LAYERS,
    presets=LINKS,
):
    """A step with the optimizer on the host, layer by layer: what hides behind the backward pass, and what is waited for."""
    controls = [
        Slider("host_bandwidth", host_bandwidth, "bandwidth to the host"),
        Slider("num_params", num_params, "parameters"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("forward_time", forward_time, "forward pass"),
        Slider("backward_time", backward_time, "backward pass"),
        Slider("host_adam_time", host_adam_time, "Adam on the hosts"),
        Slider("num_layers", num_layers, "layers", scale="doubling"),
    ]
    view = Timeline(
        STATIONS,
        ["GPU", "link, down", "host", "link, up"],
        "step",
        "for a step, counted in the picture",
        beside=(("the formula", OFFLOAD_STEP, {}),),
        used=(LAYER_BACKWARD, LAYER_DOWN, LAYER_ADAM, LAYER_UP),
    )
    title = "Optimizer on the host"
    return Explorer([OFFLOAD_STEP], controls, view, title=title, presets=presets, made_by="explorers.offload_explorer")


def copies_explorer(num_params="30B", world_size=1, host_bandwidth=LINK, accumulation_steps=1, recipe="mixed_adam", presets=LINKS):
    """Time of the copies between card and host over the number of accumulated micro-batches."""
    controls = [
        Slider("accumulation_steps", accumulation_steps, "micro-batches of a step", scale="doubling"),
        Slider("num_params", num_params, "parameters"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("host_bandwidth", host_bandwidth, "bandwidth to the host"),
        Choice(RECIPE, recipe),
    ]
    curves = {"one way after the other": COPIES_TIME, "both ways at once": DUPLEX_COPIES_TIME}
    view = Curve(curves, controls[0], "copies of a step", log=(True, True))
    subject = [COPIES_TIME, HOST_STATE]
    return Explorer(subject, controls, view, title="What a step copies", presets=presets, made_by="explorers.copies_explorer")


def drives_explorer(storage_bandwidth=None, num_params="100B", recipe="mixed_adam"):
    """Time to read and write the optimizer states once, over the bandwidth of the drives."""
    controls = [
        Slider("storage_bandwidth", storage_bandwidth, "bandwidth of all drives"),
        Slider("num_params", num_params, "parameters"),
        Choice(RECIPE, recipe),
    ]
    view = Curve({"read and written": NVME_TIME}, controls[0], "a step's optimizer states", log=(True, True))
    return Explorer(NVME_TIME, controls, view, title="Optimizer states on drives", made_by="explorers.drives_explorer")


def hiding_explorer(host_bandwidth=LINK, moved_bytes=MOVED, forward_time=0.1, presets=LINKS):
    """Activations copied to the host beside the forward pass: what is waited for, over the bandwidth."""
    controls = [
        Slider("host_bandwidth", host_bandwidth, "bandwidth to the host"),
        Slider("moved_bytes", moved_bytes, "activations moved"),
        Slider("forward_time", forward_time, "forward pass"),
    ]
    view = Curve({"waited for": EXPOSED_OFFLOAD}, controls[0], "time that waits for copies", marks={"all hidden": HIDING_BANDWIDTH})
    return Explorer(EXPOSED_OFFLOAD, controls, view, title="Activations on the host", presets=presets, made_by="explorers.hiding_explorer")
