"""Grids: cells coloured and numbered by a rule, such as the bits of a number, the parts of a matrix or the blocks of a ring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import sympy as sp
from matplotlib.patches import Rectangle

from formulary import Formula
from formulary.amounts import spoken, write
from formulary.units import PURE, without_units

from .palette import PALETTE
from .plan import compiled, counter
from .timeline import PALEST

ROW, COLUMN = counter("row"), counter("column")
NOTHING = -1  # the kind of a place in the grid that has no cell
HEIGHT = 340


@dataclass(frozen=True)
class Grid:
    """`rows` by `columns` cells. `cell` says which of the `legend` each is, from 0, or NOTHING: an expression over ROW, COLUMN,
    the quantities of the explorer, the results of the `used` formulas and the names of `by_row` and `where`.

    mark: a number in each cell. tone: how pale it is, 0 to 1. outline: 1 where it stands out. note: a number beside each row,
    told in note_what. row_label, column_label: what they are called; `{}` is their number, from 1; or all the names.
    by_row: {name: its value in each row}. where: {name: expression}, worked out for each row, in order.
    cells: what they are. mark_label: what a mark names, where the table is to have a row for each and not for each of the rows.
    what: what the picture is about; headline: the Formula of its figure, told in `scale`; without one, how many cells are
    `counted`, a name of the legend. frames: tables of cells in place of `cell`, looked up by the state's values of the names
    in `by`. height: pixels of the picture, whatever it shows.
    """

    rows: object
    columns: object
    legend: Sequence
    what: str
    cells: str
    cell: object = NOTHING
    mark: object = None
    mark_label: str = ""
    tone: object = 0
    outline: object = 0
    row_label: object = "{}"
    column_label: object = ""
    note: object = None
    note_what: str = ""
    by_row: Mapping = field(default_factory=dict)
    where: Mapping = field(default_factory=dict)
    headline: Formula = None
    scale: str | None = None
    counted: str = ""
    used: Sequence = ()
    frames: object = None
    by: Sequence = ()
    height: int = HEIGHT

    kind = "grid"
    FIELDS = ("rows", "columns", "cell", "mark", "tone", "outline", "note")

    @property
    def formulas(self):
        return (*self.used, *([self.headline] if self.headline else []))

    @cached_property
    def expressions(self):
        """Every expression the picture is made by, by key."""
        given = {name: getattr(self, name) for name in self.FIELDS} | {f"where {name}": expr for name, expr in self.where.items()}
        return {key: without_units(sp.sympify(expr)) for key, expr in given.items() if expr is not None}

    @cached_property
    def _compiled(self):
        return {key: compiled(expr) for key, expr in self.expressions.items()}

    @cached_property
    def _needed(self):
        written = {str(symbol) for expr in self.expressions.values() for symbol in expr.free_symbols}
        return [formula.name for formula in self.used if formula.name in written]

    @property
    def _unit(self):
        return self.headline.unit if self.headline else PURE

    @property
    def units(self):
        """What the picture is labelled in."""
        return {PURE, self._unit}

    def spec(self):
        """What the front end needs to know, as JSON values."""
        names = {"rowLabel": self.row_label, "columnLabel": self.column_label}
        return {
            "height": self.height,
            "legend": list(self.legend),
            "what": self.what,
            "cells": self.cells,
            "headline": self.headline and self.headline.name,
            "counted": self.counted,
            "unit": str(self._unit),
            "scale": self.scale,
            "noteWhat": self.note_what,
            "byRow": {name: list(values) for name, values in self.by_row.items()},
            "where": list(self.where),
            "needed": self._needed,
            "frames": self.frames,
            "by": list(self.by),
            "palest": PALEST,
            **{key: label if isinstance(label, str) else list(label) for key, label in names.items()},
        }

    def scene(self, state, evaluate):
        """Rows of cells [kind, mark, tone, outline], the notes beside the rows and the headline's value, as plain numbers."""
        known = {**state, **{name: evaluate(name) for name in self._needed}}
        rows, columns = (int(self._value(name, known)) for name in ("rows", "columns"))
        lines = [self._line(known, row) for row in range(rows)]
        cells = [[self._cell({**line, "column": column}, state) for column in range(columns)] for line in lines]
        notes = [self._value("note", line) for line in lines] if self.note is not None else []
        return {"cells": cells, "notes": notes, "figure": self._figure(cells, evaluate)}

    def _line(self, known, row):
        """What is known of one row."""
        line = {**known, "row": row, **{name: values[row] for name, values in self.by_row.items()}}
        for name in self.where:
            line[name] = self._compiled[f"where {name}"](line)
        return line

    def _value(self, name, known):
        return self._compiled[name](known) if name in self._compiled else None

    def _cell(self, here, state):
        kind = self._framed(here, state) if self.frames else self._value("cell", here)
        return [int(kind), *(self._value(name, here) for name in ("mark", "tone", "outline"))]

    def _framed(self, here, state):
        table = self.frames
        for name in self.by:
            table = table[state[name]]
        return table[here["row"]][here["column"]]

    def _figure(self, cells, evaluate):
        if self.headline:
            return evaluate(self.headline.name)
        return sum(cell[0] == self.legend.index(self.counted) for row in cells for cell in row) if self.counted else 0

    def _counts(self, cells):
        """How many cells there are of each kind."""
        return [sum(cell[0] == kind for row in cells for cell in row) for kind in range(len(self.legend))]

    def _named(self, label, number):
        return label.format(number + 1) if isinstance(label, str) else label[number]

    def sentence(self, scene):
        """The figure and the size of the grid, in words."""
        figure = f"{self._write(scene['figure'])} " if self.headline or self.counted else ""
        counts = ", ".join(f"{number} {name}" for name, number in zip(self.legend, self._counts(scene["cells"]), strict=True))
        notes = "".join(f" {self._named(self.row_label, i)} {self.note_what} {write(note)}." for i, note in enumerate(scene["notes"]))
        return f"{figure}{self.what}. {self.cells.capitalize()} in {len(scene['cells'])} rows: {counts}.{notes}"

    def _write(self, value):
        return spoken(value, self._unit, scale=self.scale)

    def table(self, scene):
        """(head, rows): how many cells of each kind are in a row, or bear a mark, and the row's note."""
        rows = [[name, *map(str, self._counts([cells]))] for name, cells in self._groups(scene["cells"])]
        if scene["notes"]:
            rows = [[*row, write(note)] for row, note in zip(rows, scene["notes"], strict=True)]
        return [f"{self.cells} of", *self.legend, *([self.note_what] if scene["notes"] else [])], rows

    def _groups(self, rows):
        """(name, cells) of each row, or of each mark if these have a label."""
        if not self.mark_label:
            return [(self._named(self.row_label, i), row) for i, row in enumerate(rows)]
        drawn = [cell for row in rows for cell in row if cell[0] != NOTHING]
        marks = sorted({mark for _, mark, *_ in drawn})
        return [(self.mark_label.format(write(mark)), [cell for cell in drawn if cell[1] == mark]) for mark in marks]

    # --- for print ---------------------------------------------------------------------------------------------

    def draw(self, axes, scene):
        """The cells on matplotlib `axes`."""
        for row, cells in enumerate(scene["cells"]):
            for column, cell in enumerate(cells):
                self._draw_cell(axes, row, column, cell)
        for kind, name in enumerate(self.legend):
            axes.add_patch(Rectangle((0, 0), 0, 0, color=PALETTE[kind % len(PALETTE)], label=name))
        self._dress(axes, scene)

    def _draw_cell(self, axes, row, column, cell):
        kind, mark, tone, outline = cell
        if kind == NOTHING:
            return
        edge, width = ("black", 1.5) if outline else ("white", 0.5)
        shade = {"facecolor": PALETTE[kind % len(PALETTE)], "alpha": 1 - PALEST * tone, "edgecolor": edge, "linewidth": width}
        axes.add_patch(Rectangle((column, row), 1, 1, **shade))
        if mark is not None:
            axes.text(column + 0.5, row + 0.5, write(mark), ha="center", va="center", fontsize=7)

    def _dress(self, axes, scene):
        rows, columns = len(scene["cells"]), len(scene["cells"][0])
        axes.set(xlim=(0, columns), ylim=(rows, 0))
        axes.set_yticks([row + 0.5 for row in range(rows)], [self._named(self.row_label, row) for row in range(rows)])
        named = range(columns) if self.column_label else []
        axes.set_xticks([column + 0.5 for column in named], [self._named(self.column_label, column) for column in named])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
