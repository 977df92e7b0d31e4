"""A class of three through stock nbgrader: generate, autograde, feedback, export; scores are the bank's, reasons are told."""

import re
from html import unescape

import pytest

from autograder.assignment import grade_id, load_assignment, solution
from autograder.bank import Bank
from autograder.exercise import Text
from autograder.reasons import load_rubric
from autograder.rubric import mark
from autograder.sample import flawed
from tests.nbgrader.course import PS, cells

BANK = Bank()
ASSIGNMENT = load_assignment(PS)
LINES = ASSIGNMENT.lines(BANK)
HUMAN = {name for name, (_, line) in LINES.items() if line.marked_by == "human"}


@pytest.fixture(scope="module")
def exported(course):
    return course.exported()


def test_perfect_gets_every_point_a_machine_can_give(course, exported):
    grades = course.grades("student_perfect")
    for name, (_, line) in LINES.items():
        assert grades[name][:3] == ((None, None, True) if name in HUMAN else (line.points, None, False)), name
    total = sum(line.points for name, (_, line) in LINES.items() if name not in HUMAN)
    assert float(exported["student_perfect"]["score"]) == total
    assert float(exported["student_perfect"]["max_score"]) == sum(line.points for _, line in LINES.values())


def test_blank_gets_nothing_and_waits_for_nobody(course, exported):
    assert {grade[:3] for grade in course.grades("student_blank").values()} == {(0, None, False)}
    assert float(exported["student_blank"]["score"]) == 0


def test_flawed_gets_what_each_line_is_worth(course, exported):
    grades, total = course.grades("student_flawed"), 0
    for name in ASSIGNMENT.exercises:
        for result in mark(BANK[name], flawed(BANK[name], "en")):
            grade = grades[grade_id(BANK[name], result.line)]
            assert grade[0] == result.points and grade[2] == result.needs_human
            total += result.points or 0
    assert total == 0  # what is known as a mistake keeps no credit
    assert float(exported["student_flawed"]["score"]) == total


def test_every_line_has_its_cell_and_points_in_the_gradebook(course):
    with course.gradebook() as gradebook:
        notebook = gradebook.find_notebook(PS, PS)
        assert {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]} == {
            name: line.points for name, (_, line) in LINES.items()
        }
        assert {cell.name for cell in notebook.task_cells} == {name for name, (_, line) in LINES.items() if line.marked_by != "key"}


def test_unsure_reasons_wait_with_a_proposal_and_say_why(course):
    reasons = {name: grade for name, grade in course.grades("student_flawed").items() if LINES[name][1].marked_by == "claims"}
    waiting = [grade for grade in reasons.values() if grade[2]]
    assert waiting
    assert all((auto, manual) == (0, None) for auto, manual, _, _ in reasons.values())
    assert [comment for *_, comment in waiting if "confirmed by a person" not in comment and "由人工确认" not in comment] == []


def secrets():
    """What must not be told before marking: model answers, criteria, hints, and the right amounts of free-standing parts."""
    for name in ASSIGNMENT.exercises:
        exercise = BANK[name]
        yield exercise.solution
        yield from (line.criterion for line in exercise.rubric)
        rubrics = [load_rubric(name).of_line(line.name) for line in exercise.rubric if line.marked_by == "claims"]
        yield from (Text(en=claim.en, zh=claim.zh) for rubric in rubrics for claim in rubric.lines[0].claims)
        yield from (mistake.hint for part in exercise.parts for mistake in part.mistakes)
        yield from (part.answer for part in exercise.parts if part.type == "reason")


def test_the_release_tells_no_key(course):
    released = course.notebook("release").read_text(encoding="utf-8")
    notebook = cells(course.read("release"))
    told = "\n".join(cell.source for cell in notebook.values())
    assert not [text.en for text in secrets() if text.en in told or text.zh in told]
    assert "SOLUTION" not in released and "MARK SCHEME" not in released
    for name in ASSIGNMENT.exercises:
        source = notebook[f"{name}-answer"].source
        assert not [answer for answer in solution(BANK[name], "en").values() if f"= {answer!r}" in source]
    assert not [cell for cell in notebook.values() if cell.get("outputs")]


def feedback(course, student):
    return unescape((course.folder / "feedback" / student / PS / f"{PS}.html").read_text(encoding="utf-8"))


def test_feedback_names_each_mistake_and_its_hint(course):
    page, perfect = feedback(course, "student_flawed"), feedback(course, "student_perfect")
    for name in ASSIGNMENT.exercises:
        for mistake in [mistake for part in BANK[name].parts for mistake in part.mistakes[:1]]:
            assert mistake.hint.en in page and mistake.hint.zh not in page, (name, mistake.name)
            assert mistake.hint.en not in perfect


def test_feedback_shows_no_source_of_grade_cells_and_names_every_line_on_top(course):
    page = feedback(course, "student_flawed")
    listed = page.partition('id="toc"')[2].partition("</ul>")[0]
    assert "NBGRADER_EXECUTION" not in page and "Test cell" not in page
    for name, (exercise, line) in LINES.items():
        assert f">{line.title.say(ASSIGNMENT.languages)}</a>" in listed and exercise.title.say(ASSIGNMENT.languages) in listed
        assert page.count(name) > 1
    for target in re.findall('href="#([^"]+)"', listed):
        assert f'name="{target}"' in page


def test_feedback_is_made_without_a_warning(course):
    assert "Writing" in course.said and "WARNING" not in course.said


def test_the_model_answer_is_called_so(course):
    marked = cells(course.read("autograded", "student_flawed"))
    shown = [marked[name].source for name, (_, line) in LINES.items() if line.marked_by != "key"]
    assert shown and all(source.count("**Model answer · 参考答案**\n\n> ") == source.count("\n\n> ") > 0 for source in shown)


def test_feedback_shows_points_and_findings_of_each_line(course):
    page = feedback(course, "student_flawed")
    for _, line in LINES.values():
        assert line.title.say(ASSIGNMENT.languages) in page
    assert page.count("Score:") > len(LINES)
