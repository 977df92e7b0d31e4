"""Nothing of the syllabus is without a home: formulas derived, anchors, explorers, exercises, labs and rulings, chapter by chapter.

The table is printed: `pytest -s tests/chapters/test_coverage.py`.
"""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from autograder.bank import Bank
from explorers import EXPLORERS
from formulary import Formula, Ledger
from formulary.claims import claims, rulings
from labs import LABS

ROOT = Path(__file__).resolve().parents[2]
ANCHORS = yaml.safe_load((ROOT / "tests/data/anchors.yaml").read_text(encoding="utf-8"))
TITLES = ("chapter", "formulas", "derived", "anchors", "explorers", "exercises", "labs", "rulings")
# chapter: entries of the list of formulas that it must derive, and labs that it must lead to
SYLLABUS = {
    0: ("F38", ""),
    1: ("F01 F02 F03 F32", "model_states"),
    2: ("F27 F28 F29 F42", "numerics"),
    3: ("F20 F21 F22", "peak_memory"),
    4: ("F23", ""),
    5: ("F08 F09", "traffic"),
    6: ("F10 F11 F12 F40 F43", "traffic"),
    7: ("F04 F05 F06 F07", "model_states peak_memory paper_cluster"),
    8: ("F36 F37", ""),
    9: ("F17 F18 F19", "tensor_parallel"),
    10: ("F13 F14 F15 F16", "pipeline"),
    11: ("F35 F39", "paper_cluster"),
    12: ("F24 F25 F26", "qlora"),
    13: ("F30 F31", "throughput"),
    14: ("F44 F38", ""),
    15: ("F33 F34 F41 F29", "checkpoint"),
    16: ("", ""),
    17: ("", ""),
}
# anchors of chapter 11 are in tests/formulary/test_planner.py; 14 has figures of no source; 16 and 17 use the explorers of others
NO_ANCHORS = {11, 14, 16, 17}
AGAIN = {16: {"E000-LQ03", "E000-DS01", "E000-DS02"}, 17: {"E002-Q02", "E002-Q16", "E002-Q36"}}


@cache
def source(chapter):
    (path,) = (ROOT / "chapters").glob(f"{chapter:02d}_*.py")
    return path.read_text(encoding="utf-8")


def imported(chapter):
    """{name in the chapter: object} of everything it takes from the formulary."""
    nodes = [node for node in ast.walk(ast.parse(source(chapter))) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in nodes
        if node.module.startswith("formulary")
        for alias in node.names
    }


def covered(chapter, derived):
    """Entries of the list whose formulas the chapter uses, or those whose derivations it shows."""
    found = set()
    for name, it in imported(chapter).items():
        formulas = [it] if isinstance(it, Formula) else [it.total, *it.parts.values()] if isinstance(it, Ledger) else []
        if not derived or re.search(rf"\b{name}(\.\w+\([^)]*\))*\.derivation\b", source(chapter)):
            found |= {entry for formula in formulas for entry in formula.covers}
    return found


def row(chapter):
    """What the chapter has, as counts and names, in the order of TITLES."""
    text = source(chapter)
    return {
        "chapter": chapter,
        "formulas": covered(chapter, derived=False),
        "derived": covered(chapter, derived=True),
        "anchors": [anchor for anchor in ANCHORS if anchor["chapter"] == chapter],
        "explorers": {name for name in EXPLORERS if re.search(rf"\b{name}\(", text)},
        "exercises": set(re.findall(r'"(E\d{3}-[A-Z]+\d+)"', text)),
        "labs": {name for name in LABS if f"labs/notebooks/{name}.ipynb" in text},
        "rulings": {ruling for one in claims(chapter=chapter) for ruling in one.rulings},
    }


@pytest.fixture(scope="module")
def table():
    rows = [row(chapter) for chapter in SYLLABUS]
    print("\n" + "".join(f"{title:>10}" for title in TITLES))
    for found in rows:
        print("".join(f"{found[t] if t == 'chapter' else len(found[t]):>10}" for t in TITLES))
    return {found["chapter"]: found for found in rows}


@pytest.mark.parametrize("chapter", SYLLABUS)
def test_a_chapter_has_all_that_its_row_names(table, chapter):
    entries, labs = (set(words.split()) for words in SYLLABUS[chapter])
    found = table[chapter]
    assert entries - found["derived"] == set(), "formulas whose derivation is not shown"
    assert labs - found["labs"] == set()
    assert found["explorers"]
    assert found["anchors"] or chapter in NO_ANCHORS
    bank = {name for name, header in Bank().headers.items() if header.chapter == chapter}
    assert (bank | AGAIN.get(chapter, set())) - found["exercises"] == set()


def test_every_exercise_every_formula_every_ruling_and_every_lab_has_a_home(table):
    every = lambda title: set().union(*(found[title] for found in table.values()))
    assert every("exercises") >= set(Bank())
    assert every("derived") == {f"F{number:02}" for number in range(1, 45)}
    assert every("rulings") == set(rulings()) and len(rulings()) == 52
    assert every("labs") == set(LABS)
    assert "rulings()" in source(17)


def test_every_explorer_is_in_a_chapter(table):
    assert set(EXPLORERS) - set().union(*(found["explorers"] for found in table.values())) == set()
