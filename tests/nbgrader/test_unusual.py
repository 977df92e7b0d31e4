"""What goes differently: damaged notebooks, code as answers, regrading, and a course without our marking."""

import shutil
import zipfile

import nbformat
import pytest

from autograder.assignment import answer_id, grade_id, load_assignment, solution
from autograder.bank import Bank
from autograder.rubric import mark
from tests.nbgrader.course import PS, Copy, cells, needs_running

BANK = Bank()
LINES = load_assignment(PS).lines(BANK)
BY_KEY = {name: line.points for name, (_, line) in LINES.items() if line.marked_by == "key"}


def perfect(course):
    return nbformat.from_dict(course.read("submitted", "student_perfect"))


def copied_cells(notebook):
    """Every cell once more below itself, as copy and paste makes it; the copies of the answers are emptied."""
    for cell in list(reversed(notebook.cells)):
        copy = nbformat.from_dict(dict(cell) | {"id": f"{cell.id}-copy"[:64]})
        notebook.cells.insert(notebook.cells.index(cell) + 1, copy)


def lost_grade_cells(notebook):
    notebook.cells = [cell for cell in notebook.cells if cell.metadata.nbgrader.solution]


def lost_metadata(notebook):
    for cell in notebook.cells:
        if not cell.metadata.nbgrader.solution:
            del cell.metadata["nbgrader"]


def greedy_metadata(notebook):
    for cell in notebook.cells:
        cell.metadata.nbgrader |= {"points": 1000, "solution": True, "grade": True, "locked": False, "schema_version": 0}


def greedy_cells(notebook):
    """Grade cells that were given sources and outputs of their own."""
    for cell in notebook.cells:
        if cell.metadata.nbgrader.grade:
            cell.source, cell.outputs = "1000", [nbformat.v4.new_output("execute_result", {"text/plain": "1000"})]


def retyped_cells(notebook):
    for cell in notebook.cells:
        if cell.metadata.nbgrader.task:
            cell.cell_type, cell.outputs, cell.execution_count = "code", [], None


def reordered_cells(notebook):
    notebook.cells.reverse()


FORMS = {
    "student_zipped": f"{PS}_student_zipped_attempt_2026-01-30-15-30-10_{PS}.ipynb",
    "late": f"late_LATE_123_456_{PS}-1.ipynb",
    "李 雷": f"李 雷_123_assignsubmission_file_/{PS}.ipynb",
    "flat": f"flat_123_assignsubmission_file_{PS}.ipynb",
    "short": f"short_{PS} (1).ipynb",
    "under_score": f"under_score/{PS}.ipynb",
    "nested": f"nested/{PS}/{PS}.ipynb",
}
NOBODYS = [f"__MACOSX/nested/._{PS}.ipynb", f"nested/.ipynb_checkpoints/{PS}-checkpoint.ipynb", "other_1_ps02_formats.ipynb"]
DAMAGES = [copied_cells, lost_grade_cells, lost_metadata, greedy_metadata, greedy_cells, retyped_cells, reordered_cells]


def with_answers(course, change):
    """The perfect notebook, with the source of each answer cell changed."""
    notebook = perfect(course)
    for name in load_assignment(PS).exercises:
        cell = cells(notebook)[answer_id(name)]
        cell.source = change(BANK[name], cell.source)
    return notebook


def typographic(exercise, source):
    """A reason in the quotes of a Chinese keyboard, which make the cell no Python."""
    return "\n".join(
        f"{name} = “{value}”" if isinstance(value, str) else f"{name} = {value}" for name, value in solution(exercise, "zh").items()
    )


def computed(exercise, source):
    return f"import math\n{source}\nunused = math.pi"


def harmful(exercise, source):
    """Code that tries to leave a file behind wherever it can; it comes after the answers."""
    return f"{source}\nimport os\nfor place in ('.', '..', os.environ.get('HOME', '.')):\n    open(place + '/left-behind', 'w').write('x')"


def endless(exercise, source):
    return f"{source}\n{needs_running(exercise)}\nimport os\nos._exit(1)"


def missed(exercise):
    """The last number of each line that asks for several, far off."""
    lines = [[name for name in line.parts if exercise.part(name).type == "number"] for line in exercise.rubric if line.marked_by == "key"]
    return {names[-1]: 1.2345e-30 for names in lines if len(names) > 1}


