"""The hundred-point paper, and an assignment with numbers of one's own, through stock nbgrader."""

import nbformat
import pytest

from autograder.assignment import answer_id, load_assignment, solution
from autograder.bank import Bank
from autograder.students import StudentBank
from tests.nbgrader.course import Copy, Course, cells, rows_of

BANK = Bank()
PAPER = load_assignment("paper_1")
LINES = PAPER.lines(BANK)


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("paper"), PAPER.id)
    course.grade()
    return course


def test_a_perfect_paper_waits_only_for_a_person_and_a_blank_one_for_nobody(paper):
    perfect = paper.grades("student_perfect")
    waiting = {name for name, grade in perfect.items() if grade[2]}
    assert waiting == {name for name, (_, line) in LINES.items() if line.marked_by == "human"}
    assert all(perfect[name][0] == line.points for name, (_, line) in LINES.items() if name not in waiting)
    assert sum(line.points for _, line in LINES.values()) == 100
    assert {grade[:3] for grade in paper.grades("student_blank").values()} == {(0, None, False)}


def test_psi_grade_writes_the_same_gradebook(paper, tmp_path):
    ours = Copy(paper, tmp_path / "course")
    ours.grade(feedback=False)
    assert ours.rows() == rows_of(paper.folder)


def test_the_hundred_is_reached_when_a_person_confirms(paper):
    with paper.gradebook() as gradebook:
        for grade in gradebook.find_submission_notebook(PAPER.id, PAPER.id, "student_perfect").grades:
            if grade.needs_manual_grade:
                grade.manual_score, grade.needs_manual_grade = grade.max_score, False
        gradebook.db.commit()
    row = paper.exported()["student_perfect"]
    assert float(row["score"]) == float(row["max_score"]) == 100


def test_the_queue_has_a_proposal_with_its_reason_for_what_a_machine_could_read(paper):
    unsure = {name: grade for name, grade in paper.grades("student_flawed").items() if grade[2] and LINES[name][1].marked_by == "claims"}
    assert unsure
    assert all(auto is not None and "confirmed by a person" in comment for auto, _, _, comment in unsure.values())


@pytest.fixture(scope="module")
def personal(tmp_path_factory):
    """ps07 with numbers for each student: ada answers right for herself, bob hands in what is right for ada."""
    course = Course(tmp_path_factory.mktemp("personal"), "ps07_sharding")
    path = course.folder / "assignments" / "ps07_sharding.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "variants: per_student\n", encoding="utf-8")
    course.psi("course", "build", course.assignment, "--source-only")
    course.nbgrader("generate_assignment", course.assignment)
    assignment = load_assignment(course.assignment, course.folder / "assignments")
    bank = StudentBank(BANK, "ada", assignment)
    for student in ("ada", "bob"):
        course.psi("course", "variant", student, course.assignment, "--write")
        notebook = nbformat.read(
            course.folder / "release_students" / student / course.assignment / f"{course.assignment}.ipynb", as_version=4
        )
        for name in assignment.exercises:
            said = "\n".join(f"{part} = {answer!r}" for part, answer in solution(bank[name], "en").items())
            cells(notebook)[answer_id(name)].source = said
        course.hand_in(student, notebook)
    course.nbgrader("autograde", course.assignment)
    return course, assignment, bank


def test_a_student_is_marked_by_numbers_of_their_own(personal):
    course, assignment, bank = personal
    lines = assignment.lines(bank)
    ada, bob = course.grades("ada"), course.grades("bob")
    by_key = [name for name, (_, line) in lines.items() if line.marked_by == "key"]
    assert all(ada[name][0] == lines[name][1].points for name in by_key)
    assert any(bob[name][0] < ada[name][0] for name in by_key)


def test_the_marked_notebook_shows_the_students_own_question(personal):
    course, assignment, bank = personal
    told = "\n".join(cell.source for cell in course.read("autograded", "ada").cells)
    for name in assignment.exercises:
        assert bank[name].question.en.strip() in told
    drawn = [name for name in assignment.exercises if bank[name].given != BANK[name].given]
    assert drawn and not [name for name in drawn if BANK[name].question.en.strip() in told]


def test_psi_grade_marks_by_the_same_numbers(personal, tmp_path):
    course, *_ = personal
    ours = Copy(course, tmp_path / "course")
    ours.grade(feedback=False)
    assert ours.rows() == rows_of(course.folder)
    assert ours.grade(feedback=False).unchanged == 2
