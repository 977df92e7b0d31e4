"""Our marking inside stock nbgrader: `configure(c)` in nbgrader_config.py puts these preprocessors into its two lists.

Restore rebuilds the notebook from the gradebook, so nothing that a submission says about itself counts. Mark stands
where nbgrader would run the learner's kernel: it reads the answers, marks them here, and writes each grade cell's
output as nbgrader expects it, so that its own saving, feedback, formgrader and export work on. Propose then enters
what nbgrader does not know of: points of task cells, proposals for a person, and comments.
"""

from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from . import feedback, sandbox
from .assignment import COURSE, answer_id, grade_id, load_assignment
from .bank import ROOT, Bank
from .rubric import mark
from .students import bank_for, sources

STOCK = "nbgrader.preprocessors."


def configure(c, assignments=str(COURSE / "assignments"), bank=str(ROOT / "bank")):
    """Make nbgrader mark with the bank. `assignments` and `bank` are the folders that hold their YAML files."""
    c.ClearSolutions.code_stub = {"python": ""}  # the answer cells hold stubs of their own
    c.Autograde.sanitize_preprocessors = [STOCK + "ClearOutput", STOCK + "OverwriteKernelspec", f"{__name__}.Restore"]
    c.Autograde.autograde_preprocessors = [
        f"{__name__}.Mark",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        STOCK + "LimitOutput",
        STOCK + "SaveAutoGrades",
        f"{__name__}.Propose",
        STOCK + "AssignLatePenalties",
        STOCK + "CheckCellMetadata",
    ]
    c.WithBank.assignments, c.WithBank.bank = assignments, bank


def _grade_id(cell):
    """The grade id that a cell claims, or None."""
    claimed = cell.metadata.get("nbgrader") if isinstance(cell.metadata, dict) else None
    return claimed.get("grade_id") if isinstance(claimed, dict) and isinstance(claimed.get("grade_id"), str) else None


# --- the notebook as it was handed out, with the learner's answers in it -----------------------------------------------


class WithBank(NbGraderPreprocessor):
    """Knows the assignment that is being marked, and the bank as its student met it."""

    assignments = Unicode(help="folder of the assignments' YAML files").tag(config=True)
    bank = Unicode(help="folder of the bank").tag(config=True)
    book = Unicode(help="address of the published book, to link chapters in feedback").tag(config=True)

    def asked(self, resources):
        """(assignment, bank) of a submission."""
        ids = resources["nbgrader"]
        assignment = load_assignment(ids["assignment"], self.assignments)
        return assignment, bank_for(Bank(self.bank), ids["student"], assignment, Path(self.assignments).parent)


class Restore(WithBank):
    """Rebuild every nbgrader cell from the gradebook; of the submission only the answers and other cells' sources stay."""

    def preprocess(self, nb, resources):
        ids = resources["nbgrader"]
        with Gradebook(ids["db_url"]) as gradebook:
            handed_out = gradebook.find_notebook(ids["notebook"], ids["assignment"])
            originals = {cell.name: _canonical(cell, handed_out) for cell in handed_out.source_cells}
        assignment, bank = self.asked(resources)
        if assignment.variants == "per_student":
            own = sources(assignment, bank)
            for name in originals.keys() & own.keys():
                originals[name].source = own[name]
        chosen = _chosen(nb.cells, originals)
        restored = [_restored(cell, originals, chosen) for cell in nb.cells]
        for name, cell in chosen.items():
            if originals[name].metadata.nbgrader.solution:
                originals[name].source = cell.source
        nb.cells = _put_back(restored, originals, chosen)
        nb.nbformat, nb.nbformat_minor = 4, 5
        return nb, resources


def _canonical(cell, notebook):
    """A cell as it was handed out, from its row in the gradebook."""
    points = {graded.name: graded.max_score for graded in [*notebook.grade_cells, *notebook.task_cells]}
    task, solution = (cell.name in {c.name for c in cells} for cells in (notebook.task_cells, notebook.solution_cells))
    about = {"grade_id": cell.name, "grade": cell.name in points and not task, "solution": solution, "task": task}
    about |= {"locked": bool(cell.locked), "schema_version": 3, "cell_type": cell.cell_type, "checksum": cell.checksum}
    about |= {"points": points[cell.name]} if cell.name in points else {}
    make = new_code_cell if cell.cell_type == "code" else new_markdown_cell
    return make(cell.source, id=cell.name, metadata=NotebookNode(nbgrader=NotebookNode(about)))


