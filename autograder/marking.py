"""The one way a submission is marked, for nbgrader's own commands and for `psi grade`: bytes in, marked lines and a notebook out.

It needs neither nbgrader nor a gradebook: what was handed out comes as plain data, and what was marked goes back so.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cache, cached_property

from . import feedback, limits, repair, sandbox
from .answer import Unread
from .assignment import answer_id, grade_id
from .exercise import Text
from .rubric import mark


@dataclass(frozen=True)
class Original:
    """A cell as it was handed out; `points` is None where it is not worth any."""

    name: str
    cell_type: str
    source: str
    locked: bool
    grade: bool
    solution: bool
    task: bool
    points: float | None
    checksum: str | None


@dataclass(frozen=True)
class Paper:
    """A notebook as it was handed out."""

    name: str
    cells: tuple[Original, ...]
    kernel: dict = field(default_factory=dict)

    @cached_property
    def lines(self):
        """The cells that carry points, by name."""
        return {cell.name: cell for cell in self.cells if cell.grade or cell.task}


@dataclass(frozen=True)
class Taken:
    """A submission read: its notebook rebuilt from the paper, what was put right, which answers are lost, and why all are, if so."""

    notebook: dict
    repairs: tuple = ()
    lost: dict = field(default_factory=dict)
    unreadable: Text | None = None


@dataclass(frozen=True)
class Marked:
    """`results`: the LineResult by grade id. `languages` and `see`: how the feedback is told. `answers`: by exercise and part."""

    results: dict
    languages: tuple
    see: dict
    answers: dict


@dataclass(frozen=True)
class Entry:
    """What the gradebook is told of a cell that carries points."""

    auto_score: float | None
    needs_manual_grade: bool
    comment: str | None = None


def paper(name, kernel, sources, points, tasks, solutions):
    """The Paper of a notebook in a gradebook: its source cells, the points by name, and the names of task and of solution cells."""
    cells = tuple(
        Original(
            cell.name,
            cell.cell_type,
            cell.source,
            bool(cell.locked),
            cell.name in points and cell.name not in tasks,
            cell.name in solutions,
            cell.name in tasks,
            points.get(cell.name),
            cell.checksum,
        )
        for cell in sources
    )
    return Paper(name, cells, json.loads(kernel or "{}"))


# --- the notebook as it was handed out, with the learner's answers in it -----------------------------------------------


def personal(paper, assignment, bank):
    """The paper with one student's own numbers, where the assignment gives each their own."""
    if assignment.variants != "per_student":
        return paper
    from .source import sources  # here, since it brings nbformat, which most classes are marked without

    own = sources(assignment, bank)
    cells = (Original(**(vars(cell) | {"source": own.get(cell.name, cell.source)})) for cell in paper.cells)
    return Paper(paper.name, tuple(cells), paper.kernel)


def take(folder, paper):
    """The Taken of what lies in a student's folder. Raises nothing: what can't be read is a Taken that says why."""
    try:
        path, repairs = repair.find(folder, paper.name)
        return taken(repair.load(path), paper, repairs)
    except repair.Unreadable as error:
        return nothing_of(paper, error.why)


def taken(data, paper, repairs=()):
    """The Taken of a notebook's bytes."""
    try:
        settled = repair.settle(repair.read(data), paper.cells)
    except repair.Unreadable as error:
        return nothing_of(paper, error.why)
    originals = {cell.name: cell for cell in paper.cells}
    cells = [_restored(originals.get(name), cell, index) for index, (name, cell) in enumerate(settled.places)]
    return _with_notice(Taken(_notebook(cells, paper), (*repairs, *settled.repairs), settled.lost))


def nothing_of(paper, why):
    """The Taken of a submission that can't be read."""
    cells = [_restored(cell, None, index) for index, cell in enumerate(paper.cells)]
    return _with_notice(Taken(_notebook(cells, paper), unreadable=why))


def _notebook(cells, paper):
    return {"cells": cells, "metadata": {"kernelspec": paper.kernel} if paper.kernel else {}, "nbformat": 4, "nbformat_minor": 5}


