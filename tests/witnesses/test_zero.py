"""Sharded steps that really run, collective by collective: nothing here is made from the formulas."""

import numpy as np
import pytest

from formulary import formula
from formulary.zero import FSDP_LEDGER
from tests.witnesses.simulators import collectives as c
from tests.witnesses.simulators import sharded

IMPLEMENTATIONS = list(sharded.POLICIES)
STAGES = range(4)
TRAVEL = [(np.float16, "travel_16bit"), (np.float32, "travel_grads_32bit")]
SIZES = [(1, 1, 12), (2, 1, 24), (3, 2, 36), (4, 3, 48)]  # ranks, micro-batches, parameters


def start(params):
    return (np.arange(params) % 11).astype(np.float16)


def step(implementation, stage, ranks, micros, params, grad_dtype=np.float16):
    return sharded.Step(sharded.POLICIES[implementation][stage], start(params), ranks, micros, grad_dtype).run()


def under(name, implementation):
    made = formula(name)
    return made if implementation == "zero_paper" else made.under(implementation)


def evaluate(made, given):
    """The formula's value, given what it takes of `given`."""
    return made(**{k: v for k, v in given.items() if k in made.inputs})


@pytest.mark.witness("zero_traffic_bytes", "zero_gather_bytes", "zero_reduce_bytes", "weight_gathers", "grad_passes")
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("ranks", "micros", "params"), SIZES)
@pytest.mark.parametrize(("grad_dtype", "travel"), TRAVEL)
def test_every_policy_trains_alike_and_sends_what_the_formula_says(implementation, stage, ranks, micros, params, grad_dtype, travel):
    run = step(implementation, stage, ranks, micros, params, grad_dtype)
    plain = step("zero_paper", 0, ranks, micros, params, grad_dtype)
    for mine, theirs in zip(run.weights(), plain.weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    made = under("zero_traffic_bytes", implementation)
    sizes = formula("zero_traffic_bytes").alternative(travel).values
    expected = made(num_params=params, world_size=ranks, accumulation_steps=micros, stage=stage, **sizes)
    assert set(run.net.sent) == {expected}


@pytest.mark.witness("zero_traffic_bytes")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("params", [37, 101])
def test_uneven_shards_send_as_much_on_average(stage, params):
    run = step("zero_paper", stage, 4, 2, params)
    expected = formula("zero_traffic_bytes")(num_params=params, world_size=4, accumulation_steps=2, stage=stage)
    assert run.net.sent.mean() == pytest.approx(expected, rel=1e-12)


@pytest.mark.witness("weight_gathers", "grad_passes")
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("stage", STAGES)
def test_passes_told_apart_by_the_size_of_what_travels(implementation, stage):
    """fp16 weights and fp64 gradients: the bytes of the two kinds of passes solve for their numbers."""
    ranks, micros, params = 3, 4, 36
    sent = [step(implementation, stage, ranks, micros, params, dtype).net.sent[0] for dtype in (np.float32, np.float64)]
    one_pass = params * (ranks - 1) / ranks
    reductions = (sent[1] - sent[0]) / (4 * one_pass)
    gathers = (sent[0] - 4 * reductions * one_pass) / (2 * one_pass)
    values = {"accumulation_steps": micros, "stage": stage}
    assert (gathers, reductions) == tuple(evaluate(under(name, implementation), values) for name in ("weight_gathers", "grad_passes"))


@pytest.mark.witness("zero_gather_bytes", "zero_reduce_bytes")
@pytest.mark.parametrize("stage", STAGES)
def test_traffic_of_weights_and_of_gradients(stage):
    values = {"num_params": 36, "world_size": 3, "accumulation_steps": 2, "stage": stage}
    both = [step("zero_paper", stage, 3, 2, 36, dtype).net.sent[0] for dtype in (np.float16, np.float32)]
    reducing = both[1] - both[0]
    assert formula("zero_reduce_bytes")(**values) == reducing
    assert formula("zero_gather_bytes")(**values) == both[0] - reducing


@pytest.mark.witness("accumulation_comm_ratio")
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("stage", STAGES)
def test_accumulation_thins_out_communication(implementation, stage):
    one, four = (step(implementation, stage, 3, micros, 36).net.sent[0] for micros in (1, 4))
    ratio = under("accumulation_comm_ratio", implementation)
    assert ratio(accumulation_steps=4, stage=stage) == pytest.approx(four / 4 / one, rel=1e-12)


@pytest.mark.witness("zero_traffic_ratio")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("grad_dtype", "travel"), TRAVEL)
def test_traffic_over_that_of_ddp(stage, grad_dtype, travel):
    mine, plain = (step("zero_paper", z, 3, 4, 36, grad_dtype).net.sent[0] for z in (stage, 0))
    assert formula("zero_traffic_ratio").under(travel)(accumulation_steps=4, stage=stage) == pytest.approx(mine / plain, rel=1e-12)


