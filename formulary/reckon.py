"""Amounts, and bounded arithmetic over them in which units are checked and formulas may be called."""

import ast
import string
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from . import amounts as written
from . import formula
from .arithmetic import NotArithmetic, compute, parse
from .quantity import look_up
from .units import BYTE, PURE, UnitError, dimension, spell

FUNCTIONS = {"ceil": sp.ceiling, "floor": sp.floor, "sqrt": sp.sqrt, "max": sp.Max, "min": sp.Min}


@dataclass(frozen=True)
class Amount:
    """A value in base units and its unit."""

    value: float
    unit: sp.Expr

    def say(self, scale=None, digits=4):
        return written.write(self.value, self.unit, digits, scale)


def reckon(text, amounts: Mapping[str, Amount]):
    """The Amount of arithmetic such as `(adam - adam_8bit) / adam`; units are checked. Raises NotArithmetic or UnitError."""
    return _reckon(parse(text), amounts)


def _reckon(tree, amounts):
    symbols = {node.id: sp.Symbol(node.id, positive=True) for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in amounts}
    expr = sp.sympify(compute(tree, symbols, FUNCTIONS))
    unit = dimension(expr, lambda symbol: amounts[symbol.name].unit)
    value = expr.subs({symbol: _exact(amounts[name].value) for name, symbol in symbols.items()})
    return Amount(int(value) if value.is_Integer else float(value), PURE if unit is None else unit)


def _exact(value):
    """A number as the fraction its decimals say."""
    return sp.Rational(repr(value)) if isinstance(value, float) else sp.Integer(value)


class Calculation:
    """Arithmetic in which formulas are called, under a convention if one is named: `state_bytes.fp32_adam() / '80 GB'`.

    A quoted text is an amount. A call takes what its formula asks for and it does not name itself from `given`.
    Raises NotArithmetic, InputError or UnitError for what is none.
    """

    def __init__(self, text, given: Mapping):
        self.given = given
        self.calls = {}
        self.amounts = {name: Amount(look_up(name).accept(value), look_up(name).unit) for name, value in given.items()}
        self.tree = _Naming(self).visit(parse(text))

    def amount(self, instead: Mapping[str, Amount] = ()):
        """The result, with other amounts `instead` of those of some calls."""
        return _reckon(self.tree, {**self.amounts, **dict(instead)})

    def otherwise(self):
        """(Alternative, Amount) for every other convention of every formula called, but for the conventions that a call names."""
        for name, (called, values, named) in self.calls.items():
            for row in called.compare(**values).rows:
                if row.value is not None and row.convention not in named:
                    yield row.alternative, self.amount({name: Amount(row.value, row.unit)})

    def scaled(self, unit, factor):
        """The results with one of the calls in `unit` divided by `factor`."""
        for name in self.calls:
            if self.amounts[name].unit == unit:
                yield self.amount({name: Amount(self.amounts[name].value / factor, unit)})


class _Naming(ast.NodeTransformer):
    """Gives every formula call and every quoted amount a name, and tells the calculation what it is worth."""

    def __init__(self, calculation):
        self.calculation = calculation

    def visit_Constant(self, node):
        return self._name(_quoted(node.value)) if isinstance(node.value, str) else node

    def visit_Call(self, node):
        name, *conventions = ast.unparse(node.func).split(".")
        if name in FUNCTIONS:
            return self.generic_visit(node)
        if node.args or any(keyword.arg is None for keyword in node.keywords):
            raise NotArithmetic(f"{ast.unparse(node)}: a formula's values are given by name")
        called = formula(name)
        chosen = called.under(*conventions)
        values = {**self.calculation.given, **{keyword.arg: self._argument(keyword) for keyword in node.keywords}}
        own = {k: v for k, v in values.items() if k in chosen.inputs}
        unknown = {keyword.arg for keyword in node.keywords} - set(called.inputs) - set(chosen.inputs)
        if unknown:
            raise NotArithmetic(f"{name} takes no {', '.join(unknown)}")
        settled = {k: v for alternative in map(called.alternative, conventions) for k, v in alternative.values.items()}
        named = {c.name for c in called.conventions if any(alternative in c for alternative in conventions)}
        return self._name(Amount(chosen(**own), chosen.unit), (called, {**values, **settled}, named))

    def _argument(self, keyword):
        if isinstance(keyword.value, ast.Constant):
            return keyword.value.value
        inner = Calculation(ast.unparse(keyword.value), self.calculation.given).amount()
        if inner.unit != look_up(keyword.arg).unit:
            raise UnitError(
                f"{ast.unparse(keyword.value)} is in {spell(inner.unit)}, but {keyword.arg} in {spell(look_up(keyword.arg).unit)}"
            )
        return inner.value

    def _name(self, amount, call=None):
        name = f"amount_{len(self.calculation.amounts)}"
        self.calculation.amounts[name] = amount
        if call:
            self.calculation.calls[name] = call
        return ast.Name(name, ast.Load())


def _quoted(text):
    number, _, name = text.partition(" ")
    _, found = written.unit_named(name.strip() or "1", BYTE)  # B is a byte
    return Amount(written.read(f"{number} {name}", found), found)


def say(words, given: Mapping, scale=None):
    """`words` with each blank `{calculation}` or `{calculation:unit}` worked out at the values of `given` and written out."""
    said = []
    for before, text, unit, _ in string.Formatter().parse(words):
        said += [before, "" if text is None else Calculation(text, given).amount().say(unit or scale)]
    return "".join(said)
