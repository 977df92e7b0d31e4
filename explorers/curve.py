"""Curves: a formula over a swept quantity, with a marker at its present value and a line to stay under."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from formulary import Formula
from formulary.amounts import in_one_unit, spoken

from .control import Slider
from .palette import PALETTE


@dataclass(frozen=True)
class Curve:
    """Formulas (label to Formula, of one unit) over the stops of slider `sweep`.

    across, labels: one curve for each value of that quantity (value to label) instead of one for each formula.
    limit: the quantity the curves should stay under, which limit_label names. log: whether the axes are logarithmic, (x, y).
    scale: the unit that values are told in, such as %, where it is not the one that fits them best.
    marks: label to the Formula of a notable value of the swept quantity, such as an optimum or a crossing, shown on the chosen curve.
    """

    curves: Mapping
    sweep: Slider
    what: str
    across: str = ""
    labels: Mapping = field(default_factory=dict)
    limit: str = ""
    limit_label: str = "limit"
    log: tuple = (False, False)
    scale: str | None = None
    marks: Mapping = field(default_factory=dict)

    kind = "curve"

    @property
    def formulas(self):
        return (*self.curves.values(), *self.marks.values())

    @property
    def unit(self):
        formula: Formula = self.formulas[0]
        return formula.unit

    @property
    def series(self):
        """Rows (label, formula's name, what the curve replaces, when it is the chosen one)."""
        if self.across:
            (formula,) = self.curves.values()
            return [(label, formula.name, {self.across: value}, {self.across: value}) for value, label in self.labels.items()]
        return [(label, formula.name, {}, {}) for label, formula in self.curves.items()]

    def spec(self):
        """What the front end needs to know, as JSON values."""
        return {
            "series": [dict(zip(("label", "name", "given", "chosen"), row, strict=True)) for row in self.series],
            "sweep": self.sweep.name,
            "sweepLabel": self.sweep.title,
            "sweepUnit": str(self.sweep.quantity.unit),
            "points": self.sweep.stops,
            "limit": self.limit,
            "limitLabel": self.limit_label,
            "scale": self.scale,
            "log": list(self.log),
            "marks": [[label, formula.name] for label, formula in self.marks.items()],
            "sweepWhole": bool(self.sweep.quantity.symbol.is_integer),
            "what": self.what,
            "unit": str(self.unit),
        }

    def scene(self, state, evaluate):
        """Each curve's points and its value at the marker, in base units."""
        sweep = self.sweep.name
        series = [
            {
                "label": label,
                "chosen": all(state[key] == value for key, value in chosen.items()),
                "points": [[x, evaluate(name, **given, **{sweep: x})] for x in self.sweep.stops],
                "value": evaluate(name, **given),
            }
            for label, name, given, chosen in self.series
        ]
        marks = [self._mark(label, evaluate(formula.name), evaluate) for label, formula in self.marks.items()]
        return {"series": series, "here": state[sweep], "limit": state[self.limit] if self.limit else None, "marks": marks}

    def _mark(self, label, at, evaluate):
        """A notable value of the swept quantity, and how high the first curve is there."""
        _, name, given, _ = self.series[0]
        place = round(at) if self.sweep.quantity.symbol.is_integer and math.isfinite(at) else at
        return {"label": label, "at": at, "value": evaluate(name, **given, **{self.sweep.name: place})}

    def sentence(self, scene):
        """The chosen curve at the marker, in words."""
        main = next(one for one in scene["series"] if one["chosen"])
        marks = "".join(f" {self._marked(mark)}." for mark in scene["marks"])
        return f"{self._at(scene['here'])}. {main['label']}: {self.what} {self._write(main['value'])}{self._fits(main, scene)}.{marks}"

    def _fits(self, main, scene):
        if scene["limit"] is None:
            return ""
        return f", {'within' if main['value'] <= scene['limit'] else 'over'} {self._write(scene['limit'])} ({self.limit_label})"

    def _write(self, value):
        return spoken(value, self.unit, scale=self.scale)

    def _at(self, place):
        return f"{self.sweep.title}: {spoken(place, self.sweep.quantity.unit)}"

    def _marked(self, mark):
        return f"{mark['label']} ({self._at(mark['at'])})"

    def table(self, scene):
        """(head, rows): each curve at the marker, then the notable places."""
        names = [*(one["label"] for one in scene["series"]), *map(self._marked, scene["marks"])]
        values = in_one_unit([one["value"] for one in (*scene["series"], *scene["marks"])], self.unit, scale=self.scale)
        return [self.what, self._at(scene["here"])], [list(row) for row in zip(names, values, strict=True)]

    def draw(self, axes, scene):
        """The curves on matplotlib `axes`."""
        for one, colour in zip(scene["series"], PALETTE, strict=False):
            xs, ys = np.array(one["points"], float).T
            axes.plot(xs, ys, color=colour, label=one["label"], linewidth=2.5 if one["chosen"] else 1.5)
            axes.plot([scene["here"]], [one["value"]], "o", color=colour, markersize=7 if one["chosen"] else 5)
        axes.axvline(scene["here"], color="0.6", linewidth=1, zorder=0)
        for mark in scene["marks"]:
            axes.plot([mark["at"]], [mark["value"]], "D", color="black", label=self._marked(mark))
        if scene["limit"] is not None:
            label = f"{self.limit_label} {self._write(scene['limit'])}"
            axes.axhline(scene["limit"], color="black", linestyle="--", linewidth=1, label=label)
        self._dress(axes)

    def _dress(self, axes):
        log_x, log_y = ("log" if log else "linear" for log in self.log)
        axes.set(xscale=log_x, yscale=log_y, xlabel=self.sweep.title, ylabel=self.what)
        axes.xaxis.set_major_formatter(lambda value, _: spoken(value, self.sweep.quantity.unit))
        axes.yaxis.set_major_formatter(lambda value, _: self._write(value))
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
