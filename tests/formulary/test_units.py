"""Dimensions: what must agree does, what must not raises, and no node slips through."""

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulary.units import ANY, BYTE, FLOP, PURE, SECOND, TOKEN, UnitError, dimension

UNIT = {"flop": FLOP, "peak": FLOP / SECOND, "size": BYTE, "link": BYTE / SECOND, "time": SECOND, "count": PURE}
SYMBOLS = {name: sp.Symbol(name, positive=True) for name in UNIT}
flop, peak, size, link, time, count = (SYMBOLS[name] for name in UNIT)


def of(expr):
    return dimension(expr, lambda symbol: UNIT[symbol.name])


@pytest.mark.parametrize(
    ("expr", "unit"),
    [
        (flop / peak, SECOND),
        (sp.Max(flop / peak, size / link), SECOND),
        (16 * BYTE * count, BYTE),
        (sp.sqrt(time**2), SECOND),
        (sp.ceiling(size), BYTE),
        (sp.log(count) * time, SECOND),
        (sp.Piecewise((size, count > 2), (0, True)), BYTE),
        (sp.Integer(0), ANY),
    ],
)
def test_dimension(expr, unit):
    assert of(expr) == unit


@pytest.mark.parametrize(
    "expr",
    [
        sp.Max(flop / peak, size),
        size + time,
        sp.Piecewise((size, count > 2), (time, True)),
        sp.Piecewise((size, size > time), (2 * size, True)),
        sp.log(size),
        count**size,
        size**count,
        sp.gamma(count),
    ],
    ids=str,
)
def test_what_does_not_balance_raises(expr):
    with pytest.raises(UnitError):
        of(expr)


def test_the_error_names_both_sides():
    with pytest.raises(UnitError, match=r"flop/peak is in second, but size is in byte|size is in byte, but flop/peak is in second"):
        of(sp.Max(flop / peak, size))


def exponents(unit):
    return {base: power for base, power in unit.as_powers_dict().items() if base != 1}


@given(st.lists(st.tuples(st.sampled_from(sorted(UNIT)), st.integers(-3, 3)), min_size=1, max_size=6))
def test_products_of_powers_stay_in_the_algebra(factors):
    """Counted here with plain integers instead of sympy: exponents of each base add up."""
    expr = sp.Mul(*(SYMBOLS[name] ** power for name, power in factors))
    expected = {}
    for name, power in factors:
        for base, exponent in exponents(UNIT[name]).items():
            expected[base] = expected.get(base, 0) + exponent * power
    assert exponents(of(expr)) == {base: e for base, e in expected.items() if e}


# Random expressions, each with the exponents of (byte, flop, token, second) counted beside it; None where terms clash.
BASES = (BYTE, FLOP, TOKEN, SECOND)
LEAVES = [(sp.Symbol(f"x{b}{p + 1}", positive=True), tuple(p * (b == i) for i in range(4))) for b in range(4) for p in (1, -1)]
LEAVES += [(sp.Symbol(f"n{i}", positive=True), (0, 0, 0, 0)) for i in range(2)]
COUNTED = dict(LEAVES)
JOINS = [
    lambda terms: sp.Add(*terms),
    lambda terms: sp.Max(*terms),
    lambda terms: sp.Min(*terms),
    lambda terms: sp.Piecewise((terms[0], LEAVES[-1][0] > 2), (terms[-1], True)),
]


def unit(counts):
    return sp.Mul(*(base**count for base, count in zip(BASES, counts, strict=True)))


def joined(parts, join, alike):
    """Several terms under one node: of one unit, being multiples of the first, or drawn at random."""
    (first, counts), *_ = parts
    terms = [(index * first, counts) for index, _ in enumerate(parts, 1)] if alike else parts
    return join([term for term, _ in terms]), counts if len({counts for _, counts in terms}) == 1 else None


def product(parts):
    counts = [counts for _, counts in parts]
    return sp.Mul(*(expr for expr, _ in parts)), None if None in counts else tuple(map(sum, zip(*counts, strict=True)))


def power(part, exponent):
    expr, counts = part
    return expr**exponent, None if counts is None else tuple(exponent * count for count in counts)


def grow(parts):
    several = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        several.map(product),
        st.builds(power, parts, st.sampled_from([2, 3, -1, sp.Rational(1, 2)])),
        st.builds(joined, several, st.sampled_from(JOINS), st.booleans()),
    )


@settings(max_examples=300)
@given(st.recursive(st.sampled_from(LEAVES), grow, max_leaves=8))
def test_the_algebra_is_closed_under_random_expressions(drawn):
    expr, counts = drawn
    try:
        found = dimension(expr, lambda symbol: unit(COUNTED[symbol]))
    except UnitError:
        assert counts is None
        return
    assert counts is None or found == unit(counts)
    assert scales_like(expr, found)


def scales_like(expr, found):
    """Measured in other units, by numbers alone: bytes twice as large, FLOP thrice, … change the value by the unit's own factor."""
    point = {symbol: sp.Rational(3 + 2 * index, 7) for index, symbol in enumerate(COUNTED)}
    factors = dict(zip(BASES, (2, 3, 5, 7), strict=True))
    scaled = {symbol: value * unit(COUNTED[symbol]).subs(factors) for symbol, value in point.items()}
    before, after = (sp.N(expr.subs(at), 30) for at in (point, scaled))
    return abs(after - before * found.subs(factors)) <= sp.Float("1e-20") * abs(after)
