"""Collectives run on real arrays, message by message: nothing here is made from the formulas."""

import numpy as np
import pytest

from formulary import formula
from tests.witnesses.simulators import collectives as c

RANKS = range(2, 10)
LATENCY, BANDWIDTH = 3e-6, 2e9


def arrays(ranks, length, seed=7):
    return [np.random.default_rng([seed, rank]).integers(-9, 9, length).astype(np.float32) for rank in range(ranks)]


def network(ranks):
    return c.Network(ranks, LATENCY, BANDWIDTH)


def message(given):
    return {"message_bytes": given[0].nbytes, "world_size": len(given)}


def wire():
    return {"latency": LATENCY, "bandwidth": BANDWIDTH}


@pytest.mark.witness("ring_all_reduce_bytes", "all_reduce_elements", "ring_all_reduce_time")
@pytest.mark.parametrize("ranks", RANKS)
def test_ring_all_reduce(ranks):
    given, net = arrays(ranks, 840 * ranks), network(ranks)
    for result in c.ring_all_reduce(net, given):
        np.testing.assert_array_equal(result, sum(given))
    assert set(net.sent) == set(net.received) == {formula("ring_all_reduce_bytes")(**message(given))}
    assert formula("all_reduce_elements")(message_elements=given[0].size, world_size=ranks) == net.sent[0] / given[0].itemsize
    assert formula("ring_all_reduce_time")(**message(given), **wire()) == pytest.approx(net.time, rel=1e-12)
    assert net.sent.sum() == formula("ring_all_reduce_bytes").under("cluster")(**message(given))


@pytest.mark.witness("reduce_scatter_bytes", "reduce_scatter_time", "all_gather_bytes", "all_gather_time")
@pytest.mark.parametrize("ranks", RANKS)
def test_the_two_halves_of_the_ring(ranks):
    given, net = arrays(ranks, 60 * ranks), network(ranks)
    held = c.ring_reduce_scatter(net, given)
    for rank in range(ranks):
        own = (rank + 1) % ranks
        np.testing.assert_array_equal(held[rank][own], c.blocks(sum(given), ranks)[own])
    assert set(net.sent) == {formula("reduce_scatter_bytes")(**message(given))}
    assert formula("reduce_scatter_time")(**message(given), **wire()) == pytest.approx(net.time, rel=1e-12)
    gathering = network(ranks)
    c.ring_all_gather(gathering, held)
    assert set(gathering.sent) == {formula("all_gather_bytes")(**message(given))}
    assert formula("all_gather_time")(**message(given), **wire()) == pytest.approx(gathering.time, rel=1e-12)


@pytest.mark.witness("ring_all_reduce_bytes", "reduce_scatter_bytes")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("length", [97, 101, 128])
def test_uneven_blocks_agree_on_average_and_within_two_elements(ranks, length):
    given, net = arrays(ranks, length), network(ranks)
    for result in c.ring_all_reduce(net, given):
        np.testing.assert_array_equal(result, sum(given))
    expected = formula("ring_all_reduce_bytes")(**message(given))
    assert net.sent.mean() == pytest.approx(expected, rel=1e-12)
    assert max(abs(net.sent - expected)) <= 2 * given[0].itemsize


@pytest.mark.witness("ring_all_reduce_time")
@pytest.mark.parametrize("ranks", RANKS)
def test_two_opposite_rings(ranks):
    given, one, other = arrays(ranks, 24 * ranks), network(ranks), network(ranks)
    for result in c.two_ring_all_reduce(one, other, given):
        np.testing.assert_array_equal(result, sum(given))
    time = formula("ring_all_reduce_time").under("both_directions")(**message(given), **wire())
    assert time == pytest.approx(max(one.time, other.time), rel=1e-12)


@pytest.mark.witness("bucketed_all_reduce_time")
@pytest.mark.parametrize(("ranks", "buckets"), [(2, 1), (4, 5), (8, 3)])
def test_buckets_sent_one_after_the_other(ranks, buckets):
    given, net = arrays(ranks, 6 * ranks * buckets), network(ranks)
    for first in range(buckets):
        c.ring_all_reduce(net, [np.split(array, buckets)[first] for array in given])
    assert formula("bucketed_all_reduce_time")(num_buckets=buckets, **message(given), **wire()) == pytest.approx(net.time, rel=1e-12)


@pytest.mark.witness("equal_cost_bytes")
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_message_whose_latency_and_bandwidth_cost_alike(ranks):
    size = formula("equal_cost_bytes")(world_size=ranks, **wire())
    given = arrays(ranks, round(size / 4))
    only_latency, only_bandwidth = c.Network(ranks, LATENCY, np.inf), c.Network(ranks, 0, BANDWIDTH)
    for net in (only_latency, only_bandwidth):
        c.ring_all_reduce(net, given)
    assert only_latency.time == pytest.approx(only_bandwidth.time, rel=1e-3)


