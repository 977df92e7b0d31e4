"""Concepts and the words for them, in both languages: read from tables, found in a text.

Terms are written as `terms` says; `@name` takes in all terms of another concept.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from typing import NamedTuple

from autograder.reasons.spelling import words_of
from autograder.reasons.terms import Terms, VocabularyError, alternatives, listed, occurrences


@dataclass(frozen=True)
class Concept:
    """A thing or a predicate, by any of its names; only predicates are denied by a negation."""

    name: str
    is_predicate: bool
    terms: tuple = ()

    @cached_property
    def words(self):
        """Every word of the terms."""
        return frozenset(word for term in self.terms for word in words_of(term))


class Mention(NamedTuple):
    """A concept found in a text. `denied`: a negation reaches it."""

    concept: str
    start: int
    end: int
    is_predicate: bool = False
    denied: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The concepts a rubric may name."""

    concepts: dict = field(default_factory=dict)
    opposites: frozenset = frozenset()
    guards: frozenset = frozenset()

    @property
    def known_words(self):
        """Every word of the terms, for telling a misspelling from a word."""
        return frozenset().union(*(concept.words for concept in self.concepts.values()))

    @property
    def things(self):
        """The Terms of all things, which tell a subject of the field from talk."""
        found = [concept for concept in self.concepts.values() if not concept.is_predicate]
        return alternatives(term for concept in found for term in concept.terms if term[0] != "@" and len(term) > 1)

    def extended(self, table):
        """With the `things` and `predicates` of `table`; a concept that is there already gains the terms."""
        concepts = dict(self.concepts)
        for kind in ("things", "predicates"):
            for name, more in (table.get(kind) or {}).items():
                before = concepts.get(name) or Concept(name, kind == "predicates")
                concepts[name] = replace(before, terms=(*before.terms, *listed(more)))
        pairs = {frozenset(pair) for pair in table.get("opposites") or ()}
        return Vocabulary(concepts, self.opposites | pairs, self.guards | set(table.get("guards") or ()))

    def opposites_of(self, name):
        """The concepts that say the opposite of `name`."""
        return frozenset(other for pair in self.opposites if name in pair for other in pair - {name})

    def only(self, names):
        """The Vocabulary of these concepts, their opposites, and those that guard a word (`reduces` in `all-reduces`)."""
        kept = set(names).union(self.guards, *(self.opposites_of(name) for name in names))
        return replace(self, concepts={name: self._whole(concept) for name, concept in self.concepts.items() if name in kept})

    def _whole(self, concept):
        """The concept with all terms that it takes in, longest first."""
        return replace(concept, terms=alternatives(self._flat(concept.name, ())).terms)

    def _flat(self, name, above):
        if name in above:
            raise VocabularyError(f"concept {name!r} contains itself by way of {' > '.join(above)}")
        for term in self.concepts[name].terms:
            if not term.startswith("@"):
                yield term
            elif term[1:] in self.concepts:
                yield from self._flat(term[1:], (*above, name))
            else:
                raise VocabularyError(f"concept {name!r} takes in {term!r}, which is not in the vocabulary")

    def mentions(self, text):
        """Every mention in the clean `text`; a predicate inside a longer mention is a part of it and no predicate."""
        concepts, owners, terms = self._owned
        found = [
            Mention(concepts[owner].name, *match.span(), concepts[owner].is_predicate)
            for owner, places in groupby(terms.places(text), owners.__getitem__)
            for match in occurrences([terms.terms[place] for place in places], text)
            if match.end() > match.start()
        ]
        return sorted(_outermost(found), key=lambda mention: (mention.start, -mention.end))

    @cached_property
    def _owned(self):
        """The concepts, their terms one after another, and for each term the number of its concept."""
        concepts = list(self.concepts.values())
        owners = [number for number, concept in enumerate(concepts) for _ in concept.terms]
        return concepts, owners, Terms(tuple(chain.from_iterable(concept.terms for concept in concepts)))


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
