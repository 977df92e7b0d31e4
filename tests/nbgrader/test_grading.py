"""`psi grade` beside stock nbgrader: the same gradebook, whole or in part, after kills, after a person's marks, and on a cluster."""

import contextlib
import csv
import io
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import nbformat
import pytest
from sqlalchemy import event

from autograder import limits, sandbox
from autograder.assignment import load_assignment
from autograder.bank import ROOT as EXERCISES
from autograder.bank import Bank
from autograder.grading import gradebook, pool, run
from autograder.grading.cli import main
from autograder.grading.run import Options, grade
from autograder.jail import JailFault, sweep
from formulary import InputError
from tests.nbgrader.course import PS, Copy, needs_running

BANK = Bank()
EXERCISE = load_assignment(PS).exercises[0]
CLASS = 12


@pytest.fixture
def larger(fresh):
    """A class of a dozen."""
    for number in range(CLASS - 3):
        fresh.hand_in(f"student_{number:02}", fresh.read("submitted", ("student_perfect", "student_flawed")[number % 2]))
    return fresh


@pytest.fixture(scope="module")
def undisturbed(course, tmp_path_factory):
    """The gradebook of the dozen, marked in one go."""
    larger_ = larger.__wrapped__(Copy(course, tmp_path_factory.mktemp("undisturbed") / "course"))
    larger_.grade(workers=1)
    return larger_.rows()


def test_the_gradebook_is_the_one_that_stock_nbgrader_writes(course, fresh):
    stock = {student: course.grades(student) for student in ("student_perfect", "student_flawed", "student_blank")}
    tally = fresh.grade()
    assert {student: fresh.grades(student) for student in stock} == stock
    assert (tally.graded, tally.waiting, tally.broken) == (1, 2, 0)
    for student in stock:
        ours, theirs = (where.read("autograded", student) for where in (fresh, course))
        told = [[[output.data for output in cell.get("outputs", ())] for cell in notebook.cells] for notebook in (ours, theirs)]
        assert told[0] == told[1]
        nbformat.validate(ours)


def test_feedback_says_what_stock_feedback_says(course, fresh):
    fresh.grade()
    for student in ("student_perfect", "student_flawed"):
        ours, theirs = ((where.folder / "feedback" / student / PS / f"{PS}.html").read_text() for where in (fresh, course))
        for word in ("Score:", "<li", "Comments:", "expected", "panel-heading"):
            assert ours.count(word) == theirs.count(word), word


def test_a_second_run_marks_nothing_and_a_changed_submission_alone_is_marked_again(fresh):
    fresh.grade()
    assert (fresh.grade().unchanged, fresh.grade().lines) == (3, 0)
    fresh.hand_in("student_blank", fresh.read("submitted", "student_perfect"))
    assert fresh.grade().unchanged == 2
    assert {row[1:] for row in fresh.rows() if row[0] == "student_blank"} == {
        row[1:] for row in fresh.rows() if row[0] == "student_perfect"
    }


def test_a_changed_key_marks_again_only_what_it_affects_and_manual_scores_stay(fresh, tmp_path):
    shutil.copytree(EXERCISES / "bank", tmp_path / "bank")
    with open(fresh.folder / "nbgrader_config.py", "a") as config:
        config.write(f"c.WithBank.bank = {str(tmp_path / 'bank')!r}\n")
    fresh.grade()
    fresh.say("update grade set manual_score = 0.25, needs_manual_grade = 0")
    before = fresh.rows()
    path = next((tmp_path / "bank").glob(f"*/{EXERCISE}.yaml"))
    path.write_text(path.read_text(encoding="utf-8").replace("answer: [C]", "answer: [A]", 1), encoding="utf-8")
    tally = fresh.grade()
    mine = {row[:2] for row in before if row[1].startswith(EXERCISE) and not row[1].endswith("-answer")}
    changed = {old[:2] for old, new in zip(before, fresh.rows(), strict=True) if old != new}
    assert tally.lines == len(mine) and changed == mine
    assert {row[3] for row in fresh.rows()[: len(before)] if len(row) == 5} == {0.25}
    assert fresh.grades("student_perfect")[f"{EXERCISE}-choice"][:3] == (0, 0.25, True)


