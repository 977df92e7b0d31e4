"""An assignment as the notebook that nbgrader makes its release from: question, answer cell, and one grade cell for each rubric line."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from formulary import InputError

from .assignment import COURSE, answer_id, grade_id, heading, how, points, question, solution, worth
from .exercise import Text
from .marking import MARK_SCHEME


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


def _start(assignment, exercises):
    total = points(sum(exercise.points for exercise in exercises), assignment.languages)
    title = assignment.title.say(assignment.languages)
    return "\n\n".join([f"# {title}", f"**{total}**", START.say(assignment.languages, join="\n\n")])


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


# The cell must not hold the key, and must not give points where our marking is not configured: stock nbgrader runs it
# then, and a cell that runs without an error earns all its points. Nor may the Validate button call an answer right.
GUARD = (
    'import os\nassert "NBGRADER_EXECUTION" not in os.environ, '
    '"answers are marked after you hand in, by the grader that nbgrader_config.py sets up: validating can not tell if they are right"'
)
WAIT = Text(en="marked after you hand in; nothing to do here", zh="提交后评分，此处无需操作")

MODEL_ANSWER = Text(en="Model answer", zh="参考答案")


def _line_cell(exercise, line, languages):
    name, head = grade_id(exercise, line), f"{line.title.say(languages)} ({points(line.points, languages)})"
    if line.marked_by == "key":
        source = f"# {head}: {WAIT.say(languages)}\n{GUARD}"
        return _cell(new_code_cell, name, source, grade=True, locked=True, points=line.points)
    scheme = "\n".join(_scheme(exercise, line, languages))
    source = f"**{head}**: {WAIT.say(languages)}\n\n<!-- BEGIN MARK SCHEME -->\n{scheme}\n<!-- END MARK SCHEME -->"
    return _cell(new_markdown_cell, name, source, task=True, locked=True, points=line.points)


def _scheme(exercise, line, languages):
    """What a person needs to mark the line: the criterion, the claims with their points, a model answer."""
    yield f"- {line.criterion.say(languages)}"
    yield from (f"- {said}" for said in worth(exercise, line, languages))
    for name in line.parts:
        yield f"\n**{MODEL_ANSWER.say(languages)}**\n\n> " + exercise.part(name).answer.say(languages, join="\n>\n> ")


# --- each student's own numbers -------------------------------------------------------------------------------------------


def write_release(assignment, bank, student, course):
    """Write the notebook to hand to one student, made from the release that nbgrader made; returns its path."""
    released = course / "release" / assignment.id / f"{assignment.id}.ipynb"
    if not released.exists():
        raise InputError(f"{released} does not exist: `psi course build` makes it")
    notebook, own = nbformat.read(released, as_version=4), sources(assignment, bank)
    for cell in notebook.cells:
        cell.source = MARK_SCHEME.sub("", own[cell.metadata.nbgrader.grade_id]).strip()
    path = course / "release_students" / student / assignment.id / released.name
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def sources(assignment, bank):
    """{grade id: source} of the assignment's cells with the numbers of this bank, without solutions."""
    return {
        cell.metadata.nbgrader.grade_id: cell.source.partition("### BEGIN SOLUTION")[0].strip() for cell in build(assignment, bank).cells
    }
