"""Collectives on real arrays, message by message: what arrives, who sent how much, how long it took. No formula here."""

import numpy as np


class Network:
    """Ranks that exchange arrays in rounds; counts the bytes each rank sends and receives, and keeps the time.

    A round lasts as long as its largest message: `latency` and its bytes over `bandwidth`.
    """

    def __init__(self, ranks, latency=0.0, bandwidth=1.0):
        self.sent, self.received, self.crossed = np.zeros(ranks), np.zeros(ranks), {}
        self.latency, self.bandwidth, self.time, self.rounds = latency, bandwidth, 0.0, 0

    def round(self, messages):
        """Deliver (sender, receiver, array) messages at once; returns {receiver: copy of what it got}."""
        for sender, receiver, array in messages:
            self.sent[sender] += array.nbytes
            self.received[receiver] += array.nbytes
            self.crossed[sender, receiver] = self.crossed.get((sender, receiver), 0) + array.nbytes
        self.rounds += 1
        self.time += self.latency + max(array.nbytes for *_, array in messages) / self.bandwidth
        return {receiver: array.copy() for _, receiver, array in messages}

    def leaving(self, ranks):
        """Bytes sent from these ranks to all others."""
        return sum(size for (sender, receiver), size in self.crossed.items() if sender in ranks and receiver not in ranks)


def blocks(array, count):
    """`count` consecutive pieces, sizes differing by at most one element."""
    return [piece.copy() for piece in np.array_split(array, count)]


def ring_reduce_scatter(network, arrays, ranks=None):
    """Afterwards rank i's block (i+1) mod k is the finished sum; returns every rank's blocks."""
    ranks = list(range(len(arrays)) if ranks is None else ranks)
    size = len(ranks)
    held = [blocks(array, size) for array in arrays]
    for step in range(size - 1):
        messages = [(ranks[i], ranks[(i + 1) % size], held[i][(i - step) % size]) for i in range(size)]
        got = network.round(messages)
        for i in range(size):
            held[i][(i - 1 - step) % size] += got[ranks[i]]
    return held


def ring_all_gather(network, held, ranks=None):
    """Rank i starts with block (i+1) mod k right; afterwards all blocks of all ranks are right."""
    ranks = list(range(len(held)) if ranks is None else ranks)
    size = len(ranks)
    for step in range(size - 1):
        messages = [(ranks[i], ranks[(i + 1) % size], held[i][(i + 1 - step) % size]) for i in range(size)]
        got = network.round(messages)
        for i in range(size):
            held[i][(i - step) % size] = got[ranks[i]]
    return held


def ring_all_reduce(network, arrays, ranks=None):
    """Returns every rank's copy of the sum."""
    return [np.concatenate(held) for held in ring_all_gather(network, ring_reduce_scatter(network, arrays, ranks), ranks)]


def two_ring_all_reduce(one_way, other_way, arrays):
    """Half of each array round one ring, the other half round the ring in the opposite order, at the same time."""
    halves = [np.array_split(array, 2) for array in arrays]
    backwards = list(reversed(range(len(arrays))))
    first = ring_all_reduce(one_way, [half[0] for half in halves])
    second = ring_all_reduce(other_way, [halves[i][1] for i in backwards], backwards)
    return [np.concatenate([first[i], second[backwards.index(i)]]) for i in range(len(arrays))]


def halving_doubling_all_reduce(network, arrays):
    """Partners at distances k/2, k/4, … swap halves of what they still hold; then back, doubling."""
    size = len(arrays)
    held = [array.copy() for array in arrays]
    spans = [[(0, len(arrays[0]))] for _ in range(size)]
    distances = [2**i for i in reversed(range(size.bit_length() - 1))]
    for distance in distances:
        _halve(network, held, spans, distance)
    for distance in reversed(distances):
        _double(network, held, spans, distance)
    return held


def _halve(network, held, spans, distance):
    messages = []
    for rank, span in enumerate(spans):
        (low, high), middle = span[-1], sum(span[-1]) // 2
        keep, give = ((low, middle), (middle, high)) if not rank & distance else ((middle, high), (low, middle))
        messages.append((rank, rank ^ distance, held[rank][slice(*give)]))
        span.append(keep)
    for rank, array in network.round(messages).items():
        held[rank][slice(*spans[rank][-1])] += array


