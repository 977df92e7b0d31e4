"""Amounts, and bounded arithmetic over them in which units are checked and formulas may be called."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from . import amounts as written
from .arithmetic import compute, parse
from .units import PURE, dimension

FUNCTIONS = {"ceil": sp.ceiling, "floor": sp.floor}


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
    value = expr.subs({symbol: sp.nsimplify(amounts[name].value) for name, symbol in symbols.items()})
    return Amount(int(value) if value.is_Integer else float(value), PURE if unit is None else unit)
