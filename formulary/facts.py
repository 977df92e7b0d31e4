"""Every number from the world, once: its value, unit, source and the date it was seen."""

from collections.abc import Mapping
from dataclasses import dataclass

from . import amounts
from .quantity import look_up


@dataclass(frozen=True)
class Fact:
    """What quantity `name` is worth in the world, in base units; `source` says where, `seen` when it was read there."""

    name: str
    value: float
    source: str
    seen: str

    def __str__(self):
        return f"{self.name} = {amounts.write(self.value, look_up(self.name).unit)} ({self.source}, seen {self.seen})"


class Bundle(Mapping):
    """Facts about one thing, passed as keyword values: `zero_state_bytes(stage=3, **LLAMA_2_7B, **NODE)`.

    Values may be written as amounts ("80GiB"); they are read and checked by the glossary.
    """

    def __init__(self, title, source, seen, **values):
        self.title = title
        self.facts = {name: Fact(name, look_up(name).accept(value), source, seen) for name, value in values.items()}

    def __getitem__(self, name):
        return self.facts[name].value

    def __iter__(self):
        return iter(self.facts)

    def __len__(self):
        return len(self.facts)

    def __repr__(self):
        return f"{self.title}: " + ", ".join(f"{n}={amounts.write(self[n], look_up(n).unit)}" for n in self)

    def only(self, formula):
        """The values that `formula` (or ledger) takes, so that a whole bundle can be handed to it."""
        return {name: self[name] for name in self if name in formula.inputs}
