"""A derivation: steps from assumptions to a formula, each checked by sympy to follow from the step before.

    Derivation("each rank sends one block a round", rounds * block)
        .substitute("k-1 rounds of S/k", {rounds: k - 1, block: S / k}, (k - 1) * S / k)

Every step states the expression it arrives at; the operation computes what it ought to be. If the two differ,
the definition raises DerivationError, so a wrong derivation cannot be imported.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from textwrap import indent

import sympy as sp

from .quantity import GLOSSARY, look_up, unit_of
from .units import BASE_UNITS, dimension, without_units

BRANCHING = (sp.Piecewise, sp.Max, sp.Min, sp.Abs, sp.ceiling, sp.floor, sp.Mod)


class DerivationError(ValueError):
    """A step that does not follow from the one before it."""


@dataclass(frozen=True)
class Step:
    because: str
    expr: sp.Expr
    wording: Callable = str
    follows: sp.Expr | None = None  # what the operation gives; `expr` is what the author states

    @property
    def operation(self):
        """What was done to the step before, in words and TeX; printed only when asked for, since TeX is slow."""
        return self.wording()


class Derivation:
    """Steps that lead from a first expression to `.expr`; every method adds one checked step and returns a new derivation."""

    def __init__(self, because, expr, *, before=()):
        self.steps = (*before, because if isinstance(because, Step) else Step(because, sp.sympify(expr)))
        dimension(self.expr, unit_of)

    @property
    def expr(self):
        return self.steps[-1].expr

    def rewrite(self, because, expr):
        """The same value in another form."""
        return self._then(because, expr, self.expr.doit(), lambda: "rewritten")

    def add(self, because, term, expr):
        """One more term."""
        return self._then(because, expr, self.expr + term, lambda: f"plus ${tex(term)}$")

    def multiply(self, because, factor, expr):
        """One more factor."""
        return self._then(because, expr, self.expr * factor, lambda: f"times ${tex(factor)}$")

    def power(self, because, exponent, expr):
        """The expression so far, raised to a power."""
        return self._then(because, expr, self.expr**exponent, lambda: f"to the power ${tex(sp.sympify(exponent))}$")

    def substitute(self, because, known, expr):
        """Symbols replaced by what an assumption or another formula says they are; formulas may be passed as a list."""
        if not isinstance(known, dict):
            known = {formula.result: formula.expr for formula in known}
        says = lambda: ", ".join(f"{tex(old)} = {tex(new)}" for old, new in known.items())
        return self._then(because, expr, self.expr.subs(known, simultaneous=True), lambda: f"with ${says()}$")

    def sum(self, because, index, first, last, expr):
        """The expression so far, added up for `index` from `first` to `last`."""
        span = lambda: rf"\sum_{{{tex(index)} = {tex(sp.sympify(first))}}}^{{{tex(sp.sympify(last))}}}"
        return self._then(because, expr, _sum(self.expr, index, first, last), lambda: f"${span()}$")

    def at_most(self, because, bound, expr):
        """The smaller of the expression so far and `bound`."""
        return self._then(because, expr, sp.Min(self.expr, bound), lambda: rf"at most ${tex(sp.sympify(bound))}$")

    def at_least(self, because, bound, expr):
        """The larger of the expression so far and `bound`."""
        return self._then(because, expr, sp.Max(self.expr, bound), lambda: rf"at least ${tex(sp.sympify(bound))}$")

    def round_up(self, because, expr):
        """The smallest whole number that is not below the expression so far."""
        return self._then(because, expr, sp.ceiling(self.expr), lambda: "rounded up")

    def largest_at_an_end(self, because, symbol, first, last, expr):
        """The largest value between `symbol` = `first` and `last`: one of the two ends, since the expression is linear in it."""
        if not same(self.expr.diff(symbol, 2), 0):
            raise DerivationError(f"{because!r}: {self.expr} is not linear in {symbol}, so its largest value may lie between the ends")
        ends = [self.expr.subs(symbol, end) for end in (first, last)]
        return self._then(
            because, expr, sp.Max(*ends), lambda: rf"the larger of ${tex(symbol)} = {tex(sp.sympify(first))}, {tex(sp.sympify(last))}$"
        )

    def limit(self, because, symbol, to, expr):
        """The limit as `symbol` goes to `to`."""
        return self._then(because, expr, limit(self.expr, symbol, to), lambda: rf"as ${tex(symbol)} \to {tex(sp.sympify(to))}$")

    def differentiate(self, because, symbol, expr):
        """The derivative by `symbol`."""
        return self._then(because, expr, self.expr.diff(symbol), lambda: rf"$\partial/\partial {tex(symbol)}$")

    def stationary(self, because, symbol, expr):
        """The value of `symbol` at which the expression so far, its cost, stops falling."""
        first, *rest = sp.Add.make_args(sp.expand(self.expr.diff(symbol)))
        return self._root(because, symbol, (first, -sp.Add(*rest)), expr, lambda: rf"$\partial/\partial {tex(symbol)} = 0$")

    def solve(self, because, symbol, equals, expr):
        """The value of `symbol` for which the expression so far equals `equals`."""
        return self._root(because, symbol, (self.expr, sp.sympify(equals)), expr, lambda: f"set equal to ${tex(sp.sympify(equals))}$")

    def _root(self, because, symbol, sides, expr, operation):
        """Put the stated root into both sides: far quicker than to find it, and as good a proof that it is one."""
        left, right = (side.subs(symbol, expr) for side in sides)
        if not same(left, right):
            raise DerivationError(f"{because!r}: {symbol} = {expr} is no root, it makes one side {left} and the other {right}")
        return self._then(because, expr, expr, lambda: f"{operation()}, solved for ${tex(symbol)}$")

    def given(self, **values):
        """The same steps with some quantities filled in, units and all; the words then say alone what was done."""
        filled = {look_up(name).symbol: sp.nsimplify(look_up(name).accept(value)) * look_up(name).unit for name, value in values.items()}
        *before, last = (Step(step.because, step.expr.subs(filled)) for step in self.steps)
        return Derivation(last, None, before=before)

    def _then(self, because, stated, follows, operation):
        stated = sp.sympify(stated)
        if not same(stated, follows):
            raise DerivationError(f"{because!r}: {stated} does not follow; {operation()} gives {follows}")
        return Derivation(Step(because, stated, operation, sp.sympify(follows)), None, before=self.steps)

    def _repr_markdown_(self):
        return "\n\n".join([*map(_item, count(1), self.steps), legend(self.quantities)])

    @property
    def quantities(self):
        """The quantities that its steps are written in, in the order of their appearance."""
        symbols = [symbol for step in self.steps for symbol in sorted(step.expr.free_symbols, key=str)]
        return [GLOSSARY[name] for name in dict.fromkeys(map(str, symbols)) if name in GLOSSARY]


def _item(number, step):
    """A step as an item of a numbered list in markdown; what stands in a line with dollars would be set in the line by some front ends."""
    head = f"{number}. "
    done = f" ({step.operation})" if step.operation else ""
    return f"{head}{step.because}{done}:\n\n" + indent(f"$${tex(step.expr)}$$", " " * len(head))


def legend(quantities):
    """What the letters of `quantities` stand for, in one sentence; empty without any."""
    named = "; ".join(f"${quantity.tex}$ {quantity.meaning}" for quantity in quantities)
    return f"With {named}." if named else ""


def _sum(expr, index, first, last):
    """Term by term, since sympy takes a hundred times longer for them together."""
    repeated, varying = sp.expand_mul(expr).as_independent(index, as_Add=True)
    terms = sp.Add.make_args(varying) if varying else ()
    return repeated * (last - first + 1) + sum(sp.summation(term, (index, first, last)) for term in terms)


def limit(expr, symbol, to):
    """sympy's limit, taken inside Max and Min (which sympy refuses, though they are continuous) and the sums and products of them."""
    if expr.has(sp.Max, sp.Min) and isinstance(expr, sp.Max | sp.Min | sp.Add | sp.Mul):
        parts = expr.func(*(limit(part, symbol, to) for part in expr.args))
        if parts is not sp.nan:
            return parts
    return sp.limit(expr, symbol, to)


