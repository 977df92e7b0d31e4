"""Talk that is no reason: lists of keywords, the statement said again, words without a subject."""

import re
from functools import cache

from rapidfuzz.fuzz import token_set_ratio, token_sort_ratio

from autograder.reasons.language import words
from autograder.reasons.text import normalise

WORD = re.compile(r"[a-z0-9]+(?:[.\-][a-z0-9]+)*|[一-鿿]")
PUNCTUATION = re.compile(r"[,;:!?，；：。、]|\.\s")
CHARACTER = 0.6
ONE_TERM = 1.2  # a word, or two Chinese characters, tells nothing by itself
SEPARATOR = re.compile(r"[,;:|、，；：。\n•·]|\s[-/&+]\s|->|→|\.(?:\s|$)|\sand\s|\svs\s|和")


def pieces(text):
    """What stands between separators, without blanks."""
    return [piece.strip() for piece in SEPARATOR.split(text) if piece and piece.strip()]


def is_bare(piece, longest):
    """A piece of a few words that tells nothing: a term, perhaps with what belongs to it."""
    length = _length(piece)
    return length <= ONE_TERM or (length <= longest and not _tells(piece))


def _tells(piece):
    return "=" in piece or words("telling").search(piece) or (words("comparing").search(piece) and any(map(str.isdigit, piece)))


def _length(piece):
    """The words of a piece; a Chinese character counts for CHARACTER of a word."""
    return sum([CHARACTER if len(word) == 1 and word >= "一" else 1 for word in WORD.findall(piece)])


def is_list(reading, field_words, settings):
    """Mostly bare terms between separators, or a string of terms in which nothing tells anything: keywords, no reason."""
    text = reading.text.clean
    if _is_mostly_bare(pieces(text), settings):
        return True
    tells = "=" in text or PUNCTUATION.search(text.strip(" .。!")) or words("telling").search(text) or words("comparing").search(text)
    return not tells and _length(text) >= settings["string_words"] and _field_share(text, field_words) >= settings["string_field"]


def _is_mostly_bare(found, settings):
    if len(found) < settings["list_pieces"]:
        return False
    bare = [piece for piece in found if is_bare(piece, settings["list_words"])]
    return len(bare) >= settings["list_pieces"] and sum(map(_length, bare)) >= settings["list_share"] * sum(map(_length, found))


def _field_share(text, field_words):
    """The share of a text's characters that belong to words of the field."""
    return sum(match.end() - match.start() for match in field_words.finditer(text)) / max(len(text), 1)


def restates(reading, statements, earned, settings):
    """The answer only says the statement again; where it seems to earn something, it must be the whole statement."""
    said = _spread(reading.text.clean)
    if len(set(said.split())) < settings["restated_words"]:
        return False
    alike, least = (token_sort_ratio, settings["said_again"]) if earned else (token_set_ratio, settings["restated"])
    return any(alike(said, _statement(statement), score_cutoff=least) for statement in statements)


@cache
def _statement(statement):
    return _spread(normalise(statement).clean)


def _spread(text):
    """Words and single Chinese characters, parted by blanks."""
    return " ".join(WORD.findall(text))


def subjects(text, field_words):
    """How many different words of the field a clean text uses."""
    return len({match[0] for match in field_words.finditer(text)})
