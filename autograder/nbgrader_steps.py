"""The steps that our marking puts in place of nbgrader's; `nbgrader_plugin` says which goes where."""

import os
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbformat import from_dict
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List, Unicode

from . import marking, repair
from .assignment import load_assignment
from .bank import Bank
from .exercise import Text
from .students import bank_for

STAMP = "autograder"  # the key in a rebuilt notebook's metadata for what Restore tells Mark


class Reader(NotebookExporter):
    """Hands the file of a submission to Restore as it is; reads a notebook that Restore wrote as ever."""

    def from_filename(self, filename, resources=None, **more):
        if not self.parent._sanitizing:
            return super().from_filename(filename, resources=resources, **more)
        resources["submitted"] = filename
        ids = resources["nbgrader"]
        _leave_out_links(Path(filename).parent, Path(self.parent._format_dest(ids["assignment"], ids["student"])))
        return self.from_notebook_node(from_dict({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), resources=resources)


def _leave_out_links(submitted, autograded):
    """Remove what nbgrader has copied of files that were not handed in but only pointed to."""
    for top, _, names in os.walk(submitted):
        for path in (Path(top, name) for name in names):
            if path.is_symlink():
                (autograded / path.relative_to(submitted)).unlink(missing_ok=True)


class Step(NbGraderPreprocessor):
    """A step of ours, which takes what nbconvert's exporters set up for all of theirs, and nbgrader's own base would warn of."""

    display_data_priority = List(NbGraderPreprocessor.display_data_priority.default()).tag(config=True)


class WithBank(Step):
    """Knows the assignment that is being marked, and the bank as its student met it."""

    assignments = Unicode(help="folder of the assignments' YAML files").tag(config=True)
    bank = Unicode(help="folder of the bank").tag(config=True)
    book = Unicode(help="address of the published book, to link chapters in feedback").tag(config=True)

    def asked(self, resources):
        """(assignment, bank) of a submission."""
        ids = resources["nbgrader"]
        assignment = load_assignment(ids["assignment"], self.assignments)
        return assignment, bank_for(Bank(self.bank), ids["student"], assignment, Path(self.assignments).parent)

    def paper(self, resources):
        """The Paper of a submission, with its student's numbers."""
        ids = resources["nbgrader"]
        with Gradebook(ids["db_url"]) as gradebook:
            handed_out = paper_of(gradebook.find_notebook(ids["notebook"], ids["assignment"]))
        return marking.personal(handed_out, *self.asked(resources))


def paper_of(notebook):
    """The Paper of a notebook in the gradebook."""
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    tasks, solutions = ({cell.name for cell in cells} for cells in (notebook.task_cells, notebook.solution_cells))
    return marking.paper(notebook.name, notebook.kernelspec, notebook.source_cells, points, tasks, solutions)


class Restore(WithBank):
    """Rebuild every nbgrader cell from the gradebook; of the submission only the answers and other cells' sources stay."""

    def preprocess(self, nb, resources):
        taken = self._taken(Path(resources.pop("submitted")), self.paper(resources))
        texts = {"lost": taken.lost, "unreadable": {"": taken.unreadable} if taken.unreadable else {}}
        taken.notebook["metadata"][STAMP] = {key: {name: text.model_dump() for name, text in said.items()} for key, said in texts.items()}
        return from_dict(taken.notebook), resources

    @staticmethod
    def _taken(path, paper):
        try:
            return marking.taken(repair.load(path), paper)
        except repair.Unreadable as error:
            return marking.nothing_of(paper, error.why)


class Mark(WithBank):
    """Mark the answers with the bank and write points and reasons into the grade cells."""

    def preprocess(self, nb, resources):
        stamp = nb.metadata.pop(STAMP)
        lost, unreadable = ({name: Text(**text) for name, text in stamp[key].items()} for key in ("lost", "unreadable"))
        assignment, bank = self.asked(resources)
        taken = marking.Taken(nb, lost=lost, unreadable=unreadable.get(""))
        resources["autograder"] = marked = marking.mark_taken(taken, assignment, bank, self.book)
        resources["autograder_lost"] = lost
        marking.write_outputs(nb, marked, assignment.reveals())
        return from_dict(nb), resources


class Propose(WithBank):
    """Enter the points of task cells, and send to a person what a person should see, with our proposal and the reason for it."""

    def preprocess(self, nb, resources):
        ids, marked, lost = resources["nbgrader"], resources["autograder"], resources["autograder_lost"]
        where = (ids["notebook"], ids["assignment"], ids["student"])
        paper = self.paper(resources)
        with Gradebook(ids["db_url"]) as gradebook:
            for name, cell in paper.lines.items():
                grade, made = gradebook.find_grade(name, *where), marking.entry(cell, marked)
                grade.auto_score = made.auto_score
                grade.needs_manual_grade = made.needs_manual_grade or grade.manual_score is not None
                if made.comment:
                    gradebook.find_comment(name, *where).auto_comment = made.comment
            for name, why in lost.items():
                gradebook.find_comment(name, *where).auto_comment = why.say()
            gradebook.db.commit()
        return nb, resources


class Conceal(WithBank):
    """Leave the mark schemes out of feedback that is made before the deadline."""

    def preprocess(self, nb, resources):
        if not load_assignment(resources["nbgrader"]["assignment"], self.assignments).reveals():
            marking.conceal(nb)
        return nb, resources


class TellByPerson(Step):
    """Say in the feedback which lines a person has marked."""

    def preprocess(self, nb, resources):
        ids = resources["nbgrader"]
        with Gradebook(ids["db_url"]) as gradebook:
            grades = gradebook.find_submission_notebook(ids["notebook"], ids["assignment"], ids["student"]).grades
            scores = {grade.name: (grade.score, grade.max_score) for grade in grades if grade.manual_score is not None}
        marking.tell_by_person(nb, scores)
        return from_dict(nb), resources
