"""Hostile notebooks on the trusted side, which reads them: nothing is gained, nothing breaks, and no answer costs more than it is long."""

import ast
import json

import pytest

from autograder import cells, limits, sandbox
from autograder.answer import Unread
from autograder.assignment import answer_id
from autograder.bank import ROOT
from autograder.grading import work
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
