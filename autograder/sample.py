"""A sample class of three, to try a course with: one answers everything right, one makes the known mistakes, one hands in blank."""

import nbformat

from formulary import InputError

from .assignment import COURSE, answer_id, as_written, solution

VAGUE = {"en": "Because that is how it is usually done.", "zh": "因为一般都是这样做的。"}


def flawed(exercise, language):
    """Answers by part name: each part's first known mistake, and a reason that says nothing."""
    wrong = {part.name: exercise.mistaken(part, part.mistakes[0]) for part in exercise.parts if part.mistakes}
    said = {name: as_written(exercise, exercise.part(name), answer, language) for name, answer in wrong.items()}
    return {part.name: said.get(part.name, VAGUE[language]) for part in exercise.parts}


CLASS = {"student_perfect": solution, "student_flawed": flawed, "student_blank": lambda exercise, language: {}}


def write_class(assignment, bank, course=COURSE):
    """Fill in the released notebook for each of the class and put it into `submitted/`; returns the paths."""
    released = course / "release" / assignment.id / f"{assignment.id}.ipynb"
    if not released.exists():
        raise InputError(f"{released} does not exist: `psi course build` makes it")
    return [_hand_in(student, answer, released, assignment, bank, course) for student, answer in CLASS.items()]


def _hand_in(student, answer, released, assignment, bank, course):
    notebook = nbformat.read(released, as_version=4)
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    for name in assignment.exercises:
        answers = answer(bank[name], assignment.languages[0])
        lines = [f"{part} = {said!r}" for part, said in answers.items()]
        cells[answer_id(name)].source = "\n".join(lines) if lines else cells[answer_id(name)].source
    path = course / "submitted" / student / assignment.id / f"{assignment.id}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path
