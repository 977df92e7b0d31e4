"""Multiple choice: partial credit by the stated rule, and nothing that tells how many options are right."""

import itertools

import pytest

from autograder.assignment import SEVERAL, how, question
from autograder.exercise import LANGUAGES, Exercise
from autograder.form import Several, answer_of, form
from autograder.question import Question
from autograder.rubric import Status, mark


def both(words):
    return {"en": words, "zh": words}


def exercise(right, kind="multi_choice", **part):
    options = [{"key": key, "text": both(f"option {key}")} for key in "ABCD"]
    part = {"name": "x", "type": "choice", "label": both("x"), "answer": list(right), "options": options} | part
    line = {"name": "line", "points": 4, "title": both("t"), "criterion": both("c"), "parts": ["x"], "marked_by": "key"}
    about = {"id": "E900-Q01", "kind": kind, "chapter": 1, "difficulty": 1, "title": both("t"), "question": both("q")}
    return Exercise.model_validate(about | {"parts": [part], "rubric": [line], "solution": both("s")})


@pytest.mark.parametrize(
    ("chosen", "points"),
    [("ABC", 4), ("AB", 8 / 3), ("A", 4 / 3), ("ABCD", 8 / 3), ("AD", 0), ("ABD", 4 / 3), ("D", 0)],
)
def test_each_right_option_adds_what_each_wrong_one_takes(chosen, points):
    assert mark(exercise("ABC"), {"x": chosen})[0].points == pytest.approx(points, abs=1e-4)


def test_only_the_right_set_is_right_and_nothing_is_below_zero():
    keys = [set(c) for n in range(1, 5) for c in itertools.combinations("ABCD", n)]
    for right, chosen in itertools.product(keys, keys):
        result = mark(exercise(sorted(right)), {"x": sorted(chosen)})[0]
        assert 0 <= result.points <= 4 and (result.points == 4) == (result.status is Status.RIGHT) == (chosen == right)


def test_the_rule_is_in_the_question_in_each_language():
    for language in LANGUAGES:
        assert getattr(SEVERAL, language) in question(exercise("AB"), (language,))
        assert getattr(SEVERAL, language) not in question(exercise("A", kind="single_choice"), (language,))


def test_nothing_tells_how_many_are_right():
    one, three = exercise("A"), exercise("ABC")
    assert how(one, one.parts[0]) == how(three, three.parts[0])
    assert question(one, LANGUAGES) == question(three, LANGUAGES)
    fields = [form(Question(asked, LANGUAGES)).children[1] for asked in (one, three)]
    assert [type(field) for field in fields] == [Several, Several]


def test_what_is_ticked_is_the_answer():
    field = form(Question(exercise("AB"), LANGUAGES)).children[1]
    assert answer_of(field) == []
    field.ticks["C"].value = field.ticks["A"].value = True
    assert answer_of(field) == ["A", "C"]


def test_elsewhere_several_right_options_have_to_be_declared():
    (fault,) = exercise("AB", kind="single_choice").faults()
    assert "several: true" in fault[1]
    assert not list(exercise("AB", kind="single_choice", several=True).faults())
