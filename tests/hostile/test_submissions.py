"""Hostile notebooks on the trusted side, which reads them: nothing is gained, nothing breaks, and no answer costs more than it is long."""

import ast
import json

import pytest

from autograder import cells, limits, marking, repair, sandbox
from autograder.answer import Unread
from autograder.assignment import answer_id
from autograder.bank import ROOT
from autograder.grading import report, work
from autograder.jail import JailResult
from tests.grading.papers import ASSIGNMENT, BANK, PAPER, cell_of, notebook

MARKER = work.Marker(ASSIGNMENT, {PAPER.name: PAPER}, ROOT / "bank")
LONG = 5_000  # digits: Python writes no whole number of so many

# What stands in the place of every answer. None of it says anything.
ANSWERS = {
    "a number too long to write": f"0x{'f' * LONG}",
    "a list of one": f"[0x{'f' * LONG}]",
    "a call of one": f"f(0x{'f' * LONG})",
    "a set of one": f"{{0x{'f' * LONG}: 1}}",
    "a number too long to read": "9" * LONG,
    "infinities": "[1e999, -1e999]",
    "infinity": "1e999",
    "less than nothing": "-0.0",
    "next to nothing": "5e-324",
    "lists in lists": f"{'[' * 80}{']' * 80}",
    "powers of powers": "(9 ** 64) ** 64",
    "no letter": r"'\0'",
    "half a letter": r"'\ud800'",
    "not a number": "'nan'",
    "an infinity in words": "'inf GB'",
    "a power in small print": "'10⁹⁹⁹⁹ GB'",
    "an endless text": f"'{'x' * 90_000}'",
    "an endless formula": f"'{'(' * 1_900}'",
    "a letter that becomes eighteen": f"'{'ﷺ' * 1_900}'",
    "a template": "'{{ 7 * 7 }} {0.__class__} %s%n'",
    "markup": "'<script>alert(1)</script>'",
    "an ellipsis": "...",
    "bytes": "b'1'",
    "a lambda": "lambda: True",
}


def handed_in(source):
    """The Job of a notebook in which each answer is set to this source."""
    paper = notebook("blank")
    for name in ASSIGNMENT.exercises:
        cell_of(paper, answer_id(name))["source"] = "\n".join(f"{part.name} = {source}" for part in BANK[name].parts)
    return work.Job("someone", PAPER.name, json.dumps(paper).encode())


@pytest.mark.parametrize("source", ANSWERS.values(), ids=ANSWERS)
def test_no_answer_breaks_the_marking_or_earns_a_point(source):
    done = MARKER(handed_in(source))
    assert done.fault == "" and {status for _, status, _, _ in done.lines.values()} <= {"WRONG", "BLANK", "HUMAN"}
    assert not any(points for points, _, _, _ in done.lines.values())
    assert work.pack(work.unpack(done.answers)) == done.answers


# What can be put before an expression, or behind it, as often as one likes: each ends in another part of Python's parser.
AGAIN = {
    "x = {}1": ("-", "~", "not ", "(", "[", "{1: ", "lambda: ", "1 if 1 else ", "(a := ", "f'{", "*", "await ", "\\\n"),
    "x = 1{}": (" + 1", " ** 1", " < 1", " and 1", ".a", "()", "[0]", " if 1", ", 1", " # x", "\n;", "\nx = 1"),
}


@pytest.mark.parametrize(("whole", "piece"), [(whole, piece) for whole, pieces in AGAIN.items() for piece in pieces])
def test_no_nesting_breaks_the_reading(whole, piece):
    source = whole.format(piece * (99_000 // len(piece)))
    assert len(source) < limits.CELL
    found = cells.read_cell(source, {"x": "number"})
    assert found is None or set(found) == {"x"}


def test_a_formula_given_again_and_again_is_looked_up_once(monkeypatch):
    looked = []
    monkeypatch.setattr(ast, "get_source_segment", lambda source, node: looked.append(node) or "a")
    assert cells.read_cell("f = a\ng = b\n" * 2_000, {"f": "expression", "g": "expression"}) == {"f": "a", "g": "a"}
    assert len(looked) == 2


def test_cells_that_take_their_time_take_that_of_two_runs_together(monkeypatch):
    spent, count = [], 20

    def run(_, names, *, limits, **__):  # nearly all its time is over before it comes to the last cell
        spent.append(0.9 * limits.seconds)
        return JailResult({name: {} for name in names[: count - 1]}, "", "timeout")

    monkeypatch.setattr(sandbox, "run_jailed", run)
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: sum(spent))
    sandbox.answers([("import time; x = 1", ["x"])] * count)
    assert len(spent) > 2 and sum(spent) <= 2 * limits.SECONDS


@pytest.mark.parametrize("error", ["<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "`x`", "one\\ntwo\\r\\x1b[2J", "x" * 90_000])
def test_what_an_error_says_is_shown_on_a_line_and_without_markup(error):
    (found,) = sandbox.answers([(f"raise Exception('{error}')", ["x"])])
    assert isinstance(found["x"], Unread)
    for said in (found["x"].why.en, found["x"].why.zh):
        assert "Exception" in said and not set("<>[]`\n\r\x1b") & set(said) and len(said) < 300


MARKUP = ["<script>alert(1)</script>", "```\n<script>alert(1)</script>\n````", "\\begin{a}" * 20_000, "[a](" * 20_000]


@pytest.mark.parametrize("words", MARKUP, ids=["a script", "behind a fence", "formulas without end", "links without end"])
def test_notes_of_a_learner_are_shown_as_they_stand(words):
    paper = notebook("perfect")
    paper["cells"] += [{"cell_type": kind, "metadata": {}, "source": words} for kind in ("markdown", "raw")]
    kernel = {"name": "python3", "display_name": "Python 3"}
    taken = marking.taken(json.dumps(paper).encode(), marking.Paper(PAPER.name, PAPER.cells, kernel))
    scores = {cell.name: (0, 1) for cell in PAPER.cells}
    page = work.write_page(work.Page("s", "p", json.dumps(taken.notebook), scores, {}, 0, 1, 0, [], True))
    assert "<script>alert(1)" not in page and words[:9].partition("<")[0] in page


FILES = {
    "a million cells": b'{"nbformat": 4, "cells": [' + b"{}," * 10**6 + b"{}]}",
    "millions of lists": b'{"nbformat": 4, "x": [' + b"[]," * (limits.VALUES // 2) + b'0], "cells": [{}]}',
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_what_is_small_to_write_and_huge_to_read_is_not_read(data):
    with pytest.raises(repair.Unreadable, match="more than"):
        repair.read(data)


def test_a_torn_file_is_looked_through_a_few_times_at_most(monkeypatch):
    reached, read_on = [], repair._read_on
    monkeypatch.setattr(limits, "SALVAGE", 100_000)
    monkeypatch.setattr(limits, "SALVAGE_WORK", 300_000)
    monkeypatch.setattr(repair, "_read_on", lambda *told: reached.append(read_on(*told)) or reached[-1])
    assert repair._salvaged('{"cells": [' + '{"x":' * 150 + "[" + "1," * 10**5) == []
    assert len(reached) <= 5


@pytest.mark.parametrize("value", ["=1", "＝1", "\n=1", "+1", "＠x"])
def test_a_spreadsheet_computes_nothing(value, tmp_path):
    path = report.write_table(tmp_path / "table.csv", [{"student": value, "reason": "a;=1"}])
    _, row = path.read_text("utf-8-sig").split("\n", 1)
    assert row.startswith("\"'") and '"a;=1"' in row
