"""How well reasons are marked: agreement with given marks, what goes to a person, and what is surely wrong.

Settings are fitted on nine questions and tried on the tenth (`leave_one_out`), so no wording is both tuned and tested on.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from autograder.reasons.mark import TABLE_POINTS, ReasonMark, examine, kind_of, rate, settings
from autograder.reasons.rubric import load_rubric

DEVELOPING_FILE = Path(__file__).resolve().parents[2] / "tests" / "reasons" / "paraphrases.jsonl"
GRADES = range(TABLE_POINTS + 1)
# What is tried for each threshold when settings are fitted.
GRID = {"list_share": (0.6, 0.7), "near": (0.7, 1.1), "subjects": (2, 3)}
MOST_QUEUED = 0.25  # of the answers that settings are fitted to; others hold more that is unsure
PRIOR = 3  # answers' worth of what was set before, in each kind of evidence


class AnswersError(ValueError):
    """A file of marked answers that cannot be read: says which line and what was expected."""


@dataclass(frozen=True)
class Marked:
    """An answer, the points a person gave its reason, and the mark given here."""

    question: int
    text: str
    given: int
    lang: str = ""
    tag: str = ""
    part: str = ""
    mark: ReasonMark = None

    @property
    def off(self):
        return abs(self.mark.points - self.given)


def load_answers(path):
    """The marked answers of a JSON-lines file with q (1-10), lang, tag, reason and reason_points."""
    lines = enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
    return [_answer(line, f"{path}, line {number}") for number, line in lines if line.strip()]


def _answer(line, where):
    try:
        row = json.loads(line)
        labels = {name: row.get(name, "") for name in ("lang", "tag", "part")}
        return Marked(int(row["q"]), text=row["reason"], given=int(row["reason_points"]), **labels)
    except (AttributeError, KeyError, TypeError, ValueError) as why:
        raise AnswersError(f"{where}: {why!r}; expected an object with q, lang, tag, reason and reason_points") from why


def rubric_of(question):
    """The rubric of question 1-10."""
    return load_rubric(f"E000-TF{question:02d}")


def marked(answers, chosen=None):
    """The answers with their marks by `chosen` settings (those in use when not given)."""
    return _marked(_examined(answers), chosen or settings())


def _examined(answers):
    return [(answer, examine(answer.text, rubric_of(answer.question))) for answer in answers]


def _marked(examined, chosen):
    return [replace(answer, mark=rate(kind_of(findings, chosen), findings, chosen, TABLE_POINTS)) for answer, findings in examined]


def leave_one_out(answers):
    """The answers, each marked with settings fitted on all questions but its own."""
    examined = _examined(answers)
    tables = [(chosen, _kinds(examined, chosen)) for chosen in _grid()]
    found = []
    for question in sorted({answer.question for answer in answers}):
        chosen = _fitted([(chosen, [pair for pair in kinds if pair[1].question != question]) for chosen, kinds in tables])
        found += _marked([pair for pair in examined if pair[0].question == question], chosen)
    return found


def fitted(answers):
    """Settings fitted to `answers`: thresholds from GRID, points and reliability per kind of evidence, and what is sure."""
    examined = _examined(answers)
    return _fitted([(chosen, _kinds(examined, chosen)) for chosen in _grid()])


def _grid():
    return [settings() | dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]


def _kinds(examined, chosen):
    return [(kind_of(findings, chosen), answer) for answer, findings in examined]


def _fitted(tables):
    tries = [_rated(chosen, kinds) for chosen, kinds in tables]
    return max(tries, key=lambda tried: tried[0])[1]


def _rated(chosen, kinds):
    """Kappa and the settings when each kind of evidence gets the points and the reliability it has among `kinds`."""
    given = defaultdict(list)
    for kind, answer in kinds:
        given[kind].append(answer.given)
    table = {kind: _rating(given[kind], prior) for kind, prior in settings()["evidence"].items()}
    agreement = kappa([(table[kind]["points"], answer.given) for kind, answer in kinds])
    return agreement, chosen | {"evidence": table, "sure": _sure([table[kind]["reliability"] for kind, _ in kinds])}


def _rating(given, prior):
    """The points with the least squared error, and 1 less that error as a share of the worst; the prior counts PRIOR answers."""

    def error(points):
        before = (points - prior["points"]) ** 2 + (1 - prior["reliability"]) * TABLE_POINTS**2
        return (sum((points - mark) ** 2 for mark in given) + PRIOR * before) / (len(given) + PRIOR)

    best = min(GRADES, key=error)
    return {"points": best, "reliability": round(1 - error(best) / TABLE_POINTS**2, 3)}


def _sure(ratings):
    """The reliability from which on marks are sure, so that no more than MOST_QUEUED of the answers go to a person."""
    levels = sorted(set(ratings))
    return next((level for level in reversed(levels) if sum(r < level for r in ratings) <= MOST_QUEUED * len(ratings)), 0.0)


def kappa(pairs):
    """Quadratically weighted kappa of pairs (mark, given mark); 1.0 where neither varies and both agree."""
    if not pairs:
        return 0.0
    observed = sum((mine - theirs) ** 2 for mine, theirs in pairs) / len(pairs)
    expected = sum((mine - theirs) ** 2 for mine, _ in pairs for _, theirs in pairs) / len(pairs) ** 2
    return 1 - observed / expected if expected else 1.0


def figures(answers):
    """Kappa over all marks (proposals included) and over sure ones, shares exact, queued, and surely wrong by two points."""
    sure = [answer for answer in answers if not answer.mark.needs_human]
    return {
        "answers": len(answers),
        "kappa": kappa([(answer.mark.points, answer.given) for answer in answers]),
        "kappa_sure": kappa([(answer.mark.points, answer.given) for answer in sure]),
        "exact_share": _share(answers, lambda answer: answer.off == 0),
        "queue_share": _share(answers, lambda answer: answer.mark.needs_human),
        "confident_wrong_share": _share(sure, lambda answer: answer.off >= 2),
    }


def _share(answers, holds):
    return sum(map(holds, answers)) / len(answers) if answers else 0.0


GROUPS = {"by_language": "lang", "by_tag": "tag", "by_question": "question"}


def report(answers):
    """The figures over all, by language, by tag and by question."""
    return figures(answers) | {name: _by(answers, key) for name, key in GROUPS.items()}


def _by(answers, key):
    values = sorted({getattr(answer, key) for answer in answers})
    return {str(value): figures([answer for answer in answers if getattr(answer, key) == value]) for value in values}
