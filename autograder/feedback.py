"""Marked lines as a learner reads them: markdown in a notebook, HTML in nbgrader's pages, plain text in its comments."""

from html import escape

from .exercise import LANGUAGES
from .rubric import Status

SIGNS = {Status.RIGHT: "✓", Status.PARTLY: "◐", Status.HUMAN: "?", Status.BROKEN: "?"}


def heading(result, languages):
    """(sign, title, score) of the line."""
    points = "–" if result.points is None else f"{result.points:.3g}"
    return SIGNS.get(result.status, "✗"), result.line.title.say(languages), f"{points} / {result.line.points:g}"


def text(result, languages=LANGUAGES, reveal=True):
    """The line as plain text, language after language, a sentence a paragraph."""
    sign, title, score = heading(result, languages)
    told = ("\n".join(sentence) for language in languages for sentence in result.tell(language, reveal))
    return "\n\n".join([f"{sign} {title}: {score}", *told])


def markdown(result, languages=LANGUAGES, reveal=True):
    """The line as a markdown item."""
    sign, title, score = heading(result, languages)
    told = ("  \n      ".join(sentence) for language in languages for sentence in result.tell(language, reveal))
    return "\n    - ".join([f"- {sign} **{title}**: {score}", *told])


def html(result, languages=LANGUAGES, reveal=True):
    """The line as HTML without any markup of the learner's in it."""
    sign, title, score = map(escape, heading(result, languages))
    lists = "".join(f'<ul lang="{language}">{_items(result.tell(language, reveal))}</ul>' for language in languages)
    return f"<p>{sign} <b>{title}</b>: {score}</p>{lists}"


def _items(told):
    return "".join(f"<li>{'<br>'.join(map(escape, sentence))}</li>" for sentence in told)
