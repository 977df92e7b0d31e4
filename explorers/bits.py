"""The bit explorer: one number as every format stores it."""

import sympy as sp

from formulary import glossary as g
from formulary.hardware import FORMATS
from formulary.precision import EXPONENT_BIAS, FLOAT_SPACING, LARGEST_FLOAT, SMALLEST_SUBNORMAL

from .control import Number
from .explorer import Explorer
from .grid import COLUMN, NOTHING, Grid

TITLES = [title for title in FORMATS if title != "fp64"]  # which is what browsers compute with
BIGGEST = max(1 + FORMATS[title]["exponent_bits"] + FORMATS[title]["mantissa_bits"] for title in TITLES)
SPAN = tuple(formula(**FORMATS["fp16"].only(formula)) for formula in (SMALLEST_SUBNORMAL, LARGEST_FLOAT))

_x = sp.Symbol("number", positive=True)
_bias, _spacing, _steps, _code, _last = sp.symbols("bias spacing steps code last_finite", positive=True)
_half, _mantissa = sp.Rational(1, 2), g.mantissa_bits
_per_binade, _binade, _top = 2**_mantissa, g.binade, g.max_exponent
_up = sp.floor(_x / _spacing + _half)
_place = g.exponent_bits + g.mantissa_bits - COLUMN  # of a bit, from the right
_bit = sp.Mod(sp.floor(sp.Min(_code, _last + 1) / 2**_place), 2)

# A number is so many steps of its binade; of two steps equally near, the even one. Steps counted on from one binade to the next
# are the code that is stored, and behind the last finite code stands the one for "too large".
STORED = {
    "bias": EXPONENT_BIAS.expr,
    "binade": sp.Max(sp.floor(sp.log(_x, 2)), 1 - _bias),
    "spacing": FLOAT_SPACING.expr,
    "steps": sp.Piecewise((_up - sp.Mod(_up, 2), sp.Eq(_x / _spacing + _half, _up)), (_up, True)),
    "code": (_binade + _bias - 1) * _per_binade + _steps,
    "last_finite": (_top + _bias + 1) * _per_binade - 1 - g.reserved_codes,
}


def bits_explorer(number=0.1):
    """A number's bits in every format, and the nearest number that each can hold."""
    kinds = ((0, COLUMN < 1), (1, g.exponent_bits >= COLUMN), (2, _place >= 0), (NOTHING, True))
    view = Grid(
        rows=len(TITLES),
        columns=BIGGEST,
        legend=("sign", "exponent", "mantissa"),
        cells="bits",
        what="as it is stored; the numbers at the right are the nearest that the format has",
        cell=sp.Piecewise(*kinds),
        mark=_bit,
        tone=1 - _bit,
        row_label=TITLES,
        by_row={name: [FORMATS[title][name] for title in TITLES] for name in FORMATS["fp32"]},
        where=STORED,
        note=sp.Piecewise((_steps * _spacing, _code <= _last), (sp.oo, True)),
        note_what="stands for",
        height=170,
    )
    controls = [Number("number", number, "the number", scale="log", span=SPAN)]
    return Explorer([], controls, view, title="One number, five formats", made_by="explorers.bits_explorer")