def test_what_is_handed_in_beside_the_notebook_comes_along(fresh, tmp_path):
    student = min(path.name for path in (fresh.folder / "submitted").iterdir())
    place, marked = (fresh.folder / kind / student / fresh.assignment for kind in ("submitted", "autograded"))
    (tmp_path / "secret.txt").write_text("not theirs")
    (place / "plots").mkdir()
    (place / "plots" / "one.csv").write_text("1,2")
    (place / "link.txt").symlink_to(tmp_path / "secret.txt")
    (place / "folder").symlink_to(tmp_path)
    os.mkfifo(place / "pipe")
    (place / "huge.bin").write_bytes(bytes(limits.BESIDE + 1))
    assert fresh.grade().broken == 0
    assert (marked / "plots" / "one.csv").read_text() == "1,2"
    assert {path.name for path in marked.iterdir()} <= {"plots", f"{fresh.assignment}.ipynb", "timestamp.txt"}
    shutil.rmtree(place / "plots")
    (place / "plots").write_text("now a file")
    assert fresh.grade().unchanged == 2
    assert (marked / "plots").read_text() == "now a file"
    (place / "plots").unlink()
    assert (fresh.grade().unchanged, fresh.grade().unchanged) == (2, 3)
    assert not (marked / "plots").exists()


def test_no_name_of_a_file_and_no_depth_of_folders_stops_the_class(fresh):
    place, marked = (fresh.folder / kind / "student_blank" / PS for kind in ("submitted", "autograded"))
    (place / ("n" * 255)).write_text("long")
    (place / os.fsdecode(b"\xff.txt")).write_text("no UTF-8")
    fresh.hand_in("student_renamed", fresh.read("submitted", "student_perfect"))
    renamed = fresh.notebook("submitted", "student_renamed")
    renamed.rename(renamed.with_name(os.fsdecode(b"\xff.ipynb")))
    here = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    assert fresh.grade().broken == 0
    assert {path.name for path in marked.iterdir()} == {"n" * 255, os.fsdecode(b"\xff.txt"), f"{PS}.ipynb"}
    assert fresh.grades("student_renamed") == fresh.grades("student_perfect")
    sweep.remove(str(place))


def test_a_folder_that_is_not_named_in_utf_8_is_told_and_the_others_are_marked(fresh):
    shutil.copytree(fresh.folder / "submitted" / "student_blank", fresh.folder / "submitted" / os.fsdecode(b"st\xff"))
    tally = fresh.grade()
    assert (tally.graded + tally.waiting, list(tally.left_out)) == (3, ["st\\udcff"])


def test_a_full_disk_is_told_in_a_line(fresh, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "autograded")

    monkeypatch.setattr(run, "_write", full)
    assert main(["grade", PS, "--course", str(fresh.folder)]) == 2
    assert "No space left" in capsys.readouterr().err
    monkeypatch.undo()
    assert fresh.grade().broken == 0


def test_half_a_letter_in_an_answer_costs_neither_it_nor_the_class(fresh):
    notebook = fresh.read("submitted", "student_perfect")
    for cell in notebook.cells:
        if cell.metadata.nbgrader.solution:
            cell.source = cell.source.replace('reason = "', 'reason = "\\ud83d ').replace("reason = '", "reason = '\\ud83d ")
    fresh.hand_in("student_half", notebook)
    assert fresh.grade().broken == 0
    assert any("\\ud83d" in cell.source for cell in fresh.read("autograded", "student_half").cells)
    ours, theirs = (fresh.grades(student) for student in ("student_half", "student_perfect"))
    assert {name: grade[0] for name, grade in ours.items()} == {name: grade[0] for name, grade in theirs.items()}