def partly(exercise, source):
    return "\n".join([source, *(f"{name} = {value}" for name, value in missed(exercise).items())])


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """The unusual class handed in and graded in one run, beside the three, in a course of its own."""
    course = Copy(course, tmp_path_factory.mktemp("unusual") / "course")
    for damage in DAMAGES:
        notebook = perfect(course)
        damage(notebook)
        course.hand_in(f"student_{damage.__name__}", notebook)
    for change in (typographic, computed, harmful, endless, partly):
        course.hand_in(f"student_{change.__name__}", with_answers(course, change))
    archive = course.folder / "downloaded" / PS / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "class.zip", "w") as file:
        for name in [*FORMS.values(), *NOBODYS]:
            file.write(course.notebook("submitted", "student_perfect"), name)
    course.nbgrader("zip_collect", PS)
    course.collected = sorted(path.name for path in (course.folder / "submitted").iterdir())
    for student in FORMS.keys() - {"student_zipped"}:
        shutil.rmtree(course.folder / "submitted" / student)
    course.nbgrader("autograde", PS)
    return course


def by_key(course, student):
    return {name: grade[0] for name, grade in course.grades(student).items() if name in BY_KEY}


def test_what_a_learning_management_system_exports_is_collected(graded):
    assert FORMS.keys() <= set(graded.collected) and not {"other", "__MACOSX", ".ipynb_checkpoints", "ps01"} & set(graded.collected)


@pytest.mark.parametrize("student", [*(damage.__name__ for damage in DAMAGES), "zipped", "typographic", "computed", "harmful"])
def test_right_answers_get_their_points_whatever_happened_to_the_notebook(graded, student):
    assert by_key(graded, f"student_{student}") == BY_KEY


def test_a_part_of_a_line_earns_its_part_of_the_points_and_is_told(graded):
    grades, told, shares = graded.grades("student_partly"), cells(graded.read("autograded", "student_partly")), set()
    for exercise in map(BANK.__getitem__, load_assignment(PS).exercises):
        for result in mark(exercise, solution(exercise, "en") | missed(exercise)):
            name, line = grade_id(exercise, result.line), result.line
            if line.marked_by == "key":
                shares.add(result.points / line.points)
                assert grades[name][:3] == (result.points, None, False)
                assert f"{result.points:.3g} / {line.points:g}" in told[name].outputs[0].data["text/plain"]
    assert len([share for share in shares if 0 < share < 1]) > 1


def test_code_that_ends_the_process_goes_to_a_person(graded):
    grades = graded.grades("student_endless")
    assert all(grades[name][2] for name in BY_KEY)


def test_nothing_is_left_behind(graded):
    assert list(graded.folder.rglob("left-behind")) == []


def test_manual_scores_survive_regrading(graded):
    name = next(name for name, (_, line) in LINES.items() if line.marked_by == "human")
    with graded.gradebook() as gradebook:
        grade = gradebook.find_grade(name, PS, PS, "student_zipped")
        grade.manual_score, grade.needs_manual_grade = 1.5, False
        gradebook.find_comment(name, PS, PS, "student_zipped").manual_comment = "well argued"
        gradebook.db.commit()
    graded.nbgrader("autograde", PS, "--force", "--student=student_zipped")
    assert graded.grades("student_zipped")[name][:2] == (None, 1.5)
    with graded.gradebook() as gradebook:
        assert gradebook.find_comment(name, PS, PS, "student_zipped").comment == "well argued"


def test_without_our_marking_nobody_gets_points(graded):
    """Stock execution of the learner's notebook fails on the guard of each grade cell, instead of giving full points."""
    config = graded.folder / "nbgrader_config.py"
    ours = config.read_text()
    config.write_text('c = get_config()\nc.CourseDirectory.db_url = "sqlite:///stock.db"\n')
    try:
        graded.nbgrader("generate_assignment", PS, "--force")
        graded.nbgrader("autograde", PS, "--force", "--student=student_perfect")
        graded.nbgrader("export", "--to", "stock.csv")
    finally:
        config.write_text(ours)
    row = (graded.folder / "stock.csv").read_text().splitlines()[1].split(",")
    assert row[3] == "student_perfect" and float(row[-2]) == 0


def test_marking_that_cannot_be_loaded_stops_the_run(graded, tmp_path):
    (tmp_path / "autograder").mkdir()
    (tmp_path / "autograder" / "__init__.py").write_text("raise ImportError('broken for a test')")
    before = graded.grades("student_flawed")
    done = graded.nbgrader("autograde", PS, "--force", "--student=student_flawed", check=False, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0 and "nothing is graded" in done.stderr and "broken for a test" in done.stderr
    assert graded.grades("student_flawed") == before
