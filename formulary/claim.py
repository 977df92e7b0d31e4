"""A claim: a sentence with its numbers left out, and the formulas that fill them in."""

import string
from dataclasses import dataclass

from . import amounts
from .formula import FORMULAS, Formula
from .quantity import InputError, look_up
from .spelling import nearest


@dataclass(frozen=True)
class Claim:
    """`Claim("{world_size} GPUs hold {zero_state_bytes} each")`; called with values, it says the sentence.

    A blank names a quantity that is given or a formula that is evaluated; `{zero_state_bytes:GiB}` picks the unit
    it is written in. Formulas not in the catalogue are passed by keyword.
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
        if name in self.formulas or name in FORMULAS:
            formula: Formula = self.formulas.get(name) or FORMULAS[name]
            return amounts.write(formula(**formula.accept(values, extra=True)), formula.unit, scale=scale)
        if name not in values:
            raise InputError(f"nothing fills {{{name}}} in {self.sentence!r}{nearest(name, [*values, *FORMULAS])}")
        quantity = look_up(name)
        return amounts.write(quantity.accept(values[name]), quantity.unit, scale=scale)


class Statement(str):
    """A sentence whose numbers were computed; shows itself as markdown."""

    def _repr_markdown_(self):
        return str(self)
