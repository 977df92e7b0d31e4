"""Amounts as people write them: `7B`, `80GiB`, `50 GB/s`, `67.5 min`; read with a unit, written with one.

GB is 10^9 bytes and GiB is 2^30, always. `B` counts billions where a pure number is wanted and bytes where bytes are.
"""

import math
import re
from functools import lru_cache

import sympy as sp

from .units import BYTE, DOLLAR, FLOP, JOULE, PURE, SECOND, TOKEN, UnitError, spell

DECIMAL = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}
COUNTS = {**DECIMAL, "B": 10**9, "million": 10**6, "billion": 10**9, "trillion": 10**12, "bn": 10**9}


def _prefixed(names, factor, unit, *prefixes):
    scales = {"": 1} | {p: scale for table in prefixes for p, scale in table.items()}
    return {p + name: (scale * factor, unit) for name in names for p, scale in scales.items()}


ATOMS = {
    **_prefixed(["B", "byte", "bytes"], 1, BYTE, DECIMAL, BINARY),
    **_prefixed(["b", "bit", "bits"], sp.Rational(1, 8), BYTE, DECIMAL, BINARY),
    **_prefixed(["FLOP", "FLOPs", "flop", "flops"], 1, FLOP, DECIMAL),
    **_prefixed(["token", "tokens", "tok"], 1, TOKEN, DECIMAL),
    **_prefixed(["s", "sec", "second", "seconds"], 1, SECOND, SMALL),
    **dict.fromkeys(["min", "minute", "minutes"], (60, SECOND)),
    **dict.fromkeys(["h", "hour", "hours"], (3600, SECOND)),
    **dict.fromkeys(["d", "day", "days"], (86400, SECOND)),
    **dict.fromkeys(["$", "USD", "dollar", "dollars"], (1, DOLLAR)),
    **_prefixed(["J"], 1, JOULE, DECIMAL),
    **_prefixed(["W"], 1, JOULE / SECOND, DECIMAL),
    "%": (sp.Rational(1, 100), PURE),
    "1": (1, PURE),
    "x": (1, PURE),
}

AMOUNT = re.compile(r"\s*([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")


LARGEST = 10**300  # what a double still holds, with room for a few multiplications; nan is not below it either


class AmountError(ValueError):
    """A text that is not an amount, or is one in another unit than the place for it wants."""


def read(text, unit=PURE):
    """The value of `text` in base units (bytes, seconds, tokens, …), checked to be in `unit`.

    A bare number is taken to be in base units already. Raises AmountError for anything else than
    a number and a known unit, UnitError when the unit measures something else.
    """
    match = AMOUNT.fullmatch(text) if len(text) <= 200 else None
    if not match:
        raise AmountError(f"{text[:60]!r} is not an amount: write a number and a unit, like 7B, 80GiB or 50 GB/s")
    number, name = match.groups()
    value = _number(number.replace("_", "").replace(",", ""))
    _must_be_finite(text, value)
    if not name:
        return value
    factor, found = unit_named(name, unit)
    if found != unit:
        raise UnitError(f"{text.strip()!r} is in {spell(found)}, but {spell(unit)} is wanted{_examples(unit)}")
    _must_be_finite(text, value * factor)
    return _plain(value * factor)


def _must_be_finite(text, value):
    if not abs(value) <= LARGEST:
        raise AmountError(f"{text.strip()[:60]!r} is larger than anything counted here")


@lru_cache
def unit_named(name, wanted=PURE):
    """(factor to base units, dimension) of a unit's name such as `GB/s`; counts such as `B` only if `wanted` is pure."""
    if wanted == PURE and name in COUNTS:
        return COUNTS[name], PURE
    factor, unit = sp.Integer(1), PURE
    for position, atom in enumerate(re.split(r"\s*/\s*|\s+per\s+", name.strip())):
        if atom not in ATOMS and not (position == 0 and atom == ""):
            raise AmountError(f"unknown unit {atom!r} in {name!r}{_examples(wanted)}")
        scale, base = ATOMS.get(atom, (1, PURE))
        factor, unit = (factor * scale, unit * base) if position == 0 else (factor / scale, unit / base)
    return factor, unit


def _number(text):
    return int(text) if re.fullmatch(r"[+-]?\d{1,300}", text) else float(text)


def _plain(value):
    """A sympy number as int where it is one, else float."""
    value = sp.nsimplify(value) if isinstance(value, sp.Integer | sp.Rational) else value
    return int(value) if value == int(value) else float(value)


