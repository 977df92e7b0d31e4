"""Markdown as lines of a terminal, folded to its width; Chinese characters take two columns and may be parted anywhere."""

import re
import shutil
import unicodedata

WIDEST = 100  # columns; longer lines are hard to read
HAN = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
OPENING, CLOSING = "（《〈「『“", "，。；：、？！）》〉」』”…"  # what stays with the character after, and before, it

# a line's end inside a paragraph, with what stands on both sides of it
PARAGRAPH = re.compile(r"(?<=(\S))\n[ ]*(?=([^\s*>|#-])(?!\d*\.\s))")
MARKS = re.compile(r"\*\*(.+?)\*\*|`([^`\n]+)`")
ITEM = re.compile(r"\s*(?:[-*] |\d+\. )?")
WORD = re.compile(rf"(\s*)([{OPENING}]*(?:[{HAN}]|[^\s{HAN}{OPENING}{CLOSING}]+)[{CLOSING}]*|\S)")


def folded(markdown):
    """Its paragraphs and items as lines, without the marks that a terminal cannot show."""
    return lines(MARKS.sub(r"\1\2", PARAGRAPH.sub(_joined, markdown)))


def lines(text):
    """Every line of a text folded by itself, what an item goes on with indented."""
    return "\n".join(_fold(line, min(WIDEST, shutil.get_terminal_size((WIDEST, 0)).columns)) for line in text.split("\n"))


def columns(text):
    """How many columns a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def right(text, width):
    """A text at the right end of so many columns."""
    return " " * (width - columns(text)) + text


def _joined(match):
    """What holds two lines of a paragraph together: nothing between Chinese characters."""
    return "" if all(re.match(f"[{HAN}{OPENING}{CLOSING}]", letter) for letter in match.groups()) else " "


def _fold(line, width):
    start = ITEM.match(line)[0]
    done, last = [], start
    for gap, word in WORD.findall(line[len(start) :]):
        if columns(last + gap + word) > width and last.strip():
            done.append(last)
            last = " " * len(start) + word
        else:
            last += gap + word
    return "\n".join([*done, last])
