"""What a lab found: a line for each prediction, predicted | measured | ratio | verdict, and each difference from the paper by name."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from formulary import InputError, Outcome, judge, nearest
from formulary.amounts import number, read, write
from formulary.units import BYTE, PURE

from .table import as_html, as_markdown, as_text, pipes

TOTAL = "total"
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Line:
    """A prediction and what was measured; sums of lines are lines too."""

    variant: str
    part: str
    rank: int | None
    predicted: float
    measured: float | None
    paper: float
    unit: object = PURE
    within: float = 0.0
    changes: Mapping = field(default_factory=dict)
    judged: bool = True
    why_not: str = ""  # why the job could not measure it on this machine

    @cached_property
    def verdict(self):
        return judge(self.measured, self.predicted, within=self.within, unit=self.unit)

    @property
    def outcome(self):
        """Its verdict's outcome; none where it was measured only to be shown, or the job says why it cannot be measured here."""
        return self.verdict.outcome if not self.why_not and (self.judged or self.measured is None) else None

    @property
    def key(self):
        """The name of its number in the measurement, and of its prediction."""
        return key(self.variant, self.rank, self.part)

    @property
    def like(self):
        """Lines that are alike in this can share a row of the table, whatever their rank."""
        return self.variant, self.part, self.predicted, self.measured, self.paper

    @property
    def silent(self):
        """Whether there is nothing in it to show: nothing predicted, measured or on paper."""
        return not (self.predicted or self.measured or self.paper)


def key(*words):
    """The name of a number: what there is of variant, rank and part."""
    return "/".join(str(word) for word in words if word not in ("", None))


def line(prediction, numbers):
    """The line of a prediction, measured as `numbers` say; one that is a text says why it could not be measured."""
    predicted, measured = prediction.estimate(), numbers.get(prediction.key)
    why_not = measured if isinstance(measured, str) else ""
    stages = [difference.before for difference in prediction.differences] + [predicted]
    changes = {d.name: after - d.before for d, after in zip(prediction.differences, stages[1:], strict=True)}
    return Line(
        prediction.variant,
        prediction.part,
        prediction.rank,
        predicted,
        None if why_not else measured,
        stages[0],
        prediction.estimate.unit,
        prediction.within,
        {name: change for name, change in changes.items() if change},
        prediction.judged,
        why_not,
    )


def total(lines):
    """The sum of lines of one variant on one rank; judged where all of them are."""
    first = lines[0]
    changes = {name: sum(x.changes.get(name, 0) for x in lines) for each in lines for name in each.changes}
    measured = None if any(x.measured is None for x in lines) else sum(x.measured for x in lines)
    sums = [sum(x.predicted for x in lines), measured, sum(x.paper for x in lines)]
    within = max(x.within for x in lines)
    changes, judged = {name: change for name, change in changes.items() if change}, all(x.judged for x in lines)
    return Line(first.variant, TOTAL, first.rank, *sums, first.unit, within, changes, judged)


