"""Marked lines as a learner reads them: markdown in a notebook, HTML in nbgrader's pages, plain text in its comments."""

import re
from functools import cache, wraps
from html import escape
from itertools import islice

import yaml

from .bank import ROOT
from .exercise import LANGUAGES, Text
from .rubric import Status

SIGNS = {Status.RIGHT: "✓", Status.PARTLY: "◐", Status.HUMAN: "?", Status.BROKEN: "?"}


def heading(result, languages):
    """(sign, title, score) of the line."""
    points = "–" if result.points is None else f"{result.points:.3g}"
    return SIGNS.get(result.status, "✗"), result.line.title.say(languages), f"{points} / {result.line.points:g}"


def _once(show):
    """`show`, whose outcome is kept with the result: learners share many."""

    @wraps(show)
    def kept(result, languages=LANGUAGES, reveal=True, see=None):
        key = show.__name__, languages, reveal, see
        if key not in result.shown:
            result.shown[key] = show(result, languages, reveal, see)
        return result.shown[key]

    return kept


@_once
def text(result, languages, reveal, see):
    """The line as plain text, language after language, a sentence a paragraph."""
    sign, title, score = heading(result, languages)
    told = ("\n".join(sentence) for language in languages for sentence in _told(result, language, reveal, see))
    return "\n\n".join([f"{sign} {title}: {score}", *told])


def markdown(result, languages=LANGUAGES, reveal=True, see=None):
    """The line as a markdown item."""
    sign, title, score = heading(result, languages)
    told = ("  \n      ".join(sentence) for language in languages for sentence in _told(result, language, reveal, see))
    return "\n    - ".join([f"- {sign} **{title}**: {score}", *told])


@_once
def html(result, languages, reveal, see):
    """The line as HTML without any markup of the learner's in it."""
    sign, title, score = map(escape, heading(result, languages))
    lists = "".join(f'<ul lang="{language}">{_items(result, language, reveal, see)}</ul>' for language in languages)
    return f"<p>{sign} <b>{title}</b>: {score}</p>{lists}"


def _told(result, language, reveal, see):
    """What the line tells; where points are missing, also where to read it up."""
    yield from result.tell(language, reveal)
    yield from ([where] for where in _where(result, language, see))


def _where(result, language, see):
    """Where to read up a line of which points are missing."""
    return [getattr(see, language)] if see and result.points != result.line.points else []


def _items(result, language, reveal, see):
    """The same as HTML. Only our own addresses are links: a learner's words lead nowhere."""
    told = ["<br>".join(map(escape, sentence)) for sentence in result.tell(language, reveal)]
    return "".join(f"<li>{said}</li>" for said in [*told, *(_linked(escape(where)) for where in _where(result, language, see))])


def _linked(words):
    """Escaped words with what they say of an address made a link."""
    return re.sub(r"(?<![\w/])https?://[\w./#~-]+", lambda match: f'<a href="{match[0]}">{match[0]}</a>', words)


# --- where to read it up, and in which language ----------------------------------------------------------------------

CHAPTERS = ROOT.parent / "chapters"
CONTENTS = CHAPTERS / "contents.yaml"
SEE = Text(en="read chapter {number}, “{title}”{section}{where}", zh="请读第 {number} 章“{title}”{section}{where}")
SECTION = Text(en=", section “{section}”", zh="的“{section}”一节")
NOT_YET = " (contents.md)"  # where a chapter that is not written yet is listed


def chapter(number, book="", section=""):
    """Where an exercise's subject is explained: chapter and section, and their address where the `book` has one; None for no chapter."""
    if number not in chapters():
        return None
    source = next(CHAPTERS.glob(f"{number:02d}_*.ipynb"), None)
    where = _address(book, source, section) if book and source else f" (chapters/{source.name})" if source else NOT_YET
    part = SECTION.format(section=section) if section and source else ""
    return SEE.format(number=number, title=title(number), section=part, where=where)


def _address(book, source, section):
    anchor = re.sub(r"[^a-z0-9]+", "-", section.lower()).strip("-")
    return f": {book.rstrip('/')}/{source.stem}.html{'#' if anchor else ''}{anchor}"


def headings(number):
    """The headings of a chapter's source, or None where it is not written yet."""
    source = next(CHAPTERS.glob(f"{number:02d}_*.py"), None)
    return source and re.findall(r"^# #{2,} (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)


def title(number):
    """The title of a chapter. Its headings have only English, which the notebook has."""
    return Text(en=chapters()[number]["title"], zh=chapters()[number]["zh"])


@cache
def chapters():
    """{number: row of the contents} of every chapter."""
    contents = yaml.safe_load(CONTENTS.read_text(encoding="utf-8"))
    return {row["number"]: row for part in contents["parts"] for row in part["chapters"]}


def spoken(texts):
    """("zh",) or ("en",), the language that texts of a learner are written in, or () where they are too short to tell."""
    whole = " ".join(texts)
    chinese = len(re.findall(r"[\u4e00-\u9fff]", whole))
    enough = max(FEW, 2 * chinese + 1)  # words by which it is told; more are not counted
    latin = len([*islice(re.finditer(r"[A-Za-z]{2,}", whole), enough)])
    if chinese >= FEW or latin >= FEW:
        return ("zh",) if 2 * chinese >= latin else ("en",)
    return ()


FEW = 5  # characters, or words
