"""The JavaScript of one explorer: the fixed files of `static/`, and what is generated from the formulas and the units."""

import json
from functools import cache
from importlib.resources import files

from formulary import amounts
from formulary.javascript import javascript

FORMATTING = ("COUNT_SCALES", "GIGA_UP_TO", "WHOLE_UP_TO", "PLAIN_FROM", "PLAIN_UP_TO")
SHARED = ("format.js", "sheet.js", "controls.js", "report.js", "explorer.js")
NEEDS = {"timeline": ("plan.js",)}  # what a view file uses beside the shared ones


def module(formulas, view, units, expressions=None):
    """An ES module with the evaluators of `formulas` (name to Formula), tables of `units`, the fixed files and view file `view`.

    It computes with what `Formula.javascript` wrote and formats by the table that `formulary.amounts` formats by.
    expressions: what the view's rules say, as sympy expressions without units, by key.
    """
    made = [_tables(units), _evaluators(formulas), _expressions(expressions or {})]
    return "\n".join([*made, *map(static, (*SHARED, *NEEDS.get(view, ()), f"{view}.js")), EXPORTS])


EXPORTS = "export { FORMULAS, count, inOneUnit, read, scene, write };\nexport default { render };\n"


@cache
def static(name):
    """The text of a file of `static/`."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def formatting(units):
    """A script that reads and writes amounts in `units`, for pages that have no explorer's module."""
    return "\n".join([_tables(units), static("format.js")])


def _evaluators(formulas):
    rows = (f"  {name}: ({{ {', '.join(formula.inputs)} }}) => {formula.javascript}," for name, formula in formulas.items())
    return "\n".join(["const FORMULAS = {", *rows, "};"])


def _expressions(expressions):
    names = lambda expr: ", ".join(sorted(map(str, expr.free_symbols)))
    rows = (f"  {json.dumps(key)}: ({{ {names(expr)} }}) => {javascript(expr)}," for key, expr in expressions.items())
    return "\n".join(["const EXPRESSIONS = {", *rows, "};"])


def _tables(units):
    rows = {str(unit): {"scales": amounts.SCALES.get(unit, []), "names": amounts.names_of(unit)} for unit in units}
    tables = {"UNITS": rows} | {name: getattr(amounts, name) for name in FORMATTING}
    return "\n".join(f"const {name} = {json.dumps(table)};" for name, table in tables.items())
