"""A marked course in which others have been at work: rows, files and times edited, removed or in the way, before a run or during it."""

import csv
import os
import shutil
import sys

import nbformat
import pytest

from autograder.assignment import answer_id, load_assignment
from autograder.grading import cli, gradebook, run
from autograder.grading.cli import main
from autograder.grading.run import Options, grade
from formulary import InputError
from tests.nbgrader.course import PS, Again, cells

STUDENT = "student_flawed"
MINE = f"""(select mine.id from submitted_notebook as mine
join submitted_assignment as whole on mine.assignment_id = whole.id where student_id = '{STUDENT}')"""


@pytest.fixture(scope="module")
def marked(course, tmp_path_factory):
    """The class of three, marked."""
    made = Again(course, tmp_path_factory.mktemp("marked") / "course")
    made.grade(force=True)
    return made


@pytest.fixture
def again(marked, tmp_path):
    """The class of three, marked, to work in."""
    return Again(marked, tmp_path / "course")


def folder(course, kind, student=STUDENT):
    return course.notebook(kind, student).parent


# --- the gradebook -----------------------------------------------------------------------------------------------------

EDITS = {
    "a grade": f"delete from grade where id = (select min(id) from grade where notebook_id = {MINE})",
    "a comment": f"delete from comment where id = (select min(id) from comment where notebook_id = {MINE})",
    "a grade of an unknown cell": f"update grade set cell_id = 'x' where id = (select min(id) from grade where notebook_id = {MINE})",
    "all of a notebook": f"delete from grade where notebook_id = {MINE}; delete from submitted_notebook where id = {MINE}",
    "a submission": f"delete from submitted_assignment where student_id = '{STUDENT}'",
    "a student": f"delete from student where id = '{STUDENT}'",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_was_deleted_from_the_gradebook_is_not_reported_and_is_made_again(again, edit, capsys):
    before = again.rows()
    for statement in edit.split(";"):
        again.say(statement)
    assert main(["grade", "report", PS, "--course", str(again.folder)]) == 0
    assert STUDENT not in (again.folder / "reports" / f"{PS}-students.csv").read_text("utf-8-sig")
    assert again.grade(workers=1, feedback=False).unchanged == 2
    assert again.rows() == before


def test_an_assignment_without_its_cells_is_to_be_built_again(again):
    again.say("delete from source_cell")
    with pytest.raises(InputError, match="psi course build"):
        again.grade()


def test_a_time_that_is_none_is_told(again):
    again.say("update assignment set duedate = 'soon'")
    with pytest.raises(InputError, match="gradebook holds what"):
        again.grade()


@pytest.mark.parametrize(
    ("pragma", "advice"), [("query_only = on", "write to the file"), ("max_page_count = 1", "make room")], ids=["read-only", "full"]
)
def test_a_gradebook_that_takes_no_more_is_told(again, pragma, advice):
    batch = [(None, (f"student_{number:03}", PS), gradebook.Handed(None, "", "", run.BROKEN)) for number in range(run.BATCH_MOST)]
    before = again.rows()
    with pytest.raises(InputError, match=advice), run.Course.load(again.folder).book(PS) as book:
        book.db.exec_driver_sql(f"pragma {pragma}")
        book.enter(batch, None)
    assert again.rows() == before


def test_each_notebook_of_an_assignment_has_its_own_lines(fresh):
    with fresh.gradebook() as book:
        book.add_notebook("warmup", PS, kernelspec="{}")
        book.add_grade_cell("w-test", "warmup", PS, max_score=2, cell_type="code")
        book.add_source_cell("w-test", "warmup", PS, cell_type="code", source="assert x", locked=True)
        book.add_grade_cell("w-essay", "warmup", PS, max_score=3, cell_type="markdown")
        book.add_solution_cell("w-essay", "warmup", PS)
        book.add_source_cell("w-essay", "warmup", PS, cell_type="markdown", source="write", locked=False)
    warmup = fresh.notebook("submitted", "student_perfect").with_name("Warmup (1).ipynb")
    warmup.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])))
    tally = fresh.grade(workers=1, feedback=False)
    assert (tally.graded, tally.waiting) == (1, 5)
    assert tally.waits["student_perfect warmup"].startswith("2 lines wait; the file is called Warmup (1).ipynb")
    assert tally.waits[f"{STUDENT} warmup"] == "nothing could be read: no notebook warmup.ipynb was handed in"
    with run.Course.load(fresh.folder).book(PS) as book:
        assert book.standing([STUDENT])[STUDENT, "warmup"]["most"] == 5


# --- what a person has marked ------------------------------------------------------------------------------------------


def late(course):
    """The score of STUDENT's submission, and what is taken from it."""
    with course.gradebook() as book:
        mine = book.find_submission_notebook(PS, PS, STUDENT)
        return mine.score, mine.late_submission_penalty


