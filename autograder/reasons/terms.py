"""Terms as the tables write them, and where a text says them: each a pattern, compiled once a text holds a piece that it needs.

They are parted by `;`. `*` ends a stem (`shrink*`), `..` leaves room for a few words, `(a|b)`, `(a )?` and `(a ){0,3}` are as in a
regular expression, a blank also matches a hyphen or nothing (`all reduce`: all-reduce, allreduce).
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import heapify, heappop, heapreplace

from ahocorasick import Automaton

WORD_END = r"(?:s|es)?(?![a-z0-9])"
SYNTAX = re.compile(r"\\.|\[[^\]]*\][+*]?| ?\.\. ?|\+|\*| ")  # escaped characters and sets stay as they are
GAP = r"[^,.;:!?，。；：！？、\n]{0,18}?"
MEANT = {"..": GAP, "+": r"\+", "*": "[a-z]*", " ": r"[\s\-]*"}
PLAIN = re.compile(r"@?[\w .*-]+")  # always makes a pattern
UNMEANT = re.compile(r"(?<!\\)\)(?:\+|\*[^;\s)|])|\\[a-z][+*]")  # what would repeat a group or a class elsewhere
LETTER = "[a-z0-9]"
HEAD = re.compile(rf"{LETTER}+(?![?{{]|{LETTER})|{LETTER}+(?={LETTER}[?{{])")  # what a term begins with, by letter


class VocabularyError(ValueError):
    """A table of terms that cannot be read: says which term and why."""


def listed(written):
    """The terms of a text that parts them by `;`. Errors: VocabularyError for one that makes no pattern, or not the one meant."""
    terms = [term.strip() for term in str(written).split(";") if term.strip()]
    for term in terms:
        if UNMEANT.search(term):
            raise VocabularyError(f"in the term {term!r} + is a plus sign and * the end of a stem; how often is said so: (a ){{0,3}}")
        if not PLAIN.fullmatch(term):
            pattern(term.lower())
    return terms


def alternatives(terms):
    """The Terms of which the longest is found where several are said."""
    return Terms(tuple(sorted({str(term).lower() for term in terms}, key=lambda term: (-len(term), term))))


@dataclass(frozen=True)
class Terms:
    """Terms that are looked for together; where several are said at one place, the first of them is found."""

    terms: tuple = ()

    def finditer(self, text, start=0, end=None):
        """The matches from `start` to `end`, one after another."""
        return occurrences(self.possible(text[start:end]), text[:end], start)

    def search(self, text, start=0, end=None):
        """The first match between `start` and `end`, or None."""
        return next(self.finditer(text, start, end), None)

    def match(self, text, start=0, end=None):
        """A match right at `start` that does not go beyond `end`, or None."""
        return next((found for term in self.possible(text[start:end]) if (found := pattern(term).match(text[:end], start))), None)

    def possible(self, text):
        """The terms that `text` may hold, in their order."""
        return [self.terms[place] for place in self.places(text)]

    def places(self, text):
        """The places in `terms` of those that `text` may hold: a needle of theirs is there."""
        automaton, always = self._needles
        return sorted(always.union(*{places for _, places in automaton.iter(text)}))

    @cached_property
    def _needles(self):
        """An automaton over all needles, with the places of the terms they stand for; the places of the terms without any."""
        places = {"": [], "\0": []}  # no text holds "\0"; an automaton must know something
        for place, term in enumerate(self.terms):
            for needle in needles(term):
                places.setdefault(needle, []).append(place)
        always, automaton = frozenset(places.pop("")), Automaton()
        for needle, where in places.items():
            automaton.add_word(needle, tuple(where))
        automaton.make_automaton()
        return automaton, always


def occurrences(terms, text, start=0):
    """The matches of `terms` in `text` as of one pattern of alternatives: of those that begin together the first, and none in another."""
    searches = [pattern(term).search for term in terms]
    if len(searches) == 1:
        yield from pattern(terms[0]).finditer(text, start)
        return
    next_ones = [(match.start(), rank, match) for rank, search in enumerate(searches) if (match := search(text, start))]
    heapify(next_ones)
    while next_ones:
        begin, rank, match = next_ones[0]
        if begin >= start:
            yield match
            start = max(match.end(), begin + 1)
        following = searches[rank](text, start)
        if following:
            heapreplace(next_ones, (following.start(), rank, following))
        else:
            heappop(next_ones)


@cache
def pattern(term):
    """The compiled pattern of a term. Errors: VocabularyError if it makes none."""
    try:
        return re.compile(_expression(term))
    except re.error as why:
        raise VocabularyError(f"the term {term!r} does not make a pattern: {why}") from why


def _expression(term):
    """A term as a regular expression; one that begins by letter has these first, since they are quickly looked for."""
    body = SYNTAX.sub(lambda sign: MEANT.get(sign[0].strip() or " ", sign[0]), term)
    after = WORD_END if re.search(r"[a-z0-9][)?]*$", term) else "(?![a-z])" if term.endswith("*") else ""
    head = HEAD.match(body)
    if head and "|" not in term:
        return f"{head[0]}(?<![a-z0-9.]{head[0]}){body[head.end() :]}{after}"
    before = r"(?<![a-z0-9.])" if re.match(r"[(\[]?[a-z0-9]", term) else ""
    return f"{before}(?:{body}){after}"


MANY = r"(?:\?|\{[^}]*\})"
UNSURE = re.compile(rf"(?:\\.|\[[^\]]*\]){MANY}?|[^()]{MANY}|[$^]")  # characters that may be others, or not be there
GROUP = re.compile(rf"\(([^()]*)\)({MANY}?)")
SIGN = re.compile("([\ue000-\uf8ff])")  # characters for private use, which stand for groups
PART = re.compile(r"[. *+]")


@cache
def needles(term):
    """Texts of which one stands in whatever the term matches, as long as can be; the empty text where none is sure to."""
    term, groups = UNSURE.sub(" ", term), {}
    while group := GROUP.search(term):
        sign = " " if group[2] or group[1].startswith("?") else chr(0xE000 + len(groups))
        groups[sign] = _needles(group[1], groups)
        term = term[: group.start()] + sign + term[group.end() :]
    return _needles(term, groups)


def _needles(written, groups):
    """The needles of alternatives: of each those of its best piece."""
    pieces = [[groups.get(piece) or {piece} for piece in PART.split(SIGN.sub(r" \1 ", way))] for way in written.split("|")]
    return frozenset().union(*(max(found, key=lambda texts: min(map(len, texts))) for found in pieces))