@pytest.mark.parametrize("theirs", ["data/tests.csv", "DATA/Tests.csv", "data", "data/tests.csv/x"])
def test_nothing_handed_in_takes_the_place_of_the_assignments_own_files(fresh, theirs):
    own, place, marked = (fresh.folder / step / PS for step in ("source", "submitted/student_blank", "autograded/student_blank"))
    (own / "data").mkdir()
    (own / "data" / "tests.csv").write_text("own")
    (place / theirs).parent.mkdir(parents=True, exist_ok=True)
    (place / theirs).write_text("forged")
    fresh.grade()
    assert {str(path.relative_to(marked)): path.read_text() for path in marked.rglob("*.csv")} == {"data/tests.csv": "own"}
    assert not (marked / "DATA").exists()


@pytest.mark.parametrize(
    "structure", ["{nbgrader_step}/{assignment_id}/{student_id}", "work/of-{student_id}/{assignment_id}/{nbgrader_step}"]
)
def test_a_course_may_lie_otherwise_and_is_found_from_its_own_folder(fresh, structure):
    for student in ("student_perfect", "student_flawed", "student_blank"):
        place = fresh.folder / structure.format(nbgrader_step="submitted", assignment_id=PS, student_id=student)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh.folder / "submitted" / student / PS, place)
        (fresh.folder / "submitted" / student).rmdir()
    (fresh.folder / "gradebook.db").rename(fresh.folder / "other.db")
    with open(fresh.folder / "nbgrader_config.py", "a") as config:
        config.write(f"c.CourseDirectory.directory_structure = {structure!r}\n")
        config.write("c.CourseDirectory.root = '.'\nc.CourseDirectory.db_url = 'sqlite:///other.db'\n")
    tally = fresh.grade()
    assert (tally.graded, tally.waiting, tally.pages) == (1, 2, 3)
    assert len(list(fresh.folder.rglob("*.html"))) == 3 and not (fresh.folder / "gradebook.db").exists()


REFUSED = {
    "older": ("alter table submitted_notebook drop column late_submission_penalty", "nbgrader db upgrade"),
    "without a table": ("drop table task_cells", "nbgrader db upgrade"),
}


@pytest.mark.parametrize(("statement", "advice"), REFUSED.values(), ids=REFUSED)
def test_a_gradebook_of_another_nbgrader_is_told_in_words(fresh, statement, advice):
    fresh.say(statement)
    with pytest.raises(InputError, match=advice):
        fresh.grade()


def test_a_gradebook_that_another_program_writes_to_is_waited_for_and_then_told(fresh, monkeypatch):
    monkeypatch.setattr(gradebook, "PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(fresh.folder / "gradebook.db")) as other:
        other.execute("begin exclusive")
        with pytest.raises(InputError, match="grade again"):
            fresh.grade()
    assert fresh.grade().broken == 0


def test_a_class_may_be_larger_than_a_query_of_an_old_sqlite(fresh):
    def as_once(connection, _):
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)

    class_ = [f"student_{number:04}" for number in range(1_000)]
    with run.Course.load(fresh.folder).book(PS) as book:
        event.listen(book.engine, "connect", as_once)
        book.engine.dispose()
        book.db = book.engine.connect()
        for first in range(0, len(class_), run.BATCH_MOST):
            some = class_[first : first + run.BATCH_MOST]
            book.enter([(None, (student, PS), gradebook.Handed(None, "", "", run.BROKEN)) for student in some], None)
        standing = book.standing(set(class_))
    assert {student for student, _ in standing} == set(class_)
    assert all(told["waiting"] == len(told["scores"]) for told in standing.values())


def test_a_journal_of_another_version_is_made_anew(fresh):
    fresh.grade()
    before = fresh.rows()
    fresh.say("alter table psi_marked rename column how to older")
    assert fresh.grade().unchanged == 0
    assert fresh.rows() == before


def test_feedback_is_written_again_after_a_person_has_marked(fresh):
    fresh.grade()
    fresh.say("update comment set manual_comment = 'well argued' where auto_comment like '%confirmed%'")
    tally = fresh.grade()
    assert (tally.lines, tally.pages) == (0, 1)
    assert "well argued" in (fresh.folder / "feedback/student_flawed" / PS / f"{PS}.html").read_text()