@pytest.mark.witness("halving_all_reduce_time")
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_recursive_halving_and_doubling(ranks):
    given, net = arrays(ranks, 10 * ranks), network(ranks)
    for result in c.halving_doubling_all_reduce(net, given):
        np.testing.assert_array_equal(result, sum(given))
    assert formula("halving_all_reduce_time")(**message(given), **wire()) == pytest.approx(net.time, rel=1e-12)
    assert set(net.sent) == {formula("ring_all_reduce_bytes")(**message(given))}


@pytest.mark.witness("tree_all_reduce_time")
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_up_and_down_a_tree(ranks):
    given, net = arrays(ranks, 50), network(ranks)
    for result in c.tree_all_reduce(net, given):
        np.testing.assert_array_equal(result, sum(given))
    assert formula("tree_all_reduce_time")(**message(given), **wire()) == pytest.approx(net.time, rel=1e-12)


@pytest.mark.witness("all_to_all_bytes")
@pytest.mark.parametrize("ranks", RANKS)
def test_all_to_all(ranks):
    given, net = arrays(ranks, 12 * ranks), network(ranks)
    for receiver, parts in enumerate(c.all_to_all(net, given)):
        for sender, part in enumerate(parts):
            np.testing.assert_array_equal(part, c.blocks(given[sender], ranks)[receiver])
    assert set(net.sent) == {formula("all_to_all_bytes")(**message(given))}


@pytest.mark.witness("intra_node_bytes", "inter_node_bytes", "hierarchical_all_reduce_bytes")
@pytest.mark.parametrize(("nodes", "per_node"), [(2, 2), (2, 4), (3, 4), (4, 2), (1, 4), (4, 1)])
def test_rings_within_and_across_nodes(nodes, per_node):
    ranks = nodes * per_node
    given, net = arrays(ranks, 6 * ranks), network(ranks)
    for result in c.hierarchical_all_reduce(net, given, per_node):
        np.testing.assert_array_equal(result, sum(given))
    values = {"message_bytes": given[0].nbytes, "ranks_per_node": per_node, "num_nodes": nodes}
    node = range(per_node)
    across = net.leaving(node) / per_node
    assert across == pytest.approx(formula("inter_node_bytes")(**values))
    assert net.sent[0] - across == pytest.approx(formula("intra_node_bytes")(**{k: v for k, v in values.items() if k != "num_nodes"}))
    assert net.sent[0] == pytest.approx(formula("hierarchical_all_reduce_bytes")(**values))


@pytest.mark.witness("switch_all_reduce_bytes")
def test_a_switch_that_adds():
    given, net = arrays(5, 40), network(5)
    c.switch_all_reduce(net, given)
    assert set(net.sent) == {formula("switch_all_reduce_bytes")(message_bytes=given[0].nbytes)}


@pytest.mark.witness("all_reduce_min_bytes")
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_no_scheme_needs_fewer_messages(ranks):
    """All schemes for one number, tried out: their messages, shared evenly, are the bound on what a rank sends."""
    assert c.fewest_messages(ranks) == formula("all_reduce_min_bytes")(message_bytes=1, world_size=ranks) * ranks


@pytest.mark.witness("algorithm_bandwidth", "all_reduce_bus_bandwidth", "all_gather_bus_bandwidth")
@pytest.mark.parametrize("ranks", RANKS)
def test_bus_bandwidth_gives_back_the_bandwidth_of_the_links(ranks):
    """On a ring without latency each collective, timed as a whole, must reveal what one link carries."""
    given = arrays(ranks, 12 * ranks)
    for name, collective in {
        "all_reduce_bus_bandwidth": c.ring_all_reduce,
        "all_gather_bus_bandwidth": c.ring_reduce_scatter,
    }.items():
        net = c.Network(ranks, 0, BANDWIDTH)
        collective(net, given)
        assert formula(name)(**message(given), collective_time=net.time) == pytest.approx(BANDWIDTH, rel=1e-12)
        rate = formula("algorithm_bandwidth")(message_bytes=given[0].nbytes, collective_time=net.time)
        assert rate * net.time == pytest.approx(given[0].nbytes)


@pytest.mark.witness("broadcast_bus_bandwidth")
@pytest.mark.parametrize("ranks", RANKS)
def test_a_broadcast_in_many_pieces_uses_its_links_fully(ranks):
    (given,), pieces = arrays(1, 12_000), 2_000
    net = c.Network(ranks, 0, BANDWIDTH)
    np.testing.assert_array_equal(c.chain_broadcast(net, given, pieces), given)
    used = formula("broadcast_bus_bandwidth")(message_bytes=given.nbytes, collective_time=net.time)
    assert used == pytest.approx(BANDWIDTH, rel=ranks / pieces)
