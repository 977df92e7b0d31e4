"""Values from outside, row by row: worked by hand or by other programs, asked in exercises, and published. See tests/data."""

from collections import Counter

import pytest

from formulary import FORMULAS, load_all
from tools.published import ROUNDED, TRUNCATED, formulas_of, off_by, rows

TABLES = {  # name -> keys its rows may have
    "worked_values": {"entry", "is", "value", "about", "was"},
    "exercise_checks": {"exercise", "is", "value", "about", "was", "extra"},
    "published": {"is", "value", "about", "source", "status", "why"},
}


def cases(name, mark=lambda row: ()):
    return [pytest.param(row, id=f"{row['is'][:60]} {row['value']}", marks=mark(row)) for row in rows(name)]


def confirms(row):
    """A published number that reproduces confirms the formulas it takes."""
    names = formulas_of(row)
    return pytest.mark.witness(*names) if names and row.get("status") != "does not reproduce" else ()


@pytest.mark.parametrize("row", cases("worked_values"))
def test_worked_value(row):
    assert abs(off_by(row)) <= ROUNDED


@pytest.mark.parametrize("row", cases("exercise_checks"))
def test_exercise_check(row):
    assert abs(off_by(row)) <= ROUNDED


@pytest.mark.parametrize("row", cases("published", confirms))
def test_published_value(row):
    assert row["source"]
    off = off_by(row)
    status = row.get("status", "reproduces")
    if status == "reproduces":
        assert abs(off) <= ROUNDED
    elif status == "truncated":
        assert ROUNDED < off < TRUNCATED
    else:
        assert status == "does not reproduce" and row["why"] and not -ROUNDED <= off < TRUNCATED, "it reproduces after all"


@pytest.mark.parametrize("name", TABLES)
def test_rows_say_what_they_mean(name):
    """No row has a key that nobody reads, says the same as another, or names a formula that does not exist."""
    load_all()
    for row in rows(name):
        assert set(row) <= TABLES[name], row
        assert set(formulas_of(row)) <= set(FORMULAS), row
    said = Counter((row.get("entry") or row.get("exercise"), row["is"], row["value"], row.get("about")) for row in rows(name))
    assert [key for key, times in said.items() if times > 1] == []


# how many values each entry of the list of formulas works out
ENTRIES = [6, 4, 3, 13, 5, 3, 4, 3, 4, 3, 1, 1, 7, 4, 2, 3, 3, 1, 3, 7, 5, 4]
ENTRIES += [4, 4, 3, 4, 7, 2, 2, 4, 2, 1, 7, 2, 4, 3, 1, 7, 4, 2, 1, 2, 2, 1]


def test_every_value_of_every_entry_is_here():
    found = Counter(row["entry"] for row in rows("worked_values") if "entry" in row)
    assert found == {f"F{number:02}": count for number, count in enumerate(ENTRIES, 1)}


def test_every_check_of_every_exercise_is_here():
    """174 figures of 87 exercises, 7 of 94 having none; and what was corrected says what stood there."""
    original = [row for row in rows("exercise_checks") if "extra" not in row]
    checked = {row["exercise"] for row in original}
    assert (len(original), len(checked)) == (174, 87)
    assert Counter(name.partition("-")[0] for name in checked) == {"E000": 20, "E002": 42, "E003": 15, "E004": 10}
    assert all(row["exercise"] in checked for row in rows("exercise_checks"))
