"""Timelines: who works on what and when, laid out by rules, and what is held meanwhile."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import sympy as sp

from formulary.amounts import in_one_unit, write
from formulary.units import PURE, SECOND, without_units

from .palette import PALETTE
from .plan import MOST_BLOCKS, Plan, compiled, lay_out

PALEST = 0.55  # how much of its colour a block of tone 1 has lost
HEIGHT = 380  # pixels of the picture, however many rows there are
SAME = 1e-9  # of the whole
ALL = 100  # percent of the time that has passed when a player stands at its end


@dataclass(frozen=True)
class Timeline:
    """Rows of blocks in time, by `rules` (Blocks), as many rows as `rows` says: an expression, or their names.

    row_label: what a row is called where `rows` is an expression; `{}` is its number, from 1.
    measure: what the headline counts in the picture, one of MEASURES; what: that in words. scale: the unit it is told in.
    beside: (label, Formula, {quantity: value}) the formulas to hold that against, each where the state has these values.
    level_unit: the unit of what blocks take and free, where they do; level_what: what it is. base: what is held anyway.
    together: whether all rows hold it together, so that a block on one row may free what one on another has taken.
    now: the Step control that plays the picture, in percent of the whole. formulas: results that the rules are written over.
    """

    rules: Sequence
    rows: object
    measure: str
    what: str
    row_label: str = "rank {}"
    scale: str | None = None
    beside: Sequence = ()
    level_unit: object = None
    level_what: str = "held"
    base: object = 0
    together: bool = False
    now: str = ""
    used: Sequence = ()
    names: Mapping = field(default_factory=dict)

    kind = "timeline"

    def __post_init__(self):
        if self.measure not in MEASURES:
            raise ValueError(f"a timeline measures one of {', '.join(MEASURES)}, not {self.measure!r}")

    @property
    def formulas(self):
        return (*self.used, *(formula for _, formula, _ in self.beside))

    @cached_property
    def expressions(self):
        """Every expression the picture is made by, by key."""
        own = {"rows": self._row_count, "base": without_units(sp.sympify(self.base))}
        return own | {key: expr for rule in self.rules for key, expr in rule.expressions.items()}

    @property
    def _row_count(self):
        return sp.sympify(len(self.rows) if isinstance(self.rows, list | tuple) else self.rows)

    @property
    def _unit(self):
        return {"idle": PURE, "exposed": SECOND, "step": SECOND, "peak": self.level_unit}[self.measure]

    @property
    def units(self):
        """What the picture is labelled in."""
        return {SECOND, PURE, self._unit, *([self.level_unit] if self.level_unit is not None else [])}

    def spec(self):
        """What the front end needs to know, as JSON values."""
        return {
            "height": HEIGHT,
            "rules": [rule.spec() | {"label": self._name(rule.kind)} for rule in self.rules],
            "rowNames": list(self.rows) if isinstance(self.rows, list | tuple) else [],
            "rowLabel": self.row_label,
            "measure": self.measure,
            "what": self.what,
            "unit": str(self._unit),
            "scale": self.scale,
            "timeUnit": str(SECOND),
            "levelUnit": None if self.level_unit is None else str(self.level_unit),
            "levelWhat": self.level_what,
            "beside": [{"label": label, "name": formula.name, "when": dict(when)} for label, formula, when in self.beside],
            "needed": self._needed,
            "together": self.together,
            "now": self.now,
            "palest": PALEST,
            "mostBlocks": MOST_BLOCKS,
        }

    def _name(self, kind):
        return self.names.get(kind, kind)

    @cached_property
    def _needed(self):
        """The formulas whose results the rules are written over."""
        written = {str(symbol) for expr in self.expressions.values() for symbol in expr.free_symbols}
        return [formula.name for formula in self.used if formula.name in written]

    def plan(self, known) -> Plan:
        """The blocks with their starts and ends, in seconds, by what is `known`."""
        return lay_out(self.rules, known, int(compiled(self._row_count)(known)))

    def _levels(self, plan, known):
        """What each row holds over time, if its blocks hold anything."""
        if self.level_unit is None:
            return []
        base = compiled(self.expressions["base"])(known)
        levels = [plan.level_of_all()] if self.together else [plan.level(row) for row in range(len(plan.lines))]
        return [[[time, base + held] for time, held in level] for level in levels]

    def scene(self, state, evaluate):
        """Blocks, levels, the counted figure and the formula's, as plain numbers and texts."""
        known = {**state, **{name: evaluate(name) for name in self._needed}}
        plan = self.plan(known)
        levels = self._levels(plan, known)
        applies = lambda when: all(state[key] == value for key, value in when.items())
        return {
            "blocks": [asdict(block) for block in plan.blocks],
            "rows": len(plan.lines),
            "end": plan.end,
            "fault": plan.fault,
            "levels": levels,
            "counted": math.nan if plan.fault else MEASURES[self.measure](plan, levels),
            "beside": [[label, evaluate(formula.name)] for label, formula, when in self.beside if applies(when)],
            "now": state[self.now] / ALL if self.now else 1,
        }

    def row_name(self, row):
        """What row `row`, counted from 0, is called."""
        return self.rows[row] if isinstance(self.rows, list | tuple) else self.row_label.format(row + 1)

    def sentence(self, scene):
        """The counted figure and the formula's, in words."""
        if scene["fault"]:
            return scene["fault"]
        said = "".join(f"; {label}: {self._write(value)}" for label, value in scene["beside"])
        rows = "1 row" if scene["rows"] == 1 else f"{scene['rows']} rows"
        return f"{rows}, {self._time(scene['end'])} in all. {self._write(scene['counted'])} {self.what}{said}."

    def _write(self, value):
        return write(value, self._unit, scale=self.scale)

    def _time(self, value):
        return write(value, SECOND)

    def table(self, scene):
        """(head, rows): how long each row works, waits and how much it holds at most."""
        head = ["row", "works", "waits", *([f"most {self.level_what}"] if self._by_row(scene) else [])]
        works = [sum(block["length"] for block in scene["blocks"] if block["row"] == row) for row in range(scene["rows"])]
        waits = [scene["end"] - busy for busy in works]
        times = in_one_unit([*works, *waits], SECOND)
        held = (
            [in_one_unit([max(amount for _, amount in level) for level in scene["levels"]], self.level_unit)] if self._by_row(scene) else []
        )
        columns = [map(self.row_name, range(scene["rows"])), times[: len(works)], times[len(works) :], *held]
        return head, [list(row) for row in zip(*columns, strict=True)]

    def _by_row(self, scene):
        return bool(scene["levels"]) and not self.together

    # --- for print ---------------------------------------------------------------------------------------------

    def draw(self, axes, scene):
        """The blocks on matplotlib `axes`, one row below the other; what is held as a line on each row."""
        for rule, colour in zip(self.rules, PALETTE, strict=False):
            mine = [block for block in scene["blocks"] if block["kind"] == rule.kind and block["end"] is not None]
            spans = {"y": [b["row"] for b in mine], "left": [b["start"] for b in mine], "width": [b["length"] for b in mine]}
            bars = axes.barh(**spans, height=0.8, color=colour, edgecolor="white", linewidth=0.4, label=self._name(rule.kind))
            for bar, block in zip(bars, mine, strict=True):
                bar.set_alpha(1 - PALEST * block["tone"])
        for row, level in enumerate(scene["levels"]):
            self._line(axes, scene["rows"] if self.together else row, [*level, [scene["end"], level[-1][1]]], _most(scene["levels"]))
        self._dress(axes, scene)

    def _line(self, axes, row, level, most):
        times, amounts = zip(*level, strict=True)
        axes.step(times, [row + 0.4 - 0.8 * amount / most for amount in amounts], where="post", color="black", linewidth=1)

    def _dress(self, axes, scene):
        names = [*(self.row_name(row) for row in range(scene["rows"])), *([self.level_what] if self.together else [])]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda value, _: self._time(value))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))


def _most(levels):
    return max((amount for level in levels for _, amount in level), default=0) or 1


def _settled(value, whole):
    """What sums of durations leave over in their last digits is nothing."""
    return 0 if abs(value) <= SAME * whole else value


def _idle(plan, levels):
    """Share of a step in which a row waits; rows may start one after the other, as the next step's will."""
    rows = range(len(plan.lines))
    return _settled(1 - sum(plan.busy(row) for row in rows) / len(rows) / max(plan.span(row) for row in rows), 1)


MEASURES = {
    "idle": _idle,
    "exposed": lambda plan, levels: _settled(plan.end - plan.busy(0), plan.end),
    "step": lambda plan, levels: plan.end,
    "peak": lambda plan, levels: max(amount for level in levels for _, amount in level),
}
