"""What ranks send each other: the volume of the collectives, and their time.

S is the whole tensor, also where a rank starts or ends with one k-th of it. Volumes are bytes that one rank sends;
on a ring it receives as many. Times are those of a ring without congestion: every message costs a latency and its
bytes over the bandwidth of one direction.
"""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger

PATARASUK = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009"
THAKUR = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, 2005"
NCCL_TESTS = "NVIDIA nccl-tests, doc/PERFORMANCE.md"

_S, _k, _alpha, _beta = g.message_bytes, g.world_size, g.latency, g.bandwidth
_BLOCK = _S / _k
_LOG2 = sp.log(_k) / sp.log(2)

_RING = {
    "source": PATARASUK,
    "covers": ("F08",),
    "chapter": 5,
    "assumptions": (
        "the ranks add, not the network",
        "sent bytes only, one direction",
        "the tensor splits into k equal blocks; of uneven ones each rank misses one, so volumes differ by at most a block",
    ),
}

# --- volumes -------------------------------------------------------------------------------------------------------------

REDUCE_SCATTER = define(
    g.reduce_scatter_bytes,
    derivation=Derivation("In a round every rank passes one of k blocks, its own share added, to its neighbour", _BLOCK).sum(
        "After k-1 rounds every block has met every rank, and each rank owns a finished one", g.ring_round, 1, _k - 1, (_k - 1) * _BLOCK
    ),
    **_RING,
)

ALL_GATHER = define(
    g.all_gather_bytes,
    derivation=Derivation("In a round every rank passes on the block it received last", _BLOCK).sum(
        "After k-1 rounds every rank has seen the k-1 blocks it lacked", g.ring_round, 1, _k - 1, (_k - 1) * _BLOCK
    ),
    **_RING,
)

_ALL_REDUCE_STEPS = Derivation("A reduce-scatter leaves each rank with one finished block", REDUCE_SCATTER.expr).add(
    "An all-gather hands the finished blocks round and sends as much again", ALL_GATHER.expr, REDUCE_SCATTER.expr + ALL_GATHER.expr
)

ALL_REDUCE_MANY_RANKS = Formula(
    g.ring_all_reduce_bytes,
    name="ring_all_reduce_bytes of many ranks",
    derivation=_ALL_REDUCE_STEPS.limit("A long ring leaves out next to nothing", _k, sp.oo, 2 * _S),
    **_RING,
)

_ELEMENTS = 2 * g.message_elements * (_k - 1) / _k

ALL_REDUCE_ELEMENTS = define(
    g.all_reduce_elements,
    derivation=Derivation("Two passes, each k-1 blocks of elements", 2 * (_k - 1) * (g.message_elements / _k)).rewrite(
        "that is, whatever an element weighs", _ELEMENTS
    ),
    **_RING,
)

CLUSTER_ALL_REDUCE = Formula(
    g.ring_all_reduce_bytes,
    name="ring_all_reduce_bytes of all ranks",
    derivation=Derivation("One rank sends", _ALL_REDUCE_STEPS.expr)
    .multiply("and so do the others", _k, _k * _ALL_REDUCE_STEPS.expr)
    .rewrite("that is", 2 * (_k - 1) * _S),
    **_RING,
)

VOLUME = Convention(
    "volume",
    "How is the traffic of an all-reduce counted?",
    (
        Alternative("exact", "bytes each rank sends: 2(k-1)/k of the message", "nccl-tests; CS336; Ultra-Scale Playbook"),
        Alternative(
            "many_ranks", "twice the message, (k-1)/k dropped", "ZeRO paper; ml-engineering (stas00)", formula=ALL_REDUCE_MANY_RANKS
        ),
        Alternative("elements", "elements instead of bytes", "ZeRO paper; nccl-tests in places", formula=ALL_REDUCE_ELEMENTS),
        Alternative("cluster", "bytes of all ranks together", "sizing of a network fabric", formula=CLUSTER_ALL_REDUCE),
    ),
)

ALL_REDUCE = define(g.ring_all_reduce_bytes, derivation=_ALL_REDUCE_STEPS, conventions=(VOLUME,), **_RING)

MIN_ALL_REDUCE = define(
    g.all_reduce_min_bytes,
    derivation=Derivation("Adding up k contributions to each byte takes k-1 transfers of it, since a transfer joins two", (_k - 1) * _S)
    .add("The k-1 ranks that lack the sum must each be sent it", (_k - 1) * _S, 2 * (_k - 1) * _S)
    .multiply("Shared evenly among the ranks; the ring sends no more, so no scheme beats it", 1 / _k, 2 * (_k - 1) * _S / _k),
    **_RING,
)