@pytest.mark.witness("zero_traffic_elements")
@pytest.mark.parametrize("stage", STAGES)
def test_elements_sent_among_many_ranks(stage):
    """The papers' count drops (k-1)/k, which one rank in forty makes up for."""
    ranks, params = 40, 400
    sent = step("zero_paper", stage, ranks, 1, params).net.sent[0] / np.float16().nbytes
    counted = formula("zero_traffic_elements")(num_params=params, accumulation_steps=1, stage=stage)
    assert counted * (ranks - 1) / ranks == pytest.approx(sent, rel=1e-12)


@pytest.mark.witness("flat_shard_params")
@pytest.mark.parametrize(("params", "ranks"), [(12, 4), (13, 4), (1, 8), (1001, 7)])
def test_a_flat_parameter_padded_until_it_divides(params, ranks):
    flat = np.ones(params)
    while flat.size % ranks:
        flat = np.append(flat, 0)
    assert {piece.size for piece in np.split(flat, ranks)} == {formula("flat_shard_params")(num_params=params, world_size=ranks)}


@pytest.mark.witness("zero2_state_bytes")
@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize(
    ("convention", "whole", "cut"),
    [
        ("zero2_paper", [np.float16], [np.float16] + [np.float32] * 3),
        ("zero2_deepspeed_docs", [np.float16] * 2, [np.float32] * 4),
        ("zero2_deepspeed_code", [np.float16], [np.float16] + [np.float32] * 4),
    ],
)
def test_arrays_kept_whole_and_cut(ranks, convention, whole, cut):
    """The same bytes as those dtypes: weights whole, gradients, master and moments cut (the documentation's count: gradients whole)."""
    held = sum(np.zeros(96, dtype).nbytes for dtype in whole) + sum(np.zeros(96 // ranks, dtype).nbytes for dtype in cut)
    assert formula("zero2_state_bytes").under(convention)(num_params=96, world_size=ranks) == held


# One-byte weights on the way, four-byte gradients, so that no two parts can be mistaken for one another.
UNITS = [sharded.Unit(weights=1 * 50, grads=4 * 50, saved=70, working=30)] * 4
PEAK = {"num_params": 240, "world_size": 8, "unit_params": 50, "root_params": 40, "activation_bytes": 4 * 70, "working_bytes": 30}
PEAK |= {"bytes_per_gathered_weight": 1, "bytes_per_reduced_grad": 4}
RESIDENT, ROOT = 16 * 240 // 8, 1 * 40


@pytest.mark.witness("fsdp_peak_bytes", "fsdp_gathered_bytes", "fsdp_root_bytes", "fsdp_grad_bytes", "fsdp_activation_bytes")
@pytest.mark.parametrize(("convention", "prefetch"), [("unit_and_prefetch", True), ("one_unit", False)])
def test_what_comes_and_goes_in_an_fsdp_step(convention, prefetch):
    peak = sharded.fsdp_peak(RESIDENT, ROOT, UNITS, prefetch=prefetch, reduce_lingers=False)
    assert formula("fsdp_peak_bytes").under(convention)(**PEAK) == peak
    assert sum(FSDP_LEDGER(**PEAK, **formula("fsdp_peak_bytes").alternative(convention).values).values()) == peak


@pytest.mark.witness("fsdp_peak_bytes", "fsdp_grad_bytes")
def test_two_buffers_of_each_are_a_bound():
    """Lingering gradients meet activations that one unit has already freed, so the count is too high by at most that."""
    peak = sharded.fsdp_peak(RESIDENT, ROOT, UNITS, prefetch=True, reduce_lingers=True)
    counted = formula("fsdp_peak_bytes").under("two_and_two")(**PEAK)
    assert peak <= counted <= peak + UNITS[0].saved
    buffers = formula("fsdp_grad_bytes").alternative("two_and_two").values["reduce_buffers"]
    alone = [sharded.fsdp_peak(0, 0, [sharded.Unit(0, 200, 0, 0)] * 4, prefetch=True, reduce_lingers=lingers) for lingers in (True, False)]
    given = {"unit_params": 50, "bytes_per_reduced_grad": 4}
    assert [formula("fsdp_grad_bytes")(reduce_buffers=n, **given) for n in (buffers, 1)] == alone


# Each part alone: what the peak falls by when a unit lacks it.
@pytest.mark.witness("fsdp_gathered_bytes", "fsdp_root_bytes", "fsdp_grad_bytes", "fsdp_activation_bytes")
@pytest.mark.parametrize(
    ("name", "without", "root"),
    [
        ("fsdp_gathered_bytes", {"weights": 0}, ROOT),
        ("fsdp_grad_bytes", {"grads": 0}, ROOT),
        ("fsdp_activation_bytes", {"saved": 0, "working": 0}, ROOT),
        ("fsdp_root_bytes", {}, 0),
    ],
)
def test_each_part_of_the_peak(name, without, root):
    lighter = [sharded.Unit(**(vars(unit) | without)) for unit in UNITS]
    peaks = [
        sharded.fsdp_peak(RESIDENT, held, units, prefetch=True, reduce_lingers=False) for held, units in ((ROOT, UNITS), (root, lighter))
    ]
    assert evaluate(formula(name), PEAK) == peaks[0] - peaks[1]


# --- nodes ---------------------------------------------------------------------------------------------------------------

NODES = [(1, 4), (2, 2), (2, 4), (3, 4)]  # nodes, ranks of each
PARAMS = 48


def gradients(ranks, size=PARAMS):
    return [np.ones(size, np.float32) for _ in range(ranks)]


def node_groups(nodes, per_node):
    return [range(first, first + per_node) for first in range(0, nodes * per_node, per_node)]


def gather(net, size, ranks):
    c.ring_all_gather(net, [c.blocks(np.ones(size, np.float16), len(ranks)) for _ in ranks], ranks)


def values(nodes, per_node):
    place = {"num_params": PARAMS, "num_nodes": nodes, "ranks_per_node": per_node, "accumulation_steps": 2}
    return place | {"bytes_per_gathered_weight": 2, "bytes_per_reduced_grad": 4}


def hybrid_step(nodes, per_node):
    """Full sharding inside each node, then an all-reduce of each shard across nodes, for one micro-batch."""
    net, groups = c.Network(nodes * per_node), node_groups(nodes, per_node)
    for group in groups:
        gather(net, PARAMS, group)
        gather(net, PARAMS, group)
        c.ring_reduce_scatter(net, gradients(per_node), group)
    within = net.sent.copy()
    for place in range(per_node):
        peers = [group[place] for group in groups]
        c.ring_all_reduce(net, gradients(nodes, size=PARAMS // per_node), peers)
    return net, within


@pytest.mark.witness("hsdp_intra_bytes", "hsdp_inter_bytes", "hsdp_egress_bytes", "hsdp_inside_time", "hsdp_crossing_time")
@pytest.mark.parametrize(("nodes", "per_node"), NODES)
def test_hybrid_sharding(nodes, per_node):
    net, within = hybrid_step(nodes, per_node)
    given = values(nodes, per_node)
    assert evaluate(formula("hsdp_intra_bytes"), given) == 2 * within[0]
    assert evaluate(formula("hsdp_inter_bytes"), given) == pytest.approx(2 * (net.sent - within)[0])
    assert evaluate(formula("hsdp_egress_bytes"), given) == pytest.approx(2 * net.leaving(range(per_node)))
    links = given | {"link_bandwidth": 3e11, "bandwidth": 2.5e10}
    assert evaluate(formula("hsdp_inside_time"), links) == pytest.approx(2 * within[0] / 3e11)
    assert evaluate(formula("hsdp_crossing_time"), links) == pytest.approx(2 * net.leaving(range(per_node)) / 2.5e10)


@pytest.mark.witness("full_shard_egress_bytes", "hpz_egress_bytes", "full_shard_crossing_time")
@pytest.mark.parametrize(("nodes", "per_node"), NODES[1:])
def test_one_ring_of_all_ranks_and_a_second_shard_in_the_node(nodes, per_node):
    ranks, groups = range(nodes * per_node), node_groups(nodes, per_node)
    one_ring, second_shard = c.Network(len(ranks)), c.Network(len(ranks))
    for net in (one_ring, second_shard):
        gather(net, PARAMS, ranks)
        c.ring_reduce_scatter(net, gradients(len(ranks)))
    gather(one_ring, PARAMS, ranks)
    for group in groups:
        gather(second_shard, PARAMS, group)
    given = values(nodes, per_node)
    assert evaluate(formula("full_shard_egress_bytes"), given) == pytest.approx(2 * one_ring.leaving(groups[0]))
    crossing = evaluate(formula("full_shard_crossing_time"), given | {"bandwidth": 2.5e10})
    assert crossing == pytest.approx(2 * one_ring.leaving(groups[0]) / 2.5e10)
    assert evaluate(formula("hpz_egress_bytes"), given) == pytest.approx(2 * second_shard.leaving(groups[0]))


@pytest.mark.witness("hsdp_state_bytes", "hpz_state_bytes")
@pytest.mark.parametrize(("nodes", "per_node"), NODES)
def test_memory_of_a_rank_within_its_node(nodes, per_node):
    dtypes = [np.float16, np.float16, np.float32, np.float32, np.float32]  # weights, gradients, master, two moments
    in_node = sum(np.split(np.zeros(PARAMS, dtype), per_node)[0].nbytes for dtype in dtypes)
    assert evaluate(formula("hsdp_state_bytes"), values(nodes, per_node)) == in_node
    everywhere_cut = sum(np.split(np.zeros(PARAMS, dtype), nodes * per_node)[0].nbytes for dtype in dtypes)
    for dtype in (np.float16, np.int8):  # ZeRO++ may keep the second shard quantized
        second = np.split(np.zeros(PARAMS, dtype), per_node)[0].nbytes
        given = values(nodes, per_node) | {"bytes_per_gathered_weight": np.dtype(dtype).itemsize}
        assert evaluate(formula("hpz_state_bytes"), given) == everywhere_cut + second