def _double(network, held, spans, distance):
    messages = [(rank, rank ^ distance, held[rank][slice(*span[-1])]) for rank, span in enumerate(spans)]
    got = network.round(messages)
    for rank, array in got.items():
        held[rank][slice(*spans[rank ^ distance][-1])] = array
    for span in spans:
        span.pop()


def tree_all_reduce(network, arrays):
    """Whole messages up a binomial tree to rank 0, and down again."""
    held = [array.copy() for array in arrays]
    distances = [2**i for i in range((len(arrays) - 1).bit_length())]
    for distance in distances:
        got = network.round([(r, r - distance, held[r]) for r in range(len(held)) if r % (2 * distance) == distance])
        for rank, array in got.items():
            held[rank] += array
    for distance in reversed(distances):
        pairs = [(r, r + distance, held[r]) for r in range(0, len(held), 2 * distance) if r + distance < len(held)]
        for rank, array in network.round(pairs).items():
            held[rank] = array
    return held


def all_to_all(network, arrays):
    """Rank i's block j goes to rank j, straight; returns what each rank then has, in the order of the senders."""
    size = len(arrays)
    parts = [blocks(array, size) for array in arrays]
    have = [{i: parts[i][i]} for i in range(size)]
    for shift in range(1, size):
        got = network.round([(i, (i + shift) % size, parts[i][(i + shift) % size]) for i in range(size)])
        for receiver, array in got.items():
            have[receiver][(receiver - shift) % size] = array
    return [[row[sender] for sender in range(size)] for row in have]


def hierarchical_all_reduce(network, arrays, per_node):
    """Reduce-scatter in each node, all-reduce across nodes among ranks of equal place, all-gather in each node."""
    nodes = [range(first, first + per_node) for first in range(0, len(arrays), per_node)]
    held = {
        rank: row for node in nodes for rank, row in zip(node, ring_reduce_scatter(network, [arrays[r] for r in node], node), strict=True)
    }
    for place in range(per_node):
        peers, block = [node[place] for node in nodes], (place + 1) % per_node
        for rank, total in zip(peers, ring_all_reduce(network, [held[r][block] for r in peers], peers), strict=True):
            held[rank][block] = total
    gathered = [ring_all_gather(network, [held[r] for r in node], node) for node in nodes]
    return [np.concatenate(row) for rows in gathered for row in rows]


def chain_broadcast(network, array, pieces):
    """Rank 0's array, cut into pieces that follow each other down the chain of ranks; returns the last rank's copy."""
    ranks, parts = len(network.sent), blocks(array, pieces)
    for step in range(pieces + ranks - 2):
        moving = [(rank, rank + 1, parts[step - rank]) for rank in range(ranks - 1) if 0 <= step - rank < pieces]
        last = network.round(moving)
        if ranks - 1 in last:
            parts[step - ranks + 2] = last[ranks - 1]
    return np.concatenate(parts)


def switch_all_reduce(network, arrays):
    """Every rank sends all it has to a switch, which adds and answers; only what ranks send is counted."""
    for rank, array in enumerate(arrays):
        network.sent[rank] += array.nbytes
    return [sum(arrays) for _ in arrays]


def fewest_messages(ranks):
    """The fewest one-number messages after which every rank knows the sum of all ranks' numbers: tried out, breadth first.

    A rank knows sums of sets of contributions; it may add what it knows of disjoint sets before it sends. All ranks are
    alike, so the first message may as well go from rank 1 to rank 0; the last one goes to the last rank to be told.
    """
    if ranks == 1:
        return 0
    everyone = frozenset(range(ranks))
    start = [frozenset([frozenset([r])]) for r in range(ranks)]
    frontier, messages = {(_closed(start[0] | start[1]), *start[1:])}, 1
    while not any(sum(everyone in known for known in state) == ranks - 1 for state in frontier):
        frontier = {after for state in frontier for after in _after_one_message(state)}
        messages += 1
    return messages + 1


def _after_one_message(state):
    for sender, known in enumerate(state):
        for value in known:
            for receiver, had in enumerate(state):
                if receiver != sender and value not in had:
                    yield (*state[:receiver], _closed(had | {value}), *state[receiver + 1 :])


def _closed(known):
    """All sums that can be formed of disjoint known ones."""
    known = set(known)
    while more := {a | b for a in known for b in known if not a & b} - known:
        known |= more
    return frozenset(known)