def _restored(original, cell, index):
    """A cell of the rebuilt notebook: an original, with the learner's source where that is an answer; or an ordinary cell."""
    if original is None:
        source = cell.source if cell.cell_type == "code" else _as_it_stands(cell.source)
        return _as_cell(cell.cell_type, source, f"other-{index}", {})
    source = cell.source if cell and original.solution else original.source
    return _as_cell(original.cell_type, source, original.name, {"nbgrader": _about(original)})


def _as_it_stands(words):
    """Markdown that shows a learner's own words and does nothing else: no page runs what is in them, or takes long to set them."""
    words = words[: limits.NOTE]
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", words))])
    return f"{fence}text\n{words}\n{fence}"


def _as_cell(cell_type, source, id_, metadata):
    cell = {"cell_type": cell_type, "id": id_[:64], "metadata": metadata, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if cell_type == "code" else {})


def _about(cell):
    about = {"grade_id": cell.name, "grade": cell.grade, "solution": cell.solution, "task": cell.task, "locked": cell.locked}
    about |= {"schema_version": 3, "cell_type": cell.cell_type, "checksum": cell.checksum}
    return about | ({"points": cell.points} if cell.points is not None else {})


NOTICES = {
    "repairs": Text(en="The notebook was not as it was handed out. Put right:", zh="笔记本与发放时不同，已作如下处理："),
    "lost": Text(en="A person looks for these answers, which could not be told:", zh="以下答案无法确定，由人工查看："),
    "unreadable": Text(en="This submission could not be read, and a person looks at it:", zh="无法读取这份提交，由人工处理："),
}


def _with_notice(taken):
    """With what was put right, or could not be, said in a cell on top."""
    said = {
        "unreadable": [taken.unreadable] if taken.unreadable else [],
        "repairs": taken.repairs,
        "lost": [why.map(lambda words, name=name: f"{name}: {words}") for name, why in taken.lost.items()],
    }
    rows = [row for key, texts in said.items() if texts for row in (f"**{NOTICES[key].say()}**", "", *(f"- {t.say()}" for t in texts), "")]
    if rows:
        taken.notebook["cells"].insert(0, _as_cell("markdown", "\n".join(rows).strip(), "notice", {}))
    return taken


# --- marking ---------------------------------------------------------------------------------------------------------


def mark_taken(taken, assignment, bank, book=""):
    """The Marked of a submission: nothing of it is run but in a jail."""
    exercises = {answer_id(name): bank[name] for name in assignment.exercises}
    whole = dict.fromkeys(exercises, taken.unreadable)
    found = whole if taken.unreadable else _answers(taken.notebook["cells"], exercises) | taken.lost
    answers = {name: _told_lost(exercise, found.get(name, {})) for name, exercise in exercises.items()}
    return mark_answers(answers, assignment, bank, book)


def _told_lost(exercise, answers):
    """Answers by part, each of them lost for the same reason where that stands in their place."""
    return {part.name: Unread(answers) for part in exercise.parts} if isinstance(answers, Text) else answers


def mark_answers(answers, assignment, bank, book="", only=None):
    """The Marked of answers by answer cell and part; `only` these exercises' lines are marked, all if it is None."""
    exercises = {answer_id(name): bank[name] for name in assignment.exercises}
    results = {
        grade_id(exercise, result.line): result
        for name, exercise in exercises.items()
        if only is None or exercise.id in only
        for result in mark(exercise, answers.get(name, {}))
    }
    see = {name: _chapter(exercise.chapter, book, exercise.section) for name, (exercise, _) in assignment.lines(bank).items()}
    return Marked(results, _languages(assignment, exercises, answers), see, answers)


_chapter = cache(feedback.chapter)


def _languages(assignment, exercises, answers):
    """The languages of the feedback: what the assignment says, or what the learner's own reasons are written in."""
    if assignment.language:
        return (assignment.language,)
    reasons = [
        said
        for name, exercise in exercises.items()
        for part in exercise.parts
        if part.type == "reason" and isinstance(said := answers.get(name, {}).get(part.name), str)
    ]
    return tuple(language for language in feedback.spoken(reasons) if language in assignment.languages) or assignment.languages


