"""What learners write is read as they meant it, or refused with a message; nothing they write is evaluated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.answer import AnswerError, WrongUnit, amount, choice, is_blank, reason, verdict
from formulary import GLOSSARY
from formulary.arithmetic import NotArithmetic, compute, parse
from formulary.units import BYTE, PURE, SECOND

GB = 10**9

AMOUNTS = [
    ("24.5 GB", BYTE, 24.5 * GB),
    ("24.5GB", BYTE, 24.5 * GB),
    ("24.5GB/卡", BYTE, 24.5 * GB),
    ("24.5 GB per GPU", BYTE, 24.5 * GB),
    ("每卡", BYTE, None),
    ("≈ 24.5 GB", BYTE, 24.5 * GB),
    ("约 24.5 GB", BYTE, 24.5 * GB),
    ("约24.5吉字节。", BYTE, 24.5 * GB),
    ("２４．５ ＧＢ", BYTE, 24.5 * GB),
    ("24,500 MB", BYTE, 24.5 * GB),
    ("24，500 MB", BYTE, 24.5 * GB),
    ("24500000000 字节", BYTE, 24.5 * GB),
    ("2.45e10", BYTE, 24.5 * GB),
    (24.5e9, BYTE, 24.5 * GB),
    (24_500_000_000, BYTE, 24.5 * GB),
    ("22 GiB", BYTE, 22 * 2**30),
    ("245 亿字节", BYTE, 24.5 * GB),
    ("7*3.5e9", BYTE, 24.5 * GB),
    ("7 × 3.5e9", BYTE, 24.5 * GB),
    ("37.5%", PURE, 0.375),
    ("37.5 ％", PURE, 0.375),
    ("3/8", PURE, 0.375),
    ("６÷１６", PURE, 0.375),
    ("67.1M", PURE, 67.1e6),
    ("0.671亿", PURE, 67.1e6),
    ("6710万个参数", PURE, 67.1e6),
    ("8 步", PURE, 8),
    ("K=8"[2:], PURE, 8),
    ("90 分钟", SECOND, 5400),
    ("1.5 小时", SECOND, 5400),
    ("twelve", PURE, None),
    ("", PURE, None),
    (True, PURE, None),
    (float("nan"), PURE, None),
    (float("inf"), PURE, None),
    (10**400, PURE, None),
    ([1], PURE, None),
]


@pytest.mark.parametrize(("written", "unit", "value"), AMOUNTS, ids=[repr(a[0])[:30] for a in AMOUNTS])
def test_amounts(written, unit, value):
    if value is None:
        with pytest.raises(AnswerError):
            amount(written, unit)
    else:
        assert amount(written, unit)[0] == pytest.approx(value, rel=1e-12)


def test_another_unit_is_told_apart_from_nonsense():
    with pytest.raises(WrongUnit, match="second") as caught:
        amount("3 s", BYTE)
    assert "字节" in caught.value.why.zh


HOSTILE = [
    "__import__('os').system('id')",
    "exec('x=1')",
    "9**9**9",
    "10**10**10",
    "(" * 5000 + "1" + ")" * 5000,
    "-" * 5000 + "1",
    "1+" * 5000 + "1",
    "9" * 100_000,
    "1e" + "9" * 300,
    "a" * 1_000_000,
    "\u202e24.5 GB\u0000",
    "lambda: 1",
    "[1]*10**9",
    "'a'*10**9",
    "1<<99999999",
    "f'{1}'",
    "24.5 GB; import os",
]
# what stands in them: an amount, and a number behind a label or before a factor
HARMLESS = (24.5 * GB, 1, 10**9)


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_hostile_texts_are_refused_or_read_as_plain_amounts(text):
    try:
        assert amount(text, BYTE)[0] in HARMLESS
    except AnswerError as error:
        assert len(str(error)) < 300 and "\n" not in str(error)


@given(st.text(max_size=60), st.sampled_from([BYTE, PURE, SECOND]))
def test_any_text_is_a_number_or_an_answer_error(text, unit):
    try:
        assert isinstance(amount(text, unit)[0], int | float)
    except AnswerError as error:
        assert error.why.en and error.why.zh


@given(st.recursive(st.integers(-99, 99).map(str), lambda e: st.tuples(e, st.sampled_from("+-*/"), e).map(lambda t: f"({''.join(t)})")))
def test_arithmetic_agrees_with_python(text):
    try:
        expected = eval(text)
    except ZeroDivisionError:
        with pytest.raises(NotArithmetic):
            compute(parse(text))
    else:
        assert compute(parse(text)) == expected


@pytest.mark.parametrize("name", ["num_params", "x"])
def test_arithmetic_knows_only_the_names_it_is_given(name):
    with pytest.raises(NotArithmetic, match="known name"):
        compute(parse(f"2 * {name}"), {"other": 1})
    assert compute(parse(f"2 * {name}"), {name: 4}) == 8
    assert "num_params" in GLOSSARY


@pytest.mark.parametrize("value", [True, "True", "true", "T", "对", "正确", "  yes ", "√", "ｔｒｕｅ"])
def test_true(value):
    assert verdict(value) is True


@pytest.mark.parametrize("value", [False, "False", "错", "错误。", "不对", "no", "×"])
def test_false(value):
    assert verdict(value) is False


@pytest.mark.parametrize("value", ["perhaps", 1, 0, "True and False", [True]])
def test_no_verdict(value):
    with pytest.raises(AnswerError):
        verdict(value)


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("C", "C"),
        (" c ", "C"),
        ("Ｃ", "C"),
        ("A, C", "AC"),
        ("A、C", "AC"),
        ("ca", "AC"),
        (["A", "c"], "AC"),
        ("A and C", "AC"),
        ("(B)", "B"),
    ],
)
def test_choices(value, keys):
    assert choice(value, "ABCD") == set(keys)


@pytest.mark.parametrize("value", ["E", "none", 3, [["A"]], "A" * 1000, {}])
def test_no_choice(value):
    with pytest.raises(AnswerError):
        choice(value, "ABCD")


@pytest.mark.parametrize("value", [None, ..., "", "  ", "…", [], "。"])
def test_blank(value):
    assert is_blank(value)


@pytest.mark.parametrize("value", [False, 0, 0.0, "0", "否", ["A"]])
def test_not_blank(value):
    assert not is_blank(value)


def test_reasons_are_texts_of_bounded_length():
    assert reason("因为") == "因为"
    for bad in (3, ["because"], "x" * 1_000_000):
        with pytest.raises(AnswerError):
            reason(bad)
