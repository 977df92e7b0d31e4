"""Each rubric of the exercises: its own model answer, its statement, text of any kind."""

import random
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from autograder.bank import Bank
from autograder.reasons import load_rubric, mark_reason
from autograder.reasons.rubric import RUBRIC_FOLDER, VOCABULARY_FILE

BANK = Bank()
CONCLUSIONS = yaml.safe_load(Path(__file__).with_name("conclusions.yaml").read_text(encoding="utf-8"))
READINGS = yaml.safe_load(Path(__file__).with_name("readings.yaml").read_text(encoding="utf-8"))
EXERCISES = sorted(path.stem for path in RUBRIC_FOLDER.glob("*.yaml") if path.name != VOCABULARY_FILE)
HOSTILE = {
    "a megabyte": "each card keeps the weights " * 40_000,
    "one word of a megabyte": "a" * 1_000_000,
    "nested brackets": "[(" * 5_000 + ")]" * 5_000,
    "controls": "".join(map(chr, range(32))) * 100,
    "right to left": "\u202e2S\u202c all\u200f-gather" * 300,
    "emoji": "🚀👩‍🚀" * 500,
    "markup": "<script>alert(1)</script>&lt;b&gt;" * 100,
    "code": "__import__('os').system('true')\n" * 50,
    "negations": "不" * 3_000 + " not" * 500,
    "a lone surrogate": "\ud800 keeps",
    "numbers": "9**9**9 " * 300,
}


def lines_of(exercise):
    """The rubric of each line of an exercise."""
    rubric = load_rubric(exercise)
    return [rubric.of_line(line.id.removeprefix(f"{exercise}.")) for line in rubric.lines]


def concluded(how):
    """(exercise, language, conclusion) for each that is `right` or `wrong`."""
    return [(name, lang, said) for name, by in CONCLUSIONS.items() for lang in ("en", "zh") for said in by[f"{how}_{lang}"]]


def with_conclusion(exercise, lang, conclusion):
    """The model answer, and a conclusion behind it."""
    return f"{load_rubric(exercise).lines[0].model_answers[lang].rstrip('.。')}, {conclusion}."


def test_each_line_that_reads_claims_has_a_rubric_and_no_rubric_is_a_stray():
    asked = [f"{name}.{line.name}" for name, exercise in BANK.items() for line in exercise.rubric if line.marked_by == "claims"]
    assert sorted(asked) == sorted(line.id for exercise in EXERCISES for line in load_rubric(exercise).lines)


def test_only_the_ten_that_were_measured_may_be_sure_of_a_part():
    assert [name for name in EXERCISES if load_rubric(name).measured] == [f"E000-TF{number:02d}" for number in range(1, 11)]


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_model_answer_earns_all(exercise, lang):
    for rubric in lines_of(exercise):
        mark = mark_reason(rubric.lines[0].model_answers[lang], rubric)
        assert mark.points == rubric.points and not mark.needs_human


@pytest.mark.parametrize(("exercise", "lang", "conclusion"), concluded("wrong"))
def test_a_wrong_conclusion_takes_back_what_the_reason_earned(exercise, lang, conclusion):
    mark = mark_reason(with_conclusion(exercise, lang, conclusion), load_rubric(exercise))
    assert mark.points == 0 or mark.needs_human
    assert "contradicted" in [match.role for match in mark.matches] or mark.needs_human


@pytest.mark.parametrize(("exercise", "lang", "conclusion"), concluded("right"))
def test_a_right_conclusion_takes_nothing_back(exercise, lang, conclusion):
    mark = mark_reason(with_conclusion(exercise, lang, conclusion), load_rubric(exercise))
    assert mark.points == 2 and not mark.needs_human


@pytest.mark.parametrize(
    ("exercise", "points", "said"), [(name, points, said) for name, by in READINGS.items() for points in by for said in by[points]]
)
def test_a_reason_is_read_as_it_was_meant(exercise, points, said):
    mark = mark_reason(said, load_rubric(exercise))
    assert (mark.points, mark.needs_human) == (points, False)
    assert {match.role for match in mark.matches} == {"earned" if points else "contradicted"}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_statement_earns_nothing(exercise):
    for rubric in lines_of(exercise):
        marks = {said: mark_reason(said, rubric).points for statements in rubric.statements.values() for said in statements}
        assert {said: points for said, points in marks.items() if points} == {}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_claim_is_said_in_both_languages_and_can_be_met(exercise):
    for line in load_rubric(exercise).lines:
        assert line.criterion["en"] and line.criterion["zh"]
        assert [claim.id for claim in line.claims if not (claim.en and claim.zh and (claim.rows or claim.parts))] == []
        assert max(claim.worth for claim in line.claims) == line.points


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_earns_nothing_for_sure(text):
    for exercise in EXERCISES:
        for rubric in lines_of(exercise):
            mark = mark_reason(text, rubric)
            assert mark.points == 0 or mark.needs_human


@budget(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.sampled_from(EXERCISES))
def test_any_text_is_marked(text, exercise):
    mark = mark_reason(text, load_rubric(exercise), 2)
    assert 0 <= mark.points <= 2 and 0 <= mark.confidence <= 1
    assert all(match.span in text for match in mark.matches)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_random_letters_earn_nothing(exercise):
    draw = random.Random(exercise)
    for _ in range(20):
        text = "".join(draw.choices(string.ascii_lowercase.replace("k", "") + "   .,", k=120))
        assert all(mark_reason(text, rubric).points == 0 for rubric in lines_of(exercise))


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_words_of_the_rubric_in_any_order_earn_nothing_for_sure(exercise):
    draw = random.Random(exercise)
    for rubric in lines_of(exercise):
        words = rubric.lines[0].model_answers["en"].split()
        marks = [mark_reason(", ".join(draw.sample(words, len(words))), rubric) for _ in range(10)]
        assert [mark for mark in marks if mark.points and not mark.needs_human] == []
