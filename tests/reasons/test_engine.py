"""Spelling, clauses, negation, keyword lists: each on the toy rubric, in both languages."""

import pytest

from autograder.reasons import RubricError, load_rubric, mark_reason
from autograder.reasons.text import normalise


def kind(text, rubric):
    return mark_reason(text, rubric).evidence


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("１６ Ψ", "16n"),
        ("2·S and 2 × S", "2s and 2s"),
        ("112 GB", "112gb"),
        ("ALL‑gather\u202e", "all‐gather"),
        ("<b>don't</b>", " dont "),
        ("每卡 16 字节", "每卡16字节"),
        ("\x00\x07", " "),
    ],
)
def test_one_spelling_for_each_thing(written, read):
    assert normalise(written).clean == read


def test_a_span_is_quoted_as_it_was_written(toy):
    match = mark_reason("Well: each  CARD keeps the “weights”!", toy).matches[0]
    assert match.span == "CARD keeps the “weights"


@pytest.mark.parametrize(
    "text", ["Each card keeps the weights.", "every gpu is keeping teh wieghts", "每张卡都保存权重", "每张卡都留着权中"]
)
def test_a_claim_earns(text, toy):
    mark = mark_reason(text, toy)
    assert (mark.points, mark.evidence) == (2, "full")


@pytest.mark.parametrize(
    "text",
    [
        "No card keeps the weights.",
        "A card does not keep the weights.",
        "A card never keeps the weights.",
        "卡不会保存权重",
        "没有哪张卡保存权重",
    ],
)
def test_a_denied_claim_earns_nothing(text, toy):
    mark = mark_reason(text, toy)
    assert (mark.points, mark.evidence) == (0, "contradicted")
    assert [match.role for match in mark.matches] == ["contradicted"]


@pytest.mark.parametrize(
    "text",
    [
        "The weights do not shrink.",
        "The weights never shrink, no matter what.",
        "It isn't true that the weights shrink.",
        "权重不会变小",
        "权重并没有缩小",
        "权重不变",
    ],
)
def test_a_denied_contradiction_is_none(text, toy):
    assert mark_reason(text, toy).points == 1


@pytest.mark.parametrize("text", ["Not only do the weights shrink.", "The weights shrink.", "权重不仅会变小"])
def test_what_only_looks_like_a_negation_is_none(text, toy):
    assert kind(text, toy) == "contradicted"


def test_a_negation_ends_with_its_clause(toy):
    assert kind("This is not so, each card keeps the weights.", toy) == "full"
    assert kind("It does not help because each card keeps the weights.", toy) == "full"


def test_a_supposition_is_no_contradiction(toy):
    assert kind("If the weights shrink, fine, but each card keeps the weights.", toy).startswith("full")
    assert "contradicted" not in kind("If the weights shrink, fine, but each card keeps the weights.", toy)


def test_a_claim_and_its_contradiction_go_to_a_person(toy):
    mark = mark_reason("Each card keeps the weights. The weights shrink.", toy)
    assert mark.evidence == "full_contradicted" and mark.needs_human


def test_the_nearer_of_two_opposites_is_meant(toy):
    assert kind("shrink as they may, the weights stays the same", toy) == "part"


def test_a_side_error_is_named(toy):
    mark = mark_reason("Each card keeps the weights; the gradients shrink.", toy)
    assert (mark.points, mark.evidence) == (1, "full_with_error")


@pytest.mark.parametrize(
    "text",
    [
        "card, keeps, weights, gradients, a full copy",
        "Card; weights; gradients; full copy; GPU memory",
        "卡、权重、梯度、完整副本、优化器",
        "card / weights / gradients / a full copy",
        "card weights of the gradients in a full copy gpu weights for gradients card",
    ],
)
def test_keywords_make_no_claim(text, toy):
    mark = mark_reason(text, toy)
    assert (mark.points, mark.needs_human) == (0, False)


def test_the_statement_said_again_earns_nothing(toy):
    for said in toy.statements.values():
        assert mark_reason(said[0], toy).points == 0


@pytest.mark.parametrize("text", ["", "  \n\t", "\u200b\u202e", "\x00"])
def test_nothing_earns_nothing(text, toy):
    mark = mark_reason(text, toy)
    assert (mark.points, mark.evidence, mark.needs_human) == (0, "empty", False)


def test_points_scale(toy):
    assert mark_reason("Each card keeps the weights.", toy, points=4).points == 4


def test_a_long_text_goes_to_a_person(toy):
    assert mark_reason("Each card keeps the weights. " * 1000, toy).needs_human


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("card & keep", "card & kept"), "kept"),
        (("within: 1", "without: 1"), "without"),
        (("points: 2", "score: 2"), "points"),
    ],
)
def test_a_rubric_that_cannot_be_used_says_why(change, said, toy, tmp_path):
    from tests.reasons.conftest import RUBRIC, WORDS

    (tmp_path / "vocabulary.yaml").write_text(WORDS, encoding="utf-8")
    (tmp_path / "BAD.yaml").write_text(RUBRIC.replace(*change), encoding="utf-8")
    with pytest.raises(RubricError, match=said):
        load_rubric("BAD", tmp_path)


def test_an_unknown_rubric_names_those_there_are():
    with pytest.raises(RubricError, match="E000-TF01"):
        load_rubric("E000-TF99")
