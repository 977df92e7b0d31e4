"""Dimensions: what must agree does, what must not raises, and no node slips through."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary.units import ANY, BYTE, FLOP, PURE, SECOND, UnitError, dimension

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
