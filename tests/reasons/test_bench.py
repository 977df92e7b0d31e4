"""The measuring of the marker: kappa, cross-validation, the command, and the aims on the paraphrases kept apart."""

import json
from pathlib import Path

import pytest

from autograder.reasons import bench
from autograder.reasons.cli import main

FRESH_FILE = Path(__file__).with_name("fresh.jsonl")
ANSWERS = bench.load_answers(bench.DEVELOPING_FILE)


@pytest.mark.parametrize(
    ("pairs", "value"),
    [
        ([(0, 0), (1, 1), (2, 2)], 1),
        ([(0, 2), (2, 0)], -1),
        ([(1, 0), (1, 2)], 0),
        ([(0, 0), (0, 1), (2, 2), (2, 1)], 1 - 0.5 / 1.5),
    ],
)
def test_kappa(pairs, value):
    assert bench.kappa(pairs) == pytest.approx(value)


def test_paraphrases_cover_each_question_language_and_tag():
    for question in range(1, 11):
        for lang in ("en", "zh"):
            group = [a for a in ANSWERS if (a.question, a.lang) == (question, lang)]
            assert len(group) >= 25 and len({a.tag for a in group}) >= 9
    assert {a.part for a in ANSWERS} == {"tuned", "blind"}


def test_a_question_is_marked_by_settings_fitted_without_it(monkeypatch):
    few = [answer for answer in ANSWERS if answer.question in (1, 2, 3)][:120]
    seen = []
    monkeypatch.setattr(bench, "_rated", lambda chosen, kinds: seen.append({a.question for _, a in kinds}) or (0, chosen))
    bench.leave_one_out(few)
    assert all(len(questions) == len({a.question for a in few}) - 1 for questions in seen)


def test_aims_are_met_on_wordings_that_were_not_tuned_on():
    figures = bench.figures(bench.leave_one_out([answer for answer in ANSWERS if answer.part == "blind"]))
    assert figures["kappa"] >= 0.8
    assert figures["queue_share"] <= 0.3
    assert figures["confident_wrong_share"] < 0.03


def test_a_file_is_scored_as_json(tmp_path, capsys):
    rows = [{"q": a.question, "lang": a.lang, "tag": a.tag, "reason": a.text, "reason_points": a.given} for a in ANSWERS[::20]]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert main(["bench", "reasons", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"kappa", "queue_share", "confident_wrong_share", "by_language", "by_tag"} <= set(found)
    assert found["answers"] == len(rows)


def test_without_a_file_both_parts_are_printed(capsys, monkeypatch, tmp_path):
    rows = [json.loads(line) for line in bench.DEVELOPING_FILE.read_text(encoding="utf-8").splitlines()][::15]
    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.setattr("autograder.reasons.cli.DEVELOPING_FILE", path)
    assert main(["bench", "reasons"]) == 0
    printed = capsys.readouterr().out
    assert "tuned" in printed and "blind" in printed and "by language" in printed


@pytest.mark.parametrize("line", ["{", "[]", '{"q": 1}', '{"q": "x", "reason": "a", "reason_points": 1}'])
def test_a_line_that_cannot_be_read_is_named(line, tmp_path, capsys):
    path = tmp_path / "bad.jsonl"
    path.write_text(line, encoding="utf-8")
    assert main(["bench", "reasons", str(path)]) == 2
    assert "line 1" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["unseen", "mended"])
def test_aims_are_met_on_answers_from_outside(part):
    """`unseen`: written after the rubrics were last mended. `mended`: written without knowing them, which were then mended by them."""
    answers = [answer for answer in bench.load_answers(FRESH_FILE) if answer.part == part]
    figures = bench.figures(bench.marked(answers))
    assert figures["answers"] >= 20
    assert figures["kappa"] >= 0.8
    assert figures["queue_share"] <= 0.3
    assert figures["confident_wrong_share"] < 0.03
