"""A claim: a sentence with its numbers left out, and the formulas that fill them in."""

import string
from dataclasses import dataclass

from . import amounts
from .catalogue import find
from .formula import FORMULAS, Formula
from .quantity import InputError, look_up
from .spelling import nearest


@dataclass(frozen=True)
class Claim:
    """`Claim("{world_size} GPUs hold {zero_state_bytes} each")`; called with values, it says the sentence.

    A blank names a formula passed by keyword, a quantity that is given, or a formula of the catalogue, in this order;
    `{zero_state_bytes:GiB}` picks the unit it is written in.
    """

    sentence: str
    formulas: dict

    def __init__(self, sentence, **formulas):
        object.__setattr__(self, "sentence", sentence)
        object.__setattr__(self, "formulas", formulas)

    def __call__(self, **values):
        """The sentence with its numbers, each computed. Raises InputError for a blank nothing fills."""
        text = "".join(before + self._fill(name, scale, values) for before, name, scale in self._blanks())
        return Statement(text)

    def _blanks(self):
        return [(before, name, scale or None) for before, name, scale, _ in string.Formatter().parse(self.sentence)]

    def _fill(self, name, scale, values):
        if name is None:
            return ""
        if name in values and name not in self.formulas:
            quantity = look_up(name)
            return amounts.write(quantity.accept(values[name]), quantity.unit, scale=scale)
        formula: Formula | None = self.formulas.get(name) or find(name)
        if formula is None:
            raise InputError(f"nothing fills {{{name}}} in {self.sentence!r}{nearest(name, [*values, *FORMULAS])}")
        return amounts.write(formula(**formula.accept(values, extra=True)), formula.unit, scale=scale)


class Statement(str):
    """A sentence whose numbers were computed; shows itself as markdown."""

    def _repr_markdown_(self):
        return str(self)