def same(one, other, probes=8):
    """Whether two expressions are equal at exact points, drawn among the values the symbols may take, always the same ones.

    Smooth expressions that differ do so at nearly every point, so they get three; expressions with cases get `probes`.
    The tests prove the smooth ones by simplification as well, which takes too long to do at every import.
    """
    one, other = without_units(sp.sympify(one)), without_units(sp.sympify(other))
    if one == other:
        return True
    draw = random.Random(16)
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    if not _has_branches(one, other, symbols):
        probes = min(probes, 3)
    points = [{symbol: draw_value(symbol, draw) for symbol in symbols} for _ in range(probes)]
    return all(_equal_at(one, other, point) for point in points)


def _has_branches(one, other, symbols):
    """Whether some points may miss a case. Smooth expressions that differ do so at nearly every point."""
    return any(GLOSSARY[s.name].choices for s in symbols if s.name in GLOSSARY) or one.has(*BRANCHING) or other.has(*BRANCHING)


def draw_value(symbol, draw):
    """An exact value for a symbol that its quantity may have: one of its choices, or a small integer, or a fraction."""
    known = GLOSSARY.get(symbol.name)
    most = known.most if known else math.inf
    if known and known.choices:
        return sp.Integer(draw.choice(known.choices))
    if symbol.is_integer:
        return sp.Integer(draw.randint(min(2, int(min(97, most))), int(min(97, most))))
    return sp.Rational(draw.randint(1, 997), draw.randint(2, 89)) if most == math.inf else sp.Rational(draw.randint(1, 88), 89) * int(most)


def _equal_at(one, other, point):
    left, right = one.xreplace(point).doit(), other.xreplace(point).doit()
    if left == right:
        return True
    left, right = sp.N(left, 40), sp.N(right, 40)
    gap, scale = abs(left - right), abs(left) + abs(right)
    return bool(gap.is_number and gap.is_finite and gap <= scale * sp.Float("1e-20"))


def tex(expr):
    """TeX with the glossary's letters; base units upright."""
    letters = {q.symbol: q.tex for q in GLOSSARY.values()}
    units = {unit: rf"\,\mathrm{{{short}}}\," for unit, short in zip(BASE_UNITS, ("B", "FLOP", "token", "s", "\\$", "J"), strict=True)}
    return sp.latex(sp.sympify(expr), symbol_names=letters | units)