def _chosen(cells, originals):
    """The cell to take for each grade id; of copies the last that was changed, for the learner wrote into that one."""
    copies = {}
    for cell in cells:
        if _grade_id(cell) in originals:
            copies.setdefault(_grade_id(cell), []).append(cell)
    changed = {name: [cell for cell in found if cell.source.strip() != originals[name].source.strip()] for name, found in copies.items()}
    return {name: (changed[name] or found)[-1] for name, found in copies.items()}


def _restored(cell, originals, chosen):
    """The original for a chosen cell; anything else as an ordinary cell."""
    name = _grade_id(cell)
    if chosen.get(name) is cell:
        return originals[name]
    return (new_code_cell if cell.cell_type == "code" else new_markdown_cell)(cell.source)


def _put_back(cells, originals, chosen):
    """`cells` with the missing originals, each behind the one that went before it."""
    before = None
    for name, original in originals.items():
        if name not in chosen:
            place = next((i + 1 for i, cell in enumerate(cells) if cell is before), 0)
            cells.insert(place, original)
        before = original
    return cells


# --- marking ---------------------------------------------------------------------------------------------------------


class Mark(WithBank):
    """Mark the answers with the bank and write points and reasons into the grade cells."""

    def preprocess(self, nb, resources):
        assignment, bank = self.asked(resources)
        exercises = {answer_id(name): bank[name] for name in assignment.exercises}
        answers = _answers(nb.cells, exercises)
        results = {
            grade_id(exercise, result.line): result
            for name, exercise in exercises.items()
            for result in mark(exercise, answers.get(name, {}))
        }
        languages = _languages(assignment, exercises, answers)
        see = {name: feedback.chapter(exercise.chapter, self.book) for name, (exercise, _) in assignment.lines(bank).items()}
        for cell in nb.cells:
            if utils.is_grade(cell):
                name = _grade_id(cell)
                cell.outputs = _outputs(cell, results.get(name), languages, assignment.reveals(), see.get(name))
        resources["autograder"] = {"results": results, "languages": languages, "see": see}
        return nb, resources


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
    names = {name: [part.name for part in exercise.parts] for name, exercise in exercises.items()}
    ours = [cell for cell in cells if cell.cell_type == "code" and not utils.is_grade(cell)]
    found = sandbox.answers([(cell.source, names.get(_grade_id(cell))) for cell in ours])
    return dict(zip((_grade_id(cell) for cell in ours if _grade_id(cell) in names), found, strict=True))


def _outputs(cell, result, languages, reveal, see):
    """The feedback, then the number that nbgrader takes for the score. A cell unknown to the bank gets 0 and goes to a person."""
    points = scaled(result, cell.metadata.nbgrader.points)
    number = new_output("execute_result", {"text/plain": str(points or 0.0)})
    number.execution_count = None
    if result is None:
        return [number]
    shown = {"text/plain": feedback.text(result, languages, reveal, see), "text/html": feedback.html(result, languages, reveal, see)}
    return [new_output("display_data", shown), number]


def scaled(result, points):
    """A result's points where the cell is worth `points` (as many as the line, unless the bank has changed since); None if it has none."""
    if result is None or result.points is None:
        return None
    return round(result.points / result.line.points * float(points), 4)


class Propose(NbGraderPreprocessor):
    """Enter the points of task cells, and send to a person what a person should see, with our proposal and the reason for it."""

    def preprocess(self, nb, resources):
        ids, ours = resources["nbgrader"], resources["autograder"]
        with Gradebook(ids["db_url"]) as gradebook:
            for cell in nb.cells:
                if utils.is_grade(cell) or utils.is_task(cell):
                    _enter(gradebook, (cell.metadata.nbgrader.grade_id, ids["notebook"], ids["assignment"], ids["student"]), cell, ours)
            gradebook.db.commit()
        return nb, resources


def _enter(gradebook, where, cell, ours):
    result, grade = ours["results"].get(where[0]), gradebook.find_grade(*where)
    grade.auto_score = scaled(result, grade.max_score)
    grade.needs_manual_grade = result is None or result.needs_human or grade.manual_score is not None
    if utils.is_task(cell) and result:
        gradebook.find_comment(*where).auto_comment = feedback.text(result, ours["languages"], reveal=False, see=ours["see"].get(where[0]))
