"""From claims to points: what was found, what that is worth, how sure that is, and whether a person must look."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from autograder.reasons.claims import MADE, REVERSED, find, nearness, read
from autograder.reasons.language import table, words
from autograder.reasons.polarity import negations
from autograder.reasons.rubric import ALSO_TRUE, CONTRADICTS, EARNS, SIDE_ERROR
from autograder.reasons.spelling import mend
from autograder.reasons.talk import is_list, restates, subjects
from autograder.reasons.text import normalise

SETTINGS_FILE = Path(__file__).with_name("settings.yaml")
TABLE_POINTS = 2  # the points of a full reason in the table of evidence
CONCLUDED = ("it concludes with the opposite", "结论相反")
ROLES = {EARNS: "earned", CONTRADICTS: "contradicted", SIDE_ERROR: "side error", ALSO_TRUE: "also true"}


@cache
def settings():
    """Thresholds, and per kind of evidence its points and how reliable they are: measured by `psi bench reasons`."""
    return table(SETTINGS_FILE)


@dataclass(frozen=True)
class Match:
    """A claim and the part of the answer that makes it. `role`: earned, contradicted, side error or also true."""

    line: str
    role: str
    span: str
    why: str
    why_zh: str = ""
    claim: str = ""


@dataclass(frozen=True)
class ReasonMark:
    """Points for a reason, how sure they are (0 to 1), and whether a person must look; `points` is then a proposal."""

    points: float
    confidence: float
    needs_human: bool
    matches: tuple = ()
    evidence: str = ""
    why: dict = None


@dataclass(frozen=True)
class Findings:
    """What was read from an answer, for each claim that is met the finding, and the clauses that conclude wrongly."""

    reading: object
    rubric: object
    hits: dict
    turned: tuple = ()

    @property
    def matches(self):
        met = [_match(self.rubric.line_of[name], hit, self.reading) for name, hit in self.hits.items()]
        return (*met, *(self._conclusion(place) for place in self.turned))

    @cached_property
    def nearness(self):
        """How near the answer comes to a claim that it does not make, 0 to 1."""
        claims = [claim for line in self.rubric.lines for claim in line.of_kind(EARNS) if claim.id not in self.hits]
        return max((nearness(claim, self.reading) for claim in claims), default=0)

    def _conclusion(self, place):
        clause = self.reading.clauses[place]
        line = self.rubric.lines[0].id
        return Match(line, "contradicted", self.reading.text.quote(clause.start, clause.end), *CONCLUDED, claim="wrong-conclusion")


def mark_reason(text, rubric, points=None):
    """The ReasonMark of `text` by `rubric`, scaled to `points` (the rubric's own when not given). Never raises for any text."""
    findings = examine(text, rubric)
    return rate(kind_of(findings, settings()), findings, settings(), rubric.points if points is None else points)


def examine(text, rubric):
    """The Findings of all claims of `rubric` in `text`; they depend on no setting."""
    reading = read(mend(normalise(text), rubric.known_words), rubric.vocabulary, words("clause_breaks"))
    found = [find(claim, reading) for line in rubric.lines for claim in line.claims]
    hits = {hit.claim.id: hit for hit in found if hit}
    return Findings(reading, rubric, hits, tuple(_turned(reading, rubric.wrong_conclusion)))


def rate(kind, findings, chosen, points):
    """The ReasonMark for a kind of evidence: what it has turned out to be worth, and how reliably."""
    rating = chosen["evidence"][kind]
    reliability = 0.0 if findings.reading.text.cut else rating["reliability"]
    own = rating["points"] * points / TABLE_POINTS
    unsure = reliability < chosen["sure"] or not (findings.rubric.measured or kind in chosen["sure_unmeasured"])
    return ReasonMark(own, reliability, unsure, findings.matches, kind, chosen["explained"][kind])


def _match(line, hit, reading):
    role = "contradicted" if hit.how == REVERSED else ROLES[hit.claim.kind]
    return Match(line, role, reading.text.quote(hit.start, hit.end), hit.claim.en, hit.claim.zh, hit.claim.id)


def kind_of(findings, chosen):
    """The kind of evidence an answer holds; each has its row in the settings."""
    reading, rubric, hits = findings.reading, findings.rubric, findings.hits
    if not reading.text.clean.strip():
        return "empty"
    if is_list(reading, rubric.field_words, chosen):
        return "list"
    earned = sum(_worth(line, hits) for line in rubric.lines)
    if restates(reading, [statement for said in rubric.statements.values() for statement in said], earned, chosen):
        return "restated"
    if _overturned(findings):
        return "overturned" if earned else "contradicted"
    if earned:
        return ("full" if earned >= rubric.points else "part") + _reservation(findings, earned)
    return "contradicted" if _against(hits) else _without_claim(findings, chosen)


def _worth(line, hits):
    """The points a line earns: the worth of its best claim that is made, by itself or by its parts."""
    made = {name for name, hit in hits.items() if hit.how == MADE}
    worths = [claim.worth for claim in line.of_kind(EARNS) if claim.id in made or (claim.parts and set(claim.parts) <= made)]
    return min(line.points, max(worths, default=0))


def _made(hits, kind):
    return [hit for hit in hits.values() if hit.how == MADE and hit.claim.kind == kind]


def _against(hits, least=0):
    """Contradictions made, and claims worth at least `least` of which the opposite is said."""
    return _made(hits, CONTRADICTS) + [hit for hit in hits.values() if hit.how == REVERSED and hit.claim.worth >= least]


def _overturned(findings):
    """Whether the answer concludes with the opposite of what is right, after all that it claims."""
    last = max((hit.first for hit in findings.hits.values() if hit.how == MADE and hit.claim.kind == EARNS), default=-1)
    against = [hit.first for hit in _made(findings.hits, CONTRADICTS)]
    reading = findings.reading
    return any(place > last and (place in against or place in findings.turned) for place in reading.concluding)


def _turned(reading, wrong):
    """The clauses that conclude wrongly."""
    if not (wrong and reading.concluding):
        return
    denials = [negation.start for negation in negations(reading.text.clean, ())]
    for place in sorted(reading.concluding):
        clause = reading.clauses[place]
        denied = any(clause.holds(start) for start in denials)
        said = reading.text.clean[clause.start : clause.end]
        if not wrong.unless.search(said) and (wrong.denied if denied else wrong.said).search(said):
            yield place


def _reservation(findings, earned):
    """What stands against an earned claim, as the ending of the kind of evidence."""
    errors = _made(findings.hits, SIDE_ERROR)
    if _against(findings.hits, least=earned):
        return "_contradicted"
    if _against(findings.hits):
        return "_doubted"
    if any(hit.claim.worth for hit in errors):
        return "_with_error"
    return "_with_aside" if errors else "_and_more" if _says_more(findings) else ""


def _says_more(findings):
    """Whether some clause speaks of the field without any claim in it: it may hold an error, or more of the reason."""
    reading = findings.reading
    told = {place for hit in findings.hits.values() if hit.how == MADE for place in range(hit.first, hit.first + hit.count)}
    rest = [clause for place, clause in enumerate(reading.clauses) if place not in told]
    return any(findings.rubric.field_words.search(reading.text.clean, clause.start, clause.end) for clause in rest)


def _without_claim(findings, chosen):
    """What an answer without a claim is: near one, on the subject, or vague."""
    if findings.nearness >= chosen["near"]:
        return "near"
    return "unrecognised" if subjects(findings.reading.text.clean, findings.rubric.field_words) >= chosen["subjects"] else "vague"
