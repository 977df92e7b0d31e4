"""The lab on traffic, run for real: every byte that a rank sends is the formulas', counted at the collective and on the wire."""

import os
import runpy

import pytest

from formulary import InputError, Outcome
from labs import load
from labs.jobs import private_network
from labs.traffic import VARIANTS, written

LAB = load("traffic")
ON_LINUX_AS_ROOT = os.path.exists("/proc/net/dev") and os.geteuid() == 0


@pytest.fixture(scope="module", params=[2, 4])
def report(request):
    found = LAB.run(request.param, launcher="fork", timeout=300)
    assert found.measurement, found.failure
    return found


def number(report, key):
    return report.measurement.numbers[key]


def test_every_line_came_true(report):
    assert report.outcome is Outcome.PASSED, report.reason
    exact = [x for x in report.lines if x.variant != "wire"]
    assert [x.measured for x in exact] == [x.predicted for x in exact]
    assert {x.variant for x in report.totals} == {*VARIANTS, "ring"}
    assert {x.rank for x in report.totals} == set(range(report.conditions["world_size"]))


def test_what_is_not_predicted_is_nothing(report):
    rest = set(report.measurement.numbers) - {x.key for x in report.lines}
    rounds = 2 * (report.conditions["world_size"] - 1)
    assert {number(report, name) for name in rest if not name.endswith("/rounds")} <= {0}
    assert {number(report, name) for name in rest if name.endswith("/rounds")} == {rounds}


def test_what_waiting_saves(report):
    times = report.conditions["accumulation_steps"]
    assert number(report, "ddp_every_pass/0/gradients") == times * number(report, "ddp_no_sync/0/gradients")
    assert number(report, "fsdp_every_pass/0/gradients") == times * number(report, "fsdp_no_sync/0/gradients")
    assert number(report, "fsdp_every_pass/0/weights") == number(report, "fsdp_no_sync/0/weights")


def test_paper_and_library_differ_by_what_is_named(report):
    for x in report.totals:
        assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)
    assert all(x.changes for x in report.lines if x.paper != x.predicted)
    assert {"all-reduced, not scattered", "every backward pass", "the last pass only", "hidden buckets"} <= set(report.differences)
    assert ("rows rounded up" in report.differences) == (report.conditions["world_size"] == 4)  # 502 rows divide by 2 and not by 4


def test_gloo_sends_a_reduce_scatter_as_an_all_reduce(report):
    """Where this process may make a network namespace the wire must have been measured; elsewhere the report must say why not."""
    wire = {x.part: x for x in report.lines if x.variant == "wire"}
    if ON_LINUX_AS_ROOT:
        assert wire["reduce-scatter"].measured == pytest.approx(wire["all-reduce"].measured, rel=1e-3)
        assert wire["reduce-scatter"].measured == pytest.approx(2 * wire["all-gather"].measured, rel=1e-3)
    else:
        assert all(x.measured is None and "root" in x.why_not and x.why_not in report.reason for x in wire.values())


def test_its_picture_has_a_pair_of_bars_for_each_variant(report):
    axes = report.figure().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [*VARIANTS, "ring"]
    assert "<svg" in report.figure()._repr_svg_()


def test_one_process_sends_nothing():
    found = LAB.run(1, launcher="fork", timeout=300, variants="ddp,zero1,fsdp,hsdp,tp,sp")
    assert found.outcome is Outcome.PASSED, found.reason
    assert {x.measured for x in found.totals} == {0}
    assert "3 could not be measured here: a single rank sends nothing" in found.reason
    assert found.figure()._repr_svg_()


def test_three_processes_share_unevenly():
    """Nothing divides by three: neither rows nor the bytes of a pass."""
    found = LAB.run(3, launcher="fork", timeout=300, variants="zero1,fsdp")
    assert found.outcome is Outcome.PASSED, found.reason
    assert "rows rounded up" in found.differences


ROUND_AND_ROUND = """
def all_reduce(message, rank, num_ranks, exchange):
    passing = message.clone()
    for _ in range(num_ranks - 1):
        passing = exchange(passing)
        message += passing
"""


def test_a_ring_of_ones_own(tmp_path):
    """Passing on whole messages gives the right sums, and on three ranks sends half as much again as a ring of blocks."""
    file = tmp_path / "mine.py"
    file.write_text(ROUND_AND_ROUND)
    found = LAB.run(3, launcher="fork", timeout=300, variants="", ring=str(file))
    assert found.outcome is Outcome.FAILED
    assert found.measurement.numbers["ring/0/sent"] == 1.5 * next(x.predicted for x in found.lines if x.key == "ring/0/sent")
    assert found.measurement.numbers["ring/2/elements that are no sum"] == 0


def test_a_ring_that_adds_wrongly(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def all_reduce(message, rank, num_ranks, exchange):\n    exchange(message)")
    found = LAB.run(2, launcher="fork", timeout=300, variants="", ring=str(file))
    assert found.outcome is Outcome.FAILED and "elements that are no sum" in str(found)
    assert found.measurement.numbers["ring/0/elements that are no sum"] == found.conditions["message_elements"]


def test_a_function_becomes_a_file():
    def all_reduce(message, rank, num_ranks, exchange):
        """Nothing."""

    assert runpy.run_path(written(all_reduce))["all_reduce"].__doc__ == "Nothing."


def test_a_network_that_is_refused(monkeypatch):
    monkeypatch.setattr(private_network.sys, "platform", "darwin")
    assert "there is no unshare on darwin" in private_network._attempt(private_network._make)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (("nccl", 1, 1), "the ranks talk through nccl"),
        (("gloo", 1, 1), "a single rank sends nothing"),
        (("gloo", 4, 2), "on several machines"),
        (("gloo", 2, 2), ""),
    ],
)
def test_who_moves_into_a_network_of_their_own(there, said):
    why_not = private_network._nothing_to_count(*there)
    assert said in why_not and bool(said) == bool(why_not)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"variants": "fsdp2"}, "did you mean fsdp"),
        ({"nproc": 7}, "message_elements is 960000, which 7 ranks cannot share"),
        ({"nproc": 3}, "num_heads is 8, which 3 ranks cannot share"),
    ],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        LAB.predictions(**given)