def test_one_bad_submission_stops_nobody(fresh):
    (fresh.folder / "submitted" / "student_empty" / PS).mkdir(parents=True)
    fresh.hand_in("student_torn", fresh.read("submitted", "student_perfect"))
    path = fresh.notebook("submitted", "student_torn")
    path.write_bytes(path.read_bytes()[:100])
    fresh.hand_in("student_link", fresh.read("submitted", "student_perfect"))
    fresh.notebook("submitted", "student_link").unlink()
    fresh.notebook("submitted", "student_link").symlink_to("/etc/passwd")
    (fresh.folder / "submitted" / "student_link" / PS / "timestamp.txt").write_text("the day after tomorrow")
    tally = fresh.grade()
    assert (tally.graded, tally.waiting, tally.broken) == (1, 5, 0)
    reasons = dict(fresh.say("select student, reason from psi_marked"))
    assert "no notebook" in reasons["student_torn"] and "is a link" in reasons["student_link"] and "handed in" in reasons["student_empty"]
    assert "root:" not in fresh.notebook("autograded", "student_link").read_text()


def test_stock_nbgrader_too_takes_damaged_notebooks_to_a_person(fresh):
    for student, damage in {"student_torn": lambda data: data[:100], "student_cut": lambda data: data[:-300]}.items():
        fresh.hand_in(student, fresh.read("submitted", "student_perfect"))
        path = fresh.notebook("submitted", student)
        path.write_bytes(damage(path.read_bytes()))
    fresh.nbgrader("autograde", PS)
    torn, cut, perfect = (fresh.grades(student) for student in ("student_torn", "student_cut", "student_perfect"))
    assert all(waits and not auto for auto, _, waits, _ in torn.values())
    assert cut == perfect
    by_nbgrader = fresh.rows()
    fresh.grade(force=True)
    assert fresh.rows() == by_nbgrader


# --- kills -------------------------------------------------------------------------------------------------------------


def graded_and_killed(course, seconds=math.inf, marked=math.inf):
    """Grade in a process of its own that is killed after a while, or when so many are marked, with no chance to tidy up."""
    started = time.monotonic()

    def watch(tally, total):
        if tally.graded + tally.waiting >= marked:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        grade(course.folder, course.assignment, Options(workers=2), watch)
        os._exit(0)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() - started > seconds:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1])


