"""The lab on numerics, run for real: torch rounds, drops and skips where the formulas say, and what keeps updates keeps them."""

import pytest
import torch

from formulary import InputError, Outcome
from labs import load
from labs.jobs.moments import EightBit, Full, adam
from labs.jobs.numerics import Kahan, Stochastic, dice

LAB = load("numerics")
FAITHFUL = ("master", "stochastic", "kahan")


@pytest.fixture(scope="module")
def report():
    found = LAB.run(2, launcher="fork", timeout=300)
    assert found.measurement, found.failure
    return found


def number(report, key):
    return report.measurement.numbers[key]


def test_every_line_came_true(report):
    assert report.outcome is Outcome.PASSED, report.reason
    exact = [x for x in report.lines if x.part not in ("fall of the loss", "share of steps skipped") and not x.part.startswith("moved by")]
    assert [x.measured for x in exact] == [x.predicted for x in exact]
    assert {x.rank for x in report.totals} == {0, 1}


def test_bf16_alone_stalls_and_what_keeps_updates_does_not(report):
    assert number(report, "bf16/moved by small updates") == 0 < number(report, "kahan/moved by small updates")
    assert number(report, "bf16/moved by large updates") > 1.3 * number(report, "master/moved by large updates")
    falls = {name: number(report, f"{name}/fall of the loss") for name in ("fp32", "bf16", "adam8", *FAITHFUL)}
    assert falls["bf16"] < falls["fp32"] / 5
    assert all(falls[name] == pytest.approx(falls["fp32"], rel=0.02) for name in FAITHFUL)
    assert falls["fp32"] > falls["adam8"] > 0.8 * falls["fp32"]


def test_scaling_keeps_small_gradients_alive(report):
    scale = report.conditions["loss_scale"]
    assert number(report, "scaled/smallest gradient") * scale == number(report, "unscaled/smallest gradient")
    assert number(report, "scaled/largest gradient") * scale == number(report, "unscaled/largest gradient")


def test_replicas_part_when_each_draws_its_own_numbers(report):
    assert number(report, "weights apart with random numbers of one's own") > 0.5


def test_one_byte_a_moment(report):
    held = lambda part: number(report, f"adam8/0/{part}")
    blocks = -(-number(report, "parameters") // report.conditions["quantizer_block"])
    assert held("first moments") == held("second moments") == number(report, "parameters")
    assert held("scales") == torch.empty(2, blocks).nbytes


def test_paper_and_library_differ_by_what_is_named(report):
    assert set(report.differences) == {
        *("its own master", "no master", "compensation", "one byte a moment", "scales", "rounded at every update")
    }
    for x in report.totals:
        assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)


def test_its_picture(report):
    axes = report.figure().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == report.conditions["variants"].split(",")
    assert "<svg" in report.figure()._repr_svg_()


@pytest.mark.parametrize("nproc", [1, 4])
def test_processes_change_nothing(report, nproc):
    """Replicas hold the same: how many there are is seen in the number of lines only."""
    found = LAB.run(nproc, launcher="fork", timeout=300, variants="bf16,stochastic", steps=3)
    assert found.outcome is Outcome.PASSED, found.reason
    moved = [key for key in found.measurement.numbers if "moved by" in key]
    assert [number(found, key) for key in moved] == [number(report, key) for key in moved]
    assert (number(found, "weights apart with random numbers of one's own") > 0) == (nproc > 1)
    assert {x.rank for x in found.totals} == set(range(nproc))


def test_stochastic_rounding_is_right_on_the_average_on_both_sides_of_zero():
    start = torch.tensor([1.0, -1.0]).repeat_interleave(100_000)
    kept = Stochastic(start, dice("cpu"))
    kept.add(torch.full_like(start, 0.25 / 128))
    up, down = kept.weights.float().sub(start).mul(128).view(2, -1).mean(1)
    assert (up.item(), down.item()) == pytest.approx((0.25, 0.25), abs=0.01)
    assert kept.weights.float().sub(start).mul(128).unique().tolist() == [0, 0.5, 1]  # below 1 the spacing is half as wide


def test_kahan_remembers_what_rounding_took():
    kept = Kahan(torch.ones(1), None)
    kept.add(torch.full((1,), 0.25 / 128))
    assert kept.weights.item() == 1 and kept.lost.item() == 0.25 / 128


@pytest.mark.parametrize("count", [1, 7, 8, 9])
def test_moments_in_blocks(count):
    """Read back, the largest of a block is exact, signs and zeros stay, and a second moment is never too small."""
    moments = EightBit(torch.zeros(count), 4)
    values = (torch.arange(count) - count // 2 + 0.25 * (count == 1)) / count
    moments.write(values, values.square())
    first, second = moments.read()
    largest = values.abs() == torch.cat([block.abs().max().expand(len(block)) for block in values.split(4)])
    torch.testing.assert_close(first[largest], values[largest])
    assert torch.equal(first.sign(), values.sign()) and torch.equal(second == 0, values == 0)
    assert (second >= values.square() * (1 - 1e-6)).all()
    torch.testing.assert_close(first, values, atol=0.03, rtol=0)


def test_full_moments_are_adams():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    reference, moments, mine = torch.optim.Adam([weight], lr=0.1), Full(weight.detach(), 4), weight.detach().clone()
    for step in range(1, 6):
        weight.grad = torch.tensor([0.5, -0.1, 0.01]) * step
        mine -= 0.1 * adam(moments, weight.grad, step)
        reference.step()
    torch.testing.assert_close(mine, weight.detach())


@pytest.mark.parametrize(
    ("given", "said"),
    [({"variants": "bf32"}, "did you mean"), ({"small_update": "some"}, "must be like 0.25"), ({"loss_scale": "big"}, "must be like 512")],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        LAB.predictions(**given)
