"""The bank's law: blank fails, the solution gets every point, each misconception meets its own hint, and no file is a stray.

Further: a number's answer is worked out and not typed, neither question nor hints tell a key, and `counts.yaml` beside the
chapters' folders, where there is one, says how many exercises of each kind there are.
"""

import re
from collections import Counter
from string import Formatter

import yaml

from formulary import InputError, nearest

from .assignment import as_written, question, solution
from .bank import BankError, located
from .exercise import LANGUAGES
from .feedback import headings
from .reasons import RubricError, load_rubric
from .rubric import Status, check, mark

FEWEST_MISTAKES = 2


def lint(bank):
    """What is wrong in the bank, a line each, with file, line and field; empty when all is well."""
    faults = [*_strays(bank), *(fault for name, path in bank.files.items() for fault in _faults(bank, name, path))]
    return faults or list(_miscounts(bank))


COUNTS = "counts.yaml"
EXTRA = re.compile(r"E\d{3}-M")  # misconceptions turned into exercises, counted apart


def _miscounts(bank):
    path = bank.root / COUNTS
    if not path.exists():
        return
    wanted = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = {"exercises": Counter(), "extras": Counter()}
    for name, exercise in bank.items():
        found["extras" if EXTRA.match(name) else "exercises"][exercise.kind] += 1
    for group, kinds in wanted.items():
        for kind in sorted({*kinds, *found[group]}):
            if found[group][kind] != kinds.get(kind, 0):
                yield f"{path}:1: {group}.{kind}: {found[group][kind]} in the bank, {kinds.get(kind, 0)} wanted"


def _strays(bank):
    known = set(bank.files.values())
    for path in sorted(bank.root.rglob("*")):
        if path.is_file() and path not in known and path != bank.root / COUNTS:
            yield f"{path}:1: exercise: a stray file; exercises are <chapter>/<id>.yaml"
    names = [path.stem for path in bank.root.glob("*/*.yaml")]
    yield from (f"{bank.files[name]}:1: id: {name} is in two folders" for name in sorted(set(names)) if names.count(name) > 1)


def _faults(bank, name, path):
    try:
        exercise = bank[name]
    except BankError as error:
        yield from str(error).splitlines()
        return
    sides = list(_reasons(exercise)) or [*_sides(exercise), *_drawn_sides(exercise)]
    for where, what in [*_place(exercise, path), *_typed(exercise), *_told(exercise), *_given_away(exercise), *sides]:
        yield located(path, where, what)


def _place(exercise, path):
    if exercise.id != path.stem:
        yield ("id",), f"{exercise.id} is in a file called {path.name}"
    if path.parent.name != f"{exercise.chapter:02d}":
        yield ("chapter",), f"chapter {exercise.chapter} belongs into the folder {exercise.chapter:02d}"
    found = headings(exercise.chapter)
    if found is not None and exercise.section not in found:
        yield ("section",), f"no heading {exercise.section!r} in chapter {exercise.chapter}{nearest(exercise.section, found)}"


LITERAL = re.compile(r"(?<![\w.])\d[\d_.]*(?:[eE][+-]?\d+)?")
SMALL = 100  # a factor of unit or percent; larger figures are facts, or given


def _typed(exercise):
    """Numbers whose answer is typed and not worked out from what is given or a formula."""
    for index, part in enumerate(exercise.parts):
        if part.type == "number":
            names = set(re.findall(r"[A-Za-z_]\w*", part.answer)) & exercise.amounts.keys() - {part.name}
            figures = [figure for figure in LITERAL.findall(part.answer) if float(figure.replace("_", "")) > SMALL]
            if not names or figures:
                yield ("parts", index, "answer"), f"{part.answer} must be worked out from the amounts, without typed figures"


