"""The lab on layers cut across ranks, run for real: every collective and every byte is what the plan says."""

import pytest

from formulary import InputError, Outcome
from labs import load

LAB = load("tensor_parallel")


@pytest.fixture(scope="module", params=[2, 4])
def report(request):
    found = LAB.run(request.param, launcher="fork", timeout=300)
    assert found.measurement, found.failure
    return found


def sent(report, plan, phase, rank=0):
    return report.measurement.numbers[f"{plan}/{rank}/{phase}"]


def test_every_line_came_true(report):
    assert report.outcome is Outcome.PASSED, report.reason
    assert [x.measured for x in report.lines] == [x.predicted for x in report.lines]
    assert {x.rank for x in report.totals} == set(range(report.conditions["world_size"]))


def test_what_is_not_predicted_is_nothing_or_a_rounding(report):
    numbers = report.measurement.numbers
    rest = {name: numbers[name] for name in set(numbers) - {x.key for x in report.lines}}
    apart = {f"{plan}/difference from uncut": rest.pop(f"{plan}/difference from uncut") for plan in ("naive", "prepared", "sequence")}
    assert set(rest.values()) == {0}
    assert all(0 < value < 1e-5 for value in apart.values())


def test_a_naive_plan_doubles_the_backward_pass(report):
    assert sent(report, "naive", "backward") == 2 * sent(report, "prepared", "backward") == 2 * sent(report, "naive", "forward")
    assert sent(report, "sequence", "forward") == sent(report, "prepared", "forward")


def test_paper_and_library_differ_by_what_is_named(report):
    assert set(report.differences) == {"precision", "a copy for each matrix", "gathered inputs kept", "added up in Adam"}
    assert all(x.changes for x in report.lines if x.paper != x.predicted)
    for x in report.totals:
        assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)


def test_one_process_cuts_nothing():
    found = LAB.run(1, launcher="fork", timeout=300)
    assert found.outcome is Outcome.PASSED, found.reason
    assert {x.measured for x in found.totals} == {0}
    assert {found.measurement.numbers[f"{plan}/difference from uncut"] for plan in ("naive", "sequence")} == {0}
    assert found.figure()._repr_svg_()


def test_its_picture(report):
    assert "sent by a rank" in report.figure().axes[0].get_ylabel()
    assert "<svg" in report.figure()._repr_svg_()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plans": "sequential"}, "did you mean sequence"),
        ({"nproc": 3}, "num_heads is 8, which 3 ranks cannot share"),
        ({"hidden_size": 132}, "hidden_size is 132, which 8 heads cannot share"),
        ({"nproc": 2, "seq_length": 63}, "seq_length is 63"),
    ],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        LAB.predictions(**given)
