"""Timelines: schedules laid out by rules, held against the formulas and against pipelines run operation by operation."""

import pytest
import sympy as sp

import explorers
from explorers import Blocks, Timeline, counter
from explorers.plan import lay_out
from formulary import formula
from tests.witnesses.simulators import pipeline as sim

SHAPES = [(2, 4), (4, 8), (4, 12), (8, 64)]  # stages, micro-batches
# schedule: the simulated order
ORDERS = {
    "gpipe": lambda stages, micros, chunks: sim.gpipe(stages, micros),
    "one_f_one_b": lambda stages, micros, chunks: sim.one_forward_one_backward(stages, micros),
    "interleaved": sim.interleaved,
    "zb_h1": lambda stages, micros, chunks: sim.zero_bubble(stages, micros),
    "zb_h2": lambda stages, micros, chunks: sim.zero_bubble(stages, micros, fill=True),
}
SPLIT = ("zb_h1", "zb_h2")


@pytest.mark.parametrize(("stages", "micros"), SHAPES)
@pytest.mark.parametrize("schedule", ORDERS)
def test_a_schedule_is_the_simulated_one(schedule, stages, micros):
    chunks = 2 if schedule == "interleaved" else 1
    made = explorers.pipeline_explorer(stages, micros, schedule, chunks)
    scene, unit = made.scene(), made.fixed["stage_forward_time"] / chunks
    seconds = {"F": 1, "B": 1, "W": 1} if schedule in SPLIT else {"F": 1, "B": 2}
    run = sim.run(ORDERS[schedule](stages, micros, chunks), seconds, chunks)
    for stage in range(stages):
        mine = sorted((block["start"], block["end"]) for block in scene["blocks"] if block["row"] == stage)
        assert mine == [pytest.approx((start * unit, end * unit)) for start, end in zip(run.starts[stage], run.ends[stage], strict=True)]
        assert max(held for _, held in scene["levels"][stage]) == run.peak[stage]


@pytest.mark.parametrize("schedule", [name for name in ORDERS if name != "zb_h2"])
@pytest.mark.parametrize(("stages", "micros"), SHAPES[1:])
def test_the_bubble_counted_is_the_formulas(schedule, stages, micros):
    scene = explorers.pipeline_explorer(stages, micros, schedule, 2).scene()
    ((_, said),) = scene["beside"]
    assert scene["counted"] == pytest.approx(said)


def test_h2_leaves_no_bubble_where_the_formula_says_so():
    assert formula("zb_h2_bubble_time")(num_stages=4, stage_forward_time=1, input_grad_time=1, weight_grad_time=1) == 0
    assert explorers.pipeline_explorer(4, 8, "zb_h2").scene()["counted"] == 0


def test_blocks_that_wait_for_each_other_are_said_to():
    here, other = ({"i": counter("i")}, {"i": counter("i")})
    rules = [
        Blocks("hen", {"i": 1}, row=0, turn=0, length=1, after=[("egg", here)]),
        Blocks("egg", {"i": 1}, row=1, turn=0, length=1, after=[("hen", other)]),
    ]
    plan = lay_out(rules, {}, 2)
    assert "wait for each other" in plan.fault and [block.end for block in plan.blocks] == [None, None]


def test_more_blocks_than_can_be_drawn_are_not_drawn():
    scene = explorers.pipeline_explorer(64, 1000, "gpipe").scene()
    assert scene["blocks"] == [] and scene["fault"] == "128,000 blocks are too many to draw."


def test_a_remainder_times_a_number_is_what_it_says():
    k = sp.Symbol("k", positive=True, integer=True)
    less = Blocks("block", {"i": 5}, row=0, turn=k - 2 * sp.Mod(counter("i"), k), length=1)
    assert [block.turn for block in lay_out([less], {"k": 3}, 1).blocks] == [3, 1, -1, 3, 1]


def test_a_row_starts_a_block_when_it_is_free_and_what_it_waits_for_has_ended():
    i = counter("i")
    rules = [
        Blocks("work", {"i": 3}, row=0, turn=i, length=2, takes=1),
        Blocks("send", {"i": 3}, row=1, turn=i, length=3, after=[("work", {"i": i})]),
    ]
    plan = lay_out(rules, {}, 2)
    assert [(b.start, b.end) for b in plan.blocks if b.kind == "send"] == [(2, 5), (5, 8), (8, 11)]
    assert (plan.end, plan.busy(0), plan.span(1), plan.level(0)) == (11, 6, 9, [[0, 1], [2, 2], [4, 3]])


def test_an_unknown_measure_is_an_error():
    with pytest.raises(ValueError, match="idle, exposed, step, peak"):
        Timeline([], 1, "speed", "speed")


def test_the_table_tells_every_row():
    table = explorers.pipeline_explorer(4, 8).table()
    assert table.head == ["row", "works", "waits", "most micro-batches held"]
    assert [row[3] for row in table.rows] == ["4", "3", "2", "1"]


@pytest.mark.parametrize("ranks", [2, 3, 8, 16])
def test_a_ring_takes_as_long_as_the_formula_says(ranks):
    made = explorers.ring_explorer(message_bytes="14GB", world_size=ranks)
    assert made.scene()["counted"] == pytest.approx(made.ring_all_reduce_time)


@pytest.mark.parametrize("buckets", [1, 2, 10, 100])
@pytest.mark.parametrize("backward", [0.0, 0.2, 5.0])
def test_what_shows_behind_the_backward_pass_is_what_the_formula_says(buckets, backward):
    made = explorers.overlap_explorer(message_bytes="3GB", num_buckets=buckets, backward_time=backward)
    assert made.scene()["counted"] == pytest.approx(made.bucketed_exposed_time)
