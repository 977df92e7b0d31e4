"""Claims found in an answer: concepts that stand together in one or a few neighbouring clauses, with the right polarity."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from autograder.reasons.polarity import concluding, supposed, with_polarity
from autograder.reasons.rubric import AFFIRMED, CONTRADICTS, DENIED, EARNS, EITHER, NOT_DENIED, SIDE_ERROR
from autograder.reasons.text import clauses as parted

MADE, REVERSED = "made", "reversed"
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

    def over(self, count):
        """The windows over so many clauses; none where there are not so many."""
        return self.windows[count - 1] if count <= len(self.windows) else []

    def _until(self, place):
        return (1 << bisect_left(self.mentions, place, key=lambda mention: mention.start)) - 1

    @cached_property
    def options(self):
        """What mentions anywhere fit: concepts, and pairs of a concept and a sign."""
        return frozenset(self.fitting.single)

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
        self.single = {}
        for place, mention in enumerate(mentions):
            for option in (mention.concept, *_options(mention)):
                self.single[option] = self.single.get(option, 0) | 1 << place

    def __missing__(self, options):
        found = 0
        for option in options:
            found |= self.single.get(option, 0)
        self[options] = found
        return found


def _options(mention):
    """What a mention fits: its concept with each sign but the opposite one."""
    return [(mention.concept, sign) for sign in (EITHER, NOT_DENIED, DENIED if mention.denied else AFFIRMED)]


@dataclass(frozen=True)
class Found:
    """A claim met in a text: made or reversed (its opposite is said), over which clauses and characters."""

    claim: object
    how: str
    first: int
    count: int
    start: int
    end: int
    row: object


def read(text, vocabulary, breaks):
    """The Reading of a normalised text."""
    parts = parted(text, breaks)[:MOST_CLAUSES]
    end = parts[-1].end if parts else 0
    mentions = vocabulary.mentions(text.clean[:end])[:MOST_MENTIONS]
    polar = tuple(with_polarity(text.clean, mentions, parts)) if parts else ()
    return Reading(text, tuple(parts), polar, frozenset(supposed(text.clean, parts)), frozenset(concluding(text.clean, parts)))


def find(claim, reading):
    """The best finding of `claim`: made in the fewest clauses, else reversed, else None."""
    tries = [found for row in claim.rows if (found := _made(claim, row, reading))]
    if not tries and claim.kind == EARNS:
        tries = [found for row in claim.rows for found in _reversed(claim, row, reading)]
    return min(tries, key=lambda found: (found.count, found.start), default=None)


def nearness(claim, reading):
    """The share of a claim's slots that is filled where it is nearly made, over as few clauses as can be; 0 for less than two slots."""
    for count in range(1, len(reading.windows) + 1):
        shares = [share for row in claim.rows if count <= row.within for share in _shares(row, reading, count)]
        if shares:
            return max(shares)
    return 0


def _made(claim, row, reading):
    """The row made in the fewest clauses, or None."""
    if any(map(reading.options.isdisjoint, row.fits)):  # as most are: told quickly
        return None
    wanted = [reading.fitting[options] for options in row.fits]
    barred = () if row.supposed or claim.kind not in AGAINST else reading.supposed
    for first, count, window in _windows(row, reading, wanted, range(1, row.within + 1)):
        if first not in barred:
            filled = _fill(row, reading, window)
            if all(filled) and not (claim.kind == EARNS and _denied_as_a_whole(row, filled)):
                return _found(claim, MADE, row, reading, first, count, filled)
    return None


def _reversed(claim, row, reading):
    """The opposite of the row, wherever a clause says it."""
    if any(map(reading.options.isdisjoint, row.names)):
        return
    wanted = [reading.fitting[names] for names in row.names]
    for first, count, window in _windows(row, reading, wanted, counts=(1,)):
        if first not in reading.supposed:
            loose = _fill(row, reading, window, strict=False)
            if _is_reversed(row, _fill(row, reading, window), loose):
                yield _found(claim, REVERSED, row, reading, first, count, loose)


def _shares(row, reading, count):
    """What share of the slots is filled, wherever it is two of them or more over `count` clauses."""
    wanted = [reading.fitting[names] for names in row.names]
    for _, _, window in _windows(row, reading, wanted, (count,), row.spare):
        met = sum(map(bool, _fill(row, reading, window)))
        if met >= 2:
            yield met / len(row.slots)


def _windows(row, reading, wanted, counts, spare=0):
    """Where the row may be met over so many clauses: the first clause, how many, and the set of mentions there."""
    if wanted.count(0) > spare:
        return
    barring = reading.fitting[row.barring]
    for count in counts:
        for first, window in enumerate(reading.over(count)):
            if (
                window.bit_count() >= len(wanted) - min(spare, 1)
                and not window & barring
                and [places & window for places in wanted].count(0) <= spare
            ):
                yield first, count, window


def _fill(row, reading, window, strict=True):
    """For each slot a mention of its own, or None. Slots with the fewest candidates choose first, unless the row is ordered."""
    choices = [window & reading.fitting[options] for options in (row.fits if strict else row.names)]
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


def _found(claim, how, row, reading, first, count, mentions):
    return Found(claim, how, first, count, min(m.start for m in mentions), max(m.end for m in mentions), row)
