"""An explorer of one figure before different units."""

from formulary.capacity import BINARY_BYTES, BIT_BYTES, DECIMAL_BYTES

from .control import Slider
from .curve import Curve
from .explorer import Explorer


def unit_explorer(stated_figure=34, prefix_power=3):
    """What one figure amounts to in bytes if its unit is decimal, binary, or counts bits."""
    controls = [Slider("stated_figure", stated_figure, "figure"), Slider("prefix_power", prefix_power, "prefix: kilo, mega, giga, tera")]
    readings = {"bytes, binary prefix": BINARY_BYTES, "bytes, decimal prefix": DECIMAL_BYTES, "bits, decimal prefix": BIT_BYTES}
    view = Curve(readings, controls[0], "what the figure amounts to", log=(True, True))
    return Explorer(BINARY_BYTES, controls, view, title="One figure, three units", made_by="explorers.unit_explorer")
