"""Claims found in an answer: concepts that stand together in one or a few neighbouring clauses, with the right polarity."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from autograder.reasons.polarity import concluding, supposed, with_polarity
from autograder.reasons.rubric import AFFIRMED, CONTRADICTS, DENIED, EARNS, EITHER, NOT_DENIED, SIDE_ERROR
from autograder.reasons.text import clauses as parted

MADE, REVERSED, NEAR = "made", "reversed", "near"
AGAINST = (CONTRADICTS, SIDE_ERROR)
FAR = 10**6
MOST_MENTIONS = 600
MOST_CLAUSES = 60  # an answer of more is cut; a person reads it


@dataclass(frozen=True)
class Reading:
    """What was read from an answer: its text, its clauses, the concepts mentioned, the clauses that only suppose, and that conclude.

    A set of mentions is a whole number: bit i stands for mention i.
    """

    text: object
    clauses: tuple
    mentions: tuple
    supposed: frozenset
    concluding: frozenset = frozenset()

    @cached_property
    def windows(self):
        """For one, two, … clauses: for each clause the set of mentions from it on, over so many clauses."""
        before = [self._until(clause.start) for clause in self.clauses]
        until = [self._until(clause.end) for clause in self.clauses]
        return [[end & ~start for start, end in zip(before, until[more:], strict=False)] for more in range(len(before))]

    def _until(self, place):
        return (1 << bisect_left(self.mentions, place, key=lambda mention: mention.start)) - 1

    @cached_property
    def concepts(self):
        """The concepts that are mentioned anywhere."""
        return frozenset(mention.concept for mention in self.mentions)

    @cached_property
    def fitting(self):
        """For concepts, or pairs of a concept and a sign, the set of mentions that fit one of them."""
        return Fitting(self.mentions)

    @cached_property
    def things(self):
        """The set of mentions that are no predicates."""
        return sum(1 << place for place, mention in enumerate(self.mentions) if not mention.is_predicate)

    def chosen(self, places):
        """The mentions of a set, in their order."""
        found = []
        while places:
            lowest = places & -places
            found.append(self.mentions[lowest.bit_length() - 1])
            places ^= lowest
        return found


class Fitting(dict):
    """For concepts, or pairs of a concept and a sign, the set of mentions that fit one of them; each is worked out once."""

    def __init__(self, mentions):
        self._single = {}
        for place, mention in enumerate(mentions):
            for option in (mention.concept, *_options(mention)):
                self._single[option] = self._single.get(option, 0) | 1 << place

    def __missing__(self, options):
        found = 0
        for option in options:
            found |= self._single.get(option, 0)
        self[options] = found
        return found


def _options(mention):
    """What a mention fits: its concept with each sign but the opposite one."""
    return [(mention.concept, sign) for sign in (EITHER, NOT_DENIED, DENIED if mention.denied else AFFIRMED)]


@dataclass(frozen=True)
class Found:
    """A claim met in a text: made, reversed (its opposite is said) or only nearly made, over which clauses and characters."""

    claim: object
    how: str
    first: int
    count: int
    start: int
    end: int
    row: object
    share: float = 1.0


def read(text, vocabulary, breaks):
    """The Reading of a normalised text."""
    parts = parted(text, breaks)[:MOST_CLAUSES]
    end = parts[-1].end if parts else 0
    mentions = vocabulary.mentions(text.clean[:end])[:MOST_MENTIONS]
    polar = tuple(with_polarity(text.clean, mentions, parts)) if parts else ()
    return Reading(text, tuple(parts), polar, frozenset(supposed(text.clean, parts)), frozenset(concluding(text.clean, parts)))


def find(claim, reading):
    """The best finding of `claim`: made in the fewest clauses, else reversed, else nearly made, else None."""
    tries = [found for row in claim.rows if _may_be_met(row, reading) for found in _tries(claim, row, reading)]
    return min(tries, key=lambda f: (RANK[f.how], f.count, -f.share, f.start), default=None)


RANK = {MADE: 0, REVERSED: 1, NEAR: 2}


def _may_be_met(row, reading):
    """Whether enough slots have a concept of theirs for any finding at all."""
    return sum(map(reading.concepts.isdisjoint, row.names)) <= row.spare


def _tries(claim, row, reading):
    found_in = row.within  # clauses; over more of them only a claim that is made counts
    for first, count, window in _windows(claim, row, reading):
        if count <= found_in or all(window & reading.fitting[slot.options] for slot in row.slots):
            found = _try(claim, row, reading, first, count, window)
            if found:
                yield found
                found_in = min(found_in, count)
                if found.how == MADE:
                    return


def _windows(claim, row, reading):
    """Where the row may be met, the narrow places first: the first clause, how many, and the set of mentions there."""
    wanted = [reading.fitting[slot.names if claim.kind == EARNS else slot.options] for slot in row.slots]
    barring = reading.fitting[row.unless]
    barred = () if row.supposed or claim.kind not in AGAINST else reading.supposed
    for count, windows in enumerate(reading.windows[: row.within], 1):
        for first, window in enumerate(windows):
            if (
                [places & window for places in wanted].count(0) <= row.spare
                and window.bit_count() >= len(wanted) - 1
                and not window & barring
                and first not in barred
            ):
                yield first, count, window


def _try(claim, row, reading, first, count, window):
    filled = _fill(row, reading, window)
    if all(filled) and not (claim.kind == EARNS and _denied_as_a_whole(row, filled)):
        return _found(claim, MADE, row, reading, first, count, filled)
    if count == 1 and claim.kind == EARNS and first not in reading.supposed:
        loose = _fill(row, reading, window, strict=False)
        if _is_reversed(row, filled, loose):
            return _found(claim, REVERSED, row, reading, first, count, loose)
    met = [mention for mention in filled if mention]
    if claim.kind == EARNS and len(met) >= 2:
        return _found(claim, NEAR, row, reading, first, count, met, len(met) / len(row.slots))
    return None


def _fill(row, reading, window, strict=True):
    """For each slot a mention of its own, or None. Slots with the fewest candidates choose first, unless the row is ordered."""
    choices = [window & reading.fitting[slot.options if strict else slot.names] for slot in row.slots]
    order = range(len(choices))
    if not row.ordered:  # things choose before predicates
        order = sorted(order, key=lambda i: (choices[i] != 0 == choices[i] & reading.things, choices[i].bit_count()))
    taken, filled, last = set(), [None] * len(choices), -1
    for i in order:
        for mention in reading.chosen(choices[i]):
            span = (mention.start, mention.end)
            if (
                span not in taken
                and (not row.ordered or mention.start > last)
                and not (strict and _outdone(mention, row, filled, reading, window))
            ):
                taken.add(span)
                filled[i], last = mention, mention.start
                break
    return filled


def _outdone(mention, row, filled, reading, window):
    """The same predicate denied, or its opposite, stands nearer to a filled slot: that one is meant."""
    if not mention.is_predicate:
        return False
    things = [m for m in filled if m and not m.is_predicate]
    rivals = reading.chosen(window & reading.fitting[_rivals(mention, row.opposites.get(mention.concept, ()))])
    return any(min((_apart(r, thing) for r in rivals), default=FAR) < _apart(mention, thing) for thing in things)


def _rivals(mention, opposites):
    own, other = (DENIED, AFFIRMED) if mention.denied else (AFFIRMED, DENIED)
    return frozenset([(mention.concept, other), *((name, own) for name in opposites)])


def _apart(one, other):
    return max(one.start - other.end, other.start - one.end, 0)


def _is_reversed(row, filled, loose):
    """All of the claim is there, but an odd number of its predicates is denied, or its things are."""
    return all(loose) and (all(filled) or _denials(row, loose) % 2 == 1)


def _denied_as_a_whole(row, filled):
    """A thing of the claim is denied, and no predicate that the claim wants denied: "does not use a reduce-scatter"."""
    wanted = any(m.is_predicate and m.denied for m in filled)
    return not wanted and any(m.denied and (m.concept, NOT_DENIED) in slot.options for slot, m in zip(row.slots, filled, strict=True))


def _denials(row, filled):
    """How many predicates that the row affirms are denied in the text."""
    pairs = zip(row.slots, filled, strict=True)
    return sum(m.denied and _affirms(slot, m) and not set(_options(m)) & set(slot.options) for slot, m in pairs)


def _affirms(slot, mention):
    return (mention.concept, AFFIRMED) in slot.options


def _found(claim, how, row, reading, first, count, mentions, share=1.0):
    return Found(claim, how, first, count, min(m.start for m in mentions), max(m.end for m in mentions), row, share)
