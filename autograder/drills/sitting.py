"""Timed sittings: a mock paper of balanced questions, and a mock interview that asks on where an answer left something out.

What a sitting holds is plain data, so that it can be kept after every answer and gone on with later.
"""

import random
import time
from dataclasses import replace

from ..rubric import Status
from .proposal import marked
from .store import Sitting

POINTS_PER_MINUTE = 100 / 90  # as in the hundred-point paper of ninety minutes
# the share of a paper's points that each kind should have, close to the hundred-point paper
BALANCE = {
    "true_false": 0.2,
    "single_choice": 0.05,
    "multi_choice": 0.05,
    "calculation": 0.3,
    "short_answer": 0.15,
    "derivation": 0.15,
    "design": 0.1,
}
INTERVIEW_KINDS = ("short_answer", "design", "derivation")
MINUTES_A_QUESTION = 6
FOLLOW_UPS = 2
SECOND_TRY = 0.5  # what a point is worth that came only after asking on


def draw_paper(deck, minutes, chance=None):
    """A Sitting whose questions have about as many points as the minutes allow, kinds in balance, chapters spread."""
    chance, target = chance or random.SystemRandom(), minutes * POINTS_PER_MINUTE
    headers, got, chosen = deck.bank.headers, dict.fromkeys(BALANCE, 0.0), []
    while kind := _wanting(headers, chosen, got, target):
        name = _fresh(headers, kind, chosen, chance)
        chosen.append(name)
        got[kind] += deck.bank[name].points
    chosen.sort(key=lambda name: (list(BALANCE).index(headers[name].kind), headers[name].chapter))
    return _sitting("paper", deck, minutes, chosen)


def _wanting(headers, chosen, got, target):
    """The kind that lacks most of its share, or None where the paper is full or the bank is used up."""
    left = {kind for kind in BALANCE if any(header.kind == kind and name not in chosen for name, header in headers.items())}
    if sum(got.values()) >= target or not left:
        return None
    return max(left, key=lambda kind: BALANCE[kind] * target - got[kind])


def _fresh(headers, kind, chosen, chance):
    """An exercise of that kind, from a chapter that has been asked about least."""
    chapters = [headers[name].chapter for name in chosen]
    names = [name for name, header in headers.items() if header.kind == kind and name not in chosen]
    return min(names, key=lambda name: (chapters.count(headers[name].chapter), chance.random()))


def draw_interview(deck, minutes, wanted):
    """A Sitting of open questions, those that are due first."""
    open_ = replace(wanted, kinds=wanted.kinds or INTERVIEW_KINDS)
    fitting, chosen = deck.fitting(open_), []
    while len(chosen) < min(len(fitting), max(1, round(minutes / MINUTES_A_QUESTION))):
        chosen.append(deck.next(open_, but=chosen))
    return _sitting("interview", deck, minutes, chosen)


def _sitting(kind, deck, minutes, names):
    questions = [{"exercise": name, "answers": None, "seconds": 0.0, **_numbers(deck.ask(name))} for name in names]
    return Sitting(kind, time.time(), {"minutes": minutes, "questions": questions, "finished": False})


def _numbers(asked):
    return {"draw": asked.draw, "given": str(asked.exercise.given)}


def still_asked(deck, sitting):
    """(the sitting without what cannot be marked any more, the ids of that): exercises that are gone, or whose numbers are others now."""
    gone = [row["exercise"] for row in sitting.body["questions"] if not _same(deck, row)]
    questions = [row for row in sitting.body["questions"] if row["exercise"] not in gone]
    return replace(sitting, body=sitting.body | {"questions": questions}), gone


def _same(deck, row):
    return row["exercise"] in deck.bank.headers and _numbers(deck.ask(row["exercise"], row["draw"]))["given"] == row.get("given")


def seconds_left(sitting):
    """What is left of its time, not counting the time between two goes at it."""
    return sitting.body["minutes"] * 60 - sum(question["seconds"] for question in sitting.body["questions"])


def unfinished(store, kind):
    """The newest sitting of that kind that was not brought to its end, or None."""
    return next((sitting for sitting in reversed(store.sittings(kind)) if not sitting.body["finished"]), None)


def missed(results):
    """The lines to ask on about: those without all their points, in the order of the rubric."""
    return [r for r in results if r.points != r.line.points and r.status is not Status.BROKEN][:FOLLOW_UPS]


def asked_on(exercise, result, answers):
    """A line's result after more was said, in `answers`; what it gains over its first points counts half."""
    again = marked(exercise.model_copy(update={"rubric": (result.line,)}), answers)[0]
    return replace(again, points=result.points + SECOND_TRY * max(0, again.points - result.points))


def sheet(exercise, results):
    """The rows of the score sheet for one question."""
    return [{"exercise": exercise.id, "line": r.line.name, "points": r.points or 0, "most": r.line.points} for r in results]


def finish(sitting, sheet):
    """The sitting at its end, with its score sheet: rows of exercise, line, points and most."""
    points, most = sum(row["points"] for row in sheet), sum(row["most"] for row in sheet)
    return replace(sitting, body=sitting.body | {"finished": True, "sheet": sheet, "points": points, "most": most})
