"""What a claim states, as people write numbers: `38.5 GB`, `about 1/3`, `over 95%`, `30-50%`; and whether a computed value bears it out."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ..amounts import AmountError, unit_named
from ..judge import judge
from ..units import PURE, UnitError, spell

_NUMBER = r"\d+/\d+|[\d,]*\.?\d+(?:e[+-]?\d+)?"
_STATED = re.compile(rf"(?:(about|over|under|at least|at most) )?({_NUMBER})(?:-({_NUMBER}))?\s*(\S.*)?")

CLOSE = 0.03  # a figure cut off instead of rounded, or rounded once too often, is still this close
MOST_ROUNDED = 0.05  # a single digit may be rounded from further away than anyone would accept
ABOUT = 0.15  # what "about" allows


@dataclass(frozen=True)
class Stated:
    """A number from `low` to `high` in base units; `half` is half a step of its last digit, `scale` the unit it is said in."""

    relation: str
    low: float
    high: float
    half: float
    unit: object = PURE
    scale: str | None = None

    def borne_out_by(self, computed):
        """ "true" if the computed value says so to the claim's own digits, "true_with_rounding" if nearly, else None."""
        if self.relation in BOUNDS:
            return "true" if BOUNDS[self.relation](computed, self) else None
        if self.low - self.half <= computed <= self.high + self.half:
            return "true"
        near = ABOUT if self.relation == "about" else CLOSE
        ends = (self.low, self.high) if self.relation == "about" or self.low == self.high else ()
        return "true_with_rounding" if any(judge(end, computed, within=near, unit=self.unit).passed for end in ends) else None


# relation: whether the computed value obeys it
BOUNDS = {
    "over": lambda computed, stated: computed > stated.high,
    "under": lambda computed, stated: computed < stated.low,
    "at least": lambda computed, stated: computed >= stated.low - stated.half,
    "at most": lambda computed, stated: computed <= stated.high + stated.half,
}


def read_stated(text, unit=PURE):
    """The number that a claim's `text` states. Raises AmountError if there is none, UnitError if it measures something else."""
    match = _STATED.fullmatch(text)
    if not match:
        raise AmountError(f"{text!r} states no number; write for example 38.5 GB, about 1/3, over 95% or 30-50%")
    relation, low, high, name = match.groups()
    factor, found = unit_named(name or "1", unit)
    if found != unit:
        raise UnitError(f"{text!r} is in {spell(found)}, but the computed value is in {spell(unit)}")
    ends = [float(Fraction(number.replace(",", ""))) * float(factor) for number in (low, high or low)]
    half = min(_half_step(high or low) * float(factor), MOST_ROUNDED * ends[1])
    return Stated(relation or "", *ends, half, unit, name)


def _half_step(number):
    """Half of what the last digit written is worth; a fraction is exact."""
    return 0.0 if "/" in number else float(Decimal(10) ** Decimal(number.replace(",", "")).as_tuple().exponent / 2)
