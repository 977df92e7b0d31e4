"""The source notebook is built from the bank and nothing else, the same each time, with the bank's points in nbgrader's cells."""

import re

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from autograder.assignment import Assignment, answer_id, assignments, grade_id, how, load_assignment, question, solution
from autograder.bank import Bank, BankError
from autograder.cells import read_cell
from autograder.source import build, write_source
from formulary import InputError

BANK = Bank()
NAMES = list(assignments())


@pytest.fixture(params=NAMES)
def assignment(request):
    return load_assignment(request.param)


def cells_of(notebook):
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells}


def test_built_equals_bank(assignment, tmp_path):
    """Two builds are the same bytes, and a second build over the first changes nothing."""
    path, changed = write_source(assignment, BANK, tmp_path / "one")
    other, _ = write_source(assignment, Bank(), tmp_path / "two")
    assert changed and path.read_bytes() == other.read_bytes()
    assert write_source(assignment, BANK, tmp_path / "one") == (path, False)
    assert [cell.id for cell in nbformat.read(path, as_version=4).cells] == [cell.id for cell in build(assignment, BANK).cells]


def test_one_grade_cell_a_line_with_its_points(assignment):
    cells = cells_of(build(assignment, BANK))
    for name in assignment.exercises:
        for line in BANK[name].rubric:
            about = cells[grade_id(BANK[name], line)].metadata.nbgrader
            assert about.points == line.points and about.locked
            assert (about.grade, about.task) == ((True, False) if line.marked_by == "key" else (False, True))
    graded = [cell for cell in cells.values() if "points" in cell.metadata.nbgrader]
    assert sum(cell.metadata.nbgrader.points for cell in graded) == sum(BANK[name].points for name in assignment.exercises)


def test_nbgrader_accepts_the_metadata(assignment):
    notebook = build(assignment, BANK)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)


def test_answer_cells_are_literal_in_both_states(assignment):
    cells = cells_of(build(assignment, BANK))
    for name in assignment.exercises:
        source, parts = cells[answer_id(name)].source, [part.name for part in BANK[name].parts]
        stub = source.partition("### BEGIN SOLUTION")[0]
        assert read_cell(source, parts) == solution(BANK[name], "en")
        assert set(read_cell(stub, parts)) == set(parts) and not any(read_cell(stub, parts).values())


def test_the_key_is_only_where_nbgrader_takes_it_out(assignment):
    """Outside solution and mark scheme regions there is no right answer, criterion, hint or model answer."""
    notebook = build(assignment, BANK)
    shown = re.sub(
        r"### BEGIN SOLUTION.*?### END SOLUTION|<!-- BEGIN MARK SCHEME.*?END MARK SCHEME -->",
        "",
        "\n".join(c.source for c in notebook.cells),
        flags=re.S,
    )
    for name in assignment.exercises:
        for part in BANK[name].parts:
            secret = [m.hint for m in part.mistakes] + ([part.answer] if part.type == "reason" else [])
            assert not [text.en for text in secret if text.en in shown or text.zh in shown]
        # the criterion of a choice or a verdict may be an option, or stand in "True or false?"
        written = [line for line in BANK[name].rubric if {BANK[name].part(part).type for part in line.parts} - {"choice", "verdict"}]
        assert not [line.name for line in written if line.criterion.en in shown or line.criterion.zh in shown]


def test_one_language_alone(assignment):
    chinese = "".join(cell.source for cell in build(assignment.model_copy(update={"languages": ("zh",)}), BANK).cells)
    english = "".join(cell.source for cell in build(assignment.model_copy(update={"languages": ("en",)}), BANK).cells)
    assert "True or false?" not in chinese and not re.search("[一-鿿]", english)


def test_a_wrong_assignment_is_named(tmp_path):
    (tmp_path / "ps99.yaml").write_text("id: ps99\ntitle: {en: a, zh: b}\nlanguages: [en, fr]\nexercises: [E000-TF01]\n")
    with pytest.raises(BankError, match=r"ps99.yaml:3: languages.1: .*'en' or 'zh'"):
        load_assignment("ps99", tmp_path)
    (tmp_path / "ps99.yaml").write_text("id: ps99\ntitle: {en: a, zh: b}\nexercises: [E000-TF01, E000-TF01]\n")
    with pytest.raises(BankError, match="twice"):
        load_assignment("ps99", tmp_path)
    with pytest.raises(InputError, match="did you mean ps99"):
        load_assignment("ps9", tmp_path)


def test_an_unknown_exercise_is_named():
    lost = Assignment.model_validate({"id": "ps99", "title": {"en": "a", "zh": "b"}, "exercises": ["E999-TF01"]})
    with pytest.raises(InputError, match="no exercise 'E999-TF01'"):
        build(lost, BANK)


def test_only_letters_that_the_question_uses_are_told():
    exercise = Bank()["E000-LQ02"]
    assert how(exercise, exercise.part("total")).en == "a formula in the letters k, S"


def test_a_list_of_options_for_several_choices_stands_there_once():
    asked = question(Bank()["E002-Q05"], ("en",))
    assert asked.count("- **A** FlashAttention") == 1
    assert "** / **Changes the function of the forward pass**:\n" in asked
    assert "**What is kept no longer grows as s²**: One or more" in asked
