"""Values from outside, row by row: worked by hand or by other programs, and published. The tables are in tests/data."""

import re
from pathlib import Path

import pytest
import yaml

from formulary import amounts, formula

DATA = Path(__file__).parents[1] / "data"
KEYS = {"formula", "about", "given", "under", "over", "value", "source", "status", "why"}
STATUSES = ("reproduces", "truncated", "does not reproduce")


def rows(name):
    return yaml.safe_load((DATA / f"{name}.yaml").read_text())


def cases(name):
    return [pytest.param(row, id=f"{row['formula']}: {row['about']}", marks=_marks(row)) for row in rows(name)]


def _marks(row):
    """A row that reproduces confirms its formula, and the one it is divided by."""
    names = [row["formula"], *([row["over"]["formula"]] if "over" in row else [])]
    return pytest.mark.witness(*names) if row.get("status") != "does not reproduce" else ()


def computed(row):
    made = formula(row["formula"])
    made = made.under(*row["under"]) if "under" in row else made
    return made(**{k: v for k, v in row["given"].items() if k in made.inputs}), made.unit


def stated(row, unit):
    """(value, one unit of its last digit), both in base units."""
    number, name = re.fullmatch(r"([0-9.]+)\s*(.*)", str(row["value"])).groups()
    factor = float(amounts.unit_named(name, unit)[0]) if name else 1.0
    return float(number) * factor, 10.0 ** -len(number.partition(".")[2]) * factor


def off_by(row):
    """Computed less stated, in units of the last digit stated."""
    value, unit = computed(row)
    if "over" in row:
        value, unit = value / computed(row["over"])[0], 1
    expected, digit = stated(row, unit)
    return (value - expected) / digit


ROUNDED = 0.5 + 1e-6


@pytest.mark.parametrize("row", cases("worked_values"))
def test_worked_value(row):
    assert abs(off_by(row)) <= ROUNDED


@pytest.mark.parametrize("row", cases("published"))
def test_published_value(row):
    assert row["source"]
    off = off_by(row)
    status = row.get("status", "reproduces")
    if status == "reproduces":
        assert abs(off) <= ROUNDED
    elif status == "truncated":
        assert ROUNDED < off < 1
    else:
        assert row["why"] and not -ROUNDED <= off < 1, "it reproduces after all"


@pytest.mark.parametrize("name", ["worked_values", "published"])
def test_rows_say_what_they_mean(name):
    """No row has a key that nobody reads, a status that does not exist, or an input its formula does not take."""
    for row in rows(name):
        assert set(row) <= KEYS and row.get("status", "reproduces") in STATUSES, row
        plain, made = formula(row["formula"]), formula(row["formula"])
        made = made.under(*row["under"]) if "under" in row else made
        assert set(row["given"]) <= set(plain.inputs) | set(made.inputs), row["about"]
