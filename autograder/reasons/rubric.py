"""Rubrics of free-text reasons as data: per line the claims that earn it and the claims that contradict it."""

import re
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from autograder import kept
from autograder.reasons.language import table
from autograder.reasons.terms import Terms, VocabularyError, alternatives, listed
from autograder.reasons.vocabulary import Vocabulary

RUBRIC_FOLDER = Path(__file__).resolve().parents[2] / "exercises" / "reasons"
VOCABULARY_FILE = "vocabulary.yaml"
# A thing without a sign is denied with the claim, unless a predicate of the claim is to be denied.
AFFIRMED, DENIED, EITHER, NOT_DENIED = "affirmed", "denied", "either", "not denied"
SIGNS = {"!": DENIED, "~": EITHER}
EARNS, CONTRADICTS, SIDE_ERROR, ALSO_TRUE = "earns", "contradicts", "side_errors", "also_true"
# How many neighbouring clauses a claim may be spread over, unless its row says otherwise.
REACH = {EARNS: 3, CONTRADICTS: 2, SIDE_ERROR: 2, ALSO_TRUE: 2}
FLAGS = ("ordered", "supposed")


class RubricError(ValueError):
    """A rubric file that cannot be used: says where, what was found and what was expected."""


@dataclass(frozen=True)
class Slot:
    """One place of a claim: any of these (concept, polarity) fills it."""

    options: tuple

    def __str__(self):
        return " or ".join(("not " if sign == DENIED else "") + name.replace("_", " ") for name, sign in self.options)


@dataclass(frozen=True)
class Row:
    """One way to make a claim: slots that must stand together within `within` clauses, and words that must not be there.

    `spare`: how many slots may stay empty for a near miss; `ordered`: the slots follow one another;
    `supposed`: also where it is only supposed.
    """

    slots: tuple
    unless: tuple = ()
    within: int = 3
    spare: int = 0
    ordered: bool = False
    supposed: bool = False
    opposites: dict = field(default_factory=dict)

    @cached_property
    def fits(self):
        """Per slot the options that fill it, as a set, which is quickly looked up."""
        return [frozenset(slot.options) for slot in self.slots]

    @cached_property
    def names(self):
        """Per slot the concepts that may fill it, with whatever sign."""
        return [frozenset(name for name, _ in slot.options) for slot in self.slots]

    @cached_property
    def barring(self):
        """`unless` as a set, which is quickly looked up."""
        return frozenset(self.unless)

    def __str__(self):
        return " + ".join(map(str, self.slots))


@dataclass(frozen=True)
class Claim:
    """What an answer may say, in words (`en`, `zh`), what that is worth (a side error: what it costs), and the rows that recognise it."""

    id: str
    kind: str
    en: str
    zh: str
    rows: tuple = ()
    worth: int = 0
    parts: tuple = ()

    def says(self, lang="en"):
        return self.zh if lang == "zh" else self.en


@dataclass(frozen=True)
class Line:
    """A rubric line: its criterion, its points and its claims of each kind."""

    id: str
    points: int
    criterion: dict
    model_answers: dict
    claims: tuple

    def of_kind(self, kind):
        return [claim for claim in self.claims if claim.kind == kind]


@dataclass(frozen=True)
class Conclusion:
    """The wrong verdict as an answer may conclude it: `said` in a clause without a negation, or `denied` in one with a negation."""

    said: Terms
    denied: Terms
    unless: Terms


@dataclass(frozen=True)
class Rubric:
    """An exercise's reasons: its statement (which earns nothing when repeated), its lines and its vocabulary.

    `measured`: how reliable marks by it are was measured on marked answers; without that only the plainest marks are sure.
    """

    exercise: str
    statements: dict
    lines: tuple
    vocabulary: Vocabulary
    known_words: frozenset = frozenset()
    field_words: Terms = field(default_factory=Terms)
    wrong_conclusion: Conclusion | None = None
    measured: bool = False

    @property
    def points(self):
        return sum(line.points for line in self.lines)

    def worked_out(self):
        """The rubric, once all is worked out by which its terms are quickly looked for."""
        for terms in (self.field_words, *(vars(self.wrong_conclusion).values() if self.wrong_conclusion else ())):
            terms.search("")
        self.vocabulary.mentions("")
        return self

    def of_line(self, name):
        """The Rubric of one line of the exercise. Raises RubricError if there is none of that name."""
        if f"{self.exercise}.{name}" not in self._by_line:
            raise RubricError(f"{self.exercise} has no line {name!r}; there is {', '.join(self._by_line)}")
        return self._by_line[f"{self.exercise}.{name}"]

    @cached_property
    def _by_line(self):
        return {line.id: replace(self, lines=(line,)) for line in self.lines}

    @cached_property
    def line_of(self):
        """The id of its line, by id of a claim."""
        return {claim.id: line.id for line in self.lines for claim in line.claims}