def _told(exercise):
    """Keys that stand in the question, but for those that happen to equal what is given."""
    given = [exercise.amounts[name] for name in exercise.given]
    for index, part in enumerate(exercise.parts):
        if part.type == "number" and exercise.expected(part) in given:
            continue
        for language in LANGUAGES:
            told = f" {question(exercise, (language,))} "
            key = as_written(exercise, part, exercise.expected(part), language)
            if part.type in ("number", "expression") and len(key) >= 4 and re.search(rf"(?<![\w.,]){re.escape(key)}(?!\w|[.,]\d)", told):
                yield ("parts", index, "answer"), f"the question ({language}) tells the key {key}"
            if part.type == "reason" and key in told:
                yield ("parts", index, "answer"), f"the question ({language}) holds the model answer"


FORMULA = re.compile(r"[!-~Ͱ-Ͽ²√−·×]+(?: [-+−·×*/] [!-~Ͱ-Ͽ²√−·×]+)*")  # letters and signs, without words between them


def _given_away(exercise):
    """Hints, which are told before the deadline, that tell an amount the question does not, or an expression that is asked for."""
    template, hints = exercise.template, list(_hints(exercise))
    asked = [template.question, *(part.label for part in template.parts)]
    asked += [option.text for part in template.parts if part.type == "choice" for option in part.options]
    open_ = {*exercise.given, *(name for text in asked for name in _blanks(text))}
    for where, hint in _hints(template):
        if told := sorted(_blanks(hint) - open_):
            yield where, f"the hint tells {', '.join(told)}, which the question does not"
    for part in exercise.parts:
        if part.type == "expression":
            yield from ((where, f"the hint tells {part.name}: {said}") for where, hint in hints if (said := _said_in(hint, exercise, part)))


def _hints(exercise):
    """(where, hint) of each hint of the exercise and of its known mistakes."""
    yield from ((("hints", index), hint) for index, hint in enumerate(exercise.hints))
    for index, part in enumerate(exercise.parts):
        yield from ((("parts", index, "mistakes", number, "hint"), mistake.hint) for number, mistake in enumerate(part.mistakes))


def _blanks(text):
    return {name for language in LANGUAGES for _, name, _, _ in Formatter().parse(getattr(text, language)) if name}


def _said_in(hint, exercise, part):
    """The piece of a hint that would be a right answer to an expression part, or None; one letter is no piece."""
    pieces = [piece.strip(".,;:") for language in LANGUAGES for piece in FORMULA.findall(getattr(hint, language))]
    return next((piece for piece in pieces if len(piece) > 2 and check(exercise, part, piece).status is Status.RIGHT), None)


def _reasons(exercise):
    """Reasons to be read by a rubric that there is not."""
    for index, line in enumerate(exercise.rubric):
        if line.marked_by == "claims":
            try:
                load_rubric(exercise.id).of_line(line.name)
            except RubricError as error:
                yield ("rubric", index, "marked_by"), str(error)


def _sides(exercise):
    yield from _blank_side(exercise)
    yield from _solved_side(exercise)
    yield from _mistake_side(exercise)


DRAWS = 3  # variants that are tried; the tests try them all


def _drawn_sides(exercise):
    """What the two sides say of variants with fresh numbers. Draws that make no sense are drawn again, but not for ever."""
    for number in range(DRAWS if exercise.ranges else 0):
        try:
            drawn = exercise.variant(f"lint {number}")
        except InputError as error:
            yield ("ranges",), str(error)
            return
        given = ", ".join(f"{name} {drawn.given[name]}" for name in drawn.given if drawn.given[name] != exercise.given[name])
        for where, what in [*_blank_side(drawn), *_solved_side(drawn), *_hinted(drawn)]:
            yield where, f"with {given}: {what}"


def _hinted(exercise):
    """Mistakes that are right with these numbers, or meet no hint: two may give the same, but neither may be lost."""
    for index, part in enumerate(exercise.parts):
        for number, mistake in enumerate(part.mistakes):
            met = check(exercise, part, as_written(exercise, part, exercise.mistaken(part, mistake), LANGUAGES[0]))
            if not exercise.several(part) and (met.share != mistake.credit or not met.hint):
                yield ("parts", index, "mistakes", number), f"{mistake.name} meets {met.mistake or met.status.value}"


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
