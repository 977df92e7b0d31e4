"""Damaged submissions: put right where the answers are unambiguous, and said; else for a person; never an error or a point more."""

import copy
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder import marking, repair
from autograder.assignment import answer_id
from autograder.rubric import Status
from tests.grading.papers import ASSIGNMENT, PAPER, cell_of, mark, notebook, score

FIRST, SECOND = (answer_id(name) for name in ASSIGNMENT.exercises[:2])
LINES = [line.name for line in PAPER.cells if line.name.startswith(FIRST.removesuffix("-answer")) and (line.grade or line.task)]
WHOLE = {who: mark(notebook(who))[1] for who in ("perfect", "flawed", "blank")}


def changed(change, who="perfect"):
    """The bytes of a submission after a change to its dict; the change may return other bytes."""
    handed_in = notebook(who)
    made = change(handed_in)
    return made if isinstance(made, bytes) else json.dumps(handed_in, ensure_ascii=False).encode()


def text(handed_in):
    return json.dumps(handed_in, ensure_ascii=False, indent=1)


def version_3(handed_in):
    for cell in handed_in["cells"]:
        cell["input"] = cell.pop("source")
    sheet = {"cells": handed_in.pop("cells")}
    handed_in |= {"worksheets": [sheet], "nbformat": 3}


def relabelled(handed_in):
    del cell_of(handed_in, FIRST)["metadata"]["nbgrader"]


def moved_label(handed_in):
    cell = cell_of(handed_in, FIRST)
    cell["id"], cell["metadata"] = "abc", {}


def doubled(handed_in):
    stub = copy.deepcopy(cell_of(handed_in, FIRST))
    stub["source"] = next(cell.source for cell in PAPER.cells if cell.name == FIRST)
    handed_in["cells"].append(stub)


def schema(handed_in):
    for cell in handed_in["cells"]:
        cell["metadata"]["nbgrader"] |= {"schema_version": 1, "points": 99, "grade": True, "checksum": "x"}


def large(handed_in):
    cell_of(handed_in, FIRST)["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * (50 << 20)}]


# what is done to a submission, and a word of what is said of it ("" for what does not matter at all)
DAMAGES = {
    "a byte order mark": (lambda n: b"\xef\xbb\xbf" + text(n).encode(), "byte order mark"),
    "UTF-16": (lambda n: text(n).encode("utf-16"), "byte order mark"),
    "GB 18030": (lambda n: text(n).encode("gb18030"), "GB 18030"),
    "Windows line ends in the file": (lambda n: text(n).replace("\n", "\r\n").encode(), ""),
    "Windows line ends in the cells": (
        lambda n: [c.update(source=c["source"].replace("\n", "\r\n")) for c in n["cells"]] and None,
        "line ends",
    ),
    "a comma too many": (lambda n: text(n).replace('"cells": [', '"cells": [,', 1).encode(), "file is damaged"),
    "cut off behind the last cell": (lambda n: text(n).rpartition('"metadata"')[0].encode(), "file is damaged"),
    "version 3": (version_3, "version 4"),
    "version 9": (lambda n: n.update(nbformat=9), "version 4"),
    "another kernel": (lambda n: n["metadata"].update(kernelspec={"name": "ir", "language": "R"}), "kernel"),
    "old and greedy metadata": (schema, ""),
    "no metadata of the notebook": (lambda n: n.pop("metadata") and None, ""),
    "cells in reverse": (lambda n: n["cells"].reverse(), "another order"),
    "an answer cell made markdown": (lambda n: cell_of(n, FIRST).update(cell_type="markdown"), "type of the cell"),
    "questions and grade cells deleted": (
        lambda n: n.update(cells=[c for c in n["cells"] if c["metadata"]["nbgrader"]["solution"]]),
        "were missing",
    ),
    "an answer cell without its label": (relabelled, "known by its place"),
    "an answer cell without label and id": (moved_label, "known by its place"),
    "an answer cell copied and emptied": (doubled, "several copies"),
    "50 MB of output": (large, "printed output"),
    "things that are no cells": (lambda n: n["cells"].extend([None, 3, "x"]), "no cells"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_unambiguous_is_put_right_and_said(damage):
    change, told = DAMAGES[damage]
    taken, results = mark(changed(change))
    assert {name: result.points for name, result in results.items()} == {name: result.points for name, result in WHOLE["perfect"].items()}
    notice = taken.notebook["cells"][0]["source"] if not taken.notebook["cells"][0]["metadata"] else ""
    assert told in notice and bool(told) == bool(notice)


def without_answer(handed_in):
    handed_in["cells"].remove(cell_of(handed_in, FIRST))


def unknown_label(handed_in):
    cell = cell_of(handed_in, FIRST)
    cell["id"] = cell["metadata"]["nbgrader"]["grade_id"] = "renamed"
    handed_in["cells"].reverse()


def contradicting(handed_in):
    other = copy.deepcopy(cell_of(handed_in, FIRST))
    other["source"] += "\n# changed"
    handed_in["cells"].append(other)


@pytest.mark.parametrize("damage", [without_answer, unknown_label, contradicting])
def test_a_lost_answer_goes_to_a_person_with_the_reason(damage):
    taken, results = mark(changed(damage))
    assert set(taken.lost) == {FIRST}
    assert all(results[name].status is Status.HUMAN and not results[name].points for name in LINES)
    assert all(results[name] == result for name, result in WHOLE["perfect"].items() if name not in LINES)
    assert FIRST in taken.notebook["cells"][0]["source"]


@pytest.mark.parametrize("data", [b"", b"\0" * 99, b"{}", b"[1]", b'{"cells": {}}', b"PK\x03\x04 a zip", b'"' + b"[" * 10**5, b"{" * 10**5])
def test_what_is_no_notebook_goes_to_a_person_whole(data):
    taken, results = mark(data)
    assert "no notebook" in taken.unreadable.en
    assert all(result.status is Status.HUMAN for result in results.values())


def put(folder, name="ps01_memory.ipynb", who="perfect"):
    (folder / name).write_text(json.dumps(notebook(who)), encoding="utf-8")


def test_a_renamed_file_is_found_and_two_are_not_chosen_from(tmp_path):
    put(tmp_path, "my answers (1).ipynb")
    taken = marking.take(tmp_path, PAPER)
    assert not taken.lost and "my answers" in taken.repairs[0].en
    put(tmp_path, "other.ipynb")
    assert "none of the notebooks" in marking.take(tmp_path, PAPER).unreadable.en


# what lies in a folder, and which of it is the notebook "memory" of an assignment that also has "memory_2" and "Pipelines"
HANDED_IN = {
    ("memory.ipynb", "x.ipynb"): "memory.ipynb",
    ("pipelines (1).ipynb",): None,
    ("memory_2 (1).ipynb", "Memory (1).ipynb"): "Memory (1).ipynb",
    ("memory_2.ipynb", "Untitled.ipynb"): "Untitled.ipynb",
    ("memory_2.ipynb", "memory_2 (1).ipynb"): None,
}


@pytest.mark.parametrize(("names", "wanted"), HANDED_IN.items())
def test_another_notebook_of_the_assignment_is_not_taken_for_a_missing_one(tmp_path, names, wanted):
    for name in names:
        put(tmp_path, name)
    try:
        found = repair.find(tmp_path, "memory", ("memory", "memory_2", "Pipelines"))[0].name
    except repair.Unreadable as error:
        found, said = None, error.why.en
        assert said == "no notebook memory.ipynb was handed in"
    assert found == wanted


def test_a_file_that_is_gone_when_it_is_looked_at_is_left_out(tmp_path, monkeypatch):
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(name)
    lstat = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: (path.name == "one.txt" and path.unlink(), lstat(path))[1])
    assert [name for name, *_ in repair.listed(tmp_path)] == ["two.txt"]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "nothing"])
