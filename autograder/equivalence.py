"""Whether a learner's formula equals a key: exact values at the same random points, drawn where the quantities live.

Two rational functions of the sizes we read that agree at twelve random points are the same but for chances below one in
a billion; and where a key has cases (max, ceil), a dozen points meet each of them.
"""

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import sympy as sp

from formulary.derivation import draw_value

from .expression import MP, Undefined, irrational, names_in, value
from .symbols import symbol

POINTS = 12
FEWEST = 6  # points at which both sides have a value, or we can't tell
ASSIGNMENTS = 100  # ways to give the letters their quantities that are tried
DIGITS = 50


@dataclass(frozen=True)
class Key:
    """An expression with its exact values at random points: [(values by symbol name, value of the expression)]."""

    expr: sp.Expr
    points: tuple

    @property
    def known(self):
        """Whether the expression has values at enough points."""
        return len(self.points) >= FEWEST


@cache
def key(expr, names):
    """The Key of an expression over the symbols called `names`, which may be more than it holds."""
    draw, points = random.Random(16), []
    symbols = [symbol(name) for name in sorted({*names, *map(str, expr.free_symbols)})]
    for _ in range(POINTS):
        point = {symbol: draw_value(symbol, draw) for symbol in symbols}
        if (found := _number(expr.xreplace(point).doit())) is not None:
            points.append(({symbol.name: Fraction(int(v.p), int(v.q)) for symbol, v in point.items()}, found))
    return Key(expr, tuple(points))


def same(one, other):
    """Whether two Keys over the same names have the same value at every point."""
    return len(one.points) == len(other.points) and all(_same(a, b) for (_, a), (_, b) in zip(one.points, other.points, strict=True))


def _number(expr):
    """A sympy number as a Fraction, or with 50 digits; None if it is none or not finite."""
    if expr.is_Rational:
        return Fraction(int(expr.p), int(expr.q))
    found = sp.N(expr, DIGITS)
    return MP.mpf(str(found)) if found.is_Float and found.is_finite else None


def equals(trees, meanings, right):
    """Whether one of the readings `trees` equals the Key `right` with its letters standing for some of their `meanings`."""
    return any(_equals(tree, assignment, right) for tree in trees for assignment in _assignments(tree, meanings))


def _assignments(tree, meanings):
    """{letter: name} in every way that gives different letters different meanings."""
    letters = sorted(names_in(tree))
    every = itertools.product(*(meanings[letter] for letter in letters))
    different = (names for names in every if len({*names}) == len(letters) or _spelled_twice(letters, meanings))
    return (dict(zip(letters, names, strict=True)) for names in itertools.islice(different, ASSIGNMENTS))


def _spelled_twice(letters, meanings):
    """Whether some quantity stands under two of the letters for sure, as in `P` and `num_stages`."""
    sure = [meanings[letter][0] for letter in letters if len(meanings[letter]) == 1]
    return len(set(sure)) < len(sure)


def _equals(tree, assignment, right):
    compared = 0
    for point, wanted in right.points:
        try:
            found = value(tree, {letter: point[name] for letter, name in assignment.items()})
        except Undefined:
            continue
        if not _same(found, wanted):
            return False
        compared += 1
    return compared >= FEWEST


def _same(found, wanted):
    if isinstance(found, Fraction) and isinstance(wanted, Fraction):
        return found == wanted
    found, wanted = irrational(found), irrational(wanted)
    return abs(found - wanted) <= (abs(found) + abs(wanted)) * MP.mpf(10) ** -30