@dataclass(frozen=True)
class Report:
    """The lines of one run, and what became of it. `failure` says why nothing was measured, if nothing was."""

    lab: object
    conditions: Mapping
    predictions: tuple
    measurement: object = None
    failure: str = ""
    command: str = ""

    @cached_property
    def lines(self):
        """A line for each prediction."""
        numbers = self.measurement.numbers if self.measurement else {}
        return [line(prediction, numbers) for prediction in self.predictions]

    @cached_property
    def totals(self):
        """A line for each variant and rank: the sum of its parts."""
        parts = [x for x in self.lines if x.rank is not None and x.unit == BYTE]
        return [total(list(group)) for _, group in groupby(parts, key=lambda x: (x.variant, x.rank))]

    @property
    def outcome(self):
        """BROKEN if something could not be measured, FAILED if a prediction was off, else PASSED."""
        found = {x.outcome for x in self.lines}
        return next(outcome for outcome in (Outcome.BROKEN, Outcome.FAILED, Outcome.PASSED) if outcome in found)

    @property
    def reason(self):
        """The outcome in words."""
        judged = [x for x in self.lines if x.outcome]
        if self.outcome is Outcome.PASSED:
            return f"{len(judged)} of {len(judged)} predictions came true{self._unmeasured()}"
        off = [x for x in judged if x.outcome is self.outcome]
        first = f"{off[0].key}: {off[0].verdict.reason}"
        return self.failure or f"{len(off)} of {len(judged)} predictions {self.outcome.value}, first {first}"

    def _unmeasured(self):
        reasons = [x.why_not for x in self.lines if x.why_not]
        return f"; {len(reasons)} could not be measured here: {', '.join(dict.fromkeys(reasons))}" if reasons else ""

    @property
    def differences(self):
        """{name: why} of the differences from the paper that changed a line, in the order in which they appear."""
        found = {name for x in self.lines for name in x.changes}
        return {d.name: d.why for p in self.predictions for d in p.differences if d.name in found}

    def figure(self):
        """A matplotlib Figure: predicted beside measured, as suits the lab."""
        return self.lab.picture(self)

    def guesses(self, stated, within=0.01):
        """What a learner stated, judged against the measurement; a guess that comes true is a point.

        stated: {name: text or number in base units, or None for no guess}, where a name is a variant, for its total on rank 0, or
        the key of a line.
        """
        known = {x.key: x for x in self.lines} | {x.variant: x for x in self.totals if x.rank == 0}
        for name in stated:
            if name not in known:
                raise InputError(f"nothing measured is called {name!r}{nearest(name, known)}; there are {', '.join(known)}")
        return Guesses({name: self._guess(known[name], value, within) for name, value in stated.items() if value is not None})

    def explained(self, text):
        """Which of the differences a learner's `text` names, each a point, and what to look for in it."""
        return Explained({name: (name.lower() in text.lower(), why) for name, why in self.differences.items()})

    def _guess(self, line, stated, within):
        value = read(stated, line.unit) if isinstance(stated, str) else stated
        hint = "this is the figure on paper; here it differs by " + (", ".join(line.changes) or "nothing")
        return judge(value, line.measured, within=within, unit=line.unit, mistakes={"paper": line.paper}, hints={"paper": hint})

    # --- as a table ------------------------------------------------------------------------------------------------

    def rows(self):
        """The table's cells as text: parts, then the total, of each variant; ranks that are alike share a row."""
        ordered = [x for x in self.lines if x.rank is None]
        for variant in dict.fromkeys(x.variant for x in self.lines if x.rank is not None):
            mine = [x for x in self.lines if x.variant == variant and x.rank is not None]
            parts = dict.fromkeys(x.part for x in mine)
            ordered += [x for part in parts for x in mine if x.part == part] + [x for x in self.totals if x.variant == variant]
        shown = [x for x in ordered if not x.silent]
        return [_row(list(alike)) for _, alike in groupby(shown, key=lambda x: x.like)]

    def _repr_markdown_(self):
        reasons = [f"- **{name}**: {why}" for name, why in self.differences.items()]
        return "\n".join([f"**{self.outcome.value}** · {self.reason}", "", as_markdown(self.rows()), "", *reasons, "", self._where()])

    def _repr_html_(self):
        verdict = f"<b>{self.outcome.value}</b> · <span style='white-space: pre-wrap'>{html.escape(self.reason)}</span>"
        table = as_html(self.rows(), self.lab.title, lambda row: row[0].endswith(f":{NO_BREAK}{TOTAL}"))
        reasons = "".join(f"<dt><b>{html.escape(name)}</b></dt><dd>{html.escape(why)}</dd>" for name, why in self.differences.items())
        return f"<p>{verdict}</p>{table}<dl>{reasons}</dl><p><small>{html.escape(self._where())}</small></p>"

    def _where(self):
        return str(self.measurement or "not measured")

    def __str__(self):
        reasons = [f"{name}: {why}" for name, why in self.differences.items()]
        verdict = f"{self.outcome.value.upper()}: {self.reason}"
        return "\n".join([self.lab.title, as_text(self.rows()), "", *reasons, "", self._where(), verdict])

    def as_json(self):
        """Everything in it as plain data."""
        told = ("variant", "rank", "part", "predicted", "measured", "paper", "changes")
        lines = [{name: getattr(x, name) for name in told} | {"verdict": _verdict(x)} for x in [*self.lines, *self.totals]]
        verdict = {"outcome": self.outcome.value, "reason": self.reason}
        return {"lab": self.lab.name, **verdict, "conditions": dict(self.conditions), "lines": lines}


def _row(alike):
    it = alike[0]
    what = (f"{it.variant}: {it.part}" if it.variant else it.part).replace(" ", NO_BREAK)
    changes = ", ".join(f"{name} {'+' if change > 0 else '−'}{exact(abs(change), it.unit)}" for name, change in it.changes.items())
    ratio = "–" if math.isnan(it.verdict.ratio) else f"{it.verdict.ratio:.6g}"
    measured = "not measured" if it.measured is None else exact(it.measured, it.unit)
    figures = (exact(it.predicted, it.unit), measured, ratio, _verdict(it), exact(it.paper, it.unit))
    return (what, ranks_in_short([x.rank for x in alike]), *figures, changes)


def _verdict(line):
    return line.outcome.value if line.outcome else line.why_not or "not judged"


def ranks_in_short(ranks):
    """Runs of consecutive ranks: 0–3, 6; nothing where there are no ranks."""
    runs = [list(run) for _, run in groupby(enumerate(ranks), key=lambda place: place[0] - (place[1] or 0))]
    runs = [[rank for _, rank in run] for run in runs]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs if run[0] is not None)


def exact(value, unit):
    """To the last byte where it is bytes, else as amounts are written."""
    return f"{number(round(value))}{NO_BREAK}B" if unit == BYTE else write(value, unit)


@dataclass(frozen=True)
class Guesses:
    """A learner's guesses, each with its verdict."""

    verdicts: Mapping

    @property
    def points(self):
        """How many came true."""
        return sum(verdict.passed for verdict in self.verdicts.values())

    def _repr_markdown_(self):
        if not self.verdicts:
            return "No guess was made: write yours into the cell above and run it again."
        rows = [pipes((name, verdict.outcome.value, verdict.reason)) for name, verdict in self.verdicts.items()]
        points = f"\n{self.points} of {len(self.verdicts)} points for the prediction."
        return "\n".join([pipes(("your guess", "verdict", "why")), pipes(["---"] * 3), *rows, points])


@dataclass(frozen=True)
class Explained:
    """A learner's explanation: {difference: (whether it is named, why it is there)}. Whether the reason is right, a reader decides."""

    found: Mapping

    @property
    def points(self):
        """How many differences it names."""
        return sum(named for named, _ in self.found.values())

    def _repr_markdown_(self):
        rows = [pipes((name, "yes" if named else "no", why)) for name, (named, why) in self.found.items()]
        points = f"\n{self.points} of {len(self.found)} points for naming; as many again for reasons that say what the last column says."
        return "\n".join([pipes(("difference", "named", "the reason to look for")), pipes(["---"] * 3), *rows, points])