def test_when_something_was_handed_in_or_due_changes_the_penalty_alone(again):
    again.say("update grade set manual_score = 0.5, needs_manual_grade = 0")
    before = again.rows()
    tally = again.grade(workers=1, force=True)
    assert again.rows() == before and (tally.graded, tally.waiting) == (3, 0)
    with open(again.folder / "nbgrader_config.py", "a") as config:
        config.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    (folder(again, "submitted") / "timestamp.txt").write_text("2026-01-30 15:58:23 UTC")
    assert again.grade(workers=1).unchanged == 2
    assert (folder(again, "autograded") / "timestamp.txt").read_text() == "2026-01-30 15:58:23 UTC" and not late(again)[1]
    again.say("update assignment set duedate = '2026-01-30 12:00:00.000000'")
    assert again.grade(workers=1).unchanged == 0
    score, taken = late(again)
    assert score == taken > 0
    with again.gradebook() as book:
        book.grant_extension(PS, STUDENT, hours=4)
    tally = again.grade(workers=1)
    assert (tally.unchanged, tally.graded, tally.pages) == (2, 3, 1) and not late(again)[1]
    assert again.rows() == before


def test_what_a_person_has_marked_is_shown_again_where_the_answers_change(again):
    again.say("update grade set manual_score = 0.5, needs_manual_grade = 0")
    again.hand_in(STUDENT, again.read("submitted", "student_perfect"))
    tally = again.grade(workers=1, feedback=False)
    assert (tally.unchanged, tally.waiting) == (2, 1)
    assert all(grade[1:3] == (0.5, True) for grade in again.grades(STUDENT).values())


def test_what_a_person_has_marked_holds_where_only_other_exercises_change(again):
    again.say("update grade set manual_score = 0.5, needs_manual_grade = 0")
    notebook, first = again.read("submitted", STUDENT), load_assignment(PS).exercises[0]
    cells(notebook)[answer_id(first)].source = "answer = 'B'"
    again.hand_in(STUDENT, notebook)
    tally = again.grade(workers=1, feedback=False)
    asked = {name for name, (_, _, waits, _) in again.grades(STUDENT).items() if waits}
    assert asked and {name.rpartition("-")[0] for name in asked} == {first}
    assert tally.waits == {STUDENT: "1 line waits" if len(asked) == 1 else f"{len(asked)} lines wait"}
    tally = again.grade(workers=1, feedback=False, force=True)
    assert {name for name, (_, _, waits, _) in again.grades(STUDENT).items() if waits} == asked


def test_how_many_lines_wait_is_told_as_the_gradebook_has_it(again, capsys):
    for student in ("student_empty", "student_nothing"):
        folder(again, "submitted", student).mkdir(parents=True)
    again.notebook("submitted", "student_empty").write_bytes(b"")
    again.grade(workers=1, feedback=False)
    again.say(f"update grade set needs_manual_grade = 1 where notebook_id = {MINE}")  # as nbgrader's own command asks for all again
    assert main(["grade", "report", PS, "--course", str(again.folder)]) == 0
    table = csv.DictReader((again.folder / "reports" / f"{PS}-students.csv").read_text("utf-8-sig").splitlines())
    rows = {row["student"]: (row["reason"], row["lines waiting"]) for row in table}
    number = len(again.grades(STUDENT))
    assert rows[STUDENT] == (f"{number} lines wait", str(number))
    for student, why in {"student_empty": "the file is no notebook", "student_nothing": f"no notebook {PS}.ipynb"}.items():
        assert rows[student][0].startswith(f"nothing could be read: {why}") and not rows[student][1]
    said = capsys.readouterr().out
    assert all(f"WAITS {student}: {why}\n" in said for student, (why, _) in rows.items() if why)


def test_of_many_who_wait_ten_are_named(capsys):
    said = list(cli._waits({f"s{number:02}": "1 line waits" for number in range(12)}, PS))
    assert said[0] == "  WAITS s00: 1 line waits" and said[10].startswith("  and 2 more: ") and len(said) == 11
    assert len(list(cli._waits({"s": "why"}, PS))) == 1


def test_a_bar_is_drawn_in_a_terminal_only_and_not_before_there_is_something_to_show(again, monkeypatch, capsys):
    for is_terminal, verb, drawn in ((False, PS, False), (True, "ps01", False), (True, PS, True)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda told=is_terminal: told)
        main(["grade", verb, "--course", str(again.folder)])
        said = capsys.readouterr().err
        assert ("%|" in said) is drawn and "/?" not in said


@pytest.mark.parametrize("stamp", ["the day after tomorrow", ""])
def test_a_timestamp_that_is_none_is_told(again, stamp):
    (folder(again, "submitted") / "timestamp.txt").write_text(stamp)
    for unchanged in (2, 3):
        tally = again.grade(workers=1, feedback=False)
        assert tally.unchanged == unchanged and "holds no time" in tally.doubts[STUDENT]
    assert "holds no time" in dict(again.say("select student, reason from psi_marked"))[STUDENT]


