"""What a learner wrote, read as a verdict, a choice, an amount or a reason; bounded in size, and nothing is ever evaluated as code."""

import math
import re
import reprlib
import unicodedata
from dataclasses import dataclass

from formulary import UnitError
from formulary.arithmetic import BITS
from formulary.units import BYTE, PURE, SECOND, spell

from . import expression, limits, symbols
from .amount import amount_of
from .exercise import Text
from .expression import NotFormula


class AnswerError(ValueError):
    """An answer that can't be read; `.why` says so in each language."""

    def __init__(self, en, zh):
        super().__init__(en)
        self.why = Text(en=en, zh=zh)


class WrongUnit(AnswerError):
    """An amount that reads well, but measures something else."""


@dataclass(frozen=True)
class Unread:
    """Stands where an answer should be but could not be had: the cell was no Python, or its code failed."""

    why: Text
    raw: str = ""


def is_blank(value):
    """Whether nothing was answered: None, an ellipsis, an empty list, or a text without a letter or digit."""
    if isinstance(value, str):
        return not any(character.isalnum() for character in value[: limits.TEXT])
    return value is None or value is ... or (isinstance(value, list | tuple) and not value)


def plain(text):
    """`text` with full-width forms made ordinary, without control characters, on one line."""
    return " ".join(expression.visible(unicodedata.normalize("NFKC", text[: limits.TEXT])).split())


# --- true or false ---------------------------------------------------------------------------------------------------

VERDICTS = {
    True: {"true", "t", "yes", "y", "right", "correct", "对", "正确", "是", "真", "成立", "√", "✓"},
    False: {"false", "f", "no", "n", "wrong", "incorrect", "错", "错误", "不对", "否", "假", "不成立", "×", "✗", "x"},
}


def verdict(value):
    """True or False of a bool, or of a word that means one."""
    if isinstance(value, bool):
        return value
    word = plain(value).lower().strip(" .。!") if isinstance(value, str) else None
    for meaning, words in VERDICTS.items():
        if word in words:
            return meaning
    raise AnswerError(f"{_short(value)} is neither True nor False", f"{_short(value)} 既不是 True 也不是 False")


# --- a choice --------------------------------------------------------------------------------------------------------


def choice(value, keys):
    """The set of keys in "C", "A, C", "AC" or ["A", "C"]."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str) and len(item) <= 100 for item in items):
        raise AnswerError(f"{_short(value)} is not a letter", f"{_short(value)} 不是选项字母")
    letters = re.sub(r"[\s,;.、。()和与]|\band\b", "", plain(" ".join(items)).replace("and", "").upper())
    if not letters or not set(letters) <= set(keys):
        known = ", ".join(keys)
        raise AnswerError(f"{_short(value)} is not among the options {known}", f"{_short(value)} 不在选项 {known} 之中")
    return set(letters)


# --- an amount -------------------------------------------------------------------------------------------------------

# a unit's own name for "an amount such as 1.5 …"
EXAMPLES = {BYTE: "GB", SECOND: "s"}


def amount(value, unit, bound=None):
    """(number in base units, whether it stands alone) from 112e9, "112 GB", "24.5GB/卡", "７/７１", "≈ 9.9 %", or "≥ 63" for a `bound`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _no_amount(value, unit)
    number, alone = _written(value, unit, bound) if isinstance(value, str) else (value, True)
    if (isinstance(number, int) and number.bit_length() > BITS) or not math.isfinite(number):
        raise AnswerError(f"{_short(value)} is not a finite number", f"{_short(value)} 不是有限的数")
    return number, alone


def _written(text, unit, bound):
    try:
        found = amount_of(text, unit, bound)
    except UnitError as error:
        raise WrongUnit(str(error), f"{_short(text)} 的单位不对，这里要的是{UNIT_NAMES.get(unit, spell(unit))}") from None
    except NotFormula:
        found = None
    if found is None:
        raise _no_amount(text, unit)
    return found


def example(unit):
    """An amount of that unit, to show how one is written."""
    return f"1.5 {EXAMPLES.get(unit, '')}".strip()


UNIT_NAMES = {BYTE: "字节（如 GB、GiB）", SECOND: "时间", PURE: "一个纯数"}


def _no_amount(value, unit):
    form = example(unit)
    return AnswerError(
        f"{_short(value)} can't be read as an amount; write it like {form}", f"{_short(value)} 读不出数值，请写成 {form} 这样"
    )


# --- a formula -------------------------------------------------------------------------------------------------------


def formula(value, letters):
    """The sides of a formula, each the list of trees it may mean, from `"(P-1)/(M+P-1)"`, `r"\\frac{P-1}{M+P-1}"`, `"V = 2S(k-1)/k"`.

    A side in words (`idle / total`) is left out; the last side must be a formula.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise AnswerError(f"a formula is a text in quotes, not {_short(value)}", f"公式应是引号里的一段文字，而不是 {_short(value)}")
    if isinstance(value, int) and value.bit_length() > BITS:
        raise AnswerError(f"{_short(value)} is no formula", f"{_short(value)} 不是公式")
    try:
        *before, last = expression.sides(value if isinstance(value, str) else repr(value)) or [""]
        found = [trees for side in before if (trees := _readings_or_none(side, letters))]
        return [*found, expression.readings(last, letters)]
    except NotFormula as error:
        short, known = _short(value), ", ".join(symbols.shown(letters))
        en, zh = (quote(error.why[language], 200) for language in ("en", "zh"))
        raise AnswerError(f"{short}: {en}; it is written in {known}", f"{short}：{zh}；可用 {known}") from None


def _readings_or_none(side, letters):
    """The trees of a side, or None if it is a name for what is calculated, in words or one letter."""
    try:
        trees = expression.readings(side, letters)
    except NotFormula:
        return None
    return trees if trees[0][0] not in ("name", "num") else None


# --- a reason --------------------------------------------------------------------------------------------------------


def reason(value):
    """Free text, at most `limits.TEXT` characters of it."""
    if not isinstance(value, str):
        raise AnswerError(f"a reason is a text in quotes, not {_short(value)}", f"理由应是引号里的一段文字，而不是 {_short(value)}")
    if len(value) > limits.TEXT:
        raise AnswerError(f"longer than {limits.TEXT:,} characters", f"超过 {limits.TEXT:,} 个字符")
    return value


def quote(text, most):
    """A learner's words as they can be repeated in a page: on one line, cut, and without marks that HTML or markdown would act on."""
    text = plain(text[: 4 * most]).translate(HARMLESS)
    return text[:most] + ("…" if len(text) > most else "")


HARMLESS = str.maketrans("<>[]`", "‹›［］'")


def _short(value):
    """A value as it can be repeated in a message."""
    if isinstance(value, int) and value.bit_length() > BITS:
        return "a whole number of hundreds of digits"
    return f"“{quote(value if isinstance(value, str) else reprlib.repr(value), 60)}”"
