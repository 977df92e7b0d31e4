"""Pipelines run operation by operation: nothing here is made from the formulas."""

import numpy as np
import pytest
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

from formulary import formula
from tests.witnesses.simulators import pipeline as sim

SHAPES = [(1, 4), (2, 2), (2, 6), (3, 8), (4, 8), (8, 64), (16, 64), (5, 3)]  # stages, micro-batches
INTERLEAVED = [(2, 4, 2), (3, 6, 3), (4, 8, 2), (4, 4, 3), (8, 64, 2), (8, 64, 4), (16, 64, 2)]  # and chunks per stage
SECONDS = [{"F": 1, "B": 2}, {"F": 3, "B": 4}]
SPLIT = [{"F": 1, "B": 1, "W": 1}, {"F": 2, "B": 2, "W": 1}, {"F": 3, "B": 2, "W": 2}, {"F": 2, "B": 3, "W": 2}, {"F": 3, "B": 3, "W": 2}]
ORDERS = {"gpipe": sim.gpipe, "1f1b": sim.one_forward_one_backward}


def shape(stages, micros):
    return {"num_stages": stages, "num_micro_batches": micros}


def times(seconds):
    return {"stage_forward_time": seconds["F"], "stage_backward_time": seconds["B"]}


@pytest.mark.witness("pipeline_bubble", "bubble_ratio", "pipeline_step_time")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seconds", SECONDS, ids=str)
@pytest.mark.parametrize(("stages", "micros"), SHAPES)
def test_the_bubble_of_gpipe_and_1f1b(order, seconds, stages, micros):
    run = sim.run(ORDERS[order](stages, micros), seconds)
    work = micros * sum(seconds.values())
    values = shape(stages, micros)
    assert formula("pipeline_step_time")(**values, **times(seconds)) == run.makespan
    assert formula("pipeline_bubble")(**values) == pytest.approx((run.makespan - work) / run.makespan, abs=1e-12)
    assert formula("bubble_ratio")(**values) == pytest.approx((run.makespan - work) / work, abs=1e-12)


@pytest.mark.witness("needed_micro_batches")
@pytest.mark.parametrize(("stages", "allowed"), [(8, 0.1), (4, 0.2), (8, 0.3), (3, 0.15), (2, 0.5)])
def test_the_first_number_of_micro_batches_whose_bubble_is_small_enough(stages, allowed):
    def bubble(micros):
        run = sim.run(sim.one_forward_one_backward(stages, micros), SECONDS[0])
        return 1 - micros * 3 / run.makespan

    first = next(micros for micros in range(1, 200) if bubble(micros) <= allowed + 1e-12)
    assert formula("needed_micro_batches")(num_stages=stages, pipeline_bubble=allowed) == first


@pytest.mark.witness("interleaved_bubble", "interleaved_bubble_ratio")
@pytest.mark.parametrize("seconds", SECONDS, ids=str)
@pytest.mark.parametrize(("stages", "micros", "chunks"), INTERLEAVED)
def test_the_bubble_of_interleaved_1f1b(seconds, stages, micros, chunks):
    per_chunk = {kind: time / chunks for kind, time in seconds.items()}
    run = sim.run(sim.interleaved(stages, micros, chunks), per_chunk, chunks)
    work = micros * sum(seconds.values())
    values = {**shape(stages, micros), "chunks_per_stage": chunks}
    assert formula("interleaved_bubble")(**values) == pytest.approx((run.makespan - work) / run.makespan, abs=1e-9)
    assert formula("interleaved_bubble_ratio")(**values) == pytest.approx((run.makespan - work) / work, abs=1e-9)


@pytest.mark.witness("gpipe_in_flight", "in_flight")
@pytest.mark.parametrize(("stages", "micros"), SHAPES)
def test_activations_that_are_alive_at_once(stages, micros):
    layers = 3 * stages
    gpipe, alternating = (sim.run(order(stages, micros), SECONDS[0]) for order in ORDERS.values())
    values = {**shape(stages, micros), "num_layers": layers}
    for card in range(stages):
        assert formula("gpipe_in_flight")(**values) == 3 * gpipe.peak[card]
        assert formula("in_flight")(stage_index=card + 1, **values) == 3 * alternating.peak[card]


@pytest.mark.witness("interleaved_in_flight")
@pytest.mark.parametrize(("stages", "micros", "chunks"), INTERLEAVED)
def test_interleaving_keeps_more_alive(stages, micros, chunks):
    run = sim.run(sim.interleaved(stages, micros, chunks), {"F": 1, "B": 2}, chunks)
    values = {**shape(stages, micros), "chunks_per_stage": chunks, "num_layers": 2 * stages * chunks}
    for card in range(stages):
        assert formula("interleaved_in_flight")(stage_index=card + 1, **values) == 2 * run.peak[card]


