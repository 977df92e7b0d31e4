"""Before the deadline no page of feedback holds a mark scheme or a model answer, and after it all do."""

import html
import json
import re
import shutil

import nbformat
import pytest
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.assignment import load_assignment
from autograder.bank import Bank
from autograder.grading.work import Page, write_page
from autograder.nbgrader_plugin import configure
from autograder.source import build
from tests.nbgrader.course import COURSE, PS

BANK = Bank()
LINES = load_assignment(PS).lines(BANK)
# of each line that has a mark scheme: the start of its criterion, and of the model answer to its reason
SCHEMES = [
    text[:40]
    for exercise, line in LINES.values()
    if line.marked_by != "key"
    for text in (line.criterion.en, line.criterion.zh, *(exercise.part(name).answer.zh for name in line.parts if "reason" in name))
]
DEADLINES = {"2999-01-01": False, "2001-01-01": True}


@pytest.fixture(params=DEADLINES)
def assignments(request, tmp_path):
    """A folder of assignments with a deadline, and whether it has passed."""
    folder = shutil.copytree(COURSE / "assignments", tmp_path / "assignments")
    path = folder / f"{PS}.yaml"
    path.write_text(f"{path.read_text(encoding='utf-8')}\ndeadline: {request.param} 12:00\n", encoding="utf-8")
    return folder, DEADLINES[request.param]


def holds(text):
    """Those of SCHEMES that a page holds, its markup left out."""
    plain = "".join(re.sub(r"<[^>]*>", "", html.unescape(text)).split())
    return [said for said in SCHEMES if "".join(said.split()) in plain]


def test_stock_feedback_starts_without_mark_schemes(assignments):
    folder, passed = assignments
    config = Config()
    configure(config, assignments=str(folder))
    first = import_item(GenerateFeedback(coursedir=CourseDirectory(), config=config).preprocessors[0])(config=config)
    notebook, _ = first.preprocess(build(load_assignment(PS, folder), BANK), {"nbgrader": {"assignment": PS}})
    told = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert SCHEMES and holds(told) == (SCHEMES if passed else [])
    assert all(cell.source for cell in notebook.cells)


def test_pages_of_psi_grade_too(assignments):
    folder, passed = assignments
    assignment = load_assignment(PS, folder)
    notebook = build(assignment, BANK)
    for cell in notebook.cells:
        cell.source = cell.source.partition("### BEGIN SOLUTION")[0]
    scores = {name: (0, line.points) for name, (_, line) in LINES.items()}
    page = Page("ada", PS, json.dumps(nbformat.from_dict(notebook)), scores, {}, 0, 1, 0, [], assignment.reveals())
    assert holds(write_page(page)) == (SCHEMES if passed else [])
