"""Stacked bars: the parts of a ledger, one column per choice of a quantity, against a capacity."""

from collections.abc import Mapping
from dataclasses import dataclass

from formulary import Formula, Ledger
from formulary.amounts import in_one_unit, write
from formulary.units import BYTE

from .palette import BAD, GOOD, PALETTE

FAINT = 0.45  # how opaque a column is that is not the chosen one


@dataclass(frozen=True)
class StackedBar:
    """The parts of `ledger` in one column for each value of `across` (value to label); the chosen one is highlighted.

    capacity: the quantity the columns must fit in. headroom: the formula for what is left of it. what: what a column is.
    """

    ledger: Ledger
    across: str
    labels: Mapping
    capacity: str
    headroom: Formula
    what: str
    capacity_label: str = "capacity"

    kind = "stacked_bar"

    @property
    def formulas(self):
        return (self.headroom,)

    @property
    def scale(self):
        """The second unit that totals are given in, next to the decimal one; none for what is no memory."""
        return "GiB" if self.ledger.total.unit == BYTE else None

    def spec(self):
        """What the front end needs to know, as JSON values."""
        return {
            "parts": [[label, part.name] for label, part in self.ledger.parts.items()],
            "total": self.ledger.total.name,
            "across": self.across,
            "columns": [[value, label] for value, label in self.labels.items()],
            "capacity": self.capacity,
            "headroom": self.headroom.name,
            "capacityLabel": self.capacity_label,
            "scale": self.scale,
            "what": self.what,
            "unit": str(self.ledger.total.unit),
        }

    def scene(self, state, evaluate):
        """Columns with their parts, total and head-room, and the capacity, all in base units."""
        columns = [
            {
                "label": label,
                "chosen": state[self.across] == value,
                "parts": [evaluate(part.name, **{self.across: value}) for part in self.ledger.parts.values()],
                "total": evaluate(self.ledger.total.name, **{self.across: value}),
                "headroom": evaluate(self.headroom.name, **{self.across: value}),
            }
            for value, label in self.labels.items()
        ]
        return {"columns": columns, "capacity": state[self.capacity]}

    def sentence(self, scene):
        """The chosen column in words."""
        chosen = next(column for column in scene["columns"] if column["chosen"])
        total, left, capacity = (self._write(v) for v in (chosen["total"], abs(chosen["headroom"]), scene["capacity"]))
        fits = f"it fits in {capacity} with {left} left" if chosen["headroom"] >= 0 else f"it does not fit in {capacity}: {left} too much"
        return f"{chosen['label']}: {self.what} {total}{self._again(chosen['total'])}; {fits}."

    def table(self, scene):
        """(head, rows): a row per part and one for the total, a column per choice."""
        columns = scene["columns"]
        told = [in_one_unit([c["total"], *c["parts"]], self.ledger.total.unit) for c in columns]
        total, *parts = ([name, *texts] for name, texts in zip(["total", *self.ledger.parts], zip(*told, strict=True), strict=True))
        fits = [f"fits in {self._write(scene['capacity'])}", *("yes" if c["headroom"] >= 0 else "no" for c in columns)]
        return ["part", *(c["label"] for c in columns)], [*parts, total, fits]

    def _write(self, value):
        return write(value, self.ledger.total.unit)

    def _again(self, value):
        return f" ({write(value, self.ledger.total.unit, scale=self.scale)})" if self.scale else ""

    def draw(self, axes, scene):
        """The bars on matplotlib `axes`."""
        below = [0.0] * len(scene["columns"])
        for i in range(len(self.ledger.parts)):
            heights = [column["parts"][i] for column in scene["columns"]]
            bars = axes.bar(range(len(heights)), heights, bottom=below, color=self._colour(i), width=0.6, edgecolor="white")
            below = [b + h for b, h in zip(below, heights, strict=True)]
            for bar, column in zip(bars, scene["columns"], strict=True):
                bar.set_alpha(1 if column["chosen"] else FAINT)
        for mark, column in enumerate(scene["columns"]):
            self._note(axes, mark, column)
        self._limit(axes, scene["capacity"])
        self._dress(axes, scene)

    def _colour(self, i):
        return PALETTE[i % len(PALETTE)]

    def _note(self, axes, mark, column):
        text, colour = ("fits", GOOD) if column["headroom"] >= 0 else ("too big", BAD)
        place = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center", "backgroundcolor": "#ffffffb0"}
        axes.annotate(f"{self._write(column['total'])}\n{text}", (mark, column["total"]), color=colour, **place)

    def _limit(self, axes, capacity):
        axes.axhline(capacity, color="black", linestyle="--", linewidth=1)
        place = {"xycoords": ("axes fraction", "data"), "xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"{self.capacity_label}\n{self._write(capacity)}", (1, capacity), **place)

    def _dress(self, axes, scene):
        axes.set_xticks(range(len(scene["columns"])), [column["label"] for column in scene["columns"]])
        axes.yaxis.set_major_formatter(lambda value, _: self._write(value))
        axes.set_ylim(0, 1.25 * max(scene["capacity"], *(column["total"] for column in scene["columns"])))
        axes.set_ylabel(self.what)
        axes.spines[["top", "right"]].set_visible(False)
        swatches = [axes.bar(0, 0, color=self._colour(i), label=name) for i, name in enumerate(self.ledger.parts)]
        axes.figure.legend(handles=swatches, frameon=False, loc="outside lower center", ncols=3)
