"""Named alternatives that people mean by the same word, and who uses which."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import amounts
from .quantity import InputError
from .spelling import nearest


@dataclass(frozen=True)
class Alternative:
    """One way to count: `values` of the glossary's quantities, or a whole `formula`, and who counts so."""

    name: str
    meaning: str
    who: str
    values: Mapping = field(default_factory=dict)
    formula: object = None


@dataclass(frozen=True)
class Convention:
    """A question that sources answer differently, and the answers; the first one is ours."""

    name: str
    question: str
    alternatives: tuple

    def __post_init__(self):
        names = [alternative.name for alternative in self.alternatives]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"convention {self.name} needs alternatives with different names, not {names}")

    @property
    def default(self):
        return self.alternatives[0]

    def __getitem__(self, name):
        for alternative in self.alternatives:
            if alternative.name == name:
                return alternative
        names = [alternative.name for alternative in self.alternatives]
        raise InputError(f"convention {self.name} has no {name!r}{nearest(name, names)} (it has {', '.join(names)})")

    def __contains__(self, name):
        return any(alternative.name == name for alternative in self.alternatives)

    def _repr_markdown_(self):
        rows = [f"| {a.name} | {a.meaning} | {a.who} |" for a in self.alternatives]
        return "\n".join([f"**{self.question}**\n", "| convention | meaning | used by |", "|---|---|---|", *rows])


@dataclass(frozen=True)
class Counted:
    """What one alternative makes of the same inputs: a `value` in base units of its own `unit`, or why it has none."""

    convention: str
    alternative: Alternative
    unit: object
    value: float | None
    why_not: str = ""


@dataclass(frozen=True)
class Comparison:
    """The same question counted by every alternative; shows itself as a table. `chosen` names the ones in force."""

    rows: tuple
    chosen: tuple

    def _repr_markdown_(self):
        return "\n".join(["| convention | value | meaning | used by |", "|---|--:|---|---|", *map(self._row, self.rows)])

    def _row(self, row):
        amount = amounts.write(row.value, row.unit) if row.value is not None else row.why_not
        name = f"**{row.alternative.name}**" if row.alternative.name in self.chosen else row.alternative.name
        return f"| {name} | {amount} | {row.alternative.meaning} | {row.alternative.who} |"
