"""Work laid out in time by rules: which blocks there are, on which row, in which turn, and what each waits for.

A rule is data; its expressions are sympy, so the front end follows the same rules in the JavaScript written from them.
Rows work through their blocks in turn, each as soon as the row is free and what it waits for has ended.
"""

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from formulary.javascript import CLOSE
from formulary.units import without_units

MOST_BLOCKS = 40_000


def _level(blocks):
    run = [block for block in blocks if block.end is not None]
    changes = [(block.start, 1, block.takes) for block in run] + [(block.end, 0, -block.frees) for block in run]
    amount, found = 0, [[0, 0]]
    for time, _, change in sorted(changes, key=lambda each: each[:2]):  # what ends frees first, what starts takes then
        if change:
            amount += change
            found = [*found[:-1], [time, amount]] if found[-1][0] == time else [*found, [time, amount]]
    return found


@dataclass(frozen=True)
class Blocks:
    """One kind of work: a block for every combination of the counters `over` (name to how many, counted from 0).

    row, turn, length: where it is, its place in the row's order, how long it takes. after: (kind, {counter: value}) of the
    blocks it waits for; one that does not exist is not waited for. takes, frees: what it occupies from its start on, and gives
    back at its end. mark: the number written in it. tone: how pale it is, 0 to 1. All are expressions over the counters, the
    quantities of the explorer and the results of its formulas.
    """

    kind: str
    over: Mapping
    row: object
    turn: object
    length: object
    after: Sequence = ()
    takes: object = 0
    frees: object = 0
    mark: object = None
    tone: object = 0

    FIELDS = ("row", "turn", "length", "takes", "frees", "mark", "tone")

    @cached_property
    def expressions(self):
        """Every expression of the rule, by the key under which the front end has it too."""
        counts = {f"{self.kind} over {name}": count for name, count in self.over.items()}
        fields = {f"{self.kind} {name}": getattr(self, name) for name in self.FIELDS if getattr(self, name) is not None}
        waits = {f"{self.kind} after {i} {name}": value for i, (_, counters) in enumerate(self.after) for name, value in counters.items()}
        return {key: without_units(sp.sympify(expr)) for key, expr in (counts | fields | waits).items()}

    def spec(self):
        """What the front end needs to know beside the expressions, as JSON values."""
        return {"kind": self.kind, "over": list(self.over), "after": [kind for kind, _ in self.after]}

    @cached_property
    def compiled(self):
        """The same expressions as functions of everything known, by key."""
        return {key: compiled(expr) for key, expr in self.expressions.items()}


def counter(name):
    """A symbol to count blocks or cells with: 0, 1, 2, …"""
    return sp.Symbol(name, integer=True, nonnegative=True)


def compiled(expr):
    """A sympy expression as a function of a dict that has a value for each of its symbols, and may have more.

    It rounds as the JavaScript written from the same expression does.
    """
    names = sorted(map(str, expr.free_symbols))
    # sympy 1.14 prints z - 2*Mod(x, y) as z - 2*x % y, which Python reads as (2*x) % y: a function call says what is meant
    said = expr.replace(sp.Mod, sp.Function("remainder")).replace(sp.floor, sp.Function("below")).replace(sp.ceiling, sp.Function("above"))
    function = sp.lambdify(names, said, modules=[ROUNDING, "math"])
    return lambda known: function(*(known[name] for name in names))


def _rounded(to):
    """Rounding of a number, where one that is CLOSE to a whole number is that one."""
    return lambda value: round(value) if abs(value - round(value)) <= CLOSE * abs(value) else to(value)


ROUNDING = {"remainder": operator.mod, "below": _rounded(math.floor), "above": _rounded(math.ceil)}


@dataclass
class Block:
    """One block: what rule it is of, its place, what it waits for (as positions in the list of blocks), and when it runs."""

    kind: str
    row: int
    turn: float
    length: float
    after: list
    takes: float
    frees: float
    mark: float | None
    tone: float
    start: float = None
    end: float = None


@dataclass(frozen=True)
class Plan:
    """Blocks in time; `lines` are those of each row, in turn. `fault` says in words why there is no such plan, if there is none."""

    blocks: list
    lines: list
    fault: str = ""

    @property
    def end(self):
        return max((block.end for block in self.blocks if block.end is not None), default=0)

    def busy(self, row):
        """How long the row works."""
        return sum(block.length for block in self.lines[row])

    def span(self, row):
        """From the start of the row's first block to the end of its last."""
        mine = [block for block in self.lines[row] if block.end is not None]
        return mine[-1].end - mine[0].start if mine else 0

    def level(self, row):
        """What the row's blocks occupy: [time, amount] from each change on."""
        return _level(self.lines[row])

    def level_of_all(self):
        """What all blocks occupy together, likewise."""
        return _level(self.blocks)


def lay_out(rules, known, rows):
    """The Plan that `rules` make of what is `known`, on that many rows."""
    counts = {rule.kind: {name: int(rule.compiled[f"{rule.kind} over {name}"](known)) for name in rule.over} for rule in rules}
    *firsts, total = itertools.accumulate((math.prod(c.values()) for c in counts.values()), initial=0)
    first = dict(zip(counts, firsts, strict=True))
    if total > MOST_BLOCKS:
        return Plan([], [[] for _ in range(rows)], f"{total:,} blocks are too many to draw.")
    blocks = [block for rule in rules for block in _blocks(rule, known, counts, first)]
    lines = [sorted((b for b in blocks if b.row == row), key=lambda b: b.turn) for row in range(rows)]
    return Plan(blocks, lines, "Some blocks wait for each other for ever." if _run(blocks, lines) else "")


def _blocks(rule, known, counts, first):
    """Every block of a rule, in the order of its counters."""
    for values in itertools.product(*map(range, counts[rule.kind].values())):
        here = {**known, **dict(zip(rule.over, values, strict=True))}
        waits = [_position(rule, i, here, counts[kind], first[kind]) for i, (kind, _) in enumerate(rule.after)]
        yield Block(rule.kind, after=[place for place in waits if place is not None], **_fields(rule, here))


def _fields(rule, here):
    given = [name for name in Blocks.FIELDS if getattr(rule, name) is not None]
    return dict.fromkeys(Blocks.FIELDS) | {name: rule.compiled[f"{rule.kind} {name}"](here) for name in given}


def _position(rule, i, here, counts, first):
    """Where the block that dependency `i` names stands in the list, or None if there is no such block."""
    place = 0
    for name, count in counts.items():
        value = rule.compiled[f"{rule.kind} after {i} {name}"](here)
        if not 0 <= value < count:
            return None
        place = place * count + int(value)
    return first + place


def _run(blocks, lines):
    """Give every block its start and end; returns whether some are left that wait for each other."""
    position, free, moved = [0] * len(lines), [0] * len(lines), True
    while moved:
        moved = False
        for row, line in enumerate(lines):
            while position[row] < len(line) and all(blocks[i].end is not None for i in line[position[row]].after):
                block = line[position[row]]
                block.start = max([free[row], *(blocks[i].end for i in block.after)])
                block.end = free[row] = block.start + block.length
                position[row] += 1
                moved = True
    return any(place < len(line) for place, line in zip(position, lines, strict=True))