SWITCH_ALL_REDUCE = define(
    g.switch_all_reduce_bytes,
    derivation=Derivation("Every rank sends each of its k blocks up to the switch", _BLOCK).sum(
        "and the sums come back the other way, which counts as received", g.ring_round, 1, _k, _S
    ),
    source="Graham et al., Scalable Hierarchical Aggregation Protocol (SHArP), 2016",
    covers=("F08",),
    chapter=5,
    assumptions=("the switches add; one switch level sees every rank",),
)

ALL_TO_ALL = define(
    g.all_to_all_bytes,
    derivation=Derivation("A rank has one block for every rank", _BLOCK)
    .sum("It keeps its own and sends the k-1 others", g.ring_round, 1, _k - 1, (_k - 1) * _BLOCK)
    .rewrite("that is", _S * (_k - 1) / _k),
    source=NCCL_TESTS,
    chapter=5,
    assumptions=("every pair of ranks exchanges equally much", "sent straight to the receiver, not round a ring"),
)

# --- several nodes -------------------------------------------------------------------------------------------------------

_NODE, _NODES = g.ranks_per_node, g.num_nodes
_WITHIN = 2 * _S * (_NODE - 1) / _NODE
_BETWEEN = 2 * (_S / _NODE) * (_NODES - 1) / _NODES

_HIERARCHICAL = {
    "source": "Mikami et al., Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash, 2018 (two-dimensional all-reduce)",
    "chapter": 5,
    "assumptions": ("every node has equally many ranks", "rings inside the nodes and, for each rank, one ring across them"),
}

INTRA_NODE = define(
    g.intra_node_bytes,
    derivation=Derivation("A reduce-scatter inside the node", REDUCE_SCATTER.expr.subs(_k, _NODE))
    .add("and, once the nodes have agreed, an all-gather", ALL_GATHER.expr.subs(_k, _NODE), _WITHIN)
    .rewrite("that is", _WITHIN),
    **_HIERARCHICAL,
)

INTER_NODE = define(
    g.inter_node_bytes,
    derivation=Derivation("An all-reduce among ranks of equal place in their nodes", ALL_REDUCE.expr.subs(_k, _NODES)).substitute(
        "of the one block the rank has finished inside its node", {_S: _S / _NODE}, _BETWEEN
    ),
    **_HIERARCHICAL,
)

HIERARCHICAL_ALL_REDUCE = define(
    g.hierarchical_all_reduce_bytes,
    derivation=Derivation("Inside the node", INTRA_NODE.expr)
    .add("and between nodes", INTER_NODE.expr, INTRA_NODE.expr + INTER_NODE.expr)
    .rewrite("As much as on one ring of all ranks; only little of it leaves the node", 2 * _S * (_NODE * _NODES - 1) / (_NODE * _NODES)),
    **_HIERARCHICAL,
)

HIERARCHICAL_LEDGER = Ledger(
    "hierarchical all-reduce", {"inside the node": INTRA_NODE, "between nodes": INTER_NODE}, HIERARCHICAL_ALL_REDUCE
)

# --- times ---------------------------------------------------------------------------------------------------------------

_ROUND = _alpha + _BLOCK / _beta
_PASS_TIME = (_k - 1) * _alpha + (_k - 1) / _k * _S / _beta

_TIME = {
    "source": THAKUR,
    "covers": ("F09",),
    "chapter": 5,
    "assumptions": (
        "no congestion; latency includes launching the message",
        "bandwidth is that of one rank in one direction: a network card shared by several ranks gives each its part",
        "additions cost no time",
    ),
}


RING_ROUND_TIME = define(
    g.ring_round_time,
    derivation=Derivation("A block over the bandwidth", _BLOCK / _beta).add("and before it the start of a message", _alpha, _ROUND),
    **_TIME,
)


def _pass_time(result, because):
    steps = Derivation("A round costs the start of a message and its block", _ROUND).sum(because, g.ring_round, 1, _k - 1, _PASS_TIME)
    return define(result, derivation=steps, **_TIME)


REDUCE_SCATTER_TIME = _pass_time(g.reduce_scatter_time, "k-1 rounds finish every block")
ALL_GATHER_TIME = _pass_time(g.all_gather_time, "k-1 rounds carry every block everywhere")

BOTH_WAYS_TIME = Formula(
    g.ring_all_reduce_time,
    name="ring_all_reduce_time of two opposite rings",
    derivation=Derivation("Half of the message goes round each way, so a round carries half a block", _ROUND.subs(_S, _S / 2)).sum(
        "2(k-1) rounds, in both directions at once", g.ring_round, 1, 2 * (_k - 1), 2 * (_k - 1) * (_alpha + _S / (2 * _k * _beta))
    ),
    **_TIME,
)

