"""The picture of a report: for each variant and rank two bars, predicted and measured, stacked part by part."""

import io

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from formulary.amounts import unit_named, write
from formulary.units import BYTE

COLORS = (
    *("#0072b2", "#56b4e9", "#999999", "#009e73", "#e69f00", "#cc79a7", "#d55e00", "#f0e442"),
    *("#66aad1", "#a9d6f2", "#c8c8c8", "#66c5ab", "#f0c566", "#e0aecb", "#e69e66", "#f6ee8e"),
)
BAR = 0.4  # width of a bar, where the bars of a rank have 1 together
GAP = 0.8  # between variants
HEADROOM = 1.05
PREDICTED = {"alpha": 0.45, "hatch": "///", "edgecolor": "white"}
MEASURED = {"edgecolor": "white"}
PAPER = {"color": "#333333", "linewidth": 2}


class Picture(Figure):
    """A Figure that shows itself in a notebook without pyplot."""

    def _repr_svg_(self):
        with io.StringIO() as file:
            self.savefig(file, format="svg", bbox_inches="tight")
            return file.getvalue()


def stacked_bars(report):
    """The bars of every variant and rank that have parts in bytes, with the paper's total as a line across each pair."""
    totals = report.totals
    name = write(max(x.predicted for x in totals), BYTE).split()[-1]
    places = _places(totals)
    figure = Picture(figsize=(max(6, 1.5 + 0.8 * places[-1]), 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for place, column in zip(places, totals, strict=True):
        parts = [x for x in report.lines if (x.variant, x.rank) == (column.variant, column.rank)]
        _pair(axes, place, parts, column, float(unit_named(name, BYTE)[0]), _colors(report))
    axes.set_ylim(top=axes.dataLim.ymax * HEADROOM)
    _label(axes, places, totals, f"{name} {report.lab.bars}")
    _legend(figure, report)
    return figure


def bars_by_variant(report):
    """A pair of lying bars for each variant, predicted over measured, of rank 0; the paper's total as a line across the pair."""
    totals = [x for x in report.totals if x.rank == 0]
    name = write(max(x.predicted for x in totals), BYTE).split()[-1]
    figure = Picture(figsize=(9, max(2.5, 0.6 + 0.42 * len(totals))), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for place, column in enumerate(totals):
        parts = [x for x in report.lines if (x.variant, x.rank, x.unit) == (column.variant, 0, BYTE)]
        _pair(axes, place, parts, column, float(unit_named(name, BYTE)[0]), _colors(report), lying=True)
    axes.set_yticks(range(len(totals)), [x.variant for x in totals])
    axes.invert_yaxis()
    axes.set_xlabel(f"{name} {report.lab.bars}")
    axes.spines[["top", "right"]].set_visible(False)
    _legend(figure, report)
    return figure


def _places(totals):
    """Where each rank's pair of bars stands: ranks side by side, a gap between variants."""
    variants = list(dict.fromkeys(x.variant for x in totals))
    return [i + GAP * variants.index(x.variant) for i, x in enumerate(totals)]


def _colors(report):
    parts = dict.fromkeys(x.part for x in report.lines if x.rank is not None and x.unit == BYTE)
    return dict(zip(parts, COLORS, strict=False))


def _pair(axes, place, parts, column, scale, colors, lying=False):
    """Two bars beside each other at `place`, standing or lying one under the other, and the paper's total across both."""
    for shift, side, style in ((-BAR / 2, "predicted", PREDICTED), (BAR / 2, "measured", MEASURED)):
        reached = 0
        for x in parts:
            size = (getattr(x, side) or 0) / scale
            draw, start = (axes.barh, "left") if lying else (axes.bar, "bottom")
            draw(place + shift, size, BAR, **{start: reached}, color=colors[x.part], **style)
            reached += size
    across, along = [place - BAR, place + BAR], [column.paper / scale] * 2
    axes.plot(*((along, across) if lying else (across, along)), **PAPER)


def _label(axes, places, totals, says):
    axes.set_xticks(places, [f"rank {x.rank}" for x in totals], fontsize=8)
    axes.set_ylabel(says)
    axes.spines[["top", "right"]].set_visible(False)
    for variant in dict.fromkeys(x.variant for x in totals):
        mine = [place for place, x in zip(places, totals, strict=True) if x.variant == variant]
        middle = (mine[0] + mine[-1]) / 2
        axes.text(middle, -0.1, variant, transform=axes.get_xaxis_transform(), ha="center", va="top", weight="bold")


def _legend(figure, report):
    shown = {x.part for x in report.lines if x.rank is not None and not (x.predicted == 0 and not x.measured)}
    parts = [Patch(color=color, label=part) for part, color in _colors(report).items() if part in shown]
    sides = [Patch(facecolor="#666666", label="predicted", **PREDICTED), Patch(facecolor="#666666", label="measured", **MEASURED)]
    handles = [*sides, Line2D([], [], label="total on paper", **PAPER), *parts]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)
