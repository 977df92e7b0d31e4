"""Free text against a rubric line: which claims it makes, which contradict the line, and whether we are sure of it.

The way is simple and can be shown to anyone: a claim is made where one wording of each of its groups stands in the
same sentence. We are sure of a blank, and of a full mark whose sentences hold no negation, no contradiction and read
like sentences. All else goes to a person, with what we found as the proposal.
"""

import re
from dataclasses import dataclass

from . import limits
from .answer import is_blank, plain

SENTENCE_ENDS = re.compile(r"\.(?=\s|$)|[!?。;\n]")
COMMAS = re.compile(r"[,、;:\n]")
NEGATIONS = re.compile(r"\b(not|no|never|without|neither|nor|cannot|rather than)\b|n't\b|不|没|无|非|未", re.IGNORECASE)


@dataclass(frozen=True)
class Match:
    """A claim, the sentence in which it was found, and what of the sentence its wordings leave over."""

    claim: object
    sentence: str
    rest: str


@dataclass(frozen=True)
class Reading:
    """What a reason earns by our reading, whether we are sure, and the matches that say why."""

    points: float
    sure: bool
    earned: tuple = ()
    against: tuple = ()


def read_reason(text, line):
    """The Reading of a text against a rubric line marked by claims."""
    if is_blank(text):
        return Reading(0, True)
    sentences = split(text)
    earned, against = _found(line.claims, sentences), _found(line.contradictions, sentences)
    if against or is_list(text):
        return Reading(0, False, earned, against)
    points = min(line.points, sum(match.claim.points for match in earned))
    doubted = any(NEGATIONS.search(match.rest) for match in earned)
    return Reading(points, points == line.points and not doubted and len(text) <= limits.SURE_TEXT, earned)


def split(text):
    """The sentences of a text, in plain characters."""
    text = "\n".join(plain(row) for row in text.splitlines())
    return [sentence.strip() for sentence in SENTENCE_ENDS.split(text) if sentence.strip()]


def is_list(text):
    """Whether a text only names things: five or more snippets of hardly any words between its commas."""
    snippets = [snippet.strip() for snippet in COMMAS.split(plain(text)) if snippet.strip()]
    return len(snippets) >= 5 and sum(map(_weight, snippets)) / len(snippets) < 3.5


def _weight(snippet):
    """Words in a snippet; two Chinese characters weigh about as much as one word."""
    chinese = len(re.findall(r"[一-鿿]", snippet))
    return chinese / 2 + len(re.findall(r"[a-z0-9]+", snippet.lower()))


def _found(claims, sentences):
    matches = (_match(claim, sentences) for claim in claims)
    return tuple(match for match in matches if match)


def _match(claim, sentences):
    """Where a claim is made: the first sentence that holds one wording of each of its groups."""
    for sentence in sentences:
        found = [next((w for w in group if _wording(w).search(sentence)), None) for group in claim.when]
        if all(found):
            rest = sentence
            for wording in found:
                rest = _wording(wording).sub(" ", rest)
            return Match(claim, sentence, rest)
    return None


def _wording(wording):
    """A pattern for a wording: Latin words from their beginning on, Chinese anywhere."""
    start = r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", wording, re.IGNORECASE) else ""
    return re.compile(start + re.escape(wording), re.IGNORECASE)
