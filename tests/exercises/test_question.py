"""Check yourself: a question shows itself, tells how an answer does, and keeps the right answer until it is asked for."""

import numpy
import pytest

import autograder
from autograder.bank import Bank
from autograder.exercise import LANGUAGES
from autograder.rubric import Status
from formulary import InputError


def test_a_choice_is_checked_at_once():
    question = autograder.ask("E004-Q02", "en")
    shown = question._repr_markdown_()
    assert "**A**" in shown and "`answer`" in shown
    wrong, right = question.check("A"), question.check("C")
    assert right.passed and right.points == question.exercise.points
    assert not wrong.passed and "master" in str(wrong)
    assert "C" not in str(wrong).replace("C:", "").split()


@pytest.mark.parametrize("name", Bank())
def test_every_question_shows_itself_and_its_solution(name):
    for lang in (None, "en", "zh"):
        question = autograder.ask(name, lang)
        assert all(part.name in question._repr_markdown_() for part in question.exercise.parts)
        assert question.exercise.solution.say(question.languages, join="\n\n") in question.solution()
        assert question.hint()


def test_only_the_lines_answered_are_marked():
    marks = autograder.ask("E000-SA01").check(total="84 GB")
    assert [result.line.name for result in marks.results] == ["ledger"]
    assert "112 GB" not in str(marks) and "112 GB" not in marks._repr_html_() and "112 GB" not in marks._repr_markdown_()


def test_misspelt_parts_and_ids_are_named():
    with pytest.raises(InputError, match="did you mean total"):
        autograder.ask("E000-SA01").check(totl=1)
    with pytest.raises(InputError, match="2 answers"):
        autograder.ask("E004-Q02").check("A", "B")
    with pytest.raises(InputError, match="did you mean E004-Q02"):
        autograder.ask("E004-Q2")
    with pytest.raises(InputError, match="no language"):
        autograder.ask("E004-Q02", "de")


def test_the_form_marks_what_is_filled_in():
    box = autograder.ask("E000-TF01", "en").form()
    fields = {child.description: child for child in box.children if getattr(child, "description", "")}
    fields["True or false"].value, fields["Your reason"].value = False, "<b>no</b>"
    fields["Check"].click()
    told = box.children[-1].value
    assert "False is not right" in told and "<b>no</b>" not in told and 'role="status"' in told


def test_the_form_can_be_read_where_widgets_cannot_be_shown():
    question = autograder.ask("E000-TF01")
    shown = question.form()._repr_mimebundle_()
    assert shown["text/markdown"] == question._repr_markdown_() and "application/vnd.jupyter.widget-view+json" in shown


def nested(depth):
    """A list in a list in a list."""
    return [nested(depth - 1)] if depth else []


class Mute:
    """Something that can be neither shown nor compared."""

    def __repr__(self):
        raise RuntimeError("no text")

    __eq__ = __repr__


STRANGE = {"an array": numpy.zeros(3), "a deep list": [[nested(500)]], "an object": Mute(), "a module": numpy, "many": [0] * 10**6}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("name", ["E000-TF01", "E000-SA01", "E000-SA03", "E004-Q05"])  # every type of part
def test_things_that_are_no_answers_are_told_so(name, strange):
    question = autograder.ask(name)
    for part in question.exercise.parts:
        (result,) = question.check(**{part.name: STRANGE[strange]}).results
        assert not result.points and result.status is not Status.BROKEN, part.name
        assert all(said for language in LANGUAGES for said in result.tell(language))


def test_a_number_that_numpy_worked_out_is_a_number():
    (result,) = autograder.ask("E000-SA01").check(total=numpy.float64(112e9)).results
    assert [finding.status for finding in result.findings if finding.part == "total"] == [Status.RIGHT]
