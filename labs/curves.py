"""Mountains as a picture: the bytes that a step holds beyond what was there before it, operation after operation."""

from formulary.amounts import unit_named, write
from formulary.units import BYTE

from .picture import COLORS, Picture

CURVE = "/mountain"


def mountains(report):
    """A Picture of every mountain in a report; a dashed line at the peak that was predicted, where the mountain shows all that is held."""
    numbers = report.measurement.numbers if report.measurement else {}
    curves = {name.removesuffix(CURVE): heights for name, heights in numbers.items() if name.endswith(CURVE)}
    predicted = {x.variant: x.predicted for x in report.lines if x.part == "peak"}
    unit = write(max([1, *predicted.values(), *map(max, curves.values())]), BYTE).split()[-1]
    scale = float(unit_named(unit, BYTE)[0])
    figure = Picture(figsize=(9, 4), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for color, (name, heights) in zip(COLORS, curves.items(), strict=False):
        _draw(axes, color, name, heights, scale)
        if name != "fsdp":  # whose peak counts the states too
            axes.axhline(predicted[name] / scale, color=color, linestyle="--", linewidth=1)
    axes.set_xlabel("share of the step's operations")
    axes.set_ylabel(f"{unit} held beyond what was there before")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _draw(axes, color, name, heights, scale):
    places = [place / len(heights) for place in range(len(heights))]
    axes.fill_between(places, [height / scale for height in heights], color=color, alpha=0.15)
    axes.plot(places, [height / scale for height in heights], color=color, label=name)
