"""The Anki package: a database that can be opened, every exercise in it, every formula whole."""

import re
import sqlite3
import zipfile
from html import unescape

import pytest

from autograder.bank import Bank
from autograder.drills.anki import write_package
from book.mathml import mathml

BANK = Bank()
SET = re.compile(r"\\\((.*?)\\\)", re.DOTALL)


@pytest.fixture(scope="module", params=[("en",), ("zh",)], ids="".join)
def notes(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("anki") / "bank.apkg"
    assert write_package(BANK, request.param, path) == len(BANK)
    collection = path.with_suffix(".anki2")
    collection.write_bytes(zipfile.ZipFile(path).read("collection.anki2"))
    with sqlite3.connect(collection) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM cards").fetchone() == (len(BANK),)
        return request.param[0], [row[0].split("\x1f") for row in db.execute("SELECT flds FROM notes")]


def test_each_exercise_is_a_note_with_both_sides(notes):
    _, rows = notes
    assert sorted(row[0] for row in rows) == sorted(BANK)
    assert all(front.strip() and back.strip() for _, front, back in rows)


def test_the_language_is_the_one_asked_for(notes):
    language, rows = notes
    chinese = [bool(re.search("[\u4e00-\u9fff]", front)) for _, front, _ in rows]
    assert all(chinese) if language == "zh" else not any(chinese)
    english = [back for _, _, back in rows if "Where the formulas come from" in unescape(back)]
    assert bool(english) == (language == "en")


def test_every_formula_is_tex_that_can_be_set(notes):
    _, rows = notes
    formulas = {unescape(tex) for _, _, back in rows for tex in SET.findall(back)}
    assert len(formulas) > 150
    assert {tex: why for tex in formulas if (why := broken(tex))} == {}


@pytest.mark.parametrize("tex", [r"\nonsense{x}", r"\frac{1}{2", r"{x}}", r"\left( x", r"x</b>"])
def test_tex_that_cannot_be_set_is_noticed(tex):
    assert broken(tex)


def broken(tex):
    """Why a formula cannot be set, or an empty text."""
    bare = re.sub(r"\\[{}\\]", "", tex)
    depth = [bare[: index + 1].count("{") - bare[: index + 1].count("}") for index in range(len(bare))]
    if min(depth, default=0) < 0 or (depth and depth[-1]):
        return "braces"
    try:
        return "a command that is none" if "\\" in mathml(tex) else "a tag in it" * bool(re.search(r"<[a-z/]", tex))
    except ValueError as error:
        return str(error)