def test_a_grading_killed_at_any_moment_is_taken_up_again(larger, undisturbed):
    draw = random.Random(5)
    for _ in range(3):
        graded_and_killed(larger, seconds=draw.uniform(0, 1))  # unless it has ended by then
    larger.say("delete from psi_marked")
    assert [graded_and_killed(larger, marked=count) for count in (1, CLASS // 2, CLASS)] == [-signal.SIGKILL] * 3
    assert larger.grade().broken == 0
    assert larger.rows() == undisturbed


class Deadly:
    """Marks, but the first worker that meets the flawed submission is killed by it; the second too, where it is `fatal`."""

    def __init__(self, marker, folder, fatal):
        self.marker, self.folder, self.fatal = marker, folder, fatal

    def __call__(self, job):
        met = self.folder / job.student
        if job.student == "student_flawed" and (self.fatal or not met.exists()):
            met.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.marker(job)


@pytest.mark.parametrize("fatal", [False, True])
def test_a_killed_worker_costs_no_submission_and_no_points(fresh, monkeypatch, tmp_path, fatal):
    fresh.grade(workers=1)
    before = fresh.rows()
    spread = pool.spread
    wrap = lambda function, jobs, workers: spread(
        Deadly(function, tmp_path, fatal) if function is not run.write_page else function, jobs, workers
    )
    monkeypatch.setattr(pool, "spread", wrap)
    tally = fresh.grade(force=True)
    assert tally.broken == fatal and set(tally.faults) == ({"student_flawed"} if fatal else set())
    assert [row[:3] for row in fresh.rows() if len(row) == 5] == [row[:3] for row in before if len(row) == 5]
    waits = [row for row in fresh.rows() if len(row) == 5 and row[0] == "student_flawed" and row[4]]
    assert not fatal or len(waits) == len(fresh.grades("student_flawed"))


def test_a_jail_that_fails_costs_nobody_a_point_and_is_tried_again_in_the_next_run(fresh, monkeypatch):
    notebook = fresh.read("submitted", "student_perfect")
    for cell in notebook.cells:
        if cell.metadata.nbgrader.solution:
            cell.source += "\n" + needs_running(BANK[cell.metadata.nbgrader.grade_id.removesuffix("-answer")])
    fresh.hand_in("student_code", notebook)

    def fails(*_, **__):
        raise JailFault("somebody killed it")

    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "run_jailed", fails)
        tally = fresh.grade()
    assert (tally.broken, tally.faults) == (1, {"student_code": sandbox.OUR_FAULT.en})
    assert all(waits for *_, waits, _ in fresh.grades("student_code").values())
    tally = fresh.grade()
    assert (tally.broken, tally.unchanged) == (0, 3)
    assert fresh.grades("student_code") == fresh.grades("student_perfect")


def test_two_gradings_of_a_course_do_not_meet(fresh, capsys):
    with run._alone(run.Course.load(fresh.folder)):
        done = fresh.psi("grade", PS, check=False)
    assert done.returncode == 2 and "being graded" in done.stderr


# --- a cluster ---------------------------------------------------------------------------------------------------------


def test_dask_workers_give_the_same_gradebook_also_where_one_is_killed(larger, undisturbed):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        victims = [worker.pid for worker in cluster.workers.values()]
        killed = []

        def watch(tally, total):
            if tally.graded + tally.waiting >= 2 and not killed:
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        tally = grade(larger.folder, PS, Options(dask=cluster.scheduler_address, feedback=False), watch)
    assert killed and tally.broken == 0
    assert larger.rows() == undisturbed


# --- the report and the exports ----------------------------------------------------------------------------------------


def test_the_report_tells_what_was_met(larger, capsys):
    larger.grade(feedback=False)
    assert main(["grade", "report", PS, "--course", str(larger.folder)]) == 0
    written = capsys.readouterr().out.split()
    questions, mistakes, students, alike = ((larger.folder / "reports" / f"{PS}-{kind}.csv").read_text("utf-8-sig") for kind in KINDS)
    assert [path for path in written if path.endswith(".ipynb")] and len(students.splitlines()) == CLASS + 1
    rows = [row for row in csv.DictReader(io.StringIO(mistakes)) if row["mistake"] == "forgot_master"]
    made = sum(row[0].count('"forgot_master"') for row in larger.say("select lines from psi_marked"))
    assert sum(int(row["made by"]) for row in rows) == made and made
    assert "discrimination" in questions.splitlines()[0] and "student_00, student_02" in alike
    nbformat.validate(nbformat.read(larger.folder / "reports" / f"{PS}.ipynb", as_version=4))


KINDS = ("questions", "misconceptions", "students", "alike")


MARK = "update grade set manual_score = 1.5, needs_manual_grade = 0 where id = ?"
LINES_OF = """select grade.id, base_cell.type from grade join base_cell on grade.cell_id = base_cell.id
join submitted_notebook as mine on grade.notebook_id = mine.id join submitted_assignment as whole on mine.assignment_id = whole.id
where student_id = ? order by base_cell.name"""


def test_where_a_person_has_marked_feedback_says_so_and_nobody_waits_any_more(fresh):
    before = fresh.grade()
    lines = fresh.say(LINES_OF, "student_perfect")
    code = next(id_ for id_, kind in lines if kind == "GradeCell")
    for id_ in (code, *(id_ for id_, kind in lines if kind == "TaskCell")):
        fresh.say(MARK, id_)
    after = fresh.grade()
    assert (after.graded, after.waiting) == (before.graded + 1, before.waiting - 1)
    page = fresh.folder / "feedback/student_perfect" / PS / f"{PS}.html"
    ours = page.read_text("utf-8")
    assert ours.count("A person marked this line: 1.5 / ") == 1 and "to be confirmed" not in ours and "marked by a person" not in ours
    fresh.nbgrader("generate_feedback", PS, "--force", "--student", "student_perfect")
    assert page.read_text("utf-8").count("A person marked this line: 1.5 / ") == 1


def test_a_course_whose_gradebook_is_gone_is_built_again(fresh, capsys):
    (fresh.folder / "gradebook.db").unlink()
    assert main(["grade", PS, "--course", str(fresh.folder)]) == 2
    assert "psi course build" in capsys.readouterr().err
    fresh.psi("course", "build", PS)
    assert fresh.grade(feedback=False).broken == 0


@pytest.mark.parametrize("verb", [[], ["report"], ["export", "--lms", "moodle"]])
def test_a_wrong_name_is_told_the_right_ones(fresh, verb, capsys):
    assert main(["grade", *verb[:1], "ps01", *verb[1:], "--course", str(fresh.folder)]) == 2
    assert PS in capsys.readouterr().err


def test_nothing_is_reported_where_nothing_is_marked(fresh, capsys):
    for verb in (["report", PS], ["export", PS, "--lms", "moodle"]):
        assert main(["grade", *verb, "--course", str(fresh.folder)]) == 2
        assert "nothing of" in capsys.readouterr().err


def test_an_export_says_whose_scores_are_not_final(fresh, capsys):
    waiting = fresh.grade(feedback=False).waiting
    main(["grade", "export", PS, "--lms", "canvas", "--course", str(fresh.folder)])
    assert f"{waiting} submissions still wait" in capsys.readouterr().err


@pytest.mark.parametrize(("config", "said"), [("c = (", "SyntaxError"), ("c = get_config()", "configure")])
def test_a_config_that_cannot_be_used_is_told(fresh, config, said, capsys):
    (fresh.folder / "nbgrader_config.py").write_text(config)
    assert main(["grade", PS, "--course", str(fresh.folder)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("lms", "head"), [("canvas", "Student,ID,SIS User ID"), ("moodle", "ID number,Username,Email address")])
def test_exports_hold_every_score(fresh, lms, head, capsys):
    fresh.grade(feedback=False)
    fresh.say("update student set id = id")
    assert main(["grade", "export", PS, "--lms", lms, "--course", str(fresh.folder)]) == 0
    with open(fresh.folder / "reports" / f"{PS}-{lms}.csv", encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    total = sum(score for score, *_ in fresh.grades("student_perfect").values() if score)
    assert ",".join(lines[0]).startswith(head) and lines[-1][-1] == str(total)


def test_a_spreadsheet_is_given_no_formulas():
    from autograder.grading.report import tame

    assert [tame(value) for value in ("=1+1", "@x", "fine", 3)] == ["'=1+1", "'@x", "fine", 3]


def test_alike_answers_are_found_whatever_block_they_are_compared_in(monkeypatch):
    from autograder.grading import report

    texts = ["the gradients are summed", "something else entirely", "the gradients are summed.", "x" * 5000, "the gradient is summed"]
    whole = sorted(report._likenesses(texts, 85))
    assert {(one, other) for one, other, _ in whole} == {(texts[0], texts[2]), (texts[0], texts[4]), (texts[2], texts[4])}
    monkeypatch.setattr(report, "BLOCK", 2)
    assert sorted(report._likenesses(texts, 85)) == whole


def test_only_short_texts_are_kept_as_pages_show_them():
    from autograder.grading import page

    made = []
    kept = page._kept(lambda text: made.append(text) or text.upper())
    short, long = "a question", "own words " * page.SHARED
    assert [kept(text) for text in (short, long) * 2] == [short.upper(), long.upper()] * 2
    assert made == [short, long, long]


def test_help_needs_nothing_slow():
    slow = "sorted({'sympy', 'nbgrader', 'numpy'} & set(sys.modules))"
    code = f"import sys, psi\ntry: psi.main(['grade', '--help'])\nexcept SystemExit: print({slow})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=EXERCISES.parent, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and "--dask" in done.stdout


def test_answers_are_kept_as_they_were():
    from autograder.answer import Unread
    from autograder.exercise import Text
    from autograder.grading.work import pack, unpack

    answers = {"a": {"x": 1, "y": True, "z": ["A"], "w": Unread(Text(en="no", zh="否"), "raw"), "v": None, "u": "字", "t": 1.5}}
    assert unpack(pack(answers)) == answers and json.loads(pack({"a": {"x": ...}})) == {"a": {"x": None}}
