"""Drills in a terminal: plain lines in, plain lines out."""

import contextlib
import time
from dataclasses import replace

from .. import feedback
from ..assignment import heading, how, question
from ..rubric import LineResult, Status, check
from . import sitting as sittings
from .deck import RAPID_SECONDS, RAPID_WITHIN, estimate, findings, self_marked, share
from .explain import explained, plain
from .folding import folded, lines
from .proposal import marked
from .schedule import VERDICTS, rating
from .store import Overtaken
from .wording import say, span

COMMANDS = (":hint", ":show", ":skip", ":quit")
IN_SITTING = (":skip", ":quit")


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
        self.shares, self.hints = [], iter(())

    # --- the modes

    def practice(self, wanted, count):
        """Ask `count` exercises, the most urgent first, each marked at once."""
        self._start(wanted)
        self._each(count, wanted, self._practise)

    def rapid(self, wanted, count):
        """Ask for `count` estimates of single numbers, against the clock."""
        wanted = replace(wanted, kinds=wanted.kinds or ("calculation",))
        self._start(wanted)
        self.say("estimate", within=RAPID_WITHIN, limit=RAPID_SECONDS)
        self._each(count, wanted, self._estimate)

    def paper(self, sitting):
        """Sit a mock paper, marked at its end; returns it as it is kept."""
        return self._sit(sitting, self._answer_paper)

    def interview(self, sitting):
        """Sit a mock interview: each open question is asked on about; returns it as it is kept."""
        return self._sit(sitting, self._answer_interview)

    # --- one question

    def _each(self, count, wanted, ask):
        """Ask `count` times; what was passed over does not come again before everything else."""
        last, passed = (), set()
        try:
            for number in range(1, count + 1):
                name = self.deck.next(wanted, but=(*last, *passed))
                last = (name,)
                self.write("")
                self.say("card", number=number, count=count)
                try:
                    ask(self.deck.ask(name))
                except Skip:
                    passed.add(name)
        except (Quit, EOFError):
            pass
        self.say("done", count=len(self.shares), share=sum(self.shares) / len(self.shares)) if self.shares else self.say("none")

    def _practise(self, asked):
        self._show_question(asked.exercise)
        started, answers = time.monotonic(), {}
        try:
            answers = self._answers(asked.exercise)
        except Shown:
            self._explain(asked.exercise)
        results = marked(asked.exercise, answers)
        if answers:
            results = self._self_marked(asked.exercise, results, answers)
            self._tell(asked.exercise, results)
        self._learn(asked, share(results), findings(results), time.monotonic() - started, "practice", shown=not answers)

    def _estimate(self, asked):
        part = asked.drawn_number
        if part is None:
            raise Skip
        text = asked.exercise.question.say(self.languages, join="\n\n")  # without the options, which are for other parts
        self.write(f"{heading(asked.exercise, self.languages)}\n\n{text}\n")
        self.say("only")
        started, shown = time.monotonic(), False
        try:
            value = self._answer(asked.exercise, part)
        except Shown:
            value, shown = "", True
        seconds = time.monotonic() - started
        found = estimate(asked, part, value, seconds)
        self._write(lines("\n".join(text.say(self.languages) for text in found.texts(reveal=True))))
        if shown:
            self._explain(asked.exercise)
        elif seconds > RAPID_SECONDS:
            self.say("late", seconds=seconds, limit=RAPID_SECONDS)
        self._learn(asked, found.share, (found,), seconds, "rapid", shown)

    def _learn(self, asked, got, found, seconds, mode, shown):
        """Keep the answer; where it was not right, offer the solution before going on."""
        self.shares.append(got)
        self.deck.learn(asked, got, found, seconds, mode)
        wait = min(due for card, due in self.deck.store.due().items() if card.partition("/")[0] == asked.exercise.id) - self.deck.clock()
        self.write(f"{say(VERDICTS[rating(got)], self.languages)}; {say('again', self.languages, wait=span(wait))}")
        if rating(got) < max(VERDICTS) and not shown:
            self.say("go_on")
            try:
                self._line(asked.exercise, COMMANDS)
            except Shown:
                self._explain(asked.exercise)
            except Skip:
                pass

    # --- sittings

    def _sit(self, sitting, answer):
        """Sit it to its end, or until the learner leaves; where another window has gone on with it, from what that one kept."""
        while not sitting.body["finished"]:
            try:
                return self._sit_alone(sitting, answer)
            except Overtaken:
                self.say("overtaken")
                sitting = self.deck.store.sitting(sitting.uid)
        self._tell_sheet(sitting)
        return sitting

    def _sit_alone(self, sitting, answer):
        try:
            self._ask_all(sitting, answer)
            if sittings.seconds_left(sitting) <= 0:
                self.say("over")
            marks = [self._marked(row) for row in sitting.body["questions"]]
        except (Quit, EOFError, KeyboardInterrupt):
            return self._leave(sitting)
        done = sittings.finish(sitting, [line for (asked, results) in marks for line in sittings.sheet(asked.exercise, results)])
        self.deck.store.keep(done)
        for row, (asked, results) in zip(sitting.body["questions"], marks, strict=True):
            if row["answers"]:
                self.deck.learn(asked, share(results), findings(results), row["seconds"], sitting.kind)
        self._tell_sheet(done)
        return done

    def _leave(self, sitting):
        try:
            self.deck.store.keep(sitting)
        except Overtaken:
            self.say("overtaken")
        self.say("kept", kind=sitting.kind)
        return self.deck.store.sitting(sitting.uid)

    def _ask_all(self, sitting, answer):
        questions = sitting.body["questions"]
        for number, row in enumerate(questions, 1):
            if row["answers"] is None and sittings.seconds_left(sitting) > 0:
                self.deck.store.keep(sitting)
                self.write("")
                self.say("left", left=span(sittings.seconds_left(sitting)), number=number, count=len(questions))
                with _on_the_clock(row):
                    answer(sitting, row)
        self.deck.store.keep(sitting)

    def _asked_again(self, row):
        return self.deck.ask(row["exercise"], row["draw"])

    def _answer_paper(self, sitting, row):
        exercise = self._asked_again(row).exercise
        self._show_question(exercise)
        row["answers"] = self._answers_kept(exercise, sitting, row)

    def _answers_kept(self, exercise, sitting, row):
        """The answers, each kept at once; those are not asked for again that were given before the sitting was left."""
        given = row.setdefault("begun", {})
        with contextlib.suppress(Skip):
            for part in exercise.parts:
                if part.name not in given:
                    given[part.name] = self._answer(exercise, part, IN_SITTING)
                    self.deck.store.keep(sitting)
        return row.pop("begun")

    def _answer_interview(self, sitting, row):
        exercise = self._asked_again(row).exercise
        self._show_question(exercise)
        answers, row["more"] = self._answers_kept(exercise, sitting, row), {}
        with contextlib.suppress(Skip):
            self._ask_on(exercise, answers, row["more"])
        row["answers"] = answers

    def _ask_on(self, exercise, answers, more):
        for result in sittings.missed(marked(exercise, answers)) if answers else []:
            self.say("more", line=result.line.title)
            if text := self._text(exercise):
                more[result.line.name] = text

    def _marked(self, row):
        """A question of a sitting and its marked lines, own marks asked for where a person must give them."""
        asked, answers = self._asked_again(row), row["answers"] or {}
        results = [self._after_more(asked.exercise, r, answers, row.get("more", {})) for r in marked(asked.exercise, answers)]
        self.write(f"\n{heading(asked.exercise, self.languages)}")
        results = self._self_marked(asked.exercise, results, answers)
        self._tell(asked.exercise, results)
        return asked, results

    def _after_more(self, exercise, result, answers, more):
        text = more.get(result.line.name)
        if not text:
            return result
        joined = {part.name: f"{answers.get(part.name, '')}\n{text}" for part in exercise.parts if part.type == "reason"}
        return sittings.asked_on(exercise, result, answers | joined)

    def _tell_sheet(self, sitting):
        self.write(f"\n{say('sheet', self.languages)}")
        for row in sitting.body["sheet"]:
            title = next(line.title for line in self.deck.bank[row["exercise"]].rubric if line.name == row["line"])
            self.write(f"{row['points']:>5.3g} / {row['most']:<4g}{row['exercise']}  {title.say(self.languages)}")
        self.say("points", points=f"{sitting.body['points']:.3g}", most=f"{sitting.body['most']:g}")

    # --- reading

    def _answers(self, exercise):
        return {part.name: self._answer(exercise, part) for part in exercise.parts}

    def _answer(self, exercise, part, allowed=COMMANDS):
        """The answer to a part; asked again while it cannot be read as one."""
        self.write(f"{part.label.say(self.languages)} ({how(exercise, part).say(self.languages)})")
        self.hints = iter(exercise.hints)
        if part.type == "reason":
            return self._text(exercise, allowed)
        while (found := check(exercise, part, line := self._line(exercise, allowed))).status is Status.UNREAD:
            self.write(found.said.say(self.languages))
        return line

    def _line(self, exercise, allowed, prompt="> "):
        """One line that is no command; commands are carried out."""
        while (line := self._typed(prompt)).startswith(":"):
            self._obey(line, exercise, allowed)
        return line

    def _typed(self, prompt):
        """A line without what a terminal would take as an order, such as the codes of arrow keys."""
        return "".join(letter if letter.isprintable() else " " for letter in self.read(prompt)).strip()

    def _obey(self, line, exercise, allowed):
        if line not in allowed:
            self.say("no_command", given=line, commands=" ".join(allowed))
        elif line == ":hint":
            hint = next(self.hints, None)
            self.write(hint.say(self.languages)) if hint else self.say("no_hint")
        else:
            raise {":show": Shown, ":skip": Skip, ":quit": Quit}[line]

    def _text(self, exercise, allowed=IN_SITTING):
        """Lines up to an empty one."""
        told, prompt = [], "> "
        while line := self._line(exercise, allowed, prompt):
            told.append(line)
            prompt = ". "
        return "\n".join(told)

    def _self_marked(self, exercise, results, answers):
        """The results with own points where a person must give them; what was written is shown again beside the solution."""
        waiting = [result for result in results if result.status is Status.HUMAN]
        if waiting:
            written = [answers[part.name] for part in exercise.parts if part.type == "reason" and answers.get(part.name)]
            self.say("yours", text="\n".join(written))
            self.say("model", text=exercise.solution)
        return self_marked(results, {r.line.name: self._own_points(r) for r in waiting})

    def _own_points(self, result: LineResult):
        most, proposal = result.line.points, result.points
        self.say("self", line=result.line.title, most=f"{most:g}", criterion=result.line.criterion)
        while True:
            given = self._typed(f"{say('proposal', self.languages, points=f'{proposal:.3g}')} > ") or str(proposal)
            if given == ":quit":
                raise Quit
            with contextlib.suppress(ValueError):
                if 0 <= float(given) <= most:
                    return float(given)
            self.say("no_number", most=f"{most:g}", given=given)

    # --- writing

    def write(self, markdown):
        """Print markdown, its paragraphs folded."""
        self._write(folded(markdown))

    def say(self, key, **values):
        self.write(say(key, self.languages, **values))

    def _start(self, wanted):
        due, now, names = self.deck.due(), self.deck.clock(), self.deck.fitting(wanted)
        self.say("commands")
        self.say("due", due=sum(due.get(name, now + 1) <= now for name in names), new=sum(name not in due for name in names))

    def _show_question(self, exercise):
        self.write(f"{heading(exercise, self.languages)}\n\n{question(exercise, self.languages)}\n")

    def _tell(self, exercise, results):
        for result in results:
            self._write(lines(feedback.text(replace(result, note=None), self.languages)))
        if any(result.points != result.line.points for result in results):
            self._see(exercise)

    def _explain(self, exercise):
        self.write(explained(exercise, self.languages, plain))
        self._see(exercise)

    def _see(self, exercise):
        self.write(f"→ {feedback.chapter(exercise.chapter, section=exercise.section).say(self.languages)}")


@contextlib.contextmanager
def _on_the_clock(row):
    """Time counts even where a question is left unanswered."""
    started = time.monotonic()
    try:
        yield
    finally:
        row["seconds"] += time.monotonic() - started
