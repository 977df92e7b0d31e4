"""Each student's own numbers: drawn again by whoever marks, different between students, and nothing of the key in what is handed out."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest

import psi
from autograder import feedback
from autograder.assignment import COURSE, Assignment, solution
from autograder.bank import Bank
from autograder.rubric import mark
from autograder.solutions import document
from autograder.source import build, sources
from autograder.students import StudentBank, bank_for, numbers, secret, seed

BANK = Bank()
NAMES = ("E002-Q07", "E002-Q08", "E000-SA01", "E004-Q02")


def assignment(**more):
    return Assignment.model_validate({"id": "ps99", "title": {"en": "a", "zh": "b"}, "exercises": NAMES, "variants": "per_student"} | more)


@pytest.fixture
def course(tmp_path):
    """A course with one assignment of numbers for each student, and its released notebook without solutions."""
    (tmp_path / "assignments").mkdir()
    told = {"id": "ps99", "title": {"en": "a", "zh": "b"}, "exercises": list(NAMES), "variants": "per_student"}
    (tmp_path / "assignments" / "ps99.yaml").write_text(json.dumps(told), encoding="utf-8")
    notebook = build(assignment(), BANK)
    for cell in notebook.cells:
        cell.source = sources(assignment(), BANK)[cell.metadata.nbgrader.grade_id]
    path = tmp_path / "release" / "ps99" / "ps99.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return tmp_path


def test_students_get_numbers_of_their_own_and_the_grader_the_same():
    one, again, other = (StudentBank(BANK, name, assignment(), "key") for name in ("ada", "ada", "bob"))
    assert [dict(one[name].given) for name in NAMES] == [dict(again[name].given) for name in NAMES]
    assert any(dict(one[name].given) != dict(other[name].given) for name in NAMES)
    assert len({seed(*fields) for fields in [("a", "b", "c"), ("a", "b", "c", "k"), ("ab", "", "c"), ("b", "a", "c")]}) == 4


def test_a_students_right_answers_are_right_for_that_student_alone():
    bank = StudentBank(BANK, "ada", assignment())
    for name in NAMES:
        answers = solution(bank[name], "en")
        assert all(r.points == r.line.points for r in mark(bank[name], answers) if r.line.marked_by == "key")
    drawn = next(name for name in NAMES if bank[name].given != BANK[name].given)
    assert sum(r.points or 0 for r in mark(BANK[drawn], solution(bank[drawn], "en"))) < BANK[drawn].points


def test_the_secret_changes_the_numbers(course):
    before = list(numbers(assignment(), bank_for(BANK, "ada", assignment(), course)))
    (course / "variant_secret.txt").write_text("s3cret\n", encoding="utf-8")
    assert secret(course) == "s3cret"
    assert before != list(numbers(assignment(), bank_for(BANK, "ada", assignment(), course)))
    same = assignment(variants="same")
    assert bank_for(BANK, "ada", same, course) is BANK


def test_the_instructor_can_see_and_write_a_students_notebook(course, capsys):
    assert psi.main(["course", "variant", "ada", "ps99", "--course", str(course), "--write", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    notebook = nbformat.read(Path(said["notebook"]), as_version=4)
    told = "\n".join(cell.source for cell in notebook.cells)
    bank = StudentBank(BANK, "ada", assignment())
    for row in said["exercises"]:
        assert row["given"] == dict(bank[row["exercise"]].given)
        assert bank[row["exercise"]].question.en.strip() in told
    secrets = [bank[name].solution.en for name in NAMES] + [m.hint.en for name in NAMES for part in bank[name].parts for m in part.mistakes]
    assert not [text for text in secrets if text in told] and "SOLUTION" not in told and "MARK SCHEME" not in told
    ids = [cell.metadata.nbgrader.grade_id for cell in notebook.cells]
    assert ids == [cell.metadata.nbgrader.grade_id for cell in build(assignment(), BANK).cells]


def test_the_instructor_can_read_a_students_key(course, capsys):
    assert psi.main(["course", "variant", "ada", "ps99", "--course", str(course)]) == 0
    told = capsys.readouterr().out
    for row in numbers(assignment(), StudentBank(BANK, "ada", assignment())):
        assert row["exercise"] in told and all(str(value) in told for value in [*row["given"].values(), *row["key"].values()])


def test_numbers_of_ones_own_have_to_be_asked_for(capsys):
    assert psi.main(["course", "variant", "ada", "ps01_memory"]) == 2
    assert "variants: per_student" in capsys.readouterr().err


def test_right_answers_are_told_after_the_deadline():
    deadline = datetime(2026, 3, 1, 12, tzinfo=UTC)
    late = assignment(deadline="2026-03-01 12:00")
    assert assignment().reveals() and late.reveals(deadline) and not late.reveals(deadline - timedelta(seconds=1))


def test_feedback_speaks_the_learners_language():
    assert feedback.spoken(["因为每张卡都要保存完整的权重"]) == ("zh",)
    assert feedback.spoken(["because every card keeps the complete weights"]) == ("en",)
    assert feedback.spoken(["主权重 master weights 要保留，因为 small updates 会被舍入"]) == ("zh",)
    assert feedback.spoken(["", "24.5 GB", "ZeRO-2"]) == ()


def test_feedback_says_where_to_read_it_up_where_points_are_missing():
    wrong, right = (mark(BANK["E004-Q02"], {"answer": key})[0] for key in "AC")
    see = feedback.chapter(BANK["E004-Q02"].chapter, "https://book.example/")
    assert "chapter 1" in feedback.text(wrong, ("en",), see=see) and "第 1 章" in feedback.text(wrong, ("zh",), see=see)
    assert '<a href="https://book.example/01_memory.html">' in feedback.html(wrong, ("en",), see=see)
    assert "chapter" not in feedback.text(right, ("en",), see=see)
    section = feedback.chapter(1, "https://book.example", "One word, many ledgers")
    assert "“One word, many ledgers”" in section.zh and section.en.endswith("/01_memory.html#one-word-many-ledgers")
    assert feedback.chapter(99) is None


def test_a_learners_words_are_no_link():
    see = feedback.chapter(BANK["E004-Q02"].chapter, "https://book.example/")
    page = feedback.html(mark(BANK["E004-Q02"], {"answer": "https://elsewhere.example/"})[0], ("en",), see=see)
    assert "https://elsewhere.example/" in page and page.count("<a ") == page.count('<a href="https://book.example/') == 1


@pytest.mark.parametrize("number", feedback.chapters())
def test_chapters_have_a_title_in_each_language(number):
    title, see = feedback.title(number), feedback.chapter(number)
    assert re.search("[\u4e00-\u9fff]", title.zh) and not re.search("[\u4e00-\u9fff]", title.en)
    assert f"“{title.zh}”" in see.zh and f"“{title.en}”" in see.en


def test_the_solutions_hold_what_a_marker_needs():
    asked = assignment()
    told = document(asked, BANK)
    for name in NAMES:
        exercise = BANK[name]
        wanted = [exercise.solution, exercise.question, *(line.criterion for line in exercise.rubric)]
        wanted += [mistake.hint for part in exercise.parts for mistake in part.mistakes]
        assert not [text.en for text in wanted if text.en.strip() not in told or text.zh.strip() not in told]
    assert not (COURSE / "release" / "solutions").exists()
