"""Formulas as answers: every usual spelling is read, near misses fail, and hostile texts get a clear verdict."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autograder import expression, sandbox
from autograder.answer import AnswerError, formula
from autograder.assignment import how, solution
from autograder.exercise import Exercise
from autograder.expression import NotFormula, Undefined, readings, value
from autograder.rubric import Status, check, mark

CASES = yaml.safe_load((Path(__file__).parents[1] / "data" / "expressions.yaml").read_text(encoding="utf-8"))


def both(words):
    return {"en": words, "zh": words}


def exercise(answer, letters=None, mistakes=(), kind="calculation"):
    """An exercise with one part `x`, a formula, of 2 points."""
    wrong = [{"name": f"mistake_{n}", "answer": m, "hint": both(f"hint {n}")} for n, m in enumerate(mistakes)]
    part = {"name": "x", "type": "expression", "label": both("x"), "answer": answer, "letters": letters or {}, "mistakes": wrong}
    line = {"name": "line", "points": 2, "title": both("t"), "criterion": both("c"), "parts": ["x"], "marked_by": "key"}
    about = {"id": "E900-Q01", "kind": kind, "chapter": 1, "difficulty": 1, "title": both("t"), "question": both("q")}
    made = Exercise.model_validate(about | {"parts": [part], "rubric": [line], "solution": both("s")})
    assert list(made.faults()) == []
    return made


def marked(asked, text):
    return check(asked, asked.part("x"), text)


RIGHT = [(case, text) for case in CASES for text in case["right"]]
WRONG = [(case, text) for case in CASES for text in case["wrong"]]


def test_there_are_enough_cases():
    assert len(RIGHT) >= 50 and len(WRONG) >= 50


@pytest.mark.parametrize(("case", "text"), RIGHT, ids=[text for _, text in RIGHT])
def test_spellings_of_the_right_formula_pass(case, text):
    found = marked(exercise(case["answer"], case.get("letters")), text)
    assert found.status is Status.RIGHT and found.share == 1, found.said.en


@pytest.mark.parametrize(("case", "text"), WRONG, ids=[text for _, text in WRONG])
def test_near_misses_fail_and_are_read(case, text):
    found = marked(exercise(case["answer"], case.get("letters")), text)
    assert found.status is Status.WRONG and found.share == 0, found.said.en


@pytest.mark.parametrize("case", CASES, ids=[str(case["answer"]) for case in CASES])
def test_the_key_as_we_write_it_is_right(case):
    asked = exercise(case["answer"], case.get("letters"))
    assert mark(asked, solution(asked, "en"))[0].points == 2


def test_mistakes_meet_their_hint():
    asked = exercise("pipeline_bubble", mistakes=["bubble_ratio", "(num_stages - 1) / (num_stages * num_micro_batches)"])
    assert marked(asked, "(P-1)/M").mistake == "mistake_0"
    assert marked(asked, "(P-1)/(MP)").hint.en == "hint 1"
    assert marked(asked, "(P-2)/(MP)").mistake == ""


def test_a_mistake_equal_to_the_answer_is_a_fault():
    with pytest.raises(AssertionError, match="is the right answer"):
        exercise("pipeline_bubble", mistakes=["1 - num_micro_batches / (num_micro_batches + num_stages - 1)"])


CALLS = [
    ({"formula": "pipeline_bubble", "solve_for": "num_micro_batches"}, "(P-1)(1-φ)/φ", "(P-1)/φ"),
    ({"formula": "pipeline_bubble", "limit": {"num_stages": "oo"}}, "1", "0"),
    ({"formula": "state_bytes", "under": ["mixed_adam_fp32_grads"]}, "18Ψ", "16Ψ"),
    ("state_bytes.mixed_adam_8bit", "10Ψ", "16Ψ"),
    ("state_bytes / world_size", "16Ψ/k", "16Ψk"),
]


@pytest.mark.parametrize(("answer", "right", "wrong"), CALLS, ids=[str(c[0]) for c in CALLS])
def test_a_key_is_a_formula_under_conventions_solved_for_or_at_a_limit(answer, right, wrong):
    asked = exercise(answer)
    assert marked(asked, right).status is Status.RIGHT and marked(asked, wrong).status is Status.WRONG


def test_a_derivation_is_marked_step_by_step():
    steps = {
        "idle": "(num_stages - 1) * (tf + tb)",
        "whole": "(num_micro_batches + num_stages - 1) * (tf + tb)",
        "share": "pipeline_bubble",
    }
    part = {"type": "expression", "letters": {"f": "tf", "b": "tb"}}
    parts = [{"name": name, "label": both(name), "answer": answer} | part for name, answer in steps.items()]
    line = {"points": 2, "title": both("t"), "criterion": both("c"), "marked_by": "key"}
    about = {"id": "E900-Q01", "kind": "derivation", "chapter": 1, "difficulty": 1, "title": both("t"), "question": both("q")}
    lines = [line | {"name": name, "parts": [name]} for name in steps]
    asked = Exercise.model_validate(about | {"parts": parts, "rubric": lines, "solution": both("s")})
    assert list(asked.faults()) == []
    results = mark(asked, {"idle": "(P-1)(f+b)", "whole": "M(f+b)", "share": "(P-1)/(M+P-1)"})
    assert [result.points for result in results] == [2, 0, 2]


def test_symbols_of_its_own():
    asked = exercise("x_left / (1 + x_left)", letters={"x": "x_left"})
    assert marked(asked, "x/(x+1)").share == 1 and marked(asked, "1/(x+1)").share == 0
    assert "x" in how(asked, asked.part("x")).en


def test_an_ambiguous_letter_means_what_the_rest_leaves_to_it():
    asked = exercise({"formula": "zero_state_bytes", "values": {"stage": 3}})
    assert marked(asked, "16N/k").share == marked(asked, "16Ψ/N").share == 1
    assert marked(asked, "16k/N").share == 0 and marked(asked, "16N/N").share == 0


def test_the_letters_are_told():
    asked = exercise("pipeline_bubble")
    assert how(asked, asked.part("x")).en.endswith("in the letters M, P")
    assert "M, P" in marked(asked, "q/2").said.en and marked(asked, "q/2").status is Status.UNREAD


HOSTILE = [
    "__import__('os').system('id')",
    "exec('x=1')",
    "9**9**9",
    "P^9^9^9",
    "P**1000000",
    "((P^60)^60)^60",
    "2^(P^(M^9))",
    "10!",
    "P!!!!",
    "(" * 1000 + "P" + ")" * 1000,
    "P" + "^2" * 100,
    "-" * 1000 + "P",
    "√" * 500 + "P",
    "P" * 2000,
    "1" * 2000,
    "1e999999999",
    "a" * 1_000_000,
    "(P-1)/" * 100_000,
    "\\frac" * 300,
    "\\frac{P}{" * 100,
    "{" * 400,
    "P.__class__",
    "P[0]",
    "lambda P: P",
    "P if M else 1",
    "P;M",
    "max(",
    "sqrt(P, M)",
    "(P-1)/(M+P-1",
    "\u202e(P-1)/M",
    "P\x00M",
    "<script>alert(1)</script>",
    "=",
    "===",
    "1/0",
    "1/(P-P)",
    "√(-P)",
    "log2(0)",
    "ceil(10^60)^64",
    "😀",
    "P=" * 500,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_hostile_texts_get_a_clear_verdict_and_no_points(text):
    found = marked(exercise("pipeline_bubble"), text)
    assert found.share == 0 and found.status in (Status.WRONG, Status.UNREAD, Status.BLANK)
    assert len(found.said.en) < 400 and "<" not in found.said.en


@given(st.text(alphabet="PMS12^*/+-()√{}\\frac=.,%e ²", max_size=60))
def test_any_text_has_a_verdict(text):
    assert mark(ASKED, {"x": text})[0].status is not Status.BROKEN


ASKED = exercise("pipeline_bubble")

trees = st.recursive(
    st.sampled_from(["P", "M", "1", "2", "7"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({''.join(parts)})"),
    max_leaves=12,
)


@given(trees)
def test_values_agree_with_fractions(text):
    """And not with sympy, to which 1/(1/0) is 0."""
    (tree,), at = readings(text, ["P", "M"]), {"P": Fraction(7, 3), "M": Fraction(11)}
    try:
        expected = eval(re.sub(r"\d", r"Fraction(\g<0>)", text), {"Fraction": Fraction, **at})
    except ZeroDivisionError:
        with pytest.raises(Undefined):
            value(tree, at)
    else:
        assert value(tree, at) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2^3^2", 512),
        ("-2^2", -4),
        ("2^-1", Fraction(1, 2)),
        ("1/2/2", Fraction(1, 4)),
        ("50%", Fraction(1, 2)),
        ("⌈7/2⌉", 4),
        ("\\lfloor 7/2 \\rfloor", 3),
        ("max(1, 2, 3)", 3),
        ("\\min(1, 2)", 1),
        ("log_2(8)", 3),
        ("\\log_{2} (8)", 3),
        ("√9", 3),
        ("½", Fraction(1, 2)),
        ("1.5e3", 1500),
        ("2(3)(4)", 24),
    ],
)
def test_operations(text, expected):
    assert value(readings(expression.plain(text), [])[0], {}) == expected


def test_a_division_before_a_product_without_a_sign_has_two_readings():
    assert {value(tree, {"P": Fraction(4)}) for tree in readings("8/2P", ["P"])} == {16, 1}


@pytest.mark.parametrize("text", ["P M +", "*P", "P)", "(P", "P,M", "max()", "2 3", "P^", "M+*P"])
def test_what_is_no_formula_is_said_in_both_languages(text):
    with pytest.raises(NotFormula) as caught:
        readings(text, ["P", "M"])
    assert caught.value.why["en"] and caught.value.why["zh"]


@pytest.mark.parametrize("strange", [True, ["P"], {"P": 1}, 1 + 2j, 10**5000], ids=["bool", "list", "dict", "complex", "huge"])
def test_other_things_than_texts_and_numbers_are_refused(strange):
    assert marked(exercise("pipeline_bubble"), strange).status is Status.UNREAD
    with pytest.raises(AnswerError, match=r"a text in quotes|is no formula"):
        formula(strange, {"P": ("num_stages",)})


def test_a_sympy_expression_that_code_made_is_read_like_a_text():
    code = 'from sympy import symbols, sqrt\nP, M = symbols("P M")\nx = (P - 1) / (M + P - 1) + sqrt(M) * 0'
    (found,) = sandbox.answers([(code, ["x"])])
    assert marked(exercise("pipeline_bubble"), found["x"]).status is Status.RIGHT
