"""Numbers from outside beside ours: `python -m tools.published` prints the published ones, with what reproduces and why not.

Other tables of tests/data are named on the command line: worked_values, exercise_checks.
"""

import ast
import re
import sys
from pathlib import Path

import yaml

from formulary import amounts
from formulary.reckon import FUNCTIONS, Calculation

DATA = Path(__file__).parents[1] / "tests" / "data"
FIGURE = re.compile(r"([-+]?[0-9.]+)(?:e([-+]?\d+))?\s*(.*)")
ROUNDED, TRUNCATED = 0.5 + 1e-6, 1.0  # by how many units of the last digit printed a number may be off


def rows(name):
    """The rows of tests/data/<name>.yaml, as dictionaries."""
    return yaml.safe_load((DATA / f"{name}.yaml").read_text())


def formulas_of(row):
    """Names of the formulas that a row's arithmetic calls."""
    called = {ast.unparse(node.func).partition(".")[0] for node in ast.walk(ast.parse(row["is"])) if isinstance(node, ast.Call)}
    return sorted(called - set(FUNCTIONS))


def ours(row):
    """The Amount of a row's arithmetic."""
    return Calculation(row["is"], {}).amount()


def stated(row, unit):
    """(value, one unit of its last digit), both in base units."""
    digits, power, name = FIGURE.fullmatch(str(row["value"])).groups()
    factor = float(amounts.unit_named(name, unit)[0]) if name else 1.0
    size = 10.0 ** int(power or 0) * factor
    return float(digits) * size, 10.0 ** -len(digits.partition(".")[2]) * size


def off_by(row):
    """Ours less what is stated, in units of the last digit stated."""
    amount = ours(row)
    expected, digit = stated(row, amount.unit)
    return (amount.value - expected) / digit


def main(argv=None):
    for name in (sys.argv[1:] if argv is None else argv) or ["published"]:
        print("\n".join(map(_line, rows(name))))
        print(_tally(rows(name)))
    return 0


def _line(row):
    unit = FIGURE.fullmatch(str(row["value"])).group(3)
    amount = ours(row).say(unit if unit and unit != "%" else None, digits=6)
    why = row.get("why") or row.get("was") or ""
    source = row.get("source") or row.get("exercise") or row.get("entry") or ""
    return " | ".join((source, row.get("about", row["is"]), f"{row['value']}", amount, _status(row) + (f": {why}" if why else "")))


def _status(row):
    return "corrected" if "was" in row else row.get("status", "reproduces")


def _tally(table):
    statuses = [_status(row) for row in table]
    return f"{len(table)} numbers: " + ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))


if __name__ == "__main__":
    sys.exit(main())
