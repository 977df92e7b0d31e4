"""Explorers of failures: how often to save, and what a checkpoint takes."""

from formulary.hardware import NETWORKS
from formulary.models import MODEL_PARAMS
from formulary.reliability import (
    CHECKPOINT_BYTES,
    CHECKPOINT_TIME,
    CLUSTER_EXACT_OVERHEAD,
    CLUSTER_INTERVAL,
    CLUSTER_OVERHEAD,
    EXPECTED_STOPS,
    MTBF,
    SAVED,
)
from formulary.shapes import MODELS, RUNS

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer

RUN = RUNS["Llama 3 405B pre-training"]
_rate = EXPECTED_STOPS.solve_for("gpu_failure_rate")
REPORTED = {"training": {title: {**run, "gpu_failure_rate": _rate(**run)} for title, run in RUNS.items()}}
RATE = _rate(**RUN)
SIZES = {title: {"num_params": MODEL_PARAMS(**shape.only(MODEL_PARAMS))} for title, shape in MODELS.items()}
STORED = {alternative.values["checkpoint_param_bytes"]: alternative.meaning.split(":")[0] for alternative in SAVED.alternatives}


def interval_explorer(
    checkpoint_interval=None,
    num_gpus=RUN["num_gpus"],
    gpu_failure_rate=RATE,
    checkpoint_time=60,
    restart_time=0,
    training_time=RUN["training_time"],
    presets=REPORTED,
):
    """Share of time that checkpoints and failures cost over the interval between checkpoints, and where it is least."""
    controls = [
        Slider("checkpoint_interval", checkpoint_interval, "training between checkpoints", scale="log"),
        Slider("num_gpus", num_gpus, "cards", scale="doubling", span=(8, "100K")),
        Slider("gpu_failure_rate", gpu_failure_rate, "failures of one card"),
        Slider("checkpoint_time", checkpoint_time, "training waits for a checkpoint"),
        Slider("restart_time", restart_time, "from a failure to training again"),
        Slider("training_time", training_time, "the whole training"),
    ]
    curves = {"simple estimate": CLUSTER_OVERHEAD, "exactly": CLUSTER_EXACT_OVERHEAD}
    marks = {"least, by the estimate": CLUSTER_INTERVAL}
    view = Curve(curves, controls[0], "share of time lost", log=(True, True), scale="%", marks=marks)
    subject = [CLUSTER_OVERHEAD, MTBF, EXPECTED_STOPS]
    return Explorer(subject, controls, view, title="How often to save", presets=presets, made_by="explorers.interval_explorer")


def saving_explorer(storage_bandwidth=NETWORKS["InfiniBand NDR"]["bandwidth"], num_params="70B", saved="weights_and_optimizer"):
    """How long training waits for a checkpoint over the bandwidth of the storage, by what is saved."""
    controls = [
        Slider("storage_bandwidth", storage_bandwidth, "bandwidth of the storage"),
        Slider("num_params", num_params, "parameters"),
        Choice(SAVED, saved, "saved"),
    ]
    waits = {"checkpoint": CHECKPOINT_TIME}
    view = Curve(waits, controls[0], "training waits", "checkpoint_param_bytes", STORED, log=(True, True))
    subject = [CHECKPOINT_TIME, CHECKPOINT_BYTES]
    presets = {"model": SIZES}
    return Explorer(subject, controls, view, title="What a checkpoint takes", presets=presets, made_by="explorers.saving_explorer")
