"""Questions in a page without a kernel: what the browser says of an answer is what the marker says."""

import pytest

from autograder.question import BANK
from autograder.rubric import Status, check
from book import build, forms
from explorers import frontend
from formulary import amounts
from formulary.units import PURE

MARK = """(widget, rows) => rows.map(([exercise, part, key, answer]) => widget.marked(exercise, part, key, answer))"""


@pytest.fixture(scope="module")
def script():
    site = (build.ROOT / "book/static/site.js").read_text()
    return "\n".join([frontend.formatting([*amounts.SCALES, PURE]), site, "export { marked };"])


def stated(part, answer):
    """An answer as the form holds it, and as the marker takes it."""
    if part.type == "number":
        base = next((name for name, size in amounts.SCALES.get(answer.unit, ()) if size == 1), "")
        written = f"{float(answer.value)!r} {base}".strip()
        return [written], written
    return (answer, answer) if isinstance(answer, bool) else (sorted(answer), sorted(answer))


def cases():
    """(exercise, part, answer) of every right answer and every known mistake that a page marks."""
    for exercise in BANK.values():
        for part in exercise.parts:
            if part.type in forms.MARKED_HERE:
                yield exercise, part, exercise.expected(part)
                yield from ((exercise, part, exercise.mistaken(part, mistake)) for mistake in part.mistakes)


def test_the_browser_marks_as_the_marker_does(in_node, script):
    rows, expected = [], []
    for exercise, part, answer in cases():
        held, given = stated(part, answer)
        rows.append([exercise.id, part.name, forms._key(exercise, part, ("en",)), [str(held)] if isinstance(held, bool) else held])
        finding = check(exercise, part, given)
        met = next((mistake.hint.en for mistake in part.mistakes if mistake.name == finding.mistake), None)
        expected.append((finding.status is Status.RIGHT, met))
    found = in_node(script, MARK, rows)
    wrong = [(row[:2], want, got) for row, want, got in zip(rows, expected, found, strict=True) if (got["right"], got.get("hint")) != want]
    assert len(rows) > 300
    assert wrong == []


def test_keys_of_choices_cannot_be_read_by_accident():
    question = BANK["E004-Q02"]
    (part,) = question.parts
    (right,) = part.answer
    key = forms._key(question, part, ("en",))
    assert {key["value"], *(mistake["value"] for mistake in key["mistakes"])} & {option.key for option in part.options} == set()
    assert key["value"] == forms.digest(question.id, part.name, right)
