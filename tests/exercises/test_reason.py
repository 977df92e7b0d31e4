"""Reasons: a full mark only where the claims are made in so many words; everything else is blank, or a person's."""

import pytest

from autograder.bank import Bank
from autograder.rubric import Status, mark

BANK = Bank()


def read(name, line, text):
    return next(result for result in mark(BANK[name], {"reason": text, "remedy": text, "setting": text}) if result.line.name == line)


SURE = [
    ("E000-TF01", "reason", "Mixed precision must also keep a master copy in fp32, 4 bytes; tiny updates would get lost in bf16."),
    ("E000-TF01", "reason", "半精度省下 4 字节，但还要保留 fp32 主权重，又把这 4 字节吃掉。"),
    ("E000-TF01", "reason", "You need an extra fp32 copy of the weights! The update is too small for 16 bits and would vanish."),
    ("E000-SA01", "why", "Just the two moments are compressed."),
    ("E000-SA01", "why", "只有两个矩被压缩了。"),
    ("E002-Q02", "setting", "If bf16 weights are updated in place."),
    ("E002-Q10", "remedy", "With one card ZeRO has no effect. Use CPU offload instead."),
    ("E002-Q10", "remedy", "单卡上 ZeRO 没有用；只能用 offload 或多卡。"),
]


@pytest.mark.parametrize(("name", "line", "text"), SURE)
def test_claims_made_earn_full_marks(name, line, text):
    result = read(name, line, text)
    assert result.points == result.line.points and not result.needs_human, list(result.tell("en"))


FOR_A_PERSON = [
    ("nothing recognised", "E000-SA01", "why", "Because memory is memory.", 0),
    ("half of it", "E002-Q02", "setting", "With stochastic rounding.", 1),
    ("denied", "E000-SA01", "why", "Not only the moments shrink.", None),
    ("denied in Chinese", "E000-SA01", "why", "并不是只有矩变小了。", None),
    ("contradicted", "E002-Q02", "setting", "Without a master copy, which is always right.", 0),
    ("claims far apart", "E000-SA01", "why", "Only that. The gradients shrink.", 0),
    ("very long", "E000-SA01", "why", "Only the two moments shrink. " + "And so on and so forth. " * 200, None),
    ("other way round", "E000-SA01", "why", "The weights are 8-bit and only the moments change.", None),
    ("an error beside it", "E000-TF01", "reason", "An fp32 master copy, but the gradients stay in fp32 too.", 0),
    ("on the subject only", "E000-TF01", "reason", "Memory depends on the optimizer and the gradients.", 0),
]


@pytest.mark.parametrize(("name", "line", "text", "points"), [case[1:] for case in FOR_A_PERSON], ids=[case[0] for case in FOR_A_PERSON])
def test_what_we_are_unsure_of_goes_to_a_person(name, line, text, points):
    result = read(name, line, text)
    assert result.needs_human and result.note
    assert points is None or result.points == points


@pytest.mark.parametrize(
    "text", ["only, just, moments, shrink, weights, gradients, master, stay, same", "只有、矩、变小、权重、梯度、主权重、不变、没动、缩"]
)
def test_a_list_of_words_earns_nothing_for_sure(text):
    result = read("E000-SA01", "why", text)
    assert result.points == 0 and not result.needs_human


@pytest.mark.parametrize("text", ["", "   ", "…", "?!", None])
def test_blank_is_zero_for_sure(text):
    result = read("E000-TF01", "reason", text)
    assert result.status is Status.BLANK and result.points == 0


def told(name, line, text):
    return [said for lines in read(name, line, text).tell("en") for said in lines]


def test_what_was_found_is_quoted():
    assert any("“Only the two moments shrink”" in said for said in told("E000-SA01", "why", "Only the two moments shrink. And so on."))
    assert any(
        "fp32 master copy" in said and "“" in said for said in told("E000-TF01", "reason", "We keep an fp32 master copy. And so on.")
    )


def test_a_rubric_of_its_own_reads_what_wordings_would_send_to_a_person():
    half, denied = (read("E000-TF01", "reason", text) for text in ("It keeps an fp32 master copy as well.", "No master copy is kept."))
    assert half.points == 1 and half.status is Status.PARTLY
    assert denied.points == 0 and denied.status is Status.WRONG


HOSTILE = [
    "a" * 20_000,
    "主" * 20_000,
    "master keep " * 1_600,
    ", " * 9_000 + "x",
    "\x00\x1b[31m<b>master</b>",
    "\u202emaster kept",
    "(" * 9_999,
]


@pytest.mark.parametrize(("name", "line"), [("E000-TF01", "reason"), ("E000-SA01", "why")])
@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
def test_hostile_texts_end_in_a_verdict(name, line, text):
    result = read(name, line, text)
    assert result.status is not Status.BROKEN and 0 <= result.points < result.line.points
    assert "<b>" not in " ".join(told(name, line, text))