def _answers(cells, exercises):
    """Answers by part name, for each answer cell."""
    names = {name: {part.name: part.type for part in exercise.parts} for name, exercise in exercises.items()}
    ours = [cell for cell in cells if cell["cell_type"] == "code" and not _nbgrader(cell).get("grade")]
    found = sandbox.answers([(cell["source"], names.get(_name(cell))) for cell in ours])
    return dict(zip((_name(cell) for cell in ours if _name(cell) in names), found, strict=True))


def _nbgrader(cell):
    return cell["metadata"].get("nbgrader", {})


def _name(cell):
    return _nbgrader(cell).get("grade_id")


# --- what is written down ----------------------------------------------------------------------------------------------


def write_outputs(notebook, marked, reveal, only=None):
    """Enter the feedback and the points into the grade cells of a notebook; `only` those named, all if it is None."""
    for cell in notebook["cells"]:
        about, name = _nbgrader(cell), _name(cell)
        if about.get("grade") and (only is None or name in only):
            cell["outputs"] = outputs(marked.results.get(name), about["points"], marked.languages, reveal, marked.see.get(name))


def outputs(result, points, languages, reveal, see):
    """The feedback, then the number that nbgrader takes for the score. A cell unknown to the bank gets 0 and goes to a person."""
    score = scaled(result, points)
    number = _output("execute_result", {"text/plain": str(score or 0.0)}) | {"execution_count": None}
    if result is None:
        return [number]
    shown = {"text/plain": feedback.text(result, languages, reveal, see), "text/html": feedback.html(result, languages, reveal, see)}
    return [_output("display_data", shown), number]


def _output(kind, data):
    return {"output_type": kind, "data": data, "metadata": {}}


MARK_SCHEME = re.compile(r"<!-- BEGIN MARK SCHEME -->.*?<!-- END MARK SCHEME -->", re.DOTALL)


def conceal(notebook):
    """Take the mark schemes, and the model answers in them, out of a marked notebook that is not yet to tell right answers."""
    for cell in notebook["cells"]:
        if _nbgrader(cell).get("task"):
            cell["source"] = MARK_SCHEME.sub("", cell["source"]).strip()


BY_PERSON = Text(en="A person marked this line: {score} / {most}. That is what counts.", zh="本行由人工评分：{score} / {most}，以此为准。")


def tell_by_person(notebook, scores):
    """Say at the lines that a person has marked, {name: (score, most)}, that theirs is the score that counts."""
    for cell in notebook["cells"]:
        if _nbgrader(cell).get("grade") and _name(cell) in scores:
            score, most = (f"{points:g}" for points in scores[_name(cell)])
            said = BY_PERSON.format(score=score, most=most).say()
            cell["outputs"] = [_output("display_data", {"text/plain": said, "text/html": f"<p><b>{said}</b></p>"}), *cell["outputs"]]


def scaled(result, points):
    """A result's points where the cell is worth `points` (as many as the line, unless the bank has changed since); None if it has none."""
    if result is None or result.points is None:
        return None
    return round(result.points / result.line.points * float(points), 4)


def entry(original, marked):
    """The Entry of a cell that carries points."""
    result = marked.results.get(original.name)
    told = feedback.text(result, marked.languages, reveal=False, see=marked.see.get(original.name)) if original.task and result else None
    return Entry(scaled(result, original.points), result is None or result.needs_human, told)


NO_RESPONSE = "No response."  # nbgrader's own words, which its pages look for


def remark_on(original, source, lost):
    """The comment on an answer cell: that it is lost, or as nbgrader says it, that nothing was written into it."""
    if lost:
        return lost.say()
    return NO_RESPONSE if original.checksum and checksum(original, source) == original.checksum else None


def checksum(cell, source):
    """nbgrader's checksum of a cell."""
    locked = not cell.solution and (cell.grade or cell.locked)
    parts = [source, cell.cell_type, str(cell.grade), str(cell.solution), str(locked), cell.name]
    parts += [str(float(cell.points))] if cell.grade else []
    return hashlib.md5("".join(parts).encode()).hexdigest()
