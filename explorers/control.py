"""What a reader can move: a slider with a box to type in, or a list to choose from. Each is one synced trait."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp
import traitlets

from formulary import Convention, InputError, Quantity, look_up
from formulary.amounts import write
from formulary.units import PURE, without_units

# The round figures of one decade, in steps of some 5 to 12 %; the sizes that models come in are among them.
ROUND = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2, 2.2, 2.4, 2.7, 3, 3.4, 3.7, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 9)
LINEAR_STEPS = 200
WIDE = 100  # a span whose ends are this far apart is walked in ratios, not in differences


@dataclass(frozen=True)
class Slider:
    """A range input over the span of quantity `name`, with a box beside it that takes typed amounts.

    scale: "linear", "log", or "doubling" (1, 2, 3, 4, 6, 8, 12, …, as machines are bought); by default what the span suggests.
    """

    name: str
    value: object = None
    label: str = ""
    scale: str = ""
    span: tuple = ()

    @property
    def quantity(self) -> Quantity:
        return look_up(self.name)

    @property
    def title(self):
        return self.label or self.quantity.meaning

    @property
    def stops(self):
        """The values at which the slider stops, ascending and in base units. A typed value may lie between them."""
        low, high = (self.quantity.accept(end) for end in self.span or self.quantity.span)
        scale = self.scale or ("log" if low > 0 and high / low >= WIDE else "linear")
        if scale not in STOPS:
            raise InputError(f"slider {self.name} has scale {scale!r}; it must be one of {', '.join(STOPS)}")
        inside = {self.settle(value) for value in STOPS[scale](low, high) if low <= value <= high}
        return sorted(inside | {self.settle(low), self.settle(high)})

    @property
    def start(self):
        """Where it stands at first: `value`, or the middle of its stops."""
        return self.stops[len(self.stops) // 2] if self.value is None else self.value

    def settle(self, value):
        """`value` as the quantity accepts it; a count between two whole numbers is rounded, as the slider would."""
        whole = self.quantity.symbol.is_integer and isinstance(value, float) and math.isfinite(value)
        return self.quantity.accept(round(value) if whole else value)

    def gives(self, value):
        """The quantities this control fixes, by name."""
        return {self.name: value}

    def spec(self):
        """What the front end needs to know, as JSON values."""
        q = self.quantity
        least, most = (end if math.isfinite(end) else None for end in (q.least, q.most))
        bounds = {"least": least, "most": most, "whole": bool(q.symbol.is_integer)}
        return {"kind": "slider", "name": self.name, "label": self.title, "unit": str(q.unit), "stops": self.stops, **bounds}


@dataclass(frozen=True)
class Number(Slider):
    """A slider over a pure number that is no quantity of the glossary: views and their rules know it by its name."""

    @property
    def quantity(self):
        low, high = self.span
        return Quantity(sp.Symbol(self.name), self.name, PURE, self.label, self.span, least=min(low, 0), most=high)


def _linear(low, high):
    return [low + (high - low) * i / LINEAR_STEPS for i in range(LINEAR_STEPS + 1)]


def _log(low, high):
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f"{figure}e{power}") for power in powers for figure in ROUND]


def _doubling(low, high):
    powers = range(math.floor(math.log2(low)) - 1, math.ceil(math.log2(high)) + 1)
    return [step for power in powers for step in (2**power, 3 * 2 ** (power - 1))]


STOPS = {"linear": _linear, "log": _log, "doubling": _doubling}


@dataclass(frozen=True)
class Step:
    """A step of a picture that moves, from 0 to `most`: a slider with a button that plays it.

    most: a number, or an expression over quantities, where `span` is the most it can be; pace: milliseconds to a step.
    It is no quantity of the glossary: views and their rules know it by its name.
    """

    name: str
    label: str
    most: object
    value: int = 0
    span: int = 0
    pace: int = 400

    @property
    def stops(self):
        return list(range((self.span or int(self.most)) + 1))

    @property
    def start(self):
        return self.value

    @property
    def expressions(self):
        """The expression of its end, by the key under which the front end has it too."""
        return {f"most {self.name}": without_units(sp.sympify(self.most))} if self.span else {}

    def settle(self, value):
        """`value` as a whole step; raises InputError if it is none."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value not in self.stops:
            raise InputError(f"{self.name} is {value!r}; it must be a whole number from 0 to {self.stops[-1]}")
        return int(value)

    def gives(self, value):
        """The value under its name; the explorer keeps it within `most`."""
        return {self.name: value}

    def spec(self):
        """What the front end needs to know, as JSON values."""
        up_to = next(iter(self.expressions), None)
        shown = {"label": self.label, "unit": str(PURE), "stops": self.stops, "pace": self.pace}
        return {"kind": "step", "name": self.name, "whole": True, "upTo": up_to, **shown}


@dataclass(frozen=True)
class Choice:
    """A list to choose from: the choices of quantity `name`, or a convention, whose alternative fixes several quantities.

    labels: what the list says for a choice, where its own figure or meaning says too little.
    """

    of: str | Convention
    value: object = None
    label: str = ""
    labels: Mapping = field(default_factory=dict)

    @property
    def name(self):
        return self.of.name if isinstance(self.of, Convention) else self.of

    @property
    def start(self):
        """What it stands at first: `value`, or the first option."""
        return self.options[0][0] if self.value is None else self.value

    @property
    def options(self):
        """Rows (value, label, hint, the quantities it fixes)."""
        if isinstance(self.of, Convention):
            label = lambda name: self.labels.get(name, name.replace("_", " "))
            return [(a.name, label(a.name), f"{a.meaning}. {a.who}.", a.values) for a in self.of.alternatives]
        quantity = look_up(self.of)
        return [(v, self.labels.get(v, write(v, quantity.unit)), "", {self.of: v}) for v in quantity.choices]

    def settle(self, value):
        """`value` if it is one of the options; raises InputError, naming them, if not."""
        if isinstance(self.of, Convention):
            return self.of[value].name
        quantity = look_up(self.of)
        return quantity.accept(round(value) if isinstance(value, float) and value.is_integer() else value)

    def gives(self, value):
        """The quantities this choice fixes, by name."""
        return dict(next(gives for option, _, _, gives in self.options if option == value))

    def spec(self):
        """What the front end needs to know, as JSON values."""
        options = [{"value": v, "label": label, "hint": hint, "gives": dict(gives)} for v, label, hint, gives in self.options]
        return {"kind": "choice", "name": self.name, "label": self.label or self._question(), "options": options}

    def _question(self):
        return self.of.name if isinstance(self.of, Convention) else look_up(self.of).meaning


class Setting(traitlets.TraitType):
    """The trait of a control: what it accepts, and nothing else. Texts such as "13B" are read."""

    def __init__(self, control):
        self.control = control
        super().__init__(control.settle(control.start))

    def validate(self, obj, value):
        try:
            return self.control.settle(value)
        except InputError as error:
            raise traitlets.TraitError(str(error)) from None
