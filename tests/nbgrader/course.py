"""An nbgrader course in a folder of its own, driven by nbgrader's stock commands as an instructor would type them."""

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder.grading.run import Options, grade

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "exercises" / "course"
PS = "ps01_memory"
ROWS = """
select student_id, cell.name, {columns} from {table} as it join base_cell as cell on it.cell_id = cell.id
join submitted_notebook as mine on it.notebook_id = mine.id join submitted_assignment as whole on mine.assignment_id = whole.id
order by student_id, cell.name
"""


class Course:
    """The project's course, copied without anything built, and one of its assignments."""

    def __init__(self, folder, assignment=PS):
        self.folder, self.assignment = folder, assignment
        shutil.copytree(COURSE / "assignments", folder / "assignments")
        shutil.copy(COURSE / "nbgrader_config.py", folder)

    def run(self, *command, check=True, **environment):
        """Run a command in the course's folder; its output is shown where it fails."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        paths = os.pathsep.join(filter(None, [environment.pop("PYTHONPATH", ""), str(ROOT), os.environ.get("PYTHONPATH")]))
        env = os.environ | {"PATH": path, "PYTHONPATH": paths} | environment
        done = subprocess.run([sys.executable, "-m", *command], cwd=self.folder, env=env, capture_output=True, text=True)
        assert not check or done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-2000:]}\n{done.stderr[-5000:]}"
        return done

    def nbgrader(self, *command, **options):
        return self.run("nbgrader", *command, **options)

    def psi(self, *command, **options):
        return self.run("psi", *command, "--course", str(self.folder), **options)

    def grade(self):
        """From the sources to the feedback, for the sample class of three, by stock commands."""
        self.psi("course", "build", self.assignment, "--source-only")
        self.nbgrader("generate_assignment", self.assignment)
        self.psi("course", "sample", self.assignment)
        self.nbgrader("autograde", self.assignment)
        self.said = self.nbgrader("generate_feedback", self.assignment).stderr

    def notebook(self, kind, student=""):
        """The path of the assignment's notebook in `release`, `submitted`, `autograded`, …"""
        return self.folder / kind / student / self.assignment / f"{self.assignment}.ipynb"

    def read(self, kind, student=""):
        return nbformat.read(self.notebook(kind, student), as_version=4)

    def hand_in(self, student, notebook):
        """Put a student's notebook into `submitted/`."""
        self.notebook("submitted", student).parent.mkdir(parents=True, exist_ok=True)
        self.notebook("submitted", student).write_text(nbformat.writes(notebook), encoding="utf-8")

    @contextmanager
    def gradebook(self):
        with Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}") as gradebook:
            yield gradebook

    def grades(self, student):
        """(auto score, manual score, needs a person, comment) by the grade id of the line's cell."""
        with self.gradebook() as gradebook:
            submission = gradebook.find_submission_notebook(self.assignment, self.assignment, student)
            comments = {comment.name: comment.auto_comment for comment in submission.comments}
            return {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade, comments.get(g.name)) for g in submission.grades}

    def exported(self):
        """The rows of the exported CSV by student."""
        self.nbgrader("export", "--to", "grades.csv")
        with open(self.folder / "grades.csv", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}


class Copy(Course):
    """A copy of a course whose class has handed in and is not marked yet."""

    def __init__(self, course, folder):
        self.folder, self.assignment = folder, course.assignment
        shutil.copytree(course.folder, folder, ignore=shutil.ignore_patterns("autograded", "feedback", "downloaded"))
        with sqlite3.connect(folder / "gradebook.db") as database:
            for table in ("grade", "comment", "submitted_notebook", "submitted_assignment"):
                database.execute(f"delete from {table}")
            database.execute("drop table if exists psi_marked")

    def grade(self, **options):
        return grade(self.folder, self.assignment, Options(**{"workers": 2} | options))

    def rows(self):
        return rows_of(self.folder)

    def say(self, statement, *values):
        with sqlite3.connect(self.folder / "gradebook.db") as database:
            return list(database.execute(statement, values))


class Again(Copy):
    """A copy of a course whose class is marked."""

    def __init__(self, course, folder):
        self.folder, self.assignment = shutil.copytree(course.folder, folder), course.assignment


def cells(notebook):
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def needs_running(exercise):
    """Lines that leave the answers before them as they are, but which nobody can tell who only reads them."""
    return "\n".join(["import copy", *(f"{part.name} = copy.copy({part.name})" for part in exercise.parts)])


def rows_of(folder):
    """Every grade and comment of a gradebook, but for the ids."""
    grades = ROWS.format(table="grade", columns="auto_score, manual_score, needs_manual_grade")
    comments = ROWS.format(table="comment", columns="auto_comment, manual_comment")
    with sqlite3.connect(folder / "gradebook.db") as database:
        return [*database.execute(grades), *database.execute(comments)]
