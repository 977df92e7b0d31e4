"""From claims to points: what was found, what that is worth, how sure that is, and whether a person must look."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from autograder.reasons.claims import MADE, NEAR, REVERSED, find, read
from autograder.reasons.polarity import pattern
from autograder.reasons.rubric import ALSO_TRUE, CONTRADICTS, EARNS, SIDE_ERROR
from autograder.reasons.spelling import mend
from autograder.reasons.talk import is_list, restates, subjects
from autograder.reasons.text import normalise
from autograder.reasons.vocabulary import language

SETTINGS_FILE = Path(__file__).with_name("settings.yaml")
TABLE_POINTS = 2  # the points of a full reason in the table of evidence


@cache
def settings():
    """Thresholds, and per kind of evidence how often its mark was right: measured by `psi bench reasons`."""
    return yaml.safe_load(SETTINGS_FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Match:
    """A claim and the part of the answer that makes it. `role`: earned, contradicted, side error, near, also true."""

    line: str
    role: str
    span: str
    why: str
    claim: str = ""
    why_zh: str = ""


@dataclass(frozen=True)
class ReasonMark:
    """Points for a reason, how sure they are (0 to 1), and whether a person must look; `points` is then a proposal."""

    points: float
    confidence: float
    needs_human: bool
    matches: tuple = ()
    evidence: str = ""
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """What an answer holds: the kind of evidence, the worth of its claims, and the claims found."""

    kind: str
    worth: float
    matches: tuple = ()
    cut: bool = False


def mark_reason(text, rubric, points=None):
    """The ReasonMark of `text` by `rubric`, scaled to `points` (the rubric's own when not given). Never raises for any text."""
    return verdict_of(evidence_of(text, rubric), settings(), rubric.points if points is None else points)


def evidence_of(text, rubric, chosen=None):
    """The Evidence that `text` holds for the claims of `rubric`."""
    chosen = chosen or settings()
    reading = _reading(text, rubric)
    found = [(line, claim, find(claim, reading)) for line in rubric.lines for claim in line.claims]
    kind, worth = _judge(reading, rubric, found, chosen)
    matches = tuple(_match(line, claim, hit, reading) for line, claim, hit in found if hit and hit.how != NEAR)
    return Evidence(kind, worth, matches, reading.text.cut)


def verdict_of(evidence, chosen, points):
    """The ReasonMark for some evidence: what that kind of evidence has turned out to be worth, and how reliably."""
    rating = chosen["evidence"][evidence.kind]
    reliability = 0.0 if evidence.cut else rating["reliability"]
    own = rating["points"] * points / TABLE_POINTS
    return ReasonMark(own, reliability, reliability < chosen["sure"], evidence.matches, evidence.kind, chosen["explained"][evidence.kind])


def _reading(text, rubric):
    mended = mend(normalise(text), rubric.known_words, language())
    return read(mended, rubric.vocabulary, pattern("clause_breaks"))


ROLES = {EARNS: "earned", CONTRADICTS: "contradicted", SIDE_ERROR: "side error", ALSO_TRUE: "also true"}


def _match(line, claim, hit, reading):
    role = "contradicted" if hit.how == REVERSED else ROLES[claim.kind]
    return Match(line.id, role, reading.text.quote(hit.start, hit.end), claim.en, claim.id, claim.zh)


def _judge(reading, rubric, found, chosen):
    """The kind of evidence an answer holds, and the points its claims are worth."""
    if not reading.text.clean.strip():
        return "empty", 0
    if is_list(reading, chosen):
        return "list", 0
    hits = {claim.id: hit for _, claim, hit in found if hit}
    earned = sum(_worth(line, hits) for line in rubric.lines)
    made = {kind: [hit for hit in hits.values() if hit.claim.kind == kind and hit.how == MADE] for kind in ROLES}
    against = made[CONTRADICTS] + [h for h in hits.values() if h.how == REVERSED]
    if not earned and restates(reading, [s for said in rubric.statements.values() for s in said], chosen):
        return "restated", 0
    return _kind(earned, rubric.points, against, made[SIDE_ERROR], _without_claim(hits, reading, rubric, chosen), _says_more(hits, reading, rubric)), earned


def _worth(line, hits):
    made = {name for name, hit in hits.items() if hit.how == MADE}
    worths = [claim.worth for claim in line.of_kind(EARNS) if claim.id in made or (claim.parts and set(claim.parts) <= made)]
    return min(line.points, max(worths, default=0))


def _without_claim(hits, reading, rubric, chosen):
    """What an answer without a claim is: near one, on the subject, or vague."""
    nearness = max((hit.share for hit in hits.values() if hit.how == NEAR), default=0)
    if nearness >= chosen["near"]:
        return "near"
    return "unrecognised" if subjects(reading.text.clean, rubric.field_words) >= chosen["subjects"] else "vague"


def _kind(earned, most, against, side, without_claim, more):
    level = "full" if earned >= most else "part" if earned else "none"
    if level != "none":
        return f"{level}_contradicted" if against else f"{level}_with_error" if side else f"{level}_and_more" if more else level
    return "contradicted" if against else without_claim


def _says_more(hits, reading, rubric):
    """Whether some clause speaks of the field without any claim in it: it may hold an error, or more of the reason."""
    told = {place for hit in hits.values() if hit.how == MADE for place in range(hit.first, hit.first + hit.count)}
    rest = [clause for place, clause in enumerate(reading.clauses) if place not in told]
    return any(rubric.field_words.search(reading.text.clean, clause.start, clause.end) for clause in rest)
