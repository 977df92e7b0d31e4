"""The whole bank from every side: perfect, blank, each mistake, strange answers; and assignments that hold it."""

import re
from functools import cache

import nbformat
import pytest

from autograder import feedback
from autograder.answer import amount
from autograder.assignment import as_written, assignments, load_assignment, solution
from autograder.bank import Bank
from autograder.exercise import LANGUAGES
from autograder.rubric import Status, check, mark
from formulary.amounts import unit_named, write
from formulary.units import BYTE

BANK = Bank()
PAPER = load_assignment("paper_1")
SETS = {name: load_assignment(name) for name in assignments()}
NUMBERS = [(name, part.name) for name in BANK for part in BANK[name].parts if part.type == "number"]


def results(exercises, answers):
    return [result for name in exercises for result in mark(BANK[name], answers(BANK[name]))]


# --- papers ----------------------------------------------------------------------------------------------------------


def test_the_paper_is_worth_a_hundred_points():
    points = [BANK[name].points for name in PAPER.exercises]
    assert points == [3] * 10 + [4] * 5 + [10] * 5 and sum(points) == 100


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_perfect_paper_scores_a_hundred(language):
    """What the machine marks is full and sure; with the full marks that a person gives the rest, it is a hundred."""
    marked = results(PAPER.exercises, lambda exercise: solution(exercise, language))
    by_machine = [result for result in marked if result.line.marked_by != "human"]
    assert all(result.points == result.line.points and not result.needs_human for result in by_machine)
    by_person = sum(result.line.points for result in marked if result.line.marked_by == "human")
    assert sum(result.points for result in by_machine) + by_person == 100


def test_a_blank_paper_scores_nothing_and_bothers_nobody():
    marked = results(PAPER.exercises, lambda exercise: {})
    assert all(result.points == 0 and not result.needs_human for result in marked)


def test_every_exercise_is_asked_somewhere():
    asked = [name for assignment in SETS.values() for name in assignment.exercises]
    assert set(BANK) == set(asked)


def test_every_exercise_points_to_a_heading_of_its_chapters_notebook():
    missing = {name: exercise.section for name, exercise in BANK.items() if exercise.section not in notebook_headings(exercise.chapter)}
    assert missing == {}


