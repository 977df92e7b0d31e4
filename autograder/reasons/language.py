"""The table of small words of both languages: negations, clause breaks, words that tell something, short forms."""

from functools import cache
from pathlib import Path

import yaml

LANGUAGE_FILE = Path(__file__).with_name("language.yaml")


@cache
def language():
    """The table as it is read from its file."""
    return yaml.safe_load(LANGUAGE_FILE.read_text(encoding="utf-8"))


def listed(written):
    """The terms of a text that parts them by `;`."""
    return [term.strip() for term in str(written).split(";") if term.strip()]