# --- files and folders -------------------------------------------------------------------------------------------------


def test_a_marked_notebook_that_is_not_as_it_was_left_is_made_again(again, marked):
    for student, change in {STUDENT: lambda data: data[:500], "student_perfect": lambda data: data + b" "}.items():
        path = again.notebook("autograded", student)
        path.chmod(0o644)
        path.write_bytes(change(path.read_bytes()))
    assert again.grade(workers=1).unchanged == 1
    assert all(again.read("autograded", student) == marked.read("autograded", student) for student in (STUDENT, "student_perfect"))


def test_what_is_in_the_way_costs_only_whose_it_is(again):
    shutil.rmtree(folder(again, "autograded"))
    folder(again, "autograded").write_text("in the way")
    page = folder(again, "feedback", "student_perfect") / f"{PS}.html"
    page.unlink()
    page.mkdir()
    shutil.rmtree(again.folder / "feedback" / "student_blank")
    tally = again.grade(workers=1, force=True)
    assert (tally.graded, tally.waiting, tally.broken) == (1, 1, 1) and set(tally.faults) == {STUDENT, "student_perfect"}
    assert (folder(again, "feedback", "student_blank") / f"{PS}.html").is_file()


@pytest.mark.parametrize("linked", ["student_flawed", f"student_flawed/{PS}"])
def test_a_folder_that_is_a_link_is_told_and_not_followed(again, tmp_path, linked):
    place = again.folder / "submitted" / linked
    place.symlink_to(place.rename(tmp_path / "elsewhere"))
    tally = again.grade(workers=1)
    assert (tally.unchanged, set(tally.left_out)) == (2, {STUDENT}) and "is a link" in tally.left_out[STUDENT]


def test_whoever_is_gone_is_not_looked_for(again):
    for kind in ("submitted", "autograded", "feedback"):
        shutil.rmtree(again.folder / kind / STUDENT)
    tally = again.grade(workers=1)
    assert (tally.unchanged, tally.pages, tally.faults) == (2, 0, {})
    assert again.grades(STUDENT)


def test_whoever_leaves_or_comes_during_a_run_is_left_out_and_marked_in_the_next_and_who_is_hidden_is_nobody(fresh):
    def watch(tally, total):
        if tally.graded + tally.waiting == 1 and (fresh.folder / "submitted" / "student_perfect").exists():
            (fresh.folder / "submitted" / "student_perfect").rename(fresh.folder / "submitted" / "student_zoe")

    (fresh.folder / "submitted" / ".ipynb_checkpoints" / PS).mkdir(parents=True)
    tally = grade(fresh.folder, PS, Options(workers=1), watch)
    assert (tally.graded + tally.waiting, tally.faults) == (2, {})
    assert {student for (student,) in fresh.say("select student_id from submitted_assignment")} == {"student_blank", STUDENT}
    assert fresh.grade(workers=1).unchanged == 2


def test_a_run_killed_between_notebook_and_gradebook_leaves_no_trace(again, marked, monkeypatch):
    before, handed_in = again.rows(), again.notebook("submitted", STUDENT).read_bytes()
    again.hand_in(STUDENT, again.read("submitted", "student_perfect"))
    if not (child := os.fork()):
        monkeypatch.setattr(gradebook.Book, "enter", lambda *_: os._exit(9))
        again.grade(workers=1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert again.read("autograded", STUDENT) != marked.read("autograded", STUDENT)
    again.notebook("submitted", STUDENT).write_bytes(handed_in)
    again.grade(workers=1)
    assert again.rows() == before and again.read("autograded", STUDENT) == marked.read("autograded", STUDENT)


# --- settings ----------------------------------------------------------------------------------------------------------


def test_the_users_own_settings_count_where_the_course_has_none(again, tmp_path, monkeypatch):
    (tmp_path / "nbgrader_config.py").write_text(
        "c.LateSubmissionPlugin.penalty_method = 'zero'\nc.CourseDirectory.root = '/elsewhere'\nc.CourseDirectory.db_url = 'sqlite:///x.db'\n"
    )
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    with open(again.folder / "nbgrader_config.py", "a") as config:
        config.write("c.CourseDirectory.pop('root')\nc.CourseDirectory.db_url = 'sqlite:///gradebook.db'\n")
    course = run.Course.load(again.folder)
    assert (course.penalty(STUDENT, 5.0, 9.0), course.root) == (5.0, again.folder)
    with course.book(PS) as book:
        assert STUDENT in book.students()
    monkeypatch.undo()
    assert run.Course.load(again.folder).penalty(STUDENT, 5.0, 9.0) is None
