"""Drills in a terminal: plain lines in, plain lines out."""

import re
import textwrap
import time
from dataclasses import replace

from .. import feedback
from ..assignment import heading, how, question
from ..rubric import LineResult, Status
from . import sitting as sittings
from .deck import RAPID_SECONDS, RAPID_WITHIN, estimate, findings, self_marked, share
from .explain import explained, plain
from .proposal import marked
from .schedule import rating
from .wording import say, span

COMMANDS = (":hint", ":show", ":skip", ":quit")
WIDTH = 100
CJK = "\u2e80"  # characters from here on need no space between them
VERDICTS = {1: "wrong", 2: "partly", 3: "right"}


# a line's end inside a paragraph, with what stands on both sides of it
PARAGRAPH = re.compile(r"(?<=(\S))\n(?=([^\s*>|#-])(?!\d*\.\s))")


def _joined(match):
    """What holds two lines of a paragraph together: nothing between Chinese characters."""
    return "" if min(match.groups()) > CJK else " "


def _folded(line):
    return textwrap.fill(line, WIDTH, replace_whitespace=False)


class Quit(Exception):
    """The learner has had enough."""


class Skip(Exception):
    """The learner passes this question."""


class Shown(Exception):
    """The learner asked for the solution in place of an answer."""


class Terminal:
    """Asks the exercises of a Deck in the given languages, over `read` (a prompt to a line) and `write`."""

    def __init__(self, deck, languages, read=None, write=print):
        self.deck, self.languages, self.read, self._write = deck, languages, read or input, write
        self.shares = []

    # --- the modes

    def practice(self, wanted, count):
        """Ask `count` exercises, the most urgent first, each marked at once."""
        self._start(wanted)
        self._each(count, wanted, self._practise)

    def rapid(self, wanted, count):
        """Ask for `count` estimates of single numbers, against the clock."""
        self._start(wanted)
        self.say("estimate", within=RAPID_WITHIN, limit=RAPID_SECONDS)
        self._each(count, replace(wanted, kinds=wanted.kinds or ("calculation",)), self._estimate)

    def paper(self, sitting):
        """Sit a mock paper, marked at its end; returns it as it is kept."""
        return self._sit(sitting, self._answer_paper)

    def interview(self, sitting):
        """Sit a mock interview: each open question is asked on about; returns it as it is kept."""
        return self._sit(sitting, self._answer_interview)

    # --- one question

    def _each(self, count, wanted, ask):
        last = ()
        try:
            for _ in range(count):
                name = self.deck.next(wanted, but=last)
                last = (name,)
                ask(self.deck.ask(name))
        except (Quit, EOFError):
            pass
        self.say("done", count=len(self.shares), share=sum(self.shares) / len(self.shares)) if self.shares else self.say("none")

    def _practise(self, asked):
        self._show_question(asked.exercise)
        started, answers = time.monotonic(), {}
        try:
            answers = self._answers(asked.exercise)
        except Skip:
            return
        except Shown:
            self._explain(asked.exercise)
        results = self._self_marked(marked(asked.exercise, answers)) if answers else marked(asked.exercise, {})
        if answers:
            self._tell(asked.exercise, results)
        self._learn(asked, share(results), findings(results), time.monotonic() - started, "practice")

    def _estimate(self, asked):
        part = asked.numbers[int(asked.draw, 16) % len(asked.numbers)] if asked.numbers else None
        if part is None:
            return
        self._show_question(asked.exercise)
        started = time.monotonic()
        try:
            value = self._answer(asked.exercise, part)
        except Skip:
            return
        except Shown:
            value = ""
        seconds = time.monotonic() - started
        found = estimate(asked, part, value, seconds)
        self.write("\n".join(text.say(self.languages) for text in found.texts(reveal=True)))
        if seconds > RAPID_SECONDS:
            self.say("late", seconds=seconds, limit=RAPID_SECONDS)
        self._learn(asked, found.share, (found,), seconds, "rapid")

    def _learn(self, asked, got, found, seconds, mode):
        self.shares.append(got)
        self.deck.learn(asked, got, found, seconds, mode)
        wait = min(due for card, due in self.deck.store.due().items() if card.partition("/")[0] == asked.exercise.id) - self.deck.clock()
        self.write(f"{say(VERDICTS[rating(got)], self.languages)}; {say('again', self.languages, wait=span(wait))}")

    # --- sittings

    def _sit(self, sitting, answer):
        body = sitting.body
        try:
            for index, row in enumerate(body["questions"]):
                if row["answers"] is None and sittings.seconds_left(sitting) > 0:
                    self.write("")
                    self.say("left", left=span(sittings.seconds_left(sitting)))
                    answer(sitting, index)
                    self.deck.store.keep(sitting)
        except (Quit, EOFError):
            self.deck.store.keep(sitting)
            self.say("kept", kind=sitting.kind)
            return sitting
        if sittings.seconds_left(sitting) <= 0:
            self.say("over")
        done = sittings.finish(sitting, list(self._sheet(sitting)))
        self.deck.store.keep(done)
        self._tell_sheet(done)
        return done

    def _asked_again(self, row):
        return self.deck.ask(row["exercise"], row["draw"])

    def _answer_paper(self, sitting, index):
        row = sitting.body["questions"][index]
        exercise, started = self._asked_again(row).exercise, time.monotonic()
        self._show_question(exercise)
        row["answers"] = self._answers_or_none(exercise)
        row["seconds"] = time.monotonic() - started

    def _answers_or_none(self, exercise):
        try:
            return self._answers(exercise, (":skip", ":quit"))
        except Skip:
            return {}

    def _answer_interview(self, sitting, index):
        row = sitting.body["questions"][index]
        exercise, started = self._asked_again(row).exercise, time.monotonic()
        self._show_question(exercise)
        row["answers"], row["more"] = self._answers_or_none(exercise), {}
        for result in sittings.missed(marked(exercise, row["answers"])) if row["answers"] else []:
            self.say("more", line=result.line.title)
            if text := self._text():
                row["more"][result.line.name] = text
        row["seconds"] = time.monotonic() - started

    def _sheet(self, sitting):
        """Mark every question, ask for own marks where a person must, and give a row a line."""
        for row in sitting.body["questions"]:
            asked, answers = self._asked_again(row), row["answers"] or {}
            results = [self._after_more(asked.exercise, r, answers, row.get("more", {})) for r in marked(asked.exercise, answers)]
            self.write(f"\n{heading(asked.exercise, self.languages)}")
            results = self._self_marked(results)
            self._tell(asked.exercise, results)
            if row["answers"]:
                self.deck.learn(asked, share(results), findings(results), row["seconds"], sitting.kind)
            for r in results:
                yield {"exercise": asked.exercise.id, "line": r.line.name, "points": r.points or 0, "most": r.line.points}

    def _after_more(self, exercise, result, answers, more):
        text = more.get(result.line.name)
        if not text:
            return result
        joined = {part.name: f"{answers.get(part.name, '')}\n{text}" for part in exercise.parts if part.type == "reason"}
        return sittings.asked_on(exercise, result, answers | joined)

    def _tell_sheet(self, sitting):
        self.write(f"\n{say('sheet', self.languages)}")
        for row in sitting.body["sheet"]:
            self.write(f"  {row['exercise']}  {row['line']:<24}{row['points']:>6.3g} / {row['most']:g}")
        self.say("points", points=f"{sitting.body['points']:.3g}", most=f"{sitting.body['most']:g}")

    # --- reading

    def _answers(self, exercise, allowed=COMMANDS):
        return {part.name: self._answer(exercise, part, allowed) for part in exercise.parts}

    def _answer(self, exercise, part, allowed=COMMANDS):
        self.write(f"{part.label.say(self.languages)} ({how(exercise, part).say(self.languages)})")
        hints = iter(exercise.hints)
        while (line := self._line(exercise, hints, allowed)) is None:
            pass
        return "\n".join([line, *self._rest()]).strip() if part.type == "reason" and line else line

    def _line(self, exercise, hints, allowed):
        """One line that answers, or None after a command that was carried out."""
        line = self.read("> ").strip()
        if not line.startswith(":"):
            return line
        if line not in allowed:
            self.say("no_command", given=line, commands=" ".join(allowed))
        elif line == ":hint":
            self.write(next((hint.say(self.languages) for hint in hints), "–"))
        else:
            raise {":show": Shown, ":skip": Skip, ":quit": Quit}[line]
        return None

    def _rest(self):
        """The lines of a text up to an empty one."""
        while line := self.read(". ").strip():
            yield line

    def _text(self):
        return "\n".join(self._rest())

    def _self_marked(self, results):
        return self_marked(results, {r.line.name: self._own_points(r) for r in results if r.status is Status.HUMAN})

    def _own_points(self, result: LineResult):
        most, proposal = result.line.points, result.points
        self.say("self", line=result.line.title, most=f"{most:g}", criterion=result.line.criterion)
        while True:
            given = self.read(f"{say('proposal', self.languages, points=f'{proposal:.3g}')} > ").strip() or str(proposal)
            try:
                if 0 <= float(given) <= most:
                    return float(given)
            except ValueError:
                pass
            self.say("no_number", most=f"{most:g}", given=given)

    # --- writing

    def write(self, text):
        """Print markdown, its paragraphs folded."""
        self._write("\n".join(_folded(line) for line in PARAGRAPH.sub(_joined, text).split("\n")))

    def say(self, key, **values):
        self.write(say(key, self.languages, **values))

    def _start(self, wanted):
        due, now = self.deck.due(), self.deck.clock()
        names = [name for name, header in self.deck.bank.headers.items() if wanted.fits(header)]
        self.say("commands")
        self.say("due", due=sum(due.get(name, now + 1) <= now for name in names), new=sum(name not in due for name in names))

    def _show_question(self, exercise):
        self.write(f"\n{heading(exercise, self.languages)}\n\n{question(exercise, self.languages)}\n")

    def _tell(self, exercise, results):
        see = feedback.chapter(exercise.chapter, section=exercise.section)
        for result in results:
            self.write(feedback.text(replace(result, note=None), self.languages, see=see))

    def _explain(self, exercise):
        self.write(explained(exercise, self.languages, plain))
