"""Exercises of the bank as an nbgrader source notebook: question, answer cell, and one grade cell for each rubric line."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
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


# --- the notebook ----------------------------------------------------------------------------------------------------


def build(assignment, bank):
    """The source notebook, solutions and mark schemes included; the same input gives the same bytes."""
    languages = assignment.languages
    exercises = [bank[name] for name in assignment.exercises]
    cells = [_locked(f"{assignment.id}-start", _start(assignment, exercises))]
    for number, exercise in enumerate(exercises, 1):
        cells.append(_locked(f"{exercise.id}-question", f"## {number}. {heading(exercise, languages)}\n\n{question(exercise, languages)}"))
        cells.append(_answer_cell(exercise, languages))
        cells += [_line_cell(exercise, line, languages) for line in exercise.rubric]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def write_source(assignment, bank, course=COURSE):
    """Write the source notebook where nbgrader looks for it; returns its path and whether that changed anything."""
    path = Path(course) / "source" / assignment.id / f"{assignment.id}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = nbformat.writes(build(assignment, bank)) + "\n"
    changed = not path.exists() or path.read_text(encoding="utf-8") != text
    if changed:
        path.write_text(text, encoding="utf-8")
    return path, changed


def _cell(make, name, source, **nbgrader):
    flags = {"grade": False, "solution": False, "locked": False, "task": False} | nbgrader
    return make(source, id=name, metadata={"nbgrader": {"grade_id": name, "schema_version": 3, **flags}})


def _locked(name, source):
    return _cell(new_markdown_cell, name, source, locked=True)


START = Text(
    en=(
        'Write your answers into the answer cells as plain Python: `verdict = True`, `total = "1.5 GB"` or `total = 1.5e9`, '
        '`reason = "…"`. GB is 10⁹ bytes, GiB is 2³⁰. Nothing has to be run. Save the notebook and hand it in; '
        "every line of the marking, with its points, has a cell of its own below the answer."
    ),
    zh=(
        '请把答案以普通 Python 赋值的形式写在答案单元格里：`verdict = True`，`total = "1.5 GB"` 或 `total = 1.5e9`，'
        '`reason = "…"`。GB 指 10⁹ 字节，GiB 指 2³⁰ 字节。不需要运行任何单元格。保存后提交即可；'
        "每个评分行及其分值在答案下方各有一个单元格。"
    ),
)
POINTS = Text(en="{points} points", zh="{points} 分")
ONE_POINT = Text(en="{points} point", zh="{points} 分")


def _start(assignment, exercises):
    total = points(sum(exercise.points for exercise in exercises), assignment.languages)
    title = assignment.title.say(assignment.languages)
    return "\n\n".join([f"# {title}", f"**{total}**", START.say(assignment.languages, join="\n\n")])


def points(value, languages):
    return POINTS.map(
        lambda words: words.format(points=f"{value:g}") if value != 1 else words.format(points="1").replace("points", "point")
    ).say(languages)


def heading(exercise, languages):
    """The exercise's title, id and points."""
    return f"{exercise.title.say(languages)} ({exercise.id}, {points(exercise.points, languages)})"


def question(exercise, languages):
    """The question as markdown, language after language, then the options."""
    return "\n\n".join([exercise.question.say(languages, join="\n\n"), *_options(exercise, languages)])


SEVERAL = Text(
    en="One or more are right. Each right one chosen adds its share of the points, each wrong one takes as much away, never below 0.",
    zh="有一个或多个正确选项。每选对一项得一份分，每选错一项扣同样一份，最低 0 分。",
)


def _options(exercise, languages):
    for part in exercise.parts:
        if part.type == "choice":
            yield "\n".join(f"- **{option.key}** {option.text.say(languages)}" for option in part.options)
            if exercise.several(part):
                yield SEVERAL.say(languages, join="\n\n")


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
    said = HOW[kind].map(lambda words: words.format(**_blanks(exercise, part, kind)))
    if not quoted or kind not in QUOTED:
        return said
    return Text(**{language: getattr(QUOTED[kind], language).format(how=getattr(said, language)) for language in LANGUAGES})


def _how(exercise, part):
    if part.type == "number" and exercise.expected(part).unit != PURE:
        return "amount"
    return "several" if exercise.several(part) else part.type


def _blanks(exercise, part, kind):
    if kind == "amount":
        return {"example": example(exercise.expected(part).unit)}
    return {"letters": ", ".join(shown(exercise.alphabet(part)))} if kind == "expression" else {}


def _answer_cell(exercise, languages):
    stubs = [
        f"# {part.label.say(languages)}: {how(exercise, part, quoted=True).say(languages)}\n{part.name} = {_stub(part)}"
        for part in exercise.parts
    ]
    solution = [f"{part.name} = {_solution(exercise, part, languages)}" for part in exercise.parts]
    source = "\n".join([*stubs, "### BEGIN SOLUTION", *solution, "### END SOLUTION"])
    return _cell(new_code_cell, answer_id(exercise.id), source, solution=True)


def _stub(part):
    return '""' if part.type in ("reason", "expression") else "None"


def _solution(exercise, part, languages):
    return repr(solution(exercise, languages[0])[part.name])


def solution(exercise, language):
    """The right answers by part name, as a learner would write them."""
    return {part.name: as_written(exercise, part, exercise.expected(part), language) for part in exercise.parts}


def as_written(exercise, part, answer, language):
    """An answer (bool, keys, Amount or Text) as a learner would write it into the answer cell."""
    if isinstance(answer, bool):
        return answer
    return answer.say((language,)) if isinstance(answer, Text) else write_answer(exercise, part, answer)


# The cell must not hold the key, and must not give points where our marking is not configured: stock nbgrader runs it
# then, and a cell that runs without an error earns all its points. Nor may the Validate button call an answer right.
GUARD = (
    'import os\nassert "NBGRADER_EXECUTION" not in os.environ, '
    '"answers are marked after you hand in, by the grader that nbgrader_config.py sets up: validating can not tell if they are right"'
)
WAIT = Text(en="marked after you hand in; nothing to do here", zh="提交后评分，此处无需操作")


def _line_cell(exercise, line, languages):
    name, head = grade_id(exercise, line), f"{line.title.say(languages)} ({points(line.points, languages)})"
    if line.marked_by == "key":
        source = f"# {head}: {WAIT.say(languages)}\n{GUARD}"
        return _cell(new_code_cell, name, source, grade=True, locked=True, points=line.points)
    scheme = "\n".join(_scheme(exercise, line, languages))
    source = f"**{head}**: {WAIT.say(languages)}\n\n<!-- BEGIN MARK SCHEME -->\n{scheme}\n<!-- END MARK SCHEME -->"
    return _cell(new_markdown_cell, name, source, task=True, locked=True, points=line.points)


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


def _scheme(exercise, line, languages):
    """What a person needs to mark the line: the criterion, the claims with their points, a model answer."""
    yield f"- {line.criterion.say(languages)}"
    yield from (f"- {said}" for said in worth(exercise, line, languages))
    for name in line.parts:
        yield "\n> " + exercise.part(name).answer.say(languages, join="\n>\n> ")