def load_rubric(exercise, folder=RUBRIC_FOLDER):
    """The Rubric in `folder`/`exercise`.yaml. Errors: RubricError names the file, the claim and the mistake."""
    return _load(str(exercise), Path(folder))


@cache
def _load(exercise, folder):
    path = folder / f"{exercise}.yaml"
    if not re.fullmatch(r"[\w-]+", exercise) or not path.is_file():
        known = sorted(p.stem for p in folder.glob("*.yaml") if p.name != VOCABULARY_FILE)
        raise RubricError(f"no reason rubric {exercise!r} in {folder}; there are {', '.join(known)}")
    return kept.read(path, _read, folder / VOCABULARY_FILE)


def _read(path):
    """The Rubric in a file."""
    data = table(path)
    try:
        vocabulary = shared_vocabulary(path.parent).extended(data.get("words") or {})
        lines = tuple(_line(line, vocabulary) for line in data["lines"])
        wrong = _conclusion(data.get("wrong_conclusion"))
    except (KeyError, TypeError, VocabularyError, RubricError) as why:
        raise RubricError(f"{path.name}: {why}") from why
    statements, measured = data.get("statements") or {}, data.get("measured", False)
    named = _only_named(vocabulary, lines)
    return Rubric(path.stem, statements, lines, named, vocabulary.known_words, vocabulary.things, wrong, measured).worked_out()


def _conclusion(data):
    return data and Conclusion(*(alternatives(listed(data.get(field) or "")) for field in ("said", "denied", "unless")))


@cache
def shared_vocabulary(folder=RUBRIC_FOLDER):
    """The concepts that all rubrics of `folder` share."""
    return Vocabulary().extended(table(folder / VOCABULARY_FILE))


def _only_named(vocabulary, lines):
    """The concepts that some claim names. Others would take words (a negation in "not hold") from those that count."""
    rows = [row for line in lines for claim in line.claims for row in claim.rows]
    names = {name for row in rows for name, _ in [option for slot in row.slots for option in slot.options] + list(row.unless)}
    return vocabulary.only(names)


def _line(data, vocabulary):
    claims = [_claim(kind, item, vocabulary) for kind in REACH for item in data.get(kind) or ()]
    known = {claim.id for claim in claims}
    for claim in claims:
        if not set(claim.parts) <= known:
            raise RubricError(f"claim {claim.id!r} has parts {list(claim.parts)}; the claims are {sorted(known)}")
    return Line(data["id"], data["points"], data["criterion"], data["model_answers"], tuple(claims))


def _claim(kind, data, vocabulary):
    rows = tuple(_row(row, kind, data, vocabulary) for row in data.get("any") or ())
    worth = data.get("costs", 1) if kind == SIDE_ERROR else data.get("worth", 0)
    return Claim(data["id"], kind, data["en"], data["zh"], rows, worth, tuple(data.get("parts") or ()))


def _row(row, kind, claim, vocabulary):
    row = {"all": row} if isinstance(row, str) else row
    strange = set(row) - {"all", "unless", "within", *FLAGS}
    if strange:
        raise RubricError(f"claim {claim['id']!r}: a row has {sorted(strange)}; it may have all, unless, within, {', '.join(FLAGS)}")
    slots = tuple(_slot(part, claim, vocabulary) for part in row["all"].split("&"))
    exceptions = [written for written in (row.get("unless"), claim.get("unless")) if written]
    unless = tuple(option for written in exceptions for option in _slot(written, claim, vocabulary).options)
    opposites = {name: vocabulary.opposites_of(name) for slot in slots for name, _ in slot.options}
    within = row.get("within", claim.get("within", REACH[kind]))
    spare = max(len(slots) - 2, 0) if kind == EARNS else 0  # two filled slots are a near miss
    return Row(slots, unless, within, spare, opposites=opposites, **{flag: row.get(flag, False) for flag in FLAGS})


def _slot(written, claim, vocabulary):
    return Slot(tuple(_option(option.strip(), claim, vocabulary) for option in written.split("|")))


def _option(written, claim, vocabulary):
    sign = SIGNS.get(written[:1], AFFIRMED)
    name = written.lstrip("!~").strip()
    concept = vocabulary.concepts.get(name)
    if concept is None:
        raise RubricError(f"claim {claim['id']!r} names the concept {name!r}, which is not in the vocabulary")
    return name, sign if concept.is_predicate or sign != AFFIRMED else NOT_DENIED