def _examples(unit):
    names = list(COUNTS) if unit == PURE else [scale for scale, _ in SCALES.get(unit, [])]
    return f"; try {', '.join(names[:6])}" if names else ""


# The units an amount is written in, largest first; the last one also serves everything smaller.
SCALES = {
    BYTE: [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)],
    BYTE / SECOND: [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("B/s", 1)],
    FLOP: [("EFLOP", 1e18), ("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9), ("FLOP", 1)],
    FLOP / SECOND: [("PFLOP/s", 1e15), ("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("FLOP/s", 1)],
    FLOP / BYTE: [("FLOP/B", 1)],
    FLOP / TOKEN: [("TFLOP/token", 1e12), ("GFLOP/token", 1e9), ("FLOP/token", 1)],
    SECOND: [("days", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)],
    TOKEN: [("tokens", 1)],
    TOKEN / SECOND: [("tokens/s", 1)],
    DOLLAR: [("$", 1)],
    JOULE: [("MJ", 1e6), ("kJ", 1e3), ("J", 1)],
    JOULE / SECOND: [("MW", 1e6), ("kW", 1e3), ("W", 1)],
}
COUNT_SCALES = [("T", 1e12), ("B", 1e9), ("M", 1e6)]
# A terabyte of model state is still spoken of in GB, so that ledgers compare at a glance.
GIGA_UP_TO = 1e13
WHOLE_UP_TO = 1e6  # below it a whole number is written in full, however few digits are asked for
PLAIN_FROM, PLAIN_UP_TO = 1e-3, 1e15  # outside of it a number is written with an exponent


def write(value, unit=PURE, digits=4, scale=None):
    """`value`, in base units, as a reader wants it: `38.5 GB`; `scale` names another unit to use, such as `GiB`."""
    if scale:
        factor, found = unit_named(scale, unit)
        if found != unit:
            raise UnitError(f"{scale} cannot show {spell(unit)}{_examples(unit)}")
        return f"{number(value / float(factor), digits)}{'' if unit == PURE else ' '}{scale}"
    if unit == PURE:
        return number(value, digits)
    if unit not in SCALES:
        return f"{number(value, digits)} {unit}"
    name, size = _best_scale(abs(value), SCALES[unit])
    return f"{number(value / size, digits)} {name}"


def count(value, digits=4):
    """A pure number as people say it: `7B`, `350M`; below a million in full."""
    for name, size in COUNT_SCALES:
        if abs(value) >= size:
            return f"{number(value / size, digits)}{name}"
    return number(value, digits)


def spoken(value, unit=PURE, digits=4, scale=None):
    """`value` as a label says it: a pure number as `count` has it, all else with its unit."""
    return count(value, digits) if unit == PURE and not scale else write(value, unit, digits, scale)


def in_one_unit(values, unit=PURE, digits=4, scale=None):
    """`values` that stand under each other, as texts in one unit: that of the largest. What would be lost in it keeps its own."""
    one = scale or _scale_of(values, unit)
    least = PLAIN_FROM * float(unit_named(one, unit)[0]) if one and not scale else 0
    return [write(value, unit, digits, scale if 0 < abs(value) < least else one) for value in values]


def _scale_of(values, unit):
    """The name of the unit that the largest of `values` is written in, if there is one."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0)
    if unit == PURE:
        return next((name for name, size in COUNT_SCALES if largest >= size), None)
    return _best_scale(largest, SCALES[unit])[0] if unit in SCALES else None


def names_of(unit):
    """Every name an amount in `unit` may be typed with, to its factor; of a rate's denominators only the base unit's."""
    above, below = unit.as_numer_denom()
    per = "" if below == PURE else "/" + next(name for name, size in SCALES[below] if size == 1)
    names = COUNTS if unit == PURE else {}
    typed = {name + per: _plain(factor) for name, (factor, found) in ATOMS.items() if found == above}
    return {**names, **typed, **dict(SCALES.get(unit, []))}


def _best_scale(size, scales):
    fitting = [(name, step) for name, step in scales if size >= step] or [next(s for s in scales if s[1] == 1)]
    if fitting[0][0].startswith("T") and size < GIGA_UP_TO:
        fitting = fitting[1:]
    return fitting[0]


def number(value, digits=4):
    """A plain number to `digits` significant digits, with thousands separators and no trailing zeros."""
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < WHOLE_UP_TO):
        return f"{int(value):,}" if abs(value) < PLAIN_UP_TO else f"{value:.{digits}g}"
    size = abs(value)
    if size != 0 and not PLAIN_FROM <= size < PLAIN_UP_TO:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
