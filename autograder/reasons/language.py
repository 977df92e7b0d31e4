"""The table of small words of both languages: negations, clause breaks, words that tell something, short forms."""

from functools import cache
from pathlib import Path

import yaml

from autograder.reasons.terms import alternatives, listed

LANGUAGE_FILE = Path(__file__).with_name("language.yaml")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same ten times as fast, where libyaml is there


def table(path):
    """What a YAML file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)


@cache
def language():
    """The table as it is read from its file."""
    return table(LANGUAGE_FILE)


@cache
def words(name):
    """The Terms of the word list `name`."""
    return alternatives(listed(language()[name]))


@cache
def negating():
    """For each way of reaching (`clause`, `next`, …) the Terms of the negations that reach so."""
    return {reach: alternatives(listed(said)) for reach, said in language()["negations"].items()}


@cache
def any_negation():
    """The Terms of all negations, however they reach."""
    return alternatives(term for said in negating().values() for term in said.terms)
