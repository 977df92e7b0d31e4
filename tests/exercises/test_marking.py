"""Lines marked: partial credit, the hint that fits, what goes to a person, and that a fault of ours costs nobody a point."""

import itertools

import pytest

from autograder import rubric
from autograder.answer import Unread
from autograder.assignment import as_written, solution
from autograder.bank import Bank
from autograder.exercise import LANGUAGES, Text
from autograder.rubric import Status, check, mark

BANK = Bank()
NUMBERS = [(name, part.name) for name in BANK for part in BANK[name].parts if part.type == "number"]
MISTAKES = [(name, part.name, mistake.name) for name in BANK for part in BANK[name].parts for mistake in part.mistakes]


def results(name, **answers):
    return {result.line.name: result for result in mark(BANK[name], answers)}


def test_partial_credit_by_equal_shares():
    right = solution(BANK["E000-LQ03"], "en")
    for count in range(4):
        given = {part: right[part] for part in ("zero1", "zero2", "zero3")[:count]}
        assert results("E000-LQ03", **given)["states"].points == pytest.approx(count)


def test_mistakes_keep_what_the_rubric_says():
    exercise = BANK["E000-LQ01"]
    share = exercise.expected(exercise.part("value")).value
    finding = check(exercise, exercise.part("value"), f"{100 * share:.3f}")
    assert (finding.mistake, finding.share) == ("percent_sign", 1)


@pytest.mark.parametrize(("name", "part", "mistake"), MISTAKES)
def test_each_mistake_meets_its_own_hint_in_each_language(name, part, mistake):
    exercise = BANK[name]
    known = next(m for m in exercise.part(part).mistakes if m.name == mistake)
    wrong = as_written(exercise, exercise.part(part), exercise.mistaken(exercise.part(part), known), "en")
    line = next(result for result in mark(exercise, {part: wrong}) if part in result.line.parts)
    for language in LANGUAGES:
        assert f"→ {getattr(known.hint, language)}" in [said for lines in line.tell(language, reveal=False) for said in lines]


@pytest.mark.parametrize(("name", "part"), NUMBERS)
def test_tolerance_has_two_sides(name, part):
    """Just inside passes, just outside does not; both as numbers and as written amounts."""
    exercise = BANK[name]
    expected, within = exercise.expected(exercise.part(part)), exercise.part(part).within
    for factor, right in itertools.product((1 + within * 0.99, 1 - within * 0.99), (True,)):
        assert rubric.check(exercise, exercise.part(part), expected.value * factor).share == right
    for factor in (1 + within * 1.02 + 1e-6, 1 - within * 1.02 - 1e-6, 2, 1000, -1):
        assert rubric.check(exercise, exercise.part(part), expected.value * factor).status is not Status.RIGHT


@pytest.mark.parametrize(("written", "hint"), [("104.3 GB", "GiB"), ("112 MB", "1,000 times too small"), ("112", "unit is missing")])
def test_units_that_slipped_are_named(written, hint):
    finding = results("E000-SA01", total=written)["ledger"].findings[-1]
    assert finding.status is Status.WRONG and hint in finding.hint.en


@pytest.mark.parametrize(
    ("name", "part", "written", "echo"),
    [
        ("E000-LQ01", "value", "5%", "5%"),
        ("E000-LQ01", "value", "0.05", "0.05"),
        ("E000-LQ01", "value", "7/70", "7/70 (read as 10%)"),
        ("E000-LQ01", "value", "1/20 = 5%", "1/20 = 5%"),
        ("E000-SA01", "total", "90GiB/卡", "90GiB/卡"),
        ("E000-SA01", "total", "24", "24 (read as 24 B)"),
        ("E000-SA01", "total", "8 * 7 GB", "8 * 7 GB (read as 56 GB)"),
        ("E000-SA01", "total", 56e9, "56 GB"),
    ],
)
def test_an_amount_is_told_as_it_was_written(name, part, written, echo):
    assert rubric.check(BANK[name], BANK[name].part(part), written).said.en.endswith(f": {echo} is not right")


@pytest.mark.parametrize(("written", "times"), [("112000 GB", "1,000"), ("2.5 GB", "0.0223"), ("5 EB", "44,600,000")])
def test_how_far_off_an_amount_is_is_told_in_plain_digits(written, times):
    finding = rubric.check(BANK["E000-SA01"], BANK["E000-SA01"].part("total"), written)
    assert f"yours is {times} times that" in finding.expected.en


def test_another_unit_is_wrong_and_what_cannot_be_read_goes_to_a_person():
    wrong, unread = results("E000-SA01", total="112 s")["ledger"], results("E000-SA01", total="a hundred and twelve")["ledger"]
    assert wrong.points == 0 and not wrong.needs_human
    assert unread.points == 0 and unread.needs_human and unread.note


def test_answers_kept_back_tell_no_right_answer():
    for name in BANK:
        exercise, answers = BANK[name], {part.name: "99 GB" if part.type == "number" else None for part in BANK[name].parts}
        right = {as_written(exercise, p, exercise.expected(p), "en") for p in exercise.parts if p.type == "number"} - {"99 GB"}
        told = " ".join(said for result in mark(exercise, answers) for lines in result.tell("en", reveal=False) for said in lines)
        assert not [answer for answer in right if f" {answer} " in f" {told} "], name


def test_a_fault_of_ours_is_broken_and_the_other_lines_are_marked(monkeypatch):
    monkeypatch.setitem(rubric.MARKERS, "claims", lambda *_: 1 / 0)
    marked = results("E000-TF01", **solution(BANK["E000-TF01"], "en"))
    assert marked["verdict"].points == marked["verdict"].line.points
    assert marked["reason"].status is Status.BROKEN and marked["reason"].needs_human and marked["reason"].points is None


def test_a_lost_answer_goes_to_a_person():
    lost = Unread(Text(en="the cell is broken", zh="单元格坏了"))
    for name in BANK:
        for result in mark(BANK[name], {part.name: lost for part in BANK[name].parts}):
            assert result.needs_human, (name, result.line.name)


def test_lines_for_a_person_have_no_proposal():
    line = results("E000-LQ03", configuration="ZeRO-2 and bf16")["configuration"]
    assert line.needs_human and line.points is None


def test_an_answer_of_the_wrong_kind_costs_only_its_own_line():
    for strange in (3.5, True, ["A"], "\u202eC", "x" * 1_000_000, -1, "<script>alert(1)</script>"):
        for name in BANK:
            for result in mark(BANK[name], {part.name: strange for part in BANK[name].parts}):
                assert 0 <= (result.points or 0) <= result.line.points and result.status is not Status.BROKEN
                told = " ".join(said for language in LANGUAGES for lines in result.tell(language) for said in lines)
                assert "<script" not in told and "\u202e" not in told
