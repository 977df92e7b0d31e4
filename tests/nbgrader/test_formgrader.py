"""The formgrader: the manual queue with proposals, mark schemes and comments, and its own autograde button."""

import pytest

from autograder.assignment import load_assignment
from autograder.bank import Bank
from tests.browser.jupyterlab import PATIENCE_MS, Lab
from tests.nbgrader.course import PS

LINES = load_assignment(PS).lines(Bank())


class CourseLab(Lab):
    """A server whose files are the course's folder, as an instructor starts it."""

    def _command(self):
        return [option for option in super()._command() if "root_dir" not in option] + [f"--ServerApp.root_dir={self.folder}"]


@pytest.fixture(scope="module")
def lab(course):
    lab = CourseLab(course.folder)
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def page(browser, lab):
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(lab.address("formgrader"))
        yield page


def submission(course, student):
    with course.gradebook() as gradebook:
        return gradebook.find_submission_notebook(PS, PS, student).id


def test_the_queue_shows_lines_proposals_mark_schemes_and_reasons(course, lab, page):
    page.goto(lab.address(f"formgrader/submissions/{submission(course, 'student_flawed')}"))
    page.wait_for_selector(".score.needs_manual_grade")
    assert page.locator("input.score").count() == len(LINES)
    waiting = [grade for grade in course.grades("student_flawed").values() if grade[2]]
    assert page.locator("input.score.needs_manual_grade").count() == len(waiting)
    reason = next(line for _, line in LINES.values() if line.marked_by == "claims")
    assert reason.criterion.en in page.inner_text("body")
    shown = [box.get_attribute("placeholder") for box in page.locator("textarea.comment").all()]
    assert any("confirmed by a person" in text for text in shown if text)


def test_the_autograde_button_uses_our_marking(course, lab, page):
    before = course.grades("student_flawed")
    with course.gradebook() as gradebook:
        for grade in gradebook.find_submission_notebook(PS, PS, "student_flawed").grades:
            grade.auto_score, grade.needs_manual_grade = 1, False
        gradebook.db.commit()
    page.goto(lab.address(f"formgrader/manage_submissions/{PS}"))
    page.wait_for_selector("tr .glyphicon-flash")
    page.locator("tr", has=page.locator("[data-order='student_flawed'], a[href*='student_flawed']")).locator(".glyphicon-flash").click()
    page.wait_for_selector("text=Successfully autograded", timeout=5 * PATIENCE_MS)
    assert course.grades("student_flawed") == before
