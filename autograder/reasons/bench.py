"""How well reasons are marked: agreement with given marks, what goes to a person, and what is surely wrong.

Settings are fitted on nine questions and tried on the tenth (`leave_one_out`), so no wording is both tuned and tested on.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from autograder.reasons.mark import evidence_of, settings, verdict_of
from autograder.reasons.rubric import load_rubric

GRADES = (0, 1, 2)
DEVELOPING_FILE = Path(__file__).resolve().parents[2] / "tests" / "reasons" / "paraphrases.jsonl"
# What is tried for each threshold when settings are fitted.
GRID = {"list_share": (0.6, 0.75), "near": (0.6, 0.75, 1.1), "subjects": (2, 3)}
QUEUE_AIM = 0.28
GUESSED = 2  # answers' worth of doubt added to each kind of evidence


@dataclass(frozen=True)
class Marked:
    """An answer, the mark a person gave its reason, and the mark proposed here."""

    question: int
    lang: str
    tag: str
    text: str
    given: int
    mark: object = None

    @property
    def off(self):
        return abs(self.mark.points - self.given)


class AnswersError(ValueError):
    """A file of marked answers that cannot be read: says which line and what was expected."""


def load_answers(path):
    """The marked answers of a JSON-lines file with q (1-10), lang, tag, reason and reason_points."""
    answers = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            answers.append(_answer(line, f"{path}, line {number}"))
    return answers


def _answer(line, where):
    try:
        data = json.loads(line)
        return Marked(int(data["q"]), data.get("lang", ""), data.get("tag", ""), data["reason"], int(data["reason_points"]))
    except (KeyError, TypeError, ValueError) as why:
        raise AnswersError(f"{where}: {why!r}; expected an object with q, lang, tag, reason and reason_points") from why


def rubric_of(question):
    """The rubric of question 1-10."""
    return load_rubric(f"E000-TF{question:02d}")


def marked(answers, chosen=None):
    """The answers with their marks."""
    chosen = chosen or settings()
    return [_with_mark(a, verdict_of(evidence_of(a.text, rubric_of(a.question), chosen), chosen, rubric_of(a.question).points)) for a in answers]


def _with_mark(answer, mark):
    return Marked(answer.question, answer.lang, answer.tag, answer.text, answer.given, mark)


def leave_one_out(answers):
    """The answers marked with settings fitted on all questions but their own."""
    found = []
    for question in sorted({a.question for a in answers}):
        chosen = fitted([a for a in answers if a.question != question])
        found += marked([a for a in answers if a.question == question], chosen)
    return found


def fitted(answers):
    """Settings fitted to `answers`: thresholds from GRID, points and reliability per kind of evidence, what counts as sure."""
    tries = [_rated(answers, settings() | dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())]
    return max(tries, key=lambda tried: tried[0])[1]


def _rated(answers, chosen):
    kinds = [evidence_of(a.text, rubric_of(a.question), chosen).kind for a in answers]
    given = defaultdict(list)
    for kind, answer in zip(kinds, answers, strict=True):
        given[kind].append(answer.given)
    table = {kind: _rating(given[kind], prior) for kind, prior in chosen["evidence"].items()}
    chosen = chosen | {"evidence": table, "sure": _sure(kinds, table)}
    return kappa([(table[kind]["points"], a.given) for kind, a in zip(kinds, answers, strict=True)]), chosen


def _rating(given, prior):
    """Points with the least squared error, and how often they were right; what was set before counts as GUESSED answers."""
    start = prior["points"]
    points = min(GRADES, key=lambda p: (sum((p - g) ** 2 for g in given) + GUESSED * (p - start) ** 2, abs(p - start)))
    right = sum(g == points for g in given) + GUESSED * prior["reliability"]
    return {"points": points, "reliability": right / (len(given) + GUESSED)}


def _sure(kinds, table):
    """The lowest reliability that still keeps the queue within QUEUE_AIM."""
    rated = sorted(table[kind]["reliability"] for kind in kinds)
    return rated[int(len(rated) * QUEUE_AIM)] if rated else 0.0


def kappa(pairs):
    """Quadratically weighted kappa of pairs (mark, given mark); 1.0 where all agree."""
    count = len(pairs)
    if not count:
        return 0.0
    mine, theirs = [p for p, _ in pairs], [g for _, g in pairs]
    observed = sum((p - g) ** 2 for p, g in pairs) / count
    expected = sum((p - g) ** 2 for p in mine for g in theirs) / count**2
    return 1 - observed / expected if expected else 1.0


def figures(answers):
    """The figures of marked answers: kappa (proposals included), its value on sure marks, shares of queue and of surely wrong marks."""
    sure = [a for a in answers if not a.mark.needs_human]
    return {
        "answers": len(answers),
        "kappa": kappa([(a.mark.points, a.given) for a in answers]),
        "kappa_sure": kappa([(a.mark.points, a.given) for a in sure]),
        "exact_share": sum(a.off == 0 for a in answers) / len(answers) if answers else 0.0,
        "queue_share": 1 - len(sure) / len(answers) if answers else 0.0,
        "confident_wrong_share": sum(a.off >= 2 for a in sure) / len(sure) if sure else 0.0,
    }


def report(answers):
    """The figures over all, by language and by tag."""
    return figures(answers) | {"by_language": _by(answers, "lang"), "by_tag": _by(answers, "tag"), "by_question": _by(answers, "question")}


def _by(answers, name):
    return {str(value): figures([a for a in answers if getattr(a, name) == value]) for value in sorted({getattr(a, name) for a in answers})}
