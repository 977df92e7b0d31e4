"""A lab: conditions, predictions made from formulas, and a job that is run under those conditions.

    Lab("model_states", "…", job="model_states.py", conditions={…}, predict=conditions_to_predictions)

`predict` gives the predictions for a set of conditions; a prediction names the number of the job's measurement that it
foretells. Adding a lab takes a job in labs/jobs/, a module here with its LAB, and a notebook in labs/notebooks/.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from formulary import Formula, InputError, nearest
from formulary.units import PURE

from .launch import check, launch, require_processes
from .measurement import Measurement, MeasurementError
from .picture import stacked_bars
from .report import Report, exact, key, ranks_in_short

JOBS = Path(__file__).parent / "jobs"
LEAST = {"steps": 1}  # of conditions that are numbers; the others may be 0


@dataclass(frozen=True)
class Estimate:
    """A formula together with the values it is evaluated at."""

    formula: Formula
    values: Mapping

    def __call__(self):
        return self.formula(**self.values)

    def __str__(self):
        return self.formula.worked_text(**self.values)

    @property
    def unit(self):
        return self.formula.unit


@dataclass(frozen=True)
class Sure:
    """A value that follows without a formula, such as no difference at all between two runs; `why` says how."""

    value: float
    why: str
    unit: object = PURE

    def __call__(self):
        return self.value

    def __str__(self):
        return self.why


def estimate(formula, **values):
    """The formula at those of `values` that it takes."""
    return Estimate(formula, {name: values[name] for name in formula.inputs if name in values})


@dataclass(frozen=True)
class Difference:
    """Why a library does not do what the paper says; `before` is the figure without this difference."""

    name: str
    why: str
    before: float = 0

    def at(self, before):
        """This difference on a line that would otherwise read `before` (an Estimate)."""
        return replace(self, before=before())


@dataclass(frozen=True)
class Prediction:
    """What `part` (of `variant`, on `rank`) will measure, and the `differences` that lead there from the paper's figure.

    judged: whether it can be off. Times vary from run to run and machine to machine: they are shown beside the formula's and not judged.
    """

    part: str
    estimate: Estimate | Sure
    variant: str = ""
    rank: int | None = None
    differences: tuple = ()
    within: float = 0.0
    judged: bool = True

    @property
    def key(self):
        """The name of its number in the measurement."""
        return key(self.variant, self.rank, self.part)


class Predictions(tuple):
    """Predictions, as a table that shows itself: what each is of, its value, and how that is worked out."""

    @property
    def total(self):
        """The sum of their values."""
        return sum(prediction.estimate() for prediction in self)

    def rows(self):
        """(key, value, working) as text, of those that are not zero; ranks that are alike share a row."""
        alike = {}
        for p in self:
            if value := p.estimate():
                alike.setdefault((p.variant, p.part, exact(value, p.estimate.unit), str(p.estimate)), []).append(p.rank)
        return [(key(variant, ranks_in_short(ranks), part), *worked) for (variant, part, *worked), ranks in alike.items()]

    def _repr_markdown_(self):
        return "\n".join(["| prediction | | worked out |", "|---|--:|---|", *(f"| {a} | {b} | `{c}` |" for a, b, c in self.rows())])


@dataclass(frozen=True)
class Lab:
    """A question to reality. `conditions` are the defaults, `nproc` the processes; `predict(conditions)` gives Predictions.

    bars: what its picture shows of a rank, in words. picture(report): the Figure that suits it.
    later(conditions, numbers): predictions that take something measured, such as how fast a product is, as given.
    restarts(conditions): how often the job is started again when one of its ranks dies.
    """

    name: str
    title: str
    job: str
    conditions: Mapping
    predict: Callable
    nproc: int = 2
    bars: str = "kept between steps"
    picture: Callable = stacked_bars
    later: Callable = lambda conditions, numbers: ()
    restarts: Callable = lambda conditions: 0

    @property
    def script(self):
        """The path of its job."""
        return JOBS / self.job

    def under(self, nproc=None, **given):
        """The conditions with the `given` ones put in. Raises InputError for one it does not have, LaunchError for no processes."""
        nproc = self.nproc if nproc is None else nproc
        require_processes(nproc)
        for name, value in given.items():
            if name not in self.conditions:
                raise InputError(
                    f"lab {self.name} has no condition {name!r}{nearest(name, self.conditions)}; it has {', '.join(self.conditions)}"
                )
            given[name] = _like(self.conditions[name], name, value)
        return {**self.conditions, **given, "world_size": nproc}

    def predictions(self, nproc=None, **given):
        """What the formulas say, before anything runs."""
        return Predictions(self.predict(self.under(nproc, **given)))

    def run(self, nproc=None, *, launcher="auto", timeout=120, port=None, progress=None, **given):
        """Run the job on `nproc` processes and hold it against the predictions; returns a Report, BROKEN if the job did not end well.

        Raises InputError or LaunchError if it cannot be started as asked.
        """
        nproc = self.nproc if nproc is None else nproc
        conditions = self.under(nproc, **given)
        check(self.script, nproc, launcher, conditions["device"], port)
        predictions = self.predictions(nproc, **given)
        words = [f"{name}={conditions[name]}" for name in self.conditions]
        options = {"launcher": launcher, "device": conditions["device"], "timeout": timeout, "port": port, "progress": progress}
        options["restarts"] = self.restarts(conditions)
        run = launch(self.script, nproc, words, **options)
        measurement = Measurement.of(run.measurement) if run.measurement else None
        if measurement:
            shutil.rmtree(run.log_dir, ignore_errors=True)  # nobody reads how a job went that went well
        return self._report(conditions, predictions, measurement, run.failure, run.command)

    def report(self, measurement):
        """The report on a measurement taken elsewhere."""
        if measurement.lab != self.name:
            raise MeasurementError(f"a measurement of lab {measurement.lab!r}, not of {self.name!r}")
        known = {name: value for name, value in measurement.conditions.items() if name in self.conditions}
        nproc = measurement.conditions["world_size"]
        return self._report(measurement.conditions, self.predictions(nproc, **known), measurement)

    def _report(self, conditions, predictions, measurement, *how):
        later = self.later(conditions, measurement.numbers) if measurement else ()
        return Report(self, conditions, Predictions([*predictions, *later]), measurement, *how)


def _like(default, name, value):
    """`value` as what the default is, a text or a number that is not below its least. Raises InputError."""
    try:
        found = type(default)(value)
    except (TypeError, ValueError):
        raise InputError(f"condition {name} is {value!r}; it must be like {default!r}") from None
    least = LEAST.get(name, 0)
    if not isinstance(found, str) and not found >= least:
        raise InputError(f"condition {name} is {value!r}; it must be at least {least}")
    return found
