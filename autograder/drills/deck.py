"""Which exercise comes next, with which numbers, and what an answer does to its cards.

An exercise is a card, and so is each misconception that the learner has shown: whichever is due first brings the exercise back.
"""

import math
import secrets
import time
from dataclasses import dataclass, replace

from formulary import InputError

from ..rubric import Status, check
from .schedule import rating
from .store import Review

RAPID_SECONDS = 60
RAPID_WITHIN = 0.1
TOO_LATE = 0.5  # the most that an estimate is worth after its time


@dataclass(frozen=True)
class Wanted:
    """Which exercises to draw from; an empty field takes all."""

    chapters: tuple = ()
    kinds: tuple = ()
    difficulties: tuple = ()

    def __str__(self):
        rows = (("chapter", self.chapters), ("kind", self.kinds), ("difficulty", self.difficulties))
        return ", ".join(f"{name} {' or '.join(map(str, allowed))}" for name, allowed in rows if allowed)

    def fits(self, header):
        """Whether an exercise with this Header is one of them."""
        rows = ((self.chapters, header.chapter), (self.kinds, header.kind), (self.difficulties, header.difficulty))
        return all(value in allowed for allowed, value in rows if allowed)


@dataclass(frozen=True)
class Asked:
    """An exercise with the numbers of one draw, which can be drawn again."""

    exercise: object
    draw: str

    @property
    def numbers(self):
        """The parts that ask for a number."""
        return [part for part in self.exercise.parts if part.type == "number"]

    @property
    def drawn_number(self):
        """The one of them that this draw asks to estimate, or None if there is none."""
        return self.numbers[int(self.draw, 16) % len(self.numbers)] if self.numbers else None


def exercise_of(card):
    """The exercise that a card brings back."""
    return card.partition("/")[0]


class Deck:
    """The bank's exercises, in the order that `store` says they should come. `clock` gives seconds since 1970."""

    def __init__(self, bank, store, clock=time.time):
        self.bank, self.store, self.clock = bank, store, clock

    def fitting(self, wanted):
        """The ids of the exercises that are wanted. Raises InputError if there is none."""
        found = [name for name, header in self.bank.headers.items() if wanted.fits(header)]
        if not found:
            raise InputError(f"there is no exercise of {wanted}; `psi bank list` shows what there is")
        return found

    def next(self, wanted=None, but=()):
        """The id to ask: what is overdue longest, else what was never asked, else what is due soonest; one of `but` only at need.

        Raises InputError if no exercise is wanted.
        """
        due, now = self.due(), self.clock()
        return min(self.fitting(wanted or Wanted()), key=lambda name: (name in but, *self._place(name, due.get(name), now)))

    def _place(self, name, due, now):
        header = self.bank.headers[name]
        if due is None:
            return 1, header.difficulty, header.chapter, name
        return (0 if due <= now else 2), due, 0, name

    def due(self):
        """{exercise: when the first of its cards is due}."""
        found = {}
        for card, due in self.store.due().items():
            found[exercise_of(card)] = min(due, found.get(exercise_of(card), math.inf))
        return found

    def ask(self, name, draw=None):
        """The exercise of that id with fresh numbers, or those of an earlier `draw`."""
        draw = draw or secrets.token_hex(4)
        return Asked(self.bank[name].variant(draw), draw)

    def learn(self, asked, got, findings=(), seconds=0.0, mode="practice"):
        """Keep that an answer got this share of its points: a Review of the exercise, and of each misconception shown or overcome."""
        shares = {asked.exercise.id: got} | self._misconceptions(asked.exercise.id, findings)
        now = self.clock()
        reviews = [Review(card, now, rating(value), value, seconds, mode, asked.draw) for card, value in shares.items()]
        self.store.record(*reviews)
        return reviews

    def _misconceptions(self, name, findings):
        known, found = self.store.due(), {}
        for finding in findings:
            part = f"{name}/{finding.part}/"
            if finding.mistake:
                found[part + finding.mistake] = 0.0
            elif finding.status is Status.RIGHT:
                found |= {card: 1.0 for card in known if card.startswith(part)}
        return found


def share(results):
    """The share of the points that was earned, of the lines that have points; None if none has."""
    marked = [result for result in results if result.points is not None]
    return sum(r.points for r in marked) / sum(r.line.points for r in marked) if marked else None


def findings(results):
    """Every Finding on every line."""
    return [finding for result in results for finding in result.findings]


def self_marked(results, points):
    """The results with a learner's own `points`, by line name, between nothing and all of the line."""
    bounded = lambda line: min(max(points[line.name], 0), line.points)
    return [replace(r, points=bounded(r.line)) if r.line.name in points else r for r in results]


def estimate(asked, part, value, seconds):
    """The Finding on a rough answer to one number part: within a tenth is right, and after the time it counts half."""
    found = check(asked.exercise, part.model_copy(update={"within": RAPID_WITHIN}), value)
    return replace(found, share=min(found.share, TOO_LATE)) if seconds > RAPID_SECONDS else found
