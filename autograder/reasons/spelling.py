"""Misspellings: English words near a word of the vocabulary, Chinese characters that sound like the right one."""

import re
from functools import cache, lru_cache

from rapidfuzz.distance import OSA
from rapidfuzz.process import extractOne

from autograder.reasons.language import language
from autograder.reasons.terms import listed

WORD = re.compile(r"(?<![0-9])[a-z]+")
SHORTEST = 5  # letters; a shorter word has too many neighbours
CACHED = 2**15  # words whose correction is kept
LONG = 8  # from here on two slips are forgiven


def words_of(term):
    """The English words of a term that are long enough to be recognised when misspelt."""
    return [word for word in WORD.findall(str(term)) if len(word) >= 4]


def slips(word):
    """How many slips of the pen `word` may hold."""
    return 0 if len(word) < SHORTEST else 1 if len(word) < LONG else 2


def mend(text, targets):
    """`text` with short forms written out, and words that are one or two slips from one of `targets` put right."""
    text = _replaced(text, language()["short_forms"])
    text = _heard(text) if text.is_chinese and _misheard().search(text.clean) else text
    return _replaced(text, {word: _nearest(word, targets) for word in set(WORD.findall(text.clean))})


def _replaced(text, better):
    """`text` with words replaced by what the table `better` has for them."""
    if all(better.get(word, word) == word for word in WORD.findall(text.clean)):
        return text
    return text.sub(WORD, lambda match: better.get(match[0], match[0]))


@lru_cache(maxsize=CACHED)
def _nearest(word, targets):
    allowed = slips(word)
    if not allowed or _is_known(word, targets) or any(_is_known(stem, targets) for stem in _stems(word)):
        return word
    same_start = _by_start(targets).get(word[0], ())
    best = extractOne(word, same_start, scorer=OSA.distance, score_cutoff=allowed)
    return best[0] if best else word


def _is_known(word, targets):
    return word in targets or word in _ordinary()


def _stems(word):
    """What a word may be a form of."""
    stems = [word.removesuffix(ending) for ending in ENDINGS if word.endswith(ending)]
    return [form for stem in stems for form in (stem, f"{stem}e")]


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


@cache
def _misheard():
    """One pattern for all key terms with other characters in them."""
    return re.compile("|".join(f"{pattern.pattern}(?<!{term})" for term, pattern in _sound_alikes()))


def _heard(text):
    for term, pattern in _sound_alikes():
        text = text.sub(pattern, term)
    return text