DIRECTIONS = Convention(
    "directions",
    "Does the ring use one direction of the links or both?",
    (
        Alternative("one_direction", "every rank sends one way", "CS336 (egress); nccl-tests' bandwidth of a rank"),
        Alternative(
            "both_directions",
            "two opposite rings of half a message each, so twice the bandwidth counts",
            "How To Scale Your Model (jax-ml/scaling-book), which also drops latency and (k-1)/k",
            formula=BOTH_WAYS_TIME,
        ),
    ),
)

ALL_REDUCE_TIME = define(
    g.ring_all_reduce_time,
    derivation=Derivation("A round costs the start of a message and its block", _ROUND)
    .sum("k-1 rounds to reduce and k-1 to gather", g.ring_round, 1, 2 * (_k - 1), 2 * (_k - 1) * _ROUND)
    .rewrite("latency and bandwidth apart", 2 * (_k - 1) * _alpha + 2 * (_k - 1) / _k * _S / _beta),
    conventions=(DIRECTIONS,),
    **_TIME,
)

EQUAL_COST = define(
    g.equal_cost_bytes,
    derivation=Derivation("The bandwidth part of the ring's time", 2 * (_k - 1) / _k * _S / _beta).solve(
        "grows until it equals the latency part", _S, 2 * (_k - 1) * _alpha, _k * _alpha * _beta
    ),
    **_TIME,
)

_ONE_BUCKET = ALL_REDUCE_TIME.expr.subs(_S, _S / g.num_buckets)

BUCKET_TIME = define(
    g.bucket_all_reduce_time,
    derivation=Derivation("An all-reduce", ALL_REDUCE_TIME.expr).substitute(
        "of a message of its own, one of n", {_S: _S / g.num_buckets}, _ONE_BUCKET
    ),
    **_TIME,
)

BUCKETED_TIME = define(
    g.bucketed_all_reduce_time,
    derivation=Derivation("One bucket is a message of its own", _ONE_BUCKET)
    .multiply("one after the other", g.num_buckets, g.num_buckets * _ONE_BUCKET)
    .rewrite(
        "Latency is paid by every bucket, bandwidth only once", 2 * (_k - 1) * g.num_buckets * _alpha + 2 * (_k - 1) / _k * _S / _beta
    ),
    **_TIME,
)

_HALVING = {**_TIME, "assumptions": (*_TIME["assumptions"], "the number of ranks is a power of two")}
_HALVING_PASS = _alpha * _LOG2 + _S * (_k - 1) / (_k * _beta)

HALVING_TIME = define(
    g.halving_all_reduce_time,
    derivation=Derivation("In round r a rank swaps half of what it still holds: 1/2^r of S", _alpha + _S / (2**g.ring_round * _beta))
    .sum("log k rounds leave it one k-th", g.ring_round, 1, _LOG2, _HALVING_PASS)
    .multiply("and as many, doubling each time, gather the result", 2, 2 * _LOG2 * _alpha + 2 * (_k - 1) / _k * _S / _beta),
    **_HALVING,
)

TREE_TIME = define(
    g.tree_all_reduce_time,
    derivation=Derivation("A hop up the tree carries the whole message", _alpha + _S / _beta)
    .sum("log k levels, and in each a rank adds one partner's message", g.ring_round, 1, _LOG2, _LOG2 * (_alpha + _S / _beta))
    .multiply("and down again", 2, 2 * _LOG2 * (_alpha + _S / _beta)),
    **{**_HALVING, "assumptions": (*_HALVING["assumptions"], "one message a hop, not cut into pieces that follow each other")},
)

# --- measured bandwidth --------------------------------------------------------------------------------------------------

_BUS = {
    "source": NCCL_TESTS,
    "covers": ("F09",),
    "chapter": 5,
    "assumptions": ("the message is the whole array, also for all-gather and reduce-scatter", "latency not subtracted"),
}

ALGORITHM_BANDWIDTH = define(
    g.algorithm_bandwidth,
    derivation=Derivation("The message", _S).multiply("over the time it took", 1 / g.collective_time, _S / g.collective_time),
    **_BUS,
)


def _bus(result, because, sent):
    factor = sent / _S
    steps = Derivation("Message over time", ALGORITHM_BANDWIDTH.expr).multiply(because, factor, ALGORITHM_BANDWIDTH.expr * factor)
    return define(result, derivation=steps, **_BUS)


ALL_REDUCE_BUS = _bus(g.all_reduce_bus_bandwidth, "a rank sends 2(k-1)/k of the message in that time", ALL_REDUCE.expr)
ALL_GATHER_BUS = _bus(g.all_gather_bus_bandwidth, "a rank sends (k-1)/k of the message in that time", ALL_GATHER.expr)
BROADCAST_BUS = _bus(g.broadcast_bus_bandwidth, "the root sends all of the message in that time", _S)
