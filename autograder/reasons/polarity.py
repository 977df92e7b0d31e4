"""Which predicates of a text are denied: negations, how far they reach, and what is only supposed or reported."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from autograder.reasons.language import any_negation, language, negating, words

ADJACENT = 1  # characters
MOST_NEGATIONS = 80  # no answer needs more; a text of nothing else must not take long


@dataclass(frozen=True)
class Negation:
    """A negating word: its place, how it reaches (`clause`, `next` or `back`), and what it says."""

    start: int
    end: int
    reach: str


def negations(text, mentions):
    """The negations of the clean `text`, but for those inside a longer word (不变, "no matter")."""
    if not any_negation().possible(text):  # as in most texts: told at once
        return
    covered = [(m.start, m.end) for m in mentions] + [match.span() for match in words("no_negations").finditer(text)]
    taken = set()  # characters
    for reach, said in negating().items():
        for match in said.finditer(text):
            span = match.span()
            if taken.isdisjoint(range(*span)) and not any(s <= span[0] and span[1] <= e and (s, e) != span for s, e in covered):
                taken.update(range(*span))
                yield Negation(*span, reach)


def with_polarity(text, mentions, clauses):
    """The mentions, those denied by an odd number of negations marked so; what is to be prevented is not denied."""
    flips = [0] * len(mentions)
    starts = [m.start for m in mentions]
    for negation in islice(negations(text[: clauses[-1].end], mentions), MOST_NEGATIONS):
        if words("purposes").search(text, _clause_of(negation, clauses).start, negation.end):
            continue
        for place in _reached(text, negation, mentions, starts, _clause_of(negation, clauses)):
            flips[place] += 1
    return [m._replace(denied=True) if flips[i] % 2 else m for i, m in enumerate(mentions)]


def _clause_of(negation, clauses):
    place = bisect_right([c.start for c in clauses], negation.start) - 1
    return clauses[max(place, 0)]


def _reached(text, negation, mentions, starts, clause):
    if negation.reach == "back":
        before = [i for i in range(bisect_left(starts, clause.start), bisect_left(starts, negation.start)) if mentions[i].is_predicate]
        return before[-1:]
    inside = range(bisect_left(starts, negation.start), bisect_left(starts, clause.end))
    near = [i for i in inside if mentions[i].start > negation.start and mentions[i].end >= negation.end]
    near = [i for i in near if mentions[i].start - negation.end <= ADJACENT or not _negates(text, mentions[i].start, mentions[i].end)]
    if negation.reach == "either" and not any(mentions[i].is_predicate for i in near):
        return _reached(text, Negation(negation.start, negation.end, "back"), mentions, starts, clause)
    if negation.reach == "next":
        return [i for i in near if mentions[i].start == mentions[near[0]].start] if near else []
    end = _end_of_reach(text, negation, clause)
    return [i for i in near if mentions[i].start < end]


@lru_cache(maxsize=1024)  # asked again for each negation before the mention
def _negates(text, start, end):
    """A mention that says its own negation ("isn't associative", 不变); only one right before it denies it again."""
    return bool(negating()["clause"].match(text, start, end))


def _end_of_reach(text, negation, clause):
    """Where a negation stops: at a word that starts something new, or after as much as a reader keeps in mind."""
    stop = words("negation_ends").search(text, negation.end, clause.end)
    end = stop.start() if stop else clause.end
    room, letter = language()["negation_room"], language()["negation_room_of_letter"]
    for place, char in enumerate(text[negation.end : end], negation.end):
        room -= 1 if "一" <= char <= "鿿" else letter
        if room < 0:
            return place
    return end


def supposed(text, clauses):
    """The indices of clauses that suppose or report something (if …, people think …, 有人以为…), where no claim is made."""
    found = set()
    if not words("supposing").possible(text):
        return found
    for index, clause in enumerate(clauses):
        if words("supposing").search(text, clause.start, clause.end):
            found.add(index)
            if (
                index + 1 < len(clauses)
                and clauses[index + 1].sentence == clause.sentence
                and words("conditions").search(text, clause.start, clause.end)
            ):
                found.add(index + 1)
    return found


def concluding(text, clauses):
    """The indices of clauses that turn or conclude (yet …, so …, 但…, 因此…): what is said there outweighs what came before."""
    said = words("concluding")
    parts = enumerate(clauses) if said.possible(text) else ()
    return {index for index, clause in parts if said.match(text[clause.start : clause.end].lstrip())}