@cache
def notebook_headings(chapter):
    (path,) = feedback.CHAPTERS.glob(f"{chapter:02d}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    return re.findall(r"^#{2,} (.+)$", "\n".join(cell.source for cell in cells if cell.cell_type == "markdown"), re.MULTILINE)


@pytest.mark.parametrize("name", BANK)
def test_full_marks_for_the_solution_and_none_for_a_blank(name):
    for language in LANGUAGES:
        for result in mark(BANK[name], solution(BANK[name], language)):
            assert result.line.marked_by == "human" or (result.points == result.line.points and result.status is Status.RIGHT)
    assert not any(result.points or result.needs_human for result in mark(BANK[name], {}))


# --- spellings, near misses, slips -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "part"), NUMBERS)
def test_right_numbers_in_other_spellings_pass_and_near_misses_fail(name, part):
    exercise, part = BANK[name], BANK[name].part(part)
    right = exercise.expected(part)
    plain = repr(right.value)
    for said in [right.value, plain, f" {plain} ", f"≈ {plain}", f"约{plain}", f"= {plain}", plain.translate(FULL_WIDTH), f"({plain})"]:
        assert check(exercise, part, said).share == 1, said
    for factor in (1 + 1.5 * part.within + 1e-6, 1 - 1.5 * part.within - 1e-6, -1, 1.5):
        if right.value:
            found = check(exercise, part, right.value * factor)
            assert found.status in (Status.WRONG, Status.PARTLY) and (found.share < 1 or found.mistake), factor


FULL_WIDTH = str.maketrans("0123456789.-+", "０１２３４５６７８９．－＋")


@pytest.mark.parametrize(("name", "part"), [pair for pair in NUMBERS if BANK[pair[0]].expected(BANK[pair[0]].part(pair[1])).unit == BYTE])
def test_gib_for_gb_is_named_and_never_accepted_in_silence(name, part):
    exercise, part = BANK[name], BANK[name].part(part)
    digits = write(exercise.expected(part).value, BYTE, 6, "GB").split()[0].replace(",", "")
    found = check(exercise, part, f"{digits} GiB")
    assert amount(f"{digits} GiB", BYTE)[0] and found.hint is not None
    assert found.mistake or "GiB" in found.hint.en


ALONE = [pair for pair in NUMBERS if BANK[pair[0]].part(pair[1]).alone]


def bare(exercise, part):
    """The right number in the unit that the label names, without that unit."""
    expected = exercise.expected(part)
    return f"{expected.value / float(unit_named(part.alone, expected.unit)[0]):.9g}"


@pytest.mark.parametrize(("name", "part"), ALONE)
def test_where_the_label_names_a_unit_the_number_alone_is_right(name, part):
    exercise, part = BANK[name], BANK[name].part(part)
    assert check(exercise, part, bare(exercise, part)).status is Status.RIGHT
    assert check(exercise, part, f"{1.5 * float(bare(exercise, part))}").share < 1
    assert part.alone in part.label.zh and part.alone.lower() in part.label.en.lower()


def test_bare_numbers_in_the_unit_that_the_question_asks_for_earn_full_marks():
    exercise = BANK["E002-Q01"]
    answers = {part.name: bare(exercise, part) for part in exercise.parts if part.type == "number"} | {"fits": False}
    assert [result.points for result in mark(exercise, answers)] == [line.points for line in exercise.rubric]


# --- mistakes and strange answers ------------------------------------------------------------------------------------


def test_each_mistake_of_a_part_has_a_hint_of_its_own():
    """But for options chosen together, where several wrong sets may go wrong alike."""
    for name in BANK:
        for part in [part for part in BANK[name].parts if not BANK[name].several(part)]:
            for language in LANGUAGES:
                hints = [getattr(mistake.hint, language) for mistake in part.mistakes]
                assert len(set(hints)) == len(hints), (name, part.name)


HOSTILE = {
    "code": "__import__('os').system('id')",
    "power": "9**9**9",
    "long number": "9" * 5_000,
    "huge exponent": "1e999999",
    "control": "24.5\x00\x1b[31m GB\x07",
    "right to left": "\u202e24.5 GB\u202c",
    "megabyte": "a" * 1_000_000,
    "brackets": "(" * 9_999 + "1" + ")" * 9_999,
    "markup": "<img src=x onerror=alert(1)>",
    "list": ["A"] * 1_000,
    "nested": [[["A"]]],
    "dict": {"a": 1},
    "infinity": float("inf"),
    "none of it": float("nan"),
    "emoji": "🤖" * 100,
    "surrogate": "\ud800",
    "format": "{world_size} %s {0}",
}


@pytest.mark.parametrize("strange", HOSTILE)
def test_strange_answers_get_a_verdict_and_cost_nobody_else_a_point(strange):
    for name in BANK:
        exercise = BANK[name]
        right = solution(exercise, "en")
        for line in exercise.rubric:
            answers = right | dict.fromkeys(line.parts, HOSTILE[strange])
            for result in mark(exercise, answers):
                assert result.status is not Status.BROKEN, (name, result.line.name)
                assert result.points is None or 0 <= result.points <= result.line.points
                if not set(result.line.parts) & set(line.parts) and result.line.marked_by == "key":
                    assert result.points == result.line.points, (name, line.name, result.line.name)
                told = "".join(said for language in LANGUAGES for lines in result.tell(language) for said in lines)
                assert "<img" not in told and "\x1b" not in told and "\u202e" not in told


def test_as_written_is_what_a_learner_can_type():
    """Every known answer, right or wrong, is plain data that an answer cell can hold."""
    for name in BANK:
        for part in BANK[name].parts:
            for answer in [BANK[name].expected(part), *(BANK[name].mistaken(part, mistake) for mistake in part.mistakes)]:
                said = as_written(BANK[name], part, answer, "en")
                assert isinstance(said, str | bool) and eval(repr(said)) == said


@pytest.mark.parametrize("name", [name for name in BANK if BANK[name].ranges])
def test_no_article_depends_on_a_number_that_is_drawn(name):
    drawn = "|".join(BANK[name].ranges)
    assert not re.search(rf"\b[Aa]n? {{({drawn})\b", BANK.files[name].read_text(encoding="utf-8"))
