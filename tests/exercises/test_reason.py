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
    ("nothing recognised", "E000-TF01", "reason", "Because memory is memory.", 0),
    ("half of it", "E000-TF01", "reason", "It keeps an fp32 master copy as well.", 1),
    ("a list of words", "E000-TF01", "reason", "fp32, master copy, keep, update, round, 4 bytes, save, 16 bytes, both", 0),
    ("a list of Chinese words", "E000-TF01", "reason", "主权重、保留、更新、舍入、4 字节、省下、16 字节、相同", 0),
    ("denied", "E000-TF01", "reason", "It does not keep a master copy. No update is lost by rounding.", None),
    ("denied in Chinese", "E000-TF01", "reason", "混合精度并不保留主权重，更新也不会被舍入。", None),
    ("contradicted", "E000-TF01", "reason", "A master copy is kept, since updates get lost, yet mixed precision needs half the memory.", 0),
    ("claims far apart", "E000-SA01", "why", "Only that. The gradients shrink.", 0),
    ("very long", "E000-SA01", "why", "Only the two moments shrink. " + "And so on and so forth. " * 200, None),
    ("other way round", "E000-SA01", "why", "The weights are 8-bit and only the moments change.", None),
]


@pytest.mark.parametrize(("name", "line", "text", "points"), [case[1:] for case in FOR_A_PERSON], ids=[case[0] for case in FOR_A_PERSON])
def test_what_we_are_unsure_of_goes_to_a_person(name, line, text, points):
    result = read(name, line, text)
    assert result.needs_human and result.note
    assert points is None or result.points == points


@pytest.mark.parametrize("text", ["", "   ", "…", "?!", None])
def test_blank_is_zero_for_sure(text):
    result = read("E000-TF01", "reason", text)
    assert result.status is Status.BLANK and result.points == 0


def test_what_was_found_is_quoted():
    told = [said for lines in read("E000-TF01", "reason", "We keep an fp32 master copy. And so on.").tell("en") for said in lines]
    assert any("“We keep an fp32 master copy”" in said for said in told)


@pytest.mark.parametrize(
    "text", ["a" * 20_000, "主" * 20_000, "master keep " * 1_600, ", " * 9_000 + "x", "\x00\x1b[31m<b>master</b>", "‮master kept"]
)
def test_hostile_texts_end_in_a_verdict(text):
    result = read("E000-TF01", "reason", text)
    assert result.status in (Status.HUMAN, Status.BLANK) and result.points <= result.line.points
