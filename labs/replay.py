"""A pipeline's step event by event: each card works through its row of the table and waits where it must.

A Timeline is what comes of it, whether replayed here, where messages take no time, or taken from the clocks of real cards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

FORWARD, BACKWARD, INPUT, WEIGHT = "forward", "backward", "input gradient", "weight gradient"
TIMES = {FORWARD: Fraction(1), BACKWARD: Fraction(2), INPUT: Fraction(1), WEIGHT: Fraction(1)}  # in slots
FREES = (BACKWARD, WEIGHT)  # what lets go of a micro-batch's activations


class Operation(NamedTuple):
    """One pass of a micro-batch through one stage; stages are the model's, of which a card has several where it has chunks."""

    kind: str
    micro_batch: int
    stage: int

    def __str__(self):
        return f"{self.kind} of micro-batch {self.micro_batch} on stage {self.stage}"


class Slot(NamedTuple):
    """An operation with the time it took, in whatever unit its Timeline has."""

    operation: Operation
    start: object
    end: object


class Deadlock(RuntimeError):
    """A table whose cards wait for each other."""


@dataclass(frozen=True)
class Timeline:
    """The Slots of each rank, in order."""

    rows: Sequence

    @property
    def slots(self):
        return [slot for row in self.rows for slot in row]

    @property
    def span(self):
        """From the first start to the last end, over all ranks."""
        return max(slot.end for slot in self.slots) - min(slot.start for slot in self.slots)

    @property
    def bubble(self):
        """The share of the span in which ranks do nothing, over all of them."""
        working = sum(slot.end - slot.start for slot in self.slots)
        return float(1 - working / (len(self.rows) * self.span))

    @property
    def table(self):
        """The operations of each rank, in order."""
        return [[slot.operation for slot in row] for row in self.rows]

    def in_flight(self, rank):
        """The most micro-batches, chunk by chunk, whose activations a rank holds at once."""
        held = most = 0
        for slot in self.rows[rank]:
            held += (slot.operation.kind == FORWARD) - (slot.operation.kind in FREES)
            most = max(most, held)
        return most

    def as_numbers(self):
        """Plain data for each rank: [kind, micro-batch, stage, start, end], in seconds from the first start on, to a tenth of a ms."""
        begun = min(slot.start for slot in self.slots)
        return [[[*slot.operation, round(slot.start - begun, 4), round(slot.end - begun, 4)] for slot in row] for row in self.rows]

    @classmethod
    def of(cls, rows):
        """From what `as_numbers` gives."""
        return cls([[Slot(Operation(*operation), start, end) for *operation, start, end in row] for row in rows])


def replay(table, times):
    """The Timeline of a table, where an operation of a kind takes as long as `times` says. Raises Deadlock."""
    ends, rows = {}, [[] for _ in table]
    last = max(operation.stage for row in table for operation in row)
    while any(len(row) < len(todo) for row, todo in zip(rows, table, strict=True)):
        moved = [_advance(row, todo, ends, last, times) for row, todo in zip(rows, table, strict=True)]
        if not any(moved):
            waiting = [str(todo[len(row)]) for row, todo in zip(rows, table, strict=True) if len(row) < len(todo)]
            raise Deadlock(f"no card can go on: {'; '.join(waiting)} wait for what never comes")
    return Timeline(rows)


def _advance(row, todo, ends, last, times):
    """Let one card work until it must wait; says whether it did anything."""
    begun = len(row)
    while len(row) < len(todo) and all(need in ends for need in needs(todo[len(row)], last)):
        operation = todo[len(row)]
        free = row[-1].end if row else Fraction(0)
        start = max([free, *(ends[need] for need in needs(operation, last))])
        row.append(Slot(operation, start, start + times[operation.kind]))
        ends[produces(operation)] = row[-1].end
    return len(row) > begun


def produces(operation):
    """What others may wait for: a whole backward pass gives the input's gradient too."""
    return operation._replace(kind=INPUT) if operation.kind == BACKWARD else operation


def needs(operation, last):
    """The operations whose results this one works on; `last` is the model's last stage."""
    kind, _, stage = operation
    if kind == FORWARD:
        return [operation._replace(stage=stage - 1)] if stage else []
    if kind == WEIGHT:
        return [operation._replace(kind=INPUT)]
    behind = [operation._replace(kind=INPUT, stage=stage + 1)] if stage < last else []
    return [operation._replace(kind=FORWARD), *behind]
