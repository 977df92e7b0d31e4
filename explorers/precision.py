"""Explorers of number formats: how finely they resolve, what they round away, and what loss scaling moves into their range."""

from formulary import look_up
from formulary.precision import (
    FLOAT_SPACING,
    FORMAT_DRIFT,
    KEPT_DRIFT,
    LARGEST_FLOAT,
    MACHINE_EPSILON,
    NUMBER_FORMAT,
    OVERFLOW_GRADIENT,
    RESCUED_GRADIENT,
    SMALLEST_NORMAL,
    SMALLEST_SUBNORMAL,
    SWALLOW_THRESHOLD,
)

from .control import Choice, Slider
from .curve import Curve
from .explorer import Explorer

FORMATS = {alternative.values["mantissa_bits"]: alternative.name for alternative in NUMBER_FORMAT.alternatives}
UPDATES = (0.00001, 0.1)
MANY = look_up("num_updates").span[-1]


def spacing_explorer(number_format="bf16", binade=0):
    """Distance between neighbouring numbers over the size of the number, one curve per format."""
    size = Slider("binade", binade, "the number, as a power of two", span=(0, 20))
    controls = [Choice(NUMBER_FORMAT, number_format, "format"), size]
    view = Curve({"spacing": FLOAT_SPACING}, size, "distance to the next number", "mantissa_bits", FORMATS, log=(False, True))
    subject = [FLOAT_SPACING, LARGEST_FLOAT, SMALLEST_NORMAL, SMALLEST_SUBNORMAL, MACHINE_EPSILON]
    title = "How finely a format resolves"
    return Explorer(subject, controls, view, title=title, made_by="explorers.spacing_explorer")


def update_explorer(update_size=0.0001, num_updates=MANY, number_format="bf16", binade=0):
    """How far many small updates move a weight, kept and rounded, over the size of one update."""
    controls = [
        Slider("update_size", update_size, "size of one update", span=UPDATES),
        Slider("num_updates", num_updates, "updates"),
        Choice(NUMBER_FORMAT, number_format, "format of the weight"),
        Slider("binade", binade, "the weight, as a power of two"),
    ]
    curves = {"with an fp32 master": KEPT_DRIFT, "rounded every time": FORMAT_DRIFT}
    view = Curve(curves, controls[0], "how far the weight has moved", log=(True, True))
    subject, fixed = [KEPT_DRIFT, SWALLOW_THRESHOLD], {"spacing_halvings": 0}
    return Explorer(subject, controls, view, title="What rounding swallows", fixed=fixed, made_by="explorers.update_explorer")


def loss_scale_explorer(loss_scale=1, number_format="fp16"):
    """The gradients that survive in a format, between the smallest and the largest, over the factor on the loss."""
    controls = [Slider("loss_scale", loss_scale, "factor on the loss", scale="doubling"), Choice(NUMBER_FORMAT, number_format, "format")]
    curves = {"largest, no overflow": OVERFLOW_GRADIENT, "smallest, no zero": RESCUED_GRADIENT}
    view = Curve(curves, controls[0], "gradient", log=(True, True))
    title = "What a loss scale rescues"
    return Explorer(OVERFLOW_GRADIENT, controls, view, title=title, made_by="explorers.loss_scale_explorer")
