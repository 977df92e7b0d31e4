"""The pipeline lab: torch's tables replayed, and run by real processes in the order and with the activations that the formulas say.

No test looks at a clock; how long stages idle on it was measured once, and is kept.
"""

from pathlib import Path

import pytest

from formulary import InputError, Outcome, formula
from labs import load
from labs.gantt import gantt, replayed
from labs.jobs.pipeline import in_order
from labs.launch import ROOT
from labs.measurement import kept
from labs.replay import FORWARD, TIMES, Deadlock, Operation, Timeline, replay
from labs.schedules import SCHEDULES, as_torch_has_it, counted_from_zero, table

LAB = load("pipeline")
SHAPES = [(2, 4, 2), (3, 6, 2), (4, 8, 2), (4, 16, 4), (4, 4, 2)]  # ranks, micro-batches, chunks


@pytest.fixture(scope="module", params=[2, 4])
def report(request):
    found = LAB.run(request.param, timeout=300, slot_ms=3, num_micro_batches=4, steps=1)
    assert found.measurement, found.failure
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_passes_run_in_the_tables_order_and_keep_alive_what_is_predicted(report, name):
    lines = [x for x in report.lines if x.variant == name and x.rank is not None]
    assert {x.rank for x in lines} == set(range(report.conditions["world_size"]))
    assert [x.measured for x in lines] == [x.predicted for x in lines]
    assert {x.part for x in lines if x.measured} == {"operations in order", "alive at most"}


def test_every_number_is_predicted(report):
    assert set(report.measurement.numbers) - {p.key for p in report.predictions} == {f"{name}/timeline" for name in SCHEDULES}


def test_the_bubble_of_the_tables_is_the_formulas(report):
    lines = [x for x in report.lines if x.part == "bubble of the table"]
    assert [x.measured for x in lines] == [x.predicted for x in lines] and len(lines) == len(SCHEDULES)


def test_what_ran_is_what_the_replay_ran(report):
    """Of each rank the operations, and the same most alive, counted in the log and not at autograd."""
    conditions = report.conditions
    for name in SCHEDULES:
        done = Timeline.of(report.measurement.numbers[f"{name}/timeline"])
        planned = replayed(name, conditions["world_size"], conditions["num_micro_batches"], conditions["chunks_per_stage"])
        assert done.table == planned.table
        assert all(done.in_flight(rank) == planned.in_flight(rank) for rank in range(conditions["world_size"]))


def test_the_differences_lead_from_gpipe_to_each_schedule(report):
    for x in report.lines:
        assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)
    assert set(report.differences) == {"backward early", "chunks", "shorter fill", "filled with weight gradients"}


def test_its_picture_has_a_bar_for_each_pass_planned_and_done(report):
    axes = report.figure().axes
    passes = sum(x.predicted for x in report.lines if x.part == "operations in order")
    assert len(axes) == 2 * len(SCHEDULES)
    assert sum(len(one.patches) for one in axes) == 2 * passes
    assert "<svg" in gantt(("one", replayed("gpipe", 2, 2)))._repr_svg_()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_replays_are_as_long_as_the_formulas_say(name, shape):
    stages, micro_batches, chunks = shape
    found = {
        p.part: p.estimate() for p in LAB.predictions(stages, num_micro_batches=micro_batches, chunks_per_stage=chunks, schedules=name)
    }
    timeline = replayed(name, *shape)
    assert timeline.bubble == found["bubble of the table"]
    assert {len(row) for row in timeline.rows} == {found["operations in order"]}
    if name in ("gpipe", "1f1b"):
        seconds = {"stage_forward_time": 1, "stage_backward_time": 2}
        assert timeline.span == formula("pipeline_step_time")(num_stages=stages, num_micro_batches=micro_batches, **seconds)


def test_torchs_table_of_1f1b_is_off_by_one():
    """If this fails, torch has put its table right: take `counted_from_zero` out of labs/schedules.py."""
    raw = as_torch_has_it("1f1b", 4, 8, 1)
    assert [operation.micro_batch for operation in raw[-1] if operation.kind == FORWARD] == list(range(1, 9))
    with pytest.raises(Deadlock, match="backward of micro-batch 0 on stage 3 wait for what never comes"):
        replay(raw, TIMES)
    right = table("1f1b", 4, 8, 1)
    assert right[:-1] == raw[:-1] and counted_from_zero(right[-1]) == right[-1]
    assert [operation.micro_batch for operation in right[-1] if operation.kind == FORWARD] == list(range(8))


def test_a_pass_out_of_order_is_seen():
    row = table("gpipe", 2, 4, 1)[0]
    assert in_order(row, row) == len(row)
    assert in_order([*row[:2], row[3], row[2], *row[4:]], row) == 2
    assert in_order(row[:5], row) == 5


def test_cards_that_wait_for_each_other():
    ahead = [[Operation(FORWARD, 0, 1)], [Operation(FORWARD, 0, 2)], [Operation("backward", 0, 0), Operation(FORWARD, 0, 0)]]
    with pytest.raises(Deadlock, match="backward of micro-batch 0 on stage 0 wait"):
        replay(ahead, TIMES)


def test_nothing_else_touches_private_parts_of_the_pipelines():
    others = [path for path in Path(ROOT, "labs").rglob("*.py") if path.name != "schedules.py"]
    assert others and [path.name for path in others if "pipelining._" in path.read_text()] == []


@pytest.mark.parametrize("schedules", ["gpipe,1f1b", "interleaved,zero_bubble"])
def test_the_clocks_bubble_was_measured_within_five_points(schedules):
    """Four processes, a tenth of a second for a slot: too long to repeat here."""
    found = LAB.report(kept("pipeline-4"))
    assert found.outcome is Outcome.PASSED, found.reason
    clock = [x for x in found.lines if x.part == "bubble on the clock" and x.variant in schedules.split(",")]
    assert len(clock) == 2 and all(abs(x.measured - x.predicted) < 0.05 for x in clock)
    assert found.conditions["world_size"] == 4 and found.conditions["slot_ms"] >= 100


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nproc": 1}, "at least 2 stages"),
        ({"num_micro_batches": 6}, "a multiple of the 4 processes"),
        ({"chunks_per_stage": 1}, "at least 2"),
        ({"steps": 0}, "at least 1"),
        ({"schedules": "gpip"}, "did you mean gpipe"),
    ],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        LAB.predictions(**given)
