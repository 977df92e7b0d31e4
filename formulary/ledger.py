"""A ledger: named formulas of one unit that add up. Parts keep their names, where a sum would forget them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from . import amounts
from .derivation import same
from .formula import Formula
from .units import UnitError, spell


@dataclass(frozen=True, eq=False)
class Ledger:
    """`parts` by name, and the `total` formula they add up to.

    Raises UnitError if the parts are not all in the total's unit, ValueError if they do not add up to it.
    """

    title: str
    parts: Mapping[str, Formula]
    total: Formula

    def __post_init__(self):
        for name, part in self.parts.items():
            if part.unit != self.total.unit:
                raise UnitError(f"ledger {self.title}: {name} is in {spell(part.unit)}, the total in {spell(self.total.unit)}")
        added = sum(part.expr for part in self.parts.values())
        if not same(added, self.total.expr):
            raise ValueError(f"ledger {self.title}: its parts and its total differ by {sp.simplify(added - self.total.expr)}")

    @cached_property
    def inputs(self):
        """Every input of every part, by name."""
        return {name: q for part in self.parts.values() for name, q in part.inputs.items()}

    def __call__(self, **values):
        """The value of each part, by name, in base units. Inputs are checked against the total's."""
        values = self.total.accept(values)
        return {name: part(**{k: values[k] for k in part.inputs}) for name, part in self.parts.items()}

    def given(self, **values):
        """The ledger with some inputs filled in."""
        return self._each(lambda formula: formula.given(**{k: v for k, v in values.items() if k in formula.inputs}))

    def under(self, *alternatives):
        """The ledger with conventions chosen."""
        return self._each(lambda formula: formula.under(*alternatives))

    def _each(self, change):
        return Ledger(self.title, {name: change(part) for name, part in self.parts.items()}, change(self.total))

    def at(self, **values):
        """The ledger with numbers in it, as a table that shows itself."""
        return Balance(self.title, self(**values), self.total.unit)

    def _repr_latex_(self):
        parts = " + ".join(rf"\underbrace{{{part.latex.partition(' = ')[2]}}}_{{\text{{{name}}}}}" for name, part in self.parts.items())
        return f"$${self.total.quantity.tex} = {parts}$$"


@dataclass(frozen=True)
class Balance:
    """A ledger's figures: rows of (name, value) in one unit, their total and shares."""

    title: str
    rows: Mapping[str, float]
    unit: object

    @property
    def total(self):
        return sum(self.rows.values())

    def share(self, name):
        """The part of the total that `name` is, between 0 and 1; 0 where the total is 0."""
        return self.rows[name] / self.total if self.total else 0.0

    def lines(self):
        """(name, amount, share) as text, the total last."""
        parts = [name for name, value in self.rows.items() if value]
        told = amounts.in_one_unit([*(self.rows[name] for name in parts), self.total], self.unit)
        return list(zip([*parts, "total"], told, [*(f"{self.share(name):.1%}" for name in parts), "100%"], strict=True))

    def _repr_markdown_(self):
        return "\n".join([f"| {self.title} | | share |", "|---|--:|--:|", *(f"| {a} | {b} | {c} |" for a, b, c in self.lines())])

    def __str__(self):
        return "\n".join(f"{name:<24}{amount:>14}{share:>9}" for name, amount, share in self.lines())