@pytest.mark.witness("zb_h1_bubble_time", "zb_h2_bubble_time")
@pytest.mark.parametrize("seconds", SPLIT, ids=str)
@pytest.mark.parametrize(("stages", "micros"), [(2, 3), (2, 6), (4, 7), (4, 12), (8, 24)])
def test_backward_in_two_halves(seconds, stages, micros):
    values = {
        "num_stages": stages,
        "stage_forward_time": seconds["F"],
        "input_grad_time": seconds["B"],
        "weight_grad_time": seconds["W"],
    }
    work = micros * sum(seconds.values())
    for name, fill in {"zb_h1_bubble_time": False, "zb_h2_bubble_time": True}.items():
        run = sim.run(sim.zero_bubble(stages, micros, fill=fill), seconds)
        assert formula(name)(**values) == max(run.span(card) for card in range(stages)) - work


@pytest.mark.witness("zb_h1_bubble")
@pytest.mark.parametrize(("stages", "micros"), [(2, 3), (4, 12), (8, 24)])
def test_a_third_of_the_idle_time_is_left(stages, micros):
    run = sim.run(sim.zero_bubble(stages, micros), SPLIT[0])
    assert formula("zb_h1_bubble")(**shape(stages, micros)) == pytest.approx(1 - 3 * micros / run.makespan)


@pytest.mark.witness("in_flight", "zb_h2_in_flight")
@pytest.mark.parametrize(("stages", "micros"), [(2, 6), (4, 12), (8, 24), (4, 5)])
def test_zero_bubble_orders_hold_as_much_as_1f1b_or_nearly_twice(stages, micros):
    thrifty, filled = (sim.run(sim.zero_bubble(stages, micros, fill=fill), SPLIT[0]) for fill in (False, True))
    values = {**shape(stages, micros), "num_layers": 3 * stages}
    for card in range(stages):
        assert formula("in_flight")(stage_index=card + 1, **values) == 3 * thrifty.peak[card]
        assert formula("zb_h2_in_flight")(stage_index=card + 1, **values) == 3 * filled.peak[card]


CHUNKED = [(2, 4, 2), (4, 8, 2), (4, 8, 3), (3, 6, 4), (4, 4, 2)]  # stages, micro-batches, chunks per stage


def torch_order(name, stages, micros, chunks):
    """torch's own table in the simulator's words."""
    letters = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "B", "BACKWARD_WEIGHT": "W"}
    rows = [
        [action for action in row if action and action.computation_type.name in letters]
        for row in get_schedule_ops(name, stages, micros, chunks)
    ]
    return [[(letters[a.computation_type.name], a.microbatch_index, a.stage_index // stages) for a in row] for row in rows]


@pytest.mark.witness("interleaved_zero_bubble", "interleaved_zero_in_flight", "stage_operations")
@pytest.mark.parametrize(("stages", "micros", "chunks"), CHUNKED)
def test_chunks_and_backward_in_two_halves(stages, micros, chunks):
    order = torch_order("InterleavedZeroBubble", stages, micros, chunks)
    run = sim.run(order, {"F": 1, "B": 1, "W": 1}, chunks)
    values = {**shape(stages, micros), "chunks_per_stage": chunks}
    work = formula("stage_operations")(num_micro_batches=micros, chunks_per_stage=chunks, backward_parts=2)
    assert {len(row) for row in order} == {work}
    assert formula("interleaved_zero_bubble")(**values) == pytest.approx(1 - work / run.makespan, abs=1e-12)
    alive = formula("interleaved_zero_in_flight")(num_layers=2 * stages * chunks)
    assert {2 * most_until_weights(row) for row in order} == {alive}


def most_until_weights(row):
    """The most micro-batches at once, where each lives until its weight gradients are there."""
    held = [0]
    for kind, *_ in row:
        held.append(held[-1] + {"F": 1, "B": 0, "W": -1}[kind])
    return max(held)


@pytest.mark.witness("stage_operations")
@pytest.mark.parametrize(("stages", "micros", "chunks"), CHUNKED)
def test_operations_of_a_card(stages, micros, chunks):
    orders = (sim.interleaved(stages, micros, chunks), torch_order("Interleaved1F1B", stages, micros, chunks))
    counted = {len(row) for order in orders for row in order}
    assert counted == {formula("stage_operations")(num_micro_batches=micros, chunks_per_stage=chunks, backward_parts=1)}


@pytest.mark.witness("chunk_boundaries", "pipeline_p2p_bytes", "boundary_bytes")
@pytest.mark.parametrize(("stages", "micros", "chunks"), [(3, 6, 1), (4, 8, 1), *INTERLEAVED[1:5]])
def test_tensors_that_change_cards(stages, micros, chunks):
    order = sim.interleaved(stages, micros, chunks) if chunks > 1 else sim.one_forward_one_backward(stages, micros)
    run = sim.run(order, {"F": 1, "B": 2}, chunks)
    assert sum(run.sends) == 2 * micros * formula("chunk_boundaries")(num_stages=stages, chunks_per_stage=chunks)
    tensor = np.zeros((2, 16, 24), dtype=np.float16)  # micro-batch, sequence, width
    size = {"micro_batch": 2, "seq_length": 16, "hidden_size": 24}
    assert formula("boundary_bytes")(**size) == tensor.nbytes
    inner = formula("pipeline_p2p_bytes")(num_micro_batches=micros, chunks_per_stage=chunks, **size)
    assert {sends * tensor.nbytes for sends in run.sends[1:-1]} == {inner}
