"""The runs on a GPU that come with the book: taken on one, by a commit that is known, and still what the formulas say."""

import pytest

from formulary import Outcome
from labs import load
from labs.measurement import kept

RUNS = ("model_states", "numerics", "peak_memory", "qlora", "throughput")


@pytest.mark.parametrize("name", RUNS)
def test_the_run_was_on_a_gpu_and_came_true(name):
    measurement = kept(f"{name}-h200")
    assert measurement.machine["gpu"] == "NVIDIA H200" and measurement.conditions["backend"] == "nccl" and measurement.commit
    report = load(name).report(measurement)
    assert report.outcome is Outcome.PASSED, report.reason
    assert all(x.measured is not None for x in report.lines if x.judged)


def test_the_large_model_stayed_within_the_small_card():
    report = load("qlora").report(kept("qlora-h200"))
    assert report.conditions["card"] == "RTX 4090" and report.conditions["model"] == "Llama 2 7B"


def test_a_total_is_judged_where_all_its_parts_are():
    rounded = {x.variant: x.outcome for x in load("peak_memory").report(kept("peak_memory-h200")).totals}
    exact = {x.variant: x.outcome for x in load("model_states").report(kept("model_states-h200")).totals}
    assert rounded["fused"] is None and set(exact.values()) == {Outcome.PASSED}
