"""A quantity: a symbol with a letter, a unit, a meaning and the values it may take; the glossary is made of these."""

import math
import numbers
import sys
from dataclasses import dataclass

import sympy as sp

from . import amounts
from .spelling import nearest
from .units import UnitError, spell


class InputError(ValueError):
    """A value that a quantity cannot have, or a name that a formula does not know."""


@dataclass(frozen=True)
class Quantity:
    """A symbol with its TeX letter, unit, meaning, and the values it may take.

    `span` is where it plausibly lives (a slider's ends); `choices` or `least` are what it must obey.
    """

    symbol: sp.Symbol
    tex: str
    unit: sp.Expr
    meaning: str
    span: tuple = (0, 1)
    choices: tuple = ()
    least: float = 0
    most: float = math.inf

    @property
    def name(self):
        return self.symbol.name

    def accept(self, value):
        """`value` as a plain number (int or float) or float64 array, in base units.

        Texts such as "7B" or "80GiB" are read. Raises InputError for what the quantity cannot be.
        """
        if isinstance(value, str):
            value = self._read(value)
        if isinstance(value, list | tuple | range) or is_array(value):
            return self._accept_array(value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real | sp.Number) or _is_time_span(value):
            raise self._refuse(value, "a number, or a text like '7B' or '80GiB'")
        return self._check(_plain(value))

    def _read(self, text):
        try:
            return amounts.read(text, self.unit)
        except (ValueError, UnitError) as error:
            raise InputError(f"{self.name}: {error}") from None

    def _accept_array(self, values):
        import numpy as np

        try:
            array = np.asarray(values)
        except ValueError:
            raise self._refuse(values, "an array of numbers in rows of one length") from None
        if array.dtype.kind not in "iuf" or isinstance(values, np.ma.MaskedArray):
            raise self._refuse(values, "an array of numbers")
        for value in {array.min().item(), array.max().item()} if array.size else ():
            self._check(value)
        if np.isnan(array).any():
            raise self._refuse(math.nan, self._wanted())
        return array.astype(float)

    def _check(self, value):
        if not abs(value) <= amounts.LARGEST or value < self.least or value > self.most or self._not_allowed(value):
            raise self._refuse(value, self._wanted())
        return value

    def _not_allowed(self, value):
        fractional = self.symbol.is_integer and value != int(value)
        return fractional or (self.choices and value not in self.choices)

    def _wanted(self):
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        kind = "a whole number" if self.symbol.is_integer else "a finite number"
        most = "" if self.most == math.inf else f" and at most {amounts.number(self.most)}"
        if self.least == -math.inf:
            return f"{kind}{most}"
        least = f"at least {amounts.number(self.least)}" if self.symbol.is_integer or self.least else "not negative"
        return f"{kind}, {least}{most}"

    def _refuse(self, value, wanted):
        return InputError(f"{self.name} ({self.meaning}, in {spell(self.unit)}) is {value!r}; it must be {wanted}")


def is_array(value):
    """Whether a value is a numpy array. Numpy takes as long to load as many a formula to compute, so it is only loaded for arrays."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_time_span(value):
    """Whether it is numpy's number of days, or other spans of time, which it counts as a whole number."""
    return hasattr(value, "dtype") and value.dtype.kind == "m"


def _plain(value):
    if isinstance(value, numbers.Integral | sp.Integer):
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf


GLOSSARY: dict[str, Quantity] = {}


def quantity(name, tex, unit, meaning, span=(0, 1), *, integer=False, **limits):
    """Enter a quantity into the glossary; returns its plain sympy symbol.

    Symbols are assumed positive unless `least` lets them be zero or below, so that sympy can simplify and take limits;
    those that may be negative are only assumed to be real.
    """
    if name in GLOSSARY:
        raise ValueError(f"quantity {name!r} is already in the glossary")
    least = limits.setdefault("least", 1 if integer else 0)
    zero_allowed = (integer and least == 0) or limits.get("choices", (1,))[0] == 0
    sign = {"real": True} if least < 0 else {"nonnegative": True} if zero_allowed else {"positive": True}
    symbol = sp.Symbol(name, **sign, **({"integer": True} if integer else {}))
    GLOSSARY[name] = Quantity(symbol, tex, sp.sympify(unit), meaning, span, **limits)
    return symbol


def look_up(name):
    """The quantity of that name (or symbol). Raises InputError with the nearest names if there is none."""
    if str(name) not in GLOSSARY:
        raise InputError(f"no quantity is called {str(name)!r}{nearest(name, GLOSSARY)}")
    return GLOSSARY[str(name)]


def unit_of(symbol):
    """The unit of a glossary symbol."""
    return look_up(symbol).unit
