"""Collectives: limits, what parts add up to, what grows with what, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary import glossary as g
from formulary.communication import HIERARCHICAL_LEDGER

SIZES = st.integers(1, 10**13)
RANKS = st.integers(1, 10**5)
LATENCIES = st.floats(1e-7, 1e-2)
BANDWIDTHS = st.floats(1e6, 1e13)
S, k = g.message_bytes, g.world_size


@pytest.mark.parametrize(
    ("name", "limit"),
    [("reduce_scatter_bytes", S), ("all_gather_bytes", S), ("all_to_all_bytes", S), ("ring_all_reduce_bytes", 2 * S)],
)
def test_volume_among_many_ranks(name, limit):
    assert formula(name).limit("world_size", sp.oo).expr == limit


@pytest.mark.parametrize(
    "name", ["reduce_scatter_bytes", "all_gather_bytes", "all_to_all_bytes", "ring_all_reduce_bytes", "all_reduce_min_bytes"]
)
def test_one_rank_sends_nothing_and_two_send_blocks(name):
    assert formula(name)(message_bytes="1GB", world_size=1) == 0
    assert formula(name)(message_bytes="1GB", world_size=2) in (5e8, 1e9)


@given(SIZES, RANKS)
def test_an_all_reduce_is_its_two_passes_and_meets_the_bound(size, ranks):
    values = {"message_bytes": size, "world_size": ranks}
    passes = [formula(name)(**values) for name in ("reduce_scatter_bytes", "all_gather_bytes")]
    whole = formula("ring_all_reduce_bytes")(**values)
    assert whole == pytest.approx(sum(passes), rel=1e-12)
    assert whole == pytest.approx(formula("all_reduce_min_bytes")(**values), rel=1e-12)
    assert whole <= formula("ring_all_reduce_bytes").under("many_ranks")(message_bytes=size)


@given(SIZES, st.integers(1, 64), st.integers(1, 64))
def test_rings_within_and_across_nodes_send_as_much_as_one(size, per_node, nodes):
    values = {"message_bytes": size, "ranks_per_node": per_node, "num_nodes": nodes}
    one_ring = formula("ring_all_reduce_bytes")(message_bytes=size, world_size=per_node * nodes)
    assert sum(HIERARCHICAL_LEDGER(**values).values()) == pytest.approx(one_ring, rel=1e-9, abs=1e-6)


@given(SIZES, st.integers(2, 10**4), LATENCIES, BANDWIDTHS)
def test_latency_and_bandwidth_part_are_equal_at_the_equal_cost_size(_, ranks, latency, bandwidth):
    size = formula("equal_cost_bytes")(world_size=ranks, latency=latency, bandwidth=bandwidth)
    ring = formula("ring_all_reduce_time")
    values = {"message_bytes": size, "world_size": ranks, "bandwidth": bandwidth}
    assert ring(latency=latency, **values) == pytest.approx(2 * ring(latency=0, **values), rel=1e-9)


@given(SIZES, RANKS, LATENCIES, BANDWIDTHS, st.integers(1, 100))
def test_times_grow_with_ranks_size_and_buckets(size, ranks, latency, bandwidth, buckets):
    values = {"latency": latency, "bandwidth": bandwidth}
    time = formula("ring_all_reduce_time")
    here = time(message_bytes=size, world_size=ranks, **values)
    assert here <= time(message_bytes=size, world_size=ranks + 1, **values)
    assert here <= time(message_bytes=size + 1, world_size=ranks, **values)
    bucketed = formula("bucketed_all_reduce_time")(message_bytes=size, world_size=ranks, num_buckets=buckets, **values)
    assert here <= bucketed * (1 + 1e-12)
    both_ways = time.under("both_directions")(message_bytes=size, world_size=ranks, **values)
    assert both_ways <= here * (1 + 1e-12)


@pytest.mark.parametrize("power", range(2, 11))
def test_halving_saves_latency_and_the_tree_wastes_bandwidth(power):
    values = {"world_size": 2**power, "latency": "10us", "bandwidth": "50 GB/s"}
    time = lambda name, size: formula(name)(message_bytes=size, **values)
    assert time("halving_all_reduce_time", "1kB") < time("ring_all_reduce_time", "1kB")
    assert time("tree_all_reduce_time", "10GB") > time("halving_all_reduce_time", "10GB")


@given(SIZES, RANKS, st.floats(1e-6, 100))
def test_bus_bandwidth_of_an_all_reduce_is_twice_that_of_its_half(size, ranks, time):
    values = {"message_bytes": size, "world_size": ranks, "collective_time": time}
    assert formula("all_reduce_bus_bandwidth")(**values) == pytest.approx(2 * formula("all_gather_bus_bandwidth")(**values))


BAD = [
    ({"message_bytes": -1, "world_size": 8}, "message_bytes"),
    ({"message_bytes": float("nan"), "world_size": 8}, "message_bytes"),
    ({"message_bytes": "14 s", "world_size": 8}, "message_bytes"),
    ({"message_bytes": 14e9, "world_size": 0}, "world_size"),
    ({"message_bytes": 14e9, "world_size": 2.5}, "world_size"),
    ({"message_bytes": 14e9, "world_size": "eight"}, "world_size"),
    ({"message_bytes": 14e9}, "world_size"),
    ({"message_bytes": 14e9, "world_sise": 8}, "world_size"),
]


@pytest.mark.parametrize(("values", "named"), BAD)
def test_bad_input_is_named(values, named):
    with pytest.raises(InputError, match=named):
        formula("ring_all_reduce_bytes")(**values)


def test_a_network_that_carries_nothing_has_no_time():
    with pytest.raises(InputError, match="no finite value"):
        formula("all_gather_time")(message_bytes=1, world_size=8, latency=0, bandwidth=0)
