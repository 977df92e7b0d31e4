"""An answer made readable for matching: one spelling for each thing, and for every character where it came from."""

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 1_500  # characters that are read; a reason longer than this goes to a person

TAG = re.compile(r"<[^<>\n]{1,80}>")
ENTITY = re.compile(r"&#?\w{1,8};")
MARKUP = re.compile(r"[*_`~#$\\]+")
TIMES = re.compile(r"(?<=\d)\s*[×·x*]\s*(?=[nskv]\b)|(?<=\d)\s+(?=[nsk](?![a-z]))")
PARAMETER_LETTER = re.compile(r"(?<=\d)\s*[ψφ]|(?<=\d)p(?![a-z])")
UNIT_GAP = re.compile(r"(?<=\d)\s+(?=(?:[gm]i?b|b|bytes?|bits?|tb)\b)")
BETWEEN_SCRIPTS = re.compile(r"(?<=[一-鿿])[ \t]+(?=[a-z0-9(])|(?<=[a-z0-9)])[ \t]+(?=[一-鿿])")
SPACES = re.compile(r"\s{2,}|[^\S \n]")  # a single blank or line break stays
CHINESE = re.compile("[一-鿿]")
APOSTROPHE = re.compile(r"(?<=[a-z])['’‘`´](?=[a-z])")
QUOTES = re.compile("[\"'“”‘’«»「」『』《》]")
CLAUSE_MARK = re.compile(r"[,;:!?，。；：！？\n|]|\.(?!\d)|--+|—+|=>|->|→|⇒")
SENTENCE_MARK = frozenset(".!?。！？;；\n")


@dataclass(frozen=True)
class Text:
    """`clean` characters, and for each its place in the text as it was given."""

    clean: str
    origins: tuple
    given: str = ""
    cut: bool = False

    def sub(self, pattern, replace):
        """The Text with every match of `pattern` replaced; `replace` is a text or a function of the match."""
        parts, origins, end = [], [], 0
        for match in pattern.finditer(self.clean):
            new = replace(match) if callable(replace) else replace
            if new == match[0]:
                continue
            start, stop = match.span()
            parts += [self.clean[end:start], new]
            origins += self.origins[end:start]
            origins += [self.origins[min(start + i, stop - 1)] if stop > start else self.origins[start] for i in range(len(new))]
            end = stop
        if not parts:
            return self
        parts.append(self.clean[end:])
        origins += self.origins[end:]
        return Text("".join(parts), tuple(origins), self.given, self.cut)

    def quote(self, start, end):
        """What was written between two places of the clean text."""
        return self.given[self.origins[start] : self.origins[end - 1] + 1] if end > start else ""

    @property
    def is_chinese(self):
        return bool(CHINESE.search(self.clean))


def normalise(given):
    """`given` in one width, one case and one spelling of amounts (`16 Ψ` -> `16n`), without markup, controls and marks of direction."""
    given = given if isinstance(given, str) else str(given or "")
    read = given[:LONGEST]
    text = Text(read, tuple(range(len(read))), read, len(given) > LONGEST)
    for pattern, replace in PASSES:
        text = text.sub(pattern, replace)
    return text


@lru_cache(maxsize=8192)
def _plain(char):
    """One character in compatibility form and lower case; a blank for a control, nothing for a mark that is not seen."""
    if char == "\n":
        return char
    kind = unicodedata.category(char)
    if kind in ("Cf", "Mn", "Me", "Cs", "Co"):
        return ""
    if kind in ("Cc", "Zs", "Zl", "Zp", "So", "Sk"):
        return " "
    return unicodedata.normalize("NFKC", char).lower() if ord(char) > 126 else char.lower()


PASSES = (
    (re.compile(r"[^\n !-@\[-\]_a-~一-鿿]"), lambda match: _plain(match[0])),  # all others are plain as they stand
    (TAG, " "),
    (ENTITY, lambda match: html.unescape(match[0])[:1] or " "),
    (MARKUP, " "),
    (APOSTROPHE, ""),
    (QUOTES, ""),
    (PARAMETER_LETTER, "n"),
    (re.compile(r"[ψφ]"), "n"),
    (TIMES, ""),
    (UNIT_GAP, ""),
    (BETWEEN_SCRIPTS, ""),
    (SPACES, lambda match: "\n" if "\n" in match[0] else " "),
)


@dataclass(frozen=True)
class Clause:
    """A stretch of the clean text that says one thing, and the number of its sentence."""

    start: int
    end: int
    sentence: int

    def holds(self, start):
        return self.start <= start < self.end


def clauses(text, breaks):
    """The clauses of `text`: parted at punctuation and before the words `breaks` matches (but, because, 而, 所以, …)."""
    cuts = sorted(
        [(m.start(), m.end(), m[0]) for m in CLAUSE_MARK.finditer(text.clean)]
        + [(m.start(), m.start(), "") for m in breaks.finditer(text.clean)]
    )
    found, start, sentence = [], 0, 0
    for stop, resume, mark in cuts:
        if stop > start and text.clean[start:stop].strip():
            found.append(Clause(start, stop, sentence))
        sentence += bool(mark and mark[0] in SENTENCE_MARK)
        start = max(start, resume)
    if text.clean[start:].strip():
        found.append(Clause(start, len(text.clean), sentence))
    return found
