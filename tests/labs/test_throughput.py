"""Throughput: FLOP are counted exactly; times are shown beside what the formulas make of them, and never judged."""

import pytest

from formulary import InputError, Outcome, formula
from formulary.hardware import GPUS
from labs import load
from labs.jobs.throughput import card_named
from labs.launch import launch
from labs.measurement import Measurement

LAB = load("throughput")


@pytest.fixture(scope="module")
def report():
    found = LAB.run(4, launcher="fork", timeout=300, steps=2, num_layers=2)
    assert found.measurement, found.failure
    return found


def test_flop_are_exact(report):
    assert report.outcome is Outcome.PASSED, report.reason
    assert {x.key for x in report.lines if x.outcome} == {"parameters", "FLOP per token"}
    assert all(x.measured == x.predicted for x in report.lines if x.outcome)


def test_flop_are_those_of_the_published_formula(report):
    """Which is written for a feed-forward four times as wide, and counts part by part."""
    known = report.conditions
    step = formula("step_flop")(
        global_batch=known["micro_batch"], seq_length=known["num_positions"], **{name: known[name] for name in SHAPE}
    )
    tokens = known["micro_batch"] * known["num_positions"]
    assert report.measurement.numbers["FLOP per token"] == pytest.approx(step / tokens, rel=1e-12)


SHAPE = ("hidden_size", "num_layers", "vocab_size")


def test_flop_of_another_width_and_length():
    run = launch(LAB.script, 1, ["ffn_size=96", "num_positions=24", "hidden_size=64", "steps=1", "product_size=64"])
    found = LAB.report(Measurement.of(run.measurement))
    assert found.outcome is Outcome.PASSED, found.reason
    assert {x.variant for x in found.lines} == {""}
    assert found.figure().axes[0].get_ylabel() == "MFU"


def test_paper_and_count_differ_by_what_is_named(report):
    line = next(x for x in report.lines if x.part == "FLOP per token")
    assert line.paper == 6 * report.measurement.numbers["parameters"]
    assert line.paper + sum(line.changes.values()) == line.predicted
    assert list(line.changes) == ["scores", "no product"] and {"scores", "no product", "shared machine"} <= set(report.differences)


def test_times_are_not_judged(report):
    timed = [x for x in report.lines if x.part in ("step time", "efficiency", "tokens per second", "MFU")]
    assert {x.variant for x in timed} == {"", "weak 2", "strong 2", "weak 4", "strong 4"}
    assert all(x.outcome is None and x.measured > 0 and x.predicted > 0 for x in timed)


def test_efficiency_is_speed_kept(report):
    numbers = report.measurement.numbers
    assert numbers["weak 2/efficiency"] == pytest.approx(numbers["weak 1/step time"] / numbers["weak 2/step time"])
    assert numbers["strong 4/efficiency"] == pytest.approx(numbers["strong 1/step time"] / numbers["strong 4/step time"] / 4)
    assert numbers["weak 4/step time"] == numbers["strong 4/step time"]  # the same share of each rank
    assert numbers["MFU"] == pytest.approx(numbers["FLOP per token"] * numbers["tokens per second"] / numbers["matmul peak"])


def test_its_picture(report):
    axes = report.figure().axes[0]
    assert axes.get_ylabel() == "efficiency"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["weak 2", "strong 2", "weak 4", "strong 4"]
    assert len(axes.patches) == 8


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_cards_are_known_by_what_drivers_call_them(name, card):
    assert card_named(name) == GPUS[card]


@pytest.mark.parametrize("name", ["NVIDIA RTX A2000", "NVIDIA T400", "some processor"])
def test_other_cards_are_not(name):
    assert card_named(name) == {}


def test_conditions_that_make_no_sense():
    with pytest.raises(InputError, match="dtype is 'float8'; it must be one of float32, bfloat16"):
        LAB.predictions(dtype="float8")
