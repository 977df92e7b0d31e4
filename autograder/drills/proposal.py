"""A rough proposal beside a line that the learner marks alone: how much of what the line asks for the answer mentions.

It compares words, not claims, so it never marks anything by itself; the reasons that are marked by machine have `autograder.reasons`.
"""

import re
from dataclasses import replace

from ..rubric import Status, mark

WORD, HAN = re.compile(r"[a-z][a-z0-9-]{2,}|\d+(?:\.\d+)?"), re.compile("[\u4e00-\u9fff]")
STEM = 5  # letters that make two forms of a word the same one
COMMON = {"the", "and", "for", "that", "with", "are", "its", "has", "not", "one", "per", "than", "from", "which", "this", "each", "only"}
# the least share of the line's words that are mentioned, and the share of its points that this suggests: half of the lines'
# model answers mention two thirds of the words, nine of ten answers to some other question less than a fifth
STEPS = ((0.5, 1.0), (0.25, 0.5), (0.0, 0.0))


def marked(exercise, answers):
    """One LineResult per rubric line; a line that waits for a person has our proposal as its points."""
    text = "\n".join(str(answers[part.name]) for part in exercise.parts if part.type == "reason" and answers.get(part.name))
    return [_proposed(result, text) for result in mark(exercise, answers)]


def _proposed(result, text):
    waiting = result.status is Status.HUMAN and result.points is None
    return replace(result, points=propose(result.line, text)) if waiting else result


def propose(line, text):
    """Points for what the free text mentions of the line's criterion, in the language that fits better."""
    mentioned = max(_coverage(wanted, text) for wanted in (line.criterion.en, line.criterion.zh))
    return line.points * next(worth for least, worth in STEPS if mentioned >= least)


def _coverage(wanted, text):
    words = _words(wanted)
    return len(words & _words(text)) / len(words) if words else 0.0


def _words(text):
    """The words of a text, cut to their stems, and each pair of Chinese characters that follow one another."""
    chinese = "".join(HAN.findall(text))
    stems = {word[:STEM] for word in WORD.findall(text.lower()) if word not in COMMON}
    return stems | {chinese[i : i + 2] for i in range(len(chinese) - 1)}
