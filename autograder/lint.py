"""The bank's law: blank fails, the solution gets every point, each misconception meets its own hint, and no file is a stray."""

from .assignment import as_written, solution
from .bank import BankError, located
from .exercise import LANGUAGES
from .rubric import check, mark

FEWEST_MISTAKES = 2


def lint(bank):
    """What is wrong in the bank, a line each, with file, line and field; empty when all is well."""
    return [*_strays(bank), *(fault for name, path in bank.files.items() for fault in _faults(bank, name, path))]


def _strays(bank):
    known = set(bank.files.values())
    for path in sorted(bank.root.rglob("*")):
        if path.is_file() and path not in known:
            yield f"{path}:1: exercise: a stray file; exercises are <chapter>/<id>.yaml"
    names = [path.stem for path in bank.root.glob("*/*.yaml")]
    yield from (f"{bank.files[name]}:1: id: {name} is in two folders" for name in sorted(set(names)) if names.count(name) > 1)


def _faults(bank, name, path):
    try:
        exercise = bank[name]
    except BankError as error:
        yield from str(error).splitlines()
        return
    for where, what in [*_place(exercise, path), *_blank_side(exercise), *_solved_side(exercise), *_mistake_side(exercise)]:
        yield located(path, where, what)


def _place(exercise, path):
    if exercise.id != path.stem:
        yield ("id",), f"{exercise.id} is in a file called {path.name}"
    if path.parent.name != f"{exercise.chapter:02d}":
        yield ("chapter",), f"chapter {exercise.chapter} belongs into the folder {exercise.chapter:02d}"


def _blank_side(exercise):
    for index, result in enumerate(mark(exercise, {})):
        if result.points or result.needs_human:
            yield ("rubric", index), f"a blank answer gets {result.points:g} points or goes to a person"


def _solved_side(exercise):
    for language in LANGUAGES:
        for index, result in enumerate(mark(exercise, solution(exercise, language))):
            line = result.line
            if line.marked_by != "human" and (result.points != line.points or result.needs_human):
                told = " | ".join(line for said in result.tell(language) for line in said)
                yield (
                    ("rubric", index),
                    f"the solution ({language}) gets {result.points:g} of {line.points:g} points, {result.status.value}: {told}",
                )


def _mistake_side(exercise):
    for index, part in enumerate(exercise.parts):
        if part.type == "number" and len(part.mistakes) < FEWEST_MISTAKES:
            yield ("parts", index), f"{part.name} has {len(part.mistakes)} misconceptions; a number needs {FEWEST_MISTAKES}"
        for number, mistake in enumerate(part.mistakes):
            wrong = as_written(exercise, part, exercise.mistaken(part, mistake), LANGUAGES[0])
            met = check(exercise, part, wrong)
            if met.mistake != mistake.name or (met.share != mistake.credit and not exercise.several(part)):
                yield ("parts", index, "mistakes", number), f"{wrong!r} meets {met.mistake or met.status.value}, not {mistake.name}"
