"""The catalogue is whole: every entry of the list is covered, every formula derived, witnessed, in a unit and in a chapter."""

import ast
import importlib
import json
from pathlib import Path

import pytest

import psi
from formulary import SUBJECTS, Ledger, load_all
from formulary.derivation import same
from formulary.units import spell
from tools.published import formulas_of, rows

WITNESSES = Path(__file__).parents[1] / "witnesses"
ENTRIES = {f"F{number:02}" for number in range(1, 45)}
CHAPTERS = range(18)


def marked():
    """{name: files that hold a test marked as its witness}."""
    found = {}
    for path in WITNESSES.glob("test_*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            if ast.unparse(call.func) == "pytest.mark.witness" and not isinstance(call.args[0], ast.Starred):
                for name in map(ast.literal_eval, call.args):
                    found.setdefault(name, set()).add(path.name)
    return found


def published():
    return {name for row in rows("published") if row.get("status") != "does not reproduce" for name in formulas_of(row)}


def ledgers():
    subjects = [importlib.import_module(f"formulary.{name}") for name in SUBJECTS]
    return [value for subject in subjects for value in vars(subject).values() if isinstance(value, Ledger)]


def test_every_entry_of_the_list_is_covered():
    assert {entry for formula in load_all().values() for entry in formula.covers} == ENTRIES


def test_every_formula_ends_a_verified_derivation_or_says_why_it_has_none():
    derived = [formula for formula in load_all().values() if formula.derivation]
    assert [formula.name for formula in derived if not same(formula.derivation.expr, formula.expr)] == []
    others = {formula.name: formula.empirical for formula in load_all().values() if not formula.derivation}
    assert [name for name, why in others.items() if len(why.split()) < 5] == []


def test_every_formula_has_an_independent_witness():
    """A test that counts, simulates or measures, or a published number; figures worked out from the formula do not count."""
    witnessed = set(marked()) | published()
    assert [name for name in load_all() if name not in witnessed] == []


def test_every_part_of_a_ledger_has_one_too():
    catalogue, witnessed = load_all(), set(marked()) | published()
    unlisted = [part for ledger in ledgers() for part in ledger.parts.values() if catalogue.get(part.name) is not part]
    assert [part.name for part in unlisted if part.result.name not in witnessed] == []


def test_every_marker_names_a_formula_or_a_part_of_a_ledger():
    parts = {part.result.name for ledger in ledgers() for part in ledger.parts.values()}
    assert set(marked()) - set(load_all()) - parts == set()


def test_the_list_names_every_formula_with_its_unit_and_chapter(capsys):
    assert psi.main(["formula", "list", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(load_all())
    for name, formula in load_all().items():
        assert (listed[name]["unit"], listed[name]["chapter"]) == (spell(formula.unit), formula.chapter)
        assert formula.chapter in CHAPTERS
    assert psi.main(["formula", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(f"ch {listed[line.split()[0]]['chapter']} " in line for line in lines) and len(lines) == len(listed)


@pytest.mark.parametrize("name", sorted(load_all()))
def test_every_formula_says_where_it_comes_from(name):
    formula = load_all()[name]
    assert formula.source and formula.latex and formula.quantity.meaning
