"""Every lab in turn, and one table of how they went."""

import time
from dataclasses import asdict, dataclass

from formulary import InputError, Outcome

from . import load
from .launch import LaunchError

HEADING = ("lab", "processes", "seconds", "outcome", "")
LAYOUT = "{:<18}{:>9}{:>9}  {:<8}  {}"


@dataclass(frozen=True)
class Row:
    """How one lab went."""

    lab: str
    nproc: int
    seconds: float
    outcome: Outcome
    reason: str

    def __str__(self):
        return LAYOUT.format(
            self.lab, self.nproc, f"{self.seconds:.0f}", self.outcome.value, (self.reason.splitlines() or [""])[0]
        ).rstrip()

    def as_json(self):
        """It as plain data."""
        return asdict(self) | {"outcome": self.outcome.value, "seconds": round(self.seconds, 1)}


def heading():
    """The line above the rows."""
    return LAYOUT.format(*HEADING).rstrip()


def run(names, nproc, given, saved=None, **how):
    """Run the labs one after the other; gives a Row for each as soon as it is done, and each measurement to `saved`.

    A lab that refuses so many processes, or a condition of the `given`, runs as is usual for it.
    """
    for name in names:
        started, lab = time.monotonic(), load(name)
        try:
            fitting, conditions = _accepted(lab, nproc, given)
            report = lab.run(fitting, **conditions, **how)
        except (InputError, LaunchError) as error:
            yield Row(name, nproc or lab.nproc, time.monotonic() - started, Outcome.BROKEN, str(error))
            continue
        if saved and report.measurement:
            saved(report.measurement)
        yield Row(name, fitting, time.monotonic() - started, report.outcome, report.reason)


def _accepted(lab, nproc, given):
    """The first of what was asked for and what is usual that the lab has predictions for."""
    asked = lab.nproc if nproc is None else nproc
    for fitting, conditions in ((asked, given), (lab.nproc, given), (asked, {})):
        try:
            lab.predictions(fitting, **conditions)
        except InputError:
            continue
        return fitting, conditions
    return lab.nproc, {}
