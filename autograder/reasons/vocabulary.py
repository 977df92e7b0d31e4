"""Concepts and the words for them, in both languages: compiled from tables, found in a text, with their polarity.

Terms are parted by `;` and written as they are said. `*` ends a stem (`shrink*`), `..` leaves room for a few words, `(a|b)` and `(a )?` are
as in a regular expression, a blank also matches a hyphen or nothing (`all reduce`: all-reduce, allreduce), `@name`
takes in all terms of another concept.
"""

import re
from dataclasses import dataclass, field
from functools import cache, cached_property

from autograder.reasons.language import listed
from autograder.reasons.spelling import words_of

WORD_END = r"(?:s|es)?(?![a-z0-9])"
SYNTAX = re.compile(r"\\.|\[[^\]]*\][+*]?| ?\.\. ?|\+|\*| ")  # escaped characters and sets stay as they are
GROUP = re.compile(r"\([^()]*\)\??|\[[^\[\]]*\][?*+]?")  # may be there in several ways, or not at all
PART = re.compile(r"[. *+]")
GAP = r"[^,.;:!?，。；：！？、\n]{0,18}?"

MEANT = {"..": GAP, "+": r"\+", "*": "[a-z]*", " ": r"[\s\-]*"}


class VocabularyError(ValueError):
    """A table of terms that cannot be read: says which term and why."""


def compile_terms(terms):
    """One pattern for all `terms`, longest first."""
    return _compiled(tuple(sorted({str(term).lower() for term in terms}, key=lambda term: (-len(term), term))))


@cache
def _compiled(chosen):  # kept, since rubrics share most of their concepts
    try:
        return re.compile("|".join(map(_expression, chosen)) or r"(?!)")
    except re.error as why:
        raise VocabularyError(f"terms {list(chosen)} do not make a pattern: {why}") from why


def _expression(term):
    body = SYNTAX.sub(lambda sign: MEANT.get(sign[0].strip() or " ", sign[0]), term)
    before = r"(?<![a-z0-9.])" if re.match(r"[(\[]?[a-z0-9]", term) else ""
    after = WORD_END if re.search(r"[a-z0-9][)?]*$", term) else "(?![a-z])" if term.endswith("*") else ""
    return f"(?:{before}(?:{body}){after})"


@dataclass(frozen=True)
class Concept:
    """A thing or a predicate, by any of its names; only predicates are denied by a negation."""

    name: str
    is_predicate: bool
    pattern: re.Pattern
    terms: tuple = ()
    needles: frozenset = frozenset()

    def found_in(self, text):
        """Every match in a text; most concepts are ruled out by their needles, which are much quicker to look for."""
        return self.pattern.finditer(text) if any(needle in text for needle in self.needles) else ()


@dataclass(frozen=True)
class Mention:
    """A concept found in a text. `denied`: a negation reaches it."""

    concept: str
    start: int
    end: int
    is_predicate: bool = False
    denied: bool = False
    guessed: bool = False

    @property
    def length(self):
        return self.end - self.start


@dataclass(frozen=True)
class Vocabulary:
    """The concepts a rubric may name."""

    concepts: dict = field(default_factory=dict)
    opposites: frozenset = frozenset()
    guards: frozenset = frozenset()

    @cached_property
    def known_words(self):
        """Every word of the terms, for telling a misspelling from a word."""
        return frozenset(word for concept in self.concepts.values() for term in concept.terms for word in words_of(term))

    @cached_property
    def things(self):
        """One pattern for all things, which tells a subject of the field from talk."""
        found = [concept for concept in self.concepts.values() if not concept.is_predicate]
        return compile_terms(term for concept in found for term in concept.terms if term[0] != "@" and len(term) > 1)

    def extended(self, table):
        """With the `things` and `predicates` of `table`; a concept that is there already gains the terms."""
        terms = {name: list(concept.terms) for name, concept in self.concepts.items()}
        kinds = {name: concept.is_predicate for name, concept in self.concepts.items()}
        for kind in ("things", "predicates"):
            for name, more in (table.get(kind) or {}).items():
                terms.setdefault(name, []).extend(listed(more))
                kinds.setdefault(name, kind == "predicates")
        pairs = {frozenset(pair) for pair in table.get("opposites") or ()}
        return Vocabulary(
            {name: _concept(name, kinds[name], terms) for name in terms},
            self.opposites | pairs,
            self.guards | set(table.get("guards") or ()),
        )

    def opposites_of(self, name):
        """The concepts that say the opposite of `name`."""
        return frozenset(other for pair in self.opposites if name in pair for other in pair - {name})

    def only(self, names):
        """The Vocabulary of these concepts, their opposites, and those that guard a word (`reduces` in `all-reduces`)."""
        kept = set(names).union(self.guards, *(self.opposites_of(name) for name in names))
        return Vocabulary({name: concept for name, concept in self.concepts.items() if name in kept}, self.opposites, self.guards)

    def mentions(self, text):
        """Every mention in the clean `text`; a predicate inside a longer mention is a part of it and no predicate."""
        found = [
            Mention(concept.name, match.start(), match.end(), concept.is_predicate)
            for concept in self.concepts.values()
            for match in concept.found_in(text)
            if match.end() > match.start()
        ]
        return sorted(_outermost(found), key=lambda mention: (mention.start, -mention.end))


def _concept(name, is_predicate, terms):
    every = tuple(_flat(name, terms, ()))
    return Concept(name, is_predicate, compile_terms(every), tuple(terms[name]), frozenset(map(_needle, every)))


@cache
def _needle(term):
    """A piece of a term that stands in all it matches: the longest outside of all syntax; empty where none is sure to."""
    term = GROUP.sub(" ", str(term).lower())
    return "" if set(term) & set("()[]{}|?\\^$") else max(PART.split(term), key=len)


def _flat(name, terms, above):
    if name in above:
        raise VocabularyError(f"concept {name!r} contains itself by way of {' > '.join(above)}")
    for term in terms[name]:
        if str(term).startswith("@"):
            if term[1:] not in terms:
                raise VocabularyError(f"concept {name!r} takes in {term!r}, which is not in the vocabulary")
            yield from _flat(term[1:], terms, (*above, name))
        else:
            yield term


def _outermost(found):
    """Without the predicates that lie strictly inside another mention (`reduce` in `all-reduce`, 变 in 不变)."""
    spans = sorted({(m.start, m.end) for m in found}, key=lambda span: (span[0], -span[1]))
    inner, reach, widest = set(), -1, None
    for span in spans:
        if span[1] <= reach and span != widest:
            inner.add(span)
        if span[1] > reach:
            reach, widest = span[1], span
    return [m for m in found if not (m.is_predicate and (m.start, m.end) in inner)]
