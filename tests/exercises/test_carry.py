"""Error carried forward: a later number that follows from the learner's own earlier one keeps what its line says, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.exercise import LANGUAGES, Exercise, FormulaCall
from autograder.rubric import Status, mark


def both(words):
    return {"en": words, "zh": words}


def number(name, answer, **more):
    wrong = [{"name": "double", "answer": f"({answer}) * 2", "hint": both("twice")}]
    return {"name": name, "type": "number", "label": both(f"the {name}"), "answer": answer, "mistakes": wrong} | more


# three steps: the bytes, a card's share of them, and what stays free, over the value `share` that the second asked for
STEPS = [
    number("total", "adam"),
    number("each", "total / world_size"),
    number("free", "memory_capacity - share", follows={"share": "each"}),
]
VALUES = {"adam": {"formula": "state_bytes"}, "share": "adam / world_size"}


def exercise(carry, parts=STEPS, values=VALUES):
    line = {"title": both("t"), "criterion": both("c"), "marked_by": "key", "points": 2, "carry": carry}
    about = {"id": "E900-Q01", "kind": "calculation", "chapter": 1, "difficulty": 1, "title": both("t"), "question": both("q")}
    about |= {"given": {"num_params": "7B", "world_size": 4, "memory_capacity": "80GB"}, "solution": both("{each}"), "values": values}
    lines = [line | {"name": part["name"], "parts": [part["name"]]} for part in parts]
    made = Exercise.model_validate(about | {"parts": parts, "rubric": lines})
    assert list(made.faults()) == []
    return made


def points(asked, **answers):
    return [result.points for result in mark(asked, answers)]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"total": "112 GB", "each": "28 GB", "free": "52 GB"}, [2, 2, 2]),
        ({"total": "56 GB", "each": "14 GB", "free": "66 GB"}, [0, 1, 1]),
        ({"total": "56 GB", "each": "28 GB", "free": "52 GB"}, [0, 2, 2]),
        ({"total": "56 GB", "each": "15 GB", "free": "65 GB"}, [0, 0, 1]),
        ({"total": "112 GB", "each": "14 GB", "free": "66 GB"}, [2, 0, 1]),
        ({"total": "112 GB", "each": "14 GB", "free": "60 GB"}, [2, 0, 0]),
        ({"total": "56 GB", "each": None, "free": "66 GB"}, [0, 0, 0]),
        ({"each": "14 GB", "free": "66 GB"}, [0, 0, 1]),
        ({"total": "what?", "each": "14 GB"}, [0, 0, 0]),
        ({"total": 0, "each": 0, "free": "80 GB"}, [0, 0, 0]),
        ({"total": "-8 GB", "each": "-2 GB", "free": 0}, [0, 1, 0]),
    ],
)
def test_what_follows_from_ones_own_value_keeps_half(answers, expected):
    assert points(exercise(0.5), **answers) == expected


@pytest.mark.parametrize("carry", [0, 0.25, 1])
def test_the_line_says_how_much_is_kept(carry):
    assert points(exercise(carry), total="56 GB", each="14 GB") == [0, 2 * carry, 0]


def test_it_is_said_in_each_language_and_without_the_hint_of_a_mistake():
    result = mark(exercise(0.5), {"total": "224 GB", "each": "56 GB"})[1]
    assert result.points == 1 and result.status is Status.PARTLY and result.findings[0].mistake == ""
    for language, said in zip(LANGUAGES, ("follows correctly from your own answer to “the total”", "推得正确"), strict=True):
        told = " ".join(line for lines in result.tell(language, reveal=False) for line in lines)
        assert said in told and "twice" not in told and "28 GB" not in told


amounts = st.one_of(st.none(), st.sampled_from(["112 GB", "28 GB", "52 GB"]), st.floats(-1e12, 1e12, allow_nan=False))


@given(st.fixed_dictionaries({"total": amounts, "each": amounts, "free": amounts}), st.sampled_from([0, 0.5, 1]))
def test_never_more_than_the_right_answer_gives(answers, carry):
    for result in mark(exercise(carry), answers):
        name = result.line.name
        assert 0 <= result.points <= result.line.points
        if result.points > carry * result.line.points:
            assert result.line.points in points(exercise(carry), **{name: answers[name]})


def test_nothing_follows_from_what_a_quantity_cannot_be():
    values = {"cards": "world_size * 1", "share": FormulaCall(formula="zero_state_bytes", values={"stage": 3, "world_size": "cards"})}
    parts = [number("count", "cards"), number("each", "share", follows={"cards": "count"})]
    asked = exercise(1, parts=parts, values=values)
    assert points(asked, count=8, each="14 GB") == [0, 2]
    assert points(asked, count=2.5, each="44.8 GB") == [0, 0]


def test_a_part_cannot_follow_from_a_later_one_or_from_nothing():
    asked = exercise(1)
    for follows in ({"share": "free"}, {"shares": "each"}):
        parts = [part.model_copy(update={"follows": follows}) if part.name == "free" else part for part in asked.parts]
        (fault,) = asked.model_copy(update={"parts": tuple(parts)}).faults()
        assert fault[0] == ("parts", 2, "follows")
