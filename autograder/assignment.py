"""An assignment: which exercises are asked, in which languages; and how each is put to a learner in words."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from formulary import InputError, nearest
from formulary.units import PURE

from .answer import example
from .bank import ROOT, read_model
from .exercise import LANGUAGES, Strict, Text
from .reasons import load_rubric
from .reasons.rubric import CONTRADICTS, EARNS
from .rubric import write_answer
from .symbols import shown

COURSE = ROOT / "course"


class Assignment(Strict):
    """Exercises in order, in the languages they are asked in.

    language: of the feedback; without it each learner is answered in the language of their own reasons.
    variants: `per_student` gives each student numbers of their own. deadline: right answers are told only after it.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+$")]
    title: Text
    languages: tuple[Literal[LANGUAGES], ...] = LANGUAGES
    language: Literal[LANGUAGES] | None = None
    variants: Literal["same", "per_student"] = "same"
    deadline: datetime | None = None
    exercises: tuple[str, ...] = Field(min_length=1)

    def reveals(self, now=None):
        """Whether feedback may tell right answers: where there is no deadline, or it has passed. A time without a zone is UTC."""
        if self.deadline is None:
            return True
        deadline = self.deadline if self.deadline.tzinfo else self.deadline.replace(tzinfo=UTC)
        return (now or datetime.now(UTC)) >= deadline

    def faults(self):
        for index, name in enumerate(self.exercises):
            if name in self.exercises[:index]:
                yield ("exercises", index), f"{name} is there twice"

    def lines(self, bank):
        """(exercise, line) by the grade id of the line's cell."""
        return {grade_id(bank[name], line): (bank[name], line) for name in self.exercises for line in bank[name].rubric}


def assignments(folder=COURSE / "assignments"):
    """Path of each assignment's YAML file, by name."""
    return {path.stem: path for path in sorted(Path(folder).glob("*.yaml"))}


NO_COURSE = "none; a course elsewhere starts with a copy of assignments/ and nbgrader_config.py of exercises/course"


def load_assignment(name, folder=COURSE / "assignments"):
    """The assignment of that name. Raises InputError if there is none, BankError if its file is wrong."""
    known = assignments(folder)
    if name not in known:
        raise InputError(f"no assignment {name!r} in {folder}{nearest(name, known)}; there is {', '.join(known) or NO_COURSE}")
    return read_model(Assignment, known[name])


def grade_id(exercise, line):
    return f"{exercise.id}-{line.name}"


def answer_id(name):
    """The grade id of the cell that holds the answers to the exercise of that id."""
    return f"{name}-answer"


POINTS = Text(en="{points} points", zh="{points} 分")
ONE_POINT = Text(en="{points} point", zh="{points} 分")


def points(value, languages):
    return (ONE_POINT if value == 1 else POINTS).format(points=f"{value:g}").say(languages)


def heading(exercise, languages):
    """The exercise's title, id and points."""
    return f"{exercise.title.say(languages)} ({exercise.id}, {points(exercise.points, languages)})"


def question(exercise, languages):
    """The question as markdown, language after language, then the options."""
    return "\n\n".join(filter(None, [exercise.question.say(languages, join="\n\n"), *_options(exercise, languages)]))


SEVERAL = Text(
    en="One or more are right. Each right one chosen adds its share of the points, each wrong one takes as much away, never below 0.",
    zh="有一个或多个正确选项。每选对一项得一份分，每选错一项扣同样一份，最低 0 分。",
)


def _options(exercise, languages):
    """Each list of options once; where there are more choices than one, headed by those that it, and its rule, are for."""
    choices = [part for part in exercise.parts if part.type == "choice"]
    head = lambda *parts: " / ".join(f"**{part.label.say(languages)}**" for part in parts) + ": " if len(choices) > 1 else ""
    for options in dict.fromkeys(part.options for part in choices):
        asked = [part for part in choices if part.options == options]
        yield head(*asked).strip()
        yield "\n".join(f"- **{option.key}** {option.text.say(languages)}" for option in options)
        yield from (head(part) + SEVERAL.say(languages, join="\n\n") for part in asked if exercise.several(part))


HOW = {
    "verdict": Text(en="True or False", zh="True 或 False"),
    "reason": Text(en="a text", zh="一段文字"),
    "choice": Text(en="a letter", zh="一个字母"),
    "several": Text(en="letters, such as A, C", zh="若干字母，如 A, C"),
    "number": Text(en="a number", zh="一个数"),
    "amount": Text(en="an amount such as {example}", zh="一个量，如 {example}"),
    "expression": Text(en="a formula in the letters {letters}", zh="公式，可用字母 {letters}"),
}
# what Python wants around it, in a cell
QUOTED = {
    "reason": Text(en="{how} in quotes; in three quotes it may have several lines", zh="引号里的{how}；用三引号可写多行"),
    "choice": Text(en="{how} in quotes", zh="引号里的{how}"),
    "several": Text(en="{how}, in quotes", zh="{how}，写在引号里"),
    "amount": Text(en="{how}, in quotes", zh="{how}，写在引号里"),
    "expression": Text(en="in quotes, {how}", zh="写在引号里：{how}"),
}


def how(exercise, part, quoted=False):
    """How a part's answer is to be written: into a field, or `quoted` in a cell of Python."""
    kind = _how(exercise, part)
    said = HOW[kind].format(**_blanks(exercise, part, kind))
    return QUOTED[kind].format(how=said) if quoted and kind in QUOTED else said


def _how(exercise, part):
    if part.type == "number" and exercise.expected(part).unit != PURE:
        return "amount"
    return "several" if exercise.several(part) else part.type


def _blanks(exercise, part, kind):
    if kind == "amount":
        return {"example": example(exercise.expected(part).unit)}
    return {"letters": ", ".join(shown(exercise.alphabet(part), exercise.meant(part)))} if kind == "expression" else {}


def solution(exercise, language):
    """The right answers by part name, as a learner would write them."""
    return {part.name: as_written(exercise, part, exercise.expected(part), language) for part in exercise.parts}


def as_written(exercise, part, answer, language):
    """An answer (bool, keys, Amount or Text) as a learner would write it into the answer cell."""
    if isinstance(answer, bool):
        return answer
    return answer.say((language,)) if isinstance(answer, Text) else write_answer(exercise, part, answer)


def worth(exercise, line, languages):
    """What a reason may say, with the points for it; last, on a line, what contradicts and earns none."""
    if line.marked_by != "claims":
        return
    rubric = load_rubric(exercise.id).of_line(line.name)
    for claim in rubric.lines[0].of_kind(EARNS):
        yield f"{points(claim.worth * line.points / rubric.points, languages)}: {Text(en=claim.en, zh=claim.zh).say(languages)}"
    if against := rubric.lines[0].of_kind(CONTRADICTS):
        en, zh = ("; ".join(claim.en for claim in against), "；".join(claim.zh for claim in against))
        yield f"{points(0, languages)}: {Text(en=en, zh=zh).say(languages)}"