def test_links_and_other_things_are_not_opened(tmp_path, kind):
    put(tmp_path.parent, "elsewhere.ipynb")
    path = tmp_path / "ps01_memory.ipynb"
    {"link": lambda: path.symlink_to(tmp_path.parent / "elsewhere.ipynb"), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}.get(
        kind, lambda: None
    )()
    assert marking.take(tmp_path, PAPER).unreadable
    assert kind != "link" or "is a link" in marking.take(tmp_path, PAPER).unreadable.en


# --- random damage -----------------------------------------------------------------------------------------------------

INDEX = st.integers(0, 10**6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


def _delete(cells, index, value):
    del cells[index]


def _double(cells, index, value):
    cells.append(copy.deepcopy(cells[index]))


def _move(cells, index, value):
    cells.insert(0, cells.pop(index))


def _retype(cells, index, value):
    cells[index]["cell_type"] = value


def _replace(cells, index, value):
    cells[index] = value


def _label(cells, index, value):
    cells[index]["metadata"] = {"nbgrader": {"grade_id": value}}


def _unlabel(cells, index, value):
    cells[index].update(metadata=value, id=value)


DAMAGE = st.tuples(st.sampled_from([_delete, _double, _move, _retype, _replace, _label, _unlabel]), INDEX, VALUES)


@settings(max_examples=40)
@given(who=st.sampled_from(["perfect", "flawed"]), damages=st.lists(DAMAGE, min_size=1, max_size=6))
def test_random_damage_to_cells_never_raises_and_never_raises_the_score(who, damages):
    handed_in = notebook(who)
    for damage, index, value in damages:
        cells = [cell for cell in handed_in["cells"] if isinstance(cell, dict)]
        if cells and isinstance(cells[index % len(cells)].get("metadata"), dict):
            damage(handed_in["cells"], handed_in["cells"].index(cells[index % len(cells)]), value)
    _, results = mark(handed_in)
    assert score(results) <= score(WHOLE[who])
    assert all(result.points is None or result.points <= (WHOLE[who][name].points or 0) for name, result in results.items())


@settings(max_examples=40)
@given(who=st.sampled_from(["perfect", "blank"]), start=st.floats(0, 1), length=st.integers(0, 3000), instead=st.binary(max_size=40))
def test_random_damage_to_the_file_never_raises_and_never_raises_the_score(who, start, length, instead):
    data = json.dumps(notebook(who)).encode()
    place = int(start * len(data))
    taken, results = mark(data[:place] + instead + data[place + length :])
    assert score(results) <= score(WHOLE[who])
    assert set(results) == set(WHOLE[who]) and isinstance(taken.notebook["cells"], list)


def test_salvage_is_bounded():
    data = (b'{"cell_type": ' * 200_000)[: repair.limits.SALVAGE]
    assert mark(data)[0].unreadable


def denied(path, *_):
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize("call", ["is_symlink", "iterdir"])
def test_what_may_not_be_looked_into_is_told(call, tmp_path, monkeypatch):
    (tmp_path / "other.ipynb").write_text("{}")
    monkeypatch.setattr(Path, call, denied)
    taken = marking.take(tmp_path, PAPER)
    assert "can't be opened: Permission denied" in taken.unreadable.en


def test_what_lies_beside_and_may_not_be_looked_at_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    assert [(str(name), data) for name, data in repair.beside(tmp_path)] == [("notes.txt", b"mine")]
    monkeypatch.setattr(Path, "lstat", denied)
    assert list(repair.beside(tmp_path)) == []
