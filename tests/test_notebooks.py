"""Every lesson is built from its source, and runs from a cold kernel: offline, without an error or a warning."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import notebooks

LESSONS = notebooks.sources()
PATIENCE = 600  # seconds for a cell; a lab in it may take half of them


def run(notebook, folder):
    """Execute `notebook` in place, in a kernel of its own that starts in `folder`."""
    waits, where = {"timeout": PATIENCE, "startup_timeout": PATIENCE}, {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, **waits, kernel_name="python3", resources=where).execute()
    return notebook


def warnings(notebook):
    """What the cells wrote to stderr."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]


def name(path):
    return path.stem


def test_there_are_lessons():
    assert LESSONS


def test_built_is_source():
    assert [path.name for path in notebooks.stale()] == []


@pytest.mark.parametrize("source", LESSONS, ids=name)
def test_lesson_runs(source, offline):
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert warnings(run(notebook, source.parent)) == []


@pytest.fixture
def lesson(tmp_path):
    """A folder of chapters with one small lesson in it."""
    source = tmp_path / "chapters/00_small.py"
    source.parent.mkdir()
    source.write_text('# %% [markdown]\n# # Small\n\n# %% tags=["definition"]\n1 + 1\n')
    source.with_suffix(".ipynb").write_text(notebooks.build(source))
    return source


def test_building_again_changes_nothing(lesson):
    assert notebooks.build(lesson) == lesson.with_suffix(".ipynb").read_text()
    assert notebooks.stale(lesson.parents[1]) == []


def test_a_built_notebook_is_valid_and_bare(lesson):
    notebook = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == ["# Small", "1 + 1"]
    assert notebook.cells[1].metadata.tags == ["definition"] and notebook.cells[1].outputs == []
    assert notebook.metadata.kernelspec.name == "python3" and "jupytext" not in notebook.metadata


def test_an_edited_notebook_is_stale(lesson):
    lesson.with_suffix(".ipynb").write_text(notebooks.build(lesson).replace("1 + 1", "1 + 2"))
    assert notebooks.stale(lesson.parents[1]) == [lesson]


def test_a_notebook_without_source_is_stale(lesson):
    orphan = lesson.with_name("01_gone.ipynb")
    orphan.write_text("{}")
    assert notebooks.stale(lesson.parents[1]) == [orphan]


def test_cells_keep_their_ids_until_they_change(lesson):
    before = [cell.id for cell in nbformat.read(lesson.with_suffix(".ipynb"), as_version=4).cells]
    lesson.write_text(lesson.read_text().replace("1 + 1", "1 + 2"))
    after = [cell.id for cell in nbformat.reads(notebooks.build(lesson), as_version=4).cells]
    assert before[0] == after[0] and before[1] != after[1]


def test_a_warning_is_seen(tmp_path, offline):
    cell = nbformat.v4.new_code_cell("import sys; print('careful', file=sys.stderr)")
    assert warnings(run(nbformat.v4.new_notebook(cells=[cell]), tmp_path)) == ["careful\n"]


@pytest.mark.parametrize("call", ["socket.create_connection(('192.0.2.1', 80), timeout=1)", "socket.getaddrinfo('example.org', 80)"])
def test_the_network_is_out_of_reach(tmp_path, offline, call):
    cell = nbformat.v4.new_code_cell(f"import socket; {call}")
    with pytest.raises(CellExecutionError, match="this runs offline"):
        run(nbformat.v4.new_notebook(cells=[cell]), tmp_path)
