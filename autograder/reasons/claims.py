"""Claims found in an answer: concepts that stand together in one or a few neighbouring clauses, with the right polarity."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from autograder.reasons.polarity import concluding, supposed, with_polarity
from autograder.reasons.rubric import AFFIRMED, CONTRADICTS, DENIED, EARNS, NOT_DENIED, SIDE_ERROR
from autograder.reasons.text import clauses as parted

MADE, REVERSED, NEAR = "made", "reversed", "near"
AGAINST = (CONTRADICTS, SIDE_ERROR)
FAR = 10**6
MOST_MENTIONS = 600
MOST_CLAUSES = 60  # an answer of more is cut; a person reads it


@dataclass(frozen=True)
class Reading:
    """What was read from an answer: its text, its clauses, the concepts mentioned, the clauses that only suppose, and that conclude."""

    text: object
    clauses: tuple
    mentions: tuple
    supposed: frozenset
    concluding: frozenset = frozenset()

    def window(self, first, count):
        """The mentions from clause `first` on, over `count` clauses."""
        starts = self._starts
        low = bisect_left(starts, self.clauses[first].start)
        return self.mentions[low : bisect_left(starts, self.clauses[first + count - 1].end)]

    @cached_property
    def _starts(self):
        return [m.start for m in self.mentions]

    @cached_property
    def concepts(self):
        """The concepts that are mentioned anywhere."""
        return frozenset(m.concept for m in self.mentions)


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
    tries = [found for row in claim.rows for found in _tries(claim, row, reading)]
    return min(tries, key=lambda f: (RANK[f.how], f.count, -f.share, f.start), default=None)


RANK = {MADE: 0, REVERSED: 1, NEAR: 2}


def _tries(claim, row, reading):
    if not _may_be_met(claim, row, reading.concepts):
        return
    for count in range(1, row.within + 1):
        for first in range(len(reading.clauses) - count + 1):
            found = _try(claim, row, reading, first, count)
            if found:
                yield found
                if found.how == MADE:
                    return


def _may_be_met(claim, row, concepts):
    """Whether enough slots have a concept of theirs for any finding at all: all of them, or two where a near miss counts."""
    met = sum(any(name in concepts for name, _ in slot.options) for slot in row.slots)
    return met >= (min(2, len(row.slots)) if claim.kind == EARNS else len(row.slots))


def _try(claim, row, reading, first, count):
    window = reading.window(first, count)
    if (
        len(window) < len(row.slots) - 1
        or not _may_be_met(claim, row, {mention.concept for mention in window})
        or _excluded(row, window)
        or (claim.kind in AGAINST and not row.supposed and first in reading.supposed)
    ):
        return None
    filled = _fill(row, window, strict=True)
    if all(filled) and not (claim.kind == EARNS and _denied_as_a_whole(row, filled)):
        return _found(claim, MADE, row, reading, first, count, filled)
    if count == 1 and claim.kind == EARNS and first not in reading.supposed and _is_reversed(row, window, filled):
        return _found(claim, REVERSED, row, reading, first, count, _fill(row, window, strict=False))
    met = [mention for mention in filled if mention]
    if claim.kind == EARNS and len(met) >= 2:
        return _found(claim, NEAR, row, reading, first, count, met, len(met) / len(row.slots))
    return None


def _excluded(row, window):
    return any(_fits(mention, option) for mention in window for option in row.unless)


def _fill(row, window, strict):
    """For each slot a mention of its own, or None. Slots with the fewest candidates choose first, unless the row is ordered."""
    choices = [[m for m in window if any(_fits(m, option, strict) for option in slot.options)] for slot in row.slots]
    order = (
        range(len(choices)) if row.ordered else sorted(range(len(choices)), key=lambda i: (_are_predicates(choices[i]), len(choices[i])))
    )
    taken, filled, last = set(), [None] * len(choices), -1
    for i in order:
        for mention in choices[i]:
            span = (mention.start, mention.end)
            if span not in taken and (not row.ordered or mention.start > last) and not (strict and _outdone(mention, row, filled, window)):
                taken.add(span)
                filled[i], last = mention, mention.start
                break
    return filled


def _are_predicates(choices):
    """Things choose before predicates."""
    return bool(choices) and all(m.is_predicate for m in choices)


def _outdone(mention, row, filled, window):
    """The same predicate denied, or its opposite, stands nearer to a filled slot: that one is meant."""
    if not mention.is_predicate:
        return False
    things = [m for m in filled if m and not m.is_predicate]
    rivals = [m for m in window if _is_rival(m, mention, row.opposites.get(mention.concept, ()))]
    return any(min((_apart(r, thing) for r in rivals), default=FAR) < _apart(mention, thing) for thing in things)


def _is_rival(other, mention, opposites):
    if other.denied == mention.denied:
        return other.concept in opposites
    return other.concept == mention.concept


def _apart(one, other):
    return max(one.start - other.end, other.start - one.end, 0)


def _fits(mention, option, strict=True):
    name, sign = option
    return mention.concept == name and (not strict or sign not in (AFFIRMED, DENIED) or mention.denied == (sign == DENIED))


def _is_reversed(row, window, filled):
    """All of the claim is there, but an odd number of its predicates is denied, or its things are."""
    loose = _fill(row, window, strict=False)
    return all(loose) and (all(filled) or _denials(row, loose) % 2 == 1)


def _denied_as_a_whole(row, filled):
    """A thing of the claim is denied, and no predicate that the claim wants denied: "does not use a reduce-scatter"."""
    wanted = any(m.is_predicate and m.denied for m in filled)
    return not wanted and any(m.denied and (m.concept, NOT_DENIED) in slot.options for slot, m in zip(row.slots, filled, strict=True))


def _denials(row, filled):
    """How many predicates that the row affirms are denied in the text."""
    pairs = zip(row.slots, filled, strict=True)
    return sum(m.denied and not any(_fits(m, option) for option in slot.options) and _affirms(slot, m) for slot, m in pairs)


def _affirms(slot, mention):
    return (mention.concept, AFFIRMED) in slot.options


def _found(claim, how, row, reading, first, count, mentions, share=1.0):
    return Found(claim, how, first, count, min(m.start for m in mentions), max(m.end for m in mentions), row, share)
