"""The wall explorer: where more cards stop shortening a step."""

from formulary.compute import STEP
from formulary.data_parallel import DDP_BYTES
from formulary.hardware import GPUS, NETWORKS
from formulary.models import MODEL_PARAMS
from formulary.scaling import COMM_TIME, COMPUTE_TIME, CRITICAL_GPUS, HIDING_GPUS
from formulary.shapes import MODELS

from .control import Slider
from .curve import Curve
from .explorer import Explorer

CARD = GPUS["A100 80GB"]["peak_flop_per_s"]
LINK = NETWORKS["InfiniBand NDR"]["bandwidth"]
SHAPE = MODELS["LLaMA 7B"]
WORK = STEP(global_batch=512, seq_length=MODELS["GPT-3"]["num_positions"], **SHAPE.only(STEP))
SENT = DDP_BYTES(num_params=MODEL_PARAMS(**SHAPE.only(MODEL_PARAMS)), world_size=64)
PRESETS = {"card": GPUS, "link": NETWORKS}


def wall_explorer(
    num_gpus=64, step_flop=WORK, comm_bytes=SENT, peak_flop_per_s=CARD, kernel_efficiency=0.5, bandwidth=LINK, presets=PRESETS
):
    """Computation and communication of a step over the number of cards, at one global batch, and where they cross."""
    controls = [
        Slider("num_gpus", num_gpus, "cards", scale="doubling"),
        Slider("step_flop", step_flop, "work of a step"),
        Slider("comm_bytes", comm_bytes, "bytes a rank sends"),
        Slider("peak_flop_per_s", peak_flop_per_s, "peak of a card"),
        Slider("kernel_efficiency", kernel_efficiency, "share of it that kernels reach"),
        Slider("bandwidth", bandwidth, "bandwidth of a rank"),
    ]
    curves = {"computation": COMPUTE_TIME, "communication": COMM_TIME}
    marks = {"they meet": CRITICAL_GPUS, "hidden up to here": HIDING_GPUS}
    view = Curve(curves, controls[0], "time of a step", log=(True, True), marks=marks)
    return Explorer([COMPUTE_TIME], controls, view, title="Two walls", presets=presets, made_by="explorers.wall_explorer")
