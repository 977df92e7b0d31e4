"""The bank as an Anki package: a note an exercise, a deck a chapter; the same exercise keeps its identity from one export to the next."""

import hashlib
import re

import genanki
from markdown_it import MarkdownIt

from .. import feedback
from ..assignment import heading, question
from .explain import explained, latex

BOOK = "Sixteen Psi"
CSS = ".card { font: 18px/1.5 sans-serif; max-width: 46em; margin: auto; text-align: left } code { font-size: 90% }"
MARKDOWN_MEANS = re.compile(r"[\\_*`\[\]()<>&]")
MARKDOWN = MarkdownIt("js-default")  # which lets no HTML through


def write_package(bank, languages, path):
    """Write every exercise of the bank in these languages to `path` (.apkg); returns how many notes there are."""
    decks = {}
    for exercise in bank.values():
        number = exercise.chapter
        deck = decks.setdefault(number, genanki.Deck(_number("deck", languages, number), _title(number, languages)))
        deck.add_note(_note(exercise, languages))
    genanki.Package([decks[number] for number in sorted(decks)]).write_to_file(str(path))
    return sum(len(deck.notes) for deck in decks.values())


def _title(number, languages):
    return f"{BOOK}::{number:02d} {feedback.title(number).say(languages)}"


def _note(exercise, languages):
    front = f"**{heading(exercise, languages)}**\n\n{question(exercise, languages)}"
    return genanki.Note(
        _model(languages),
        [exercise.id, MARKDOWN.render(front), MARKDOWN.render(explained(exercise, languages, _set))],
        guid=genanki.guid_for(exercise.id, *languages),
    )


def _set(name, expr):
    r"""A formula as Anki's own MathJax sets it; in markdown `\(` is only a bracket, so it needs a second backslash."""
    return MARKDOWN_MEANS.sub(r"\\\g<0>", rf"\({latex(name, expr)}\)")


def _model(languages):
    sides = [{"name": "Card", "qfmt": "{{Question}}", "afmt": "{{FrontSide}}<hr id=answer>{{Answer}}"}]
    fields = [{"name": name} for name in ("Exercise", "Question", "Answer")]
    return genanki.Model(_number("model", languages), f"{BOOK} {' '.join(languages)}", fields=fields, templates=sides, css=CSS)


def _number(*words):
    """A number for Anki that stays the same for the same words."""
    return int(hashlib.sha256(repr(words).encode()).hexdigest()[:8], 16) | 1
