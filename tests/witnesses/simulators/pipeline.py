"""Pipelines run operation by operation: who computes what, when, holding what, sending what. No formula here.

An operation is (kind, micro-batch, chunk): F forward, B backward (or, where backward is split, the input's gradient),
W the weights' gradients. Card d of P holds the model's pieces d, P+d, 2P+d, …: chunk c of card d is piece c·P+d.
"""

from dataclasses import dataclass, field


@dataclass
class Run:
    """What happened: when each operation of each card started and ended, the most micro-batches a card held, its sends."""

    starts: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    peak: list = field(default_factory=list)
    sends: list = field(default_factory=list)

    @property
    def makespan(self):
        return max(map(max, self.ends))

    def span(self, card):
        return max(self.ends[card]) - min(self.starts[card])


def gpipe(cards, micros):
    forward = [("F", m, 0) for m in range(micros)]
    return [forward + [("B", m, 0) for m in reversed(range(micros))] for _ in range(cards)]


def one_forward_one_backward(cards, micros):
    """Warm up with one forward per card behind, then alternate, then drain."""
    forward = [("F", m, 0) for m in range(micros)]
    backward = [("B", m, 0) for m in range(micros)]
    return [_alternate(forward, backward, cards - 1 - card) for card in range(cards)]


def interleaved(cards, micros, chunks):
    """Megatron-LM's order: groups of as many micro-batches as cards go through one chunk after the other."""
    groups = [range(first, first + cards) for first in range(0, micros, cards)]
    forward = [("F", m, c) for group in groups for c in range(chunks) for m in group]
    backward = [("B", m, c) for group in groups for c in reversed(range(chunks)) for m in group]
    return [_alternate(forward, backward, (chunks - 1) * cards + 2 * (cards - 1 - card)) for card in range(cards)]


def zero_bubble(cards, micros, *, fill=False):
    """The handcrafted orders: each card puts off one weight gradient for every card before it (ZB-H1); with `fill` twice
    as many, after twice as many forwards to warm up (ZB-H2)."""
    times = 2 if fill else 1
    return [_put_off(micros, warmup=times * (cards - 1 - card), delay=times * card) for card in range(cards)]


def _put_off(micros, warmup, delay):
    """Forwards to warm up, then forward and backward in turn, and weight gradients `delay` micro-batches late."""
    order = [("F", m, 0) for m in range(min(warmup, micros))]
    for m in range(micros):
        order += [("F", m + warmup, 0)] if m + warmup < micros else []
        order += [("B", m, 0)]
        order += [("W", m - delay, 0)] if m >= delay else []
    return order + [("W", m, 0) for m in range(max(0, micros - delay), micros)]


def _alternate(forward, backward, warmup):
    warmup = min(warmup, len(forward))
    steady = [op for pair in zip(forward[warmup:], backward, strict=False) for op in pair]
    return forward[:warmup] + steady + backward[len(forward) - warmup :]


def needs(kind, micro, piece, pieces):
    """The operation (kind, micro-batch, piece) whose result this one waits for, or nothing."""
    if kind == "F":
        return ("F", micro, piece - 1) if piece else None
    if kind == "W":
        return ("B", micro, piece)
    return ("B", micro, piece + 1) if piece + 1 < pieces else ("F", micro, piece)


def run(orders, seconds, chunks=1):
    """Let every card work through its order, waiting where it must; `seconds` says how long each kind takes on a chunk."""
    cards, done, positions = len(orders), {}, [0] * len(orders)
    log = Run([[] for _ in orders], [[] for _ in orders], _peaks(orders), [0] * cards)
    while any(position < len(order) for position, order in zip(positions, orders, strict=True)):
        before = list(positions)
        for card, order in enumerate(orders):
            while positions[card] < len(order) and _step(log, done, card, order[positions[card]], cards, chunks, seconds):
                positions[card] += 1
        if positions == before:
            raise RuntimeError(f"deadlock: {[order[p] for p, order in zip(positions, orders, strict=True) if p < len(order)]}")
    return log


def _step(log, done, card, operation, cards, chunks, seconds):
    """Run one operation if what it needs is there; says whether it ran."""
    kind, micro, chunk = operation
    piece, pieces = chunk * cards + card, chunks * cards
    needed = needs(kind, micro, piece, pieces)
    if needed and needed not in done:
        return False
    free = log.ends[card][-1] if log.ends[card] else 0
    start = max(free, done[needed] if needed else 0)
    done[kind, micro, piece] = start + seconds[kind]
    log.starts[card].append(start)
    log.ends[card].append(start + seconds[kind])
    log.sends[card] += _leaves(kind, piece, pieces)
    return True


def _leaves(kind, piece, pieces):
    """Whether the result goes to another card: forward unless it is the last piece, backward unless the first."""
    return (kind == "F" and piece + 1 < pieces) or (kind == "B" and piece > 0)


def _peaks(orders):
    """The most micro-batches each card holds at once: forward adds one, backward frees one."""
    return [_peak(order) for order in orders]


def _peak(order):
    held = most = 0
    for kind, *_ in order:
        held += {"F": 1, "B": -1, "W": 0}[kind]
        most = max(most, held)
    return most
