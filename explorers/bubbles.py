"""Explorers of pipelines by their formulas: how the bubble shrinks, how many micro-batches that takes, what each stage holds."""

from formulary.pipeline import (
    BOUNDARIES,
    BUBBLE,
    GPIPE_IN_FLIGHT,
    IN_FLIGHT,
    INTERLEAVED_BUBBLE,
    INTERLEAVED_IN_FLIGHT,
    MICRO_BATCHES,
    ZB_H1_BUBBLE,
    ZB_H2_IN_FLIGHT,
)

from .control import Slider
from .curve import Curve
from .explorer import Explorer

MOST_STAGES = 16


def _stages(num_stages):
    return Slider("num_stages", num_stages, "stages", span=(2, MOST_STAGES))


def bubble_explorer(num_stages=8, num_micro_batches=64, chunks_per_stage=2):
    """Share of a pipeline's step in which a stage idles, as micro-batches are added: GPipe and 1F1B, interleaved, ZB-H1."""
    micro_batches = Slider("num_micro_batches", num_micro_batches, "micro-batches", scale="doubling")
    controls = [_stages(num_stages), micro_batches, Slider("chunks_per_stage", chunks_per_stage, "chunks per stage")]
    curves = {"GPipe and 1F1B": BUBBLE, "interleaved 1F1B": INTERLEAVED_BUBBLE, "ZB-H1": ZB_H1_BUBBLE}
    view = Curve(curves, micro_batches, "share of the step that a stage idles", log=(True, True), scale="%")
    return Explorer([*curves.values(), BOUNDARIES], controls, view, title="The bubble", made_by="explorers.bubble_explorer")


def micro_batches_explorer(num_stages=8, pipeline_bubble=0.1):
    """Micro-batches that keep the bubble within a share, as stages are added."""
    stages = Slider("num_stages", num_stages, "stages", span=(2, MOST_STAGES))
    controls = [stages, Slider("pipeline_bubble", pipeline_bubble, "bubble allowed", span=(0.01, 0.5), scale="log")]
    view = Curve({"needed": MICRO_BATCHES}, stages, "micro-batches needed")
    return Explorer(MICRO_BATCHES, controls, view, title="Enough micro-batches", made_by="explorers.micro_batches_explorer")


def in_flight_explorer(num_stages=8, num_micro_batches=64, chunks_per_stage=2, num_layers=16, stage_index=1):
    """What each stage holds at most, in activations of one layer and micro-batch, under four schedules."""
    stage = Slider("stage_index", stage_index, "stage", span=(1, MOST_STAGES))
    controls = [
        _stages(num_stages),
        Slider("num_micro_batches", num_micro_batches, "micro-batches", scale="doubling"),
        Slider("chunks_per_stage", chunks_per_stage, "chunks per stage, if interleaved", span=(2, 8)),
        Slider("num_layers", num_layers, "layers"),
        stage,
    ]
    curves = {"GPipe": GPIPE_IN_FLIGHT, "1F1B": IN_FLIGHT, "interleaved 1F1B": INTERLEAVED_IN_FLIGHT, "ZB-H2": ZB_H2_IN_FLIGHT}
    view = Curve(curves, stage, "layer-activations held", log=(False, True))
    title = "What each stage holds"
    return Explorer(list(curves.values()), controls, view, title=title, made_by="explorers.in_flight_explorer")
