"""Fresh numbers for an exercise: drawn from its stated ranges, with the key from the same formulas, and only where they make sense."""

import hashlib
import itertools
import math

from formulary import InputError, judge, nearest
from formulary.hardware import GPUS
from formulary.shapes import MODELS

TRIES = 200
MARGIN = 2  # how many tolerances a known mistake must lie from the right answer
PRESETS = {"model": MODELS, "card": GPUS}


def variant(template, seed):
    """`template` with given values drawn by `seed`, an Exercise whose blanks are not filled; the same seed draws the same.

    Raises InputError if hundreds of draws in a row make no sense.
    """
    for attempt in range(TRIES):
        made = template.asked_of(template.given | _drawn(template, f"{seed}:{attempt}"))
        if next(nonsense(made), None) is None:
            return made
    raise InputError(f"{template.id}: {TRIES} draws from its ranges make no sense; the last one: {next(nonsense(made))}")


def _drawn(template, seed):
    found = {}
    for name, choices in template.ranges.items():
        number = int.from_bytes(hashlib.sha256(f"{seed}:{template.id}:{name}".encode()).digest()[:8], "big")
        found |= _values(template, name, choices[number % len(choices)])
    return found


def _values(template, name, chosen):
    """What a choice says about the given quantities: one value, several that go together, or those of a model or card."""
    if name in PRESETS:
        if chosen not in PRESETS[name]:
            raise InputError(f"{template.id}: no {name} is called {chosen!r}{nearest(chosen, PRESETS[name])}")
        return {key: value for key, value in PRESETS[name][chosen].items() if key in template.given}
    return chosen if isinstance(chosen, dict) else {name: chosen}


def every_value(template):
    """Each choice of each range as {quantity: value}, to be checked."""
    return [_values(template, name, chosen) for name, choices in template.ranges.items() for chosen in choices]


def nonsense(exercise):
    """Why an exercise makes no sense with its numbers, one sentence each."""
    for where, what in exercise.faults():
        yield f"{'.'.join(map(str, where))}: {what}"
        return
    for part in exercise.parts:
        if part.type == "number":
            yield from _number_nonsense(exercise, part)
        if part.type == "choice":
            yield from _alike([option.text for option in exercise.filled().part(part.name).options])


def _number_nonsense(exercise, part):
    right = exercise.expected(part).value
    if not right or not math.isfinite(right):
        yield f"{part.name}: the answer is {right}"
    elif part.within == 0 and right != int(right):
        yield f"{part.name}: the answer, which must be met exactly, is {right}"
    for mistake in part.mistakes:
        if judge(exercise.mistaken(part, mistake).value, right, within=MARGIN * part.within).passed:
            yield f"{part.name}: the mistake {mistake.name} gives {right}, which is right"


def _alike(options):
    for one, other in itertools.combinations(options, 2):
        if one.en == other.en or one.zh == other.zh:
            yield f"two options say {one.en!r}"
