"""The one comparison in the project: a stated number against a reference, be it a learner's or a measurement."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from . import amounts
from .slip import Slip, slip_of
from .units import PURE


class Outcome(Enum):
    """How a comparison ended. BROKEN means that we could not judge: never the learner's fault, never worth a point lost."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"


@dataclass(frozen=True)
class Verdict:
    """An outcome with what was stated, what was expected, in which unit, and the hint that fits the mistake or the `slip`."""

    outcome: Outcome
    stated: float | None = None
    expected: float | None = None
    unit: object = PURE
    hint: str = ""
    mistake: str = ""
    within: float = 0.0
    slip: Slip | None = None

    @property
    def passed(self):
        return self.outcome is Outcome.PASSED

    @property
    def ratio(self):
        """stated / expected, or nan where that says nothing."""
        return self.stated / self.expected if self.stated is not None and self.expected else math.nan

    @property
    def reason(self):
        """The verdict in a sentence: "stated 12.25 GB, expected 24.5 GB (0.50x): …"."""
        if self.outcome is Outcome.BROKEN:
            return self.hint
        stated, expected = (amounts.write(v, self.unit) for v in (self.stated, self.expected))
        ratio = "" if math.isnan(self.ratio) or self.stated == self.expected else f" ({self.ratio:.4g}x)"
        return f"stated {stated}, expected {expected}{ratio}" + (f": {self.hint}" if self.hint else "")

    def _repr_markdown_(self):
        return f"**{self.outcome.value}** · {self.reason}"


def judge(stated, expected, *, within=0.01, unit=PURE, mistakes: Mapping = (), hints: Mapping = (), ranks=None):
    """Compare `stated` with `expected`, both in base units of `unit`, allowing a relative error of `within`.

    mistakes: what known wrong ways of working give, by name; `hints` says by the same names what to answer.
    ranks: over how many ranks the quantity is divided, if it is, so that a total taken for a share is recognised.
    Returns a Verdict; BROKEN when the reference itself is not a finite number. A wide tolerance that lets a slip of unit
    through passes, but names it.
    """
    mistakes, hints = dict(mistakes), dict(hints)
    if not _finite(expected):
        return Verdict(Outcome.BROKEN, stated, expected, unit, f"our reference is {expected!r}: this is our fault, tell us")
    if not _finite(stated):
        return Verdict(Outcome.BROKEN if stated is None else Outcome.FAILED, math.nan, expected, unit, f"{stated!r} is not a finite number")
    passed = _close(stated, expected, within)
    name = "" if passed else next((name for name, value in mistakes.items() if _finite(value) and _close(stated, value, within)), "")
    slip = None if name else slip_of(stated, expected, unit, ranks)
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    return Verdict(outcome, stated, expected, unit, hints.get(name) or (slip.en if slip else ""), name, within, slip)


def _finite(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _close(stated, reference, within):
    """Exact where `within` is 0, else up to it, relative to the reference; ends count as inside despite rounding."""
    return stated == reference or abs(stated - reference) <= within * abs(reference) * (1 + 1e-9)
