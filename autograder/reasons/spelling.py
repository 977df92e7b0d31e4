"""Misspellings: English words near a word of the vocabulary, Chinese characters that sound like the right one."""

import re
from functools import cache, lru_cache

from rapidfuzz.distance import OSA
from rapidfuzz.process import extractOne

from autograder.reasons.language import language, listed

WORD = re.compile(r"(?<![0-9])[a-z]+")
SHORTEST = 5  # letters; a shorter word has too many neighbours
CACHED = 4096  # words whose correction is kept
LONG = 8  # from here on two slips are forgiven


def words_of(term):
    """The English words of a term that are long enough to be recognised when misspelt."""
    return [word for word in WORD.findall(str(term)) if len(word) >= 4]


def slips(word):
    """How many slips of the pen `word` may hold."""
    return 0 if len(word) < SHORTEST else 1 if len(word) < LONG else 2


def mend(text, targets):
    """`text` with short forms written out, and words that are one or two slips from one of `targets` put right."""
    short_forms = language()["short_forms"]
    text = text.sub(WORD, lambda match: short_forms.get(match[0], match[0]))
    text = _heard(text) if text.is_chinese else text
    return text.sub(WORD, lambda match: _nearest(match[0], targets))


@lru_cache(maxsize=CACHED)
def _nearest(word, targets):
    allowed = slips(word)
    known = targets | _ordinary()
    if not allowed or word in known or _is_form(word, known):
        return word
    same_start = _by_start(targets).get(word[0], ())
    best = extractOne(word, same_start, scorer=OSA.distance, score_cutoff=allowed)
    return best[0] if best else word


def _is_form(word, known):
    """A word that is a known one with an ending."""
    return any(word.endswith(ending) and (word[: -len(ending)] in known or word[: -len(ending)] + "e" in known) for ending in ENDINGS)


ENDINGS = ("s", "es", "ed", "d", "ing", "ly", "er", "al")


@cache
def _by_start(targets):
    table = {}
    for target in sorted(targets):
        if len(target) >= SHORTEST - 1:
            table.setdefault(target[0], []).append(target)
    return table


@cache
def _ordinary():
    return frozenset(language()["ordinary_words"].split())


@cache
def _sound_alikes():
    """Per key term a pattern in which one or more of its characters are others that sound the same."""
    sounds = language()["sounds"]
    terms = listed(language()["key_terms"])
    return [
        (term, re.compile("".join(f"[{char}{sounds.get(char, '')}]" for char in term))) for term in sorted(terms, key=len, reverse=True)
    ]


def _heard(text):
    for term, pattern in _sound_alikes():
        text = text.sub(pattern, term)
    return text
