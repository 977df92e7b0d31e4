"""Marked lines as a learner reads them: markdown in a notebook, HTML in nbgrader's pages, plain text in its comments."""

from html import escape

from .exercise import LANGUAGES
from .rubric import Status

SIGNS = {Status.RIGHT: "✓", Status.PARTLY: "◐", Status.HUMAN: "?", Status.BROKEN: "?"}


def sign(result):
    return SIGNS.get(result.status, "✗")


def score(result):
    proposed = " (proposed)" if result.needs_human else ""
    return f"{result.points:g} / {result.line.points:g}{proposed}"


def text(result, languages=LANGUAGES, reveal=True):
    """The line as plain text, a sentence a row."""
    return "\n".join([f"{sign(result)} {result.line.title.say(languages)}: {score(result)}", *result.tell(languages, reveal)])


def markdown(result, languages=LANGUAGES, reveal=True):
    """The line as a markdown item."""
    told = "".join(f"\n    - {sentence}" for sentence in result.tell(languages, reveal))
    return f"- {sign(result)} **{result.line.title.say(languages)}**: {score(result)}{told}"


def html(result, languages=LANGUAGES, reveal=True):
    """The line as HTML without any markup of the learner's in it."""
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in result.tell(languages, reveal))
    return f"<p>{sign(result)} <b>{escape(result.line.title.say(languages))}</b>: {score(result)}</p><ul>{told}</ul>"
