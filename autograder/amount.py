"""An amount as people write it: "24.5GB/卡", "≈ 2·7/8·14 GB", "$3.39\\times10^{38}$", "7/71 = 9.86%", "不少于 63"; nothing is run.

What is written may have several sides ("7/71 = 9.86%", "24.5 GB (22.8 GiB)"): all that can be read must agree.
"""

import math
import re
from fractions import Fraction
from functools import cache

from formulary import UnitError, judge
from formulary.amounts import AmountError, unit_named
from formulary.units import BYTE, PURE, TOKEN, spell

from . import expression, limits
from .expression import NotFormula, Undefined

NEAR = 0.01  # relative difference of two sides that say the same, one of them rounded

WHOSE = r"(GPU|card|rank|device|worker|node|stage|layer|step|iteration|micro-?batch|sequence|param(eter)?|weight|chip)s?"
OF_EACH = r"(张|个|每)*\s*(卡|显卡|步|层|段|参数|权重|节点|设备|微批次?|micro-?batch|rank|GPU)"
ABOUT = "大约等于|约等于|大约是|大约|大概|差不多|约为|约是|约|≈|(?i:approximately|approx|about|roughly|around|circa|ca)[.]?"
# what people write, and what numbers and units are called here; tried in this order
SPELLINGS = [
    (r"\(([A-Za-zµμ/%]+)\)", r"\1"),  # \text{GB}
    (r"(?<=\d)[,'_](?=\d{3}(?!\d))|(?<=\d) (?=\d{3}(?!\d))", ""),
    (r"^(\d+),(?=\d+\D*$)", r"\1."),  # a decimal comma
    (r"(?<=\d)\.(?!\d)", ""),
    (rf"^(每{OF_EACH}|(?i:per {WHOSE}))\s*[:,]?\s*", ""),
    (r"^(总共|一共|合计|共计|总计|共|是|为|得|(?i:in total|a total of|it is|it's))\s*", ""),
    (rf"^({ABOUT})\s*", ""),
    (r"\s*(左右|上下|(?i:in total|altogether|overall))\s*$", ""),
    (rf"\s*(/|每|(?i:per))\s*((?i:{WHOSE})|{OF_EACH})\s*$", ""),
    (r"(?i:\s*(each|apiece|on each (card|GPU|rank)))\s*$", ""),
    (r"百分之\s*([\d.]+)", r"\1%"),
    (r"(?<=\d)\s*(percent|per cent|pct)\s*$", "%"),
    (r"(?<=[\d)])\s*[xX]\s*(?=[\d(])", "*"),
    (r"(?<=\d)\s*倍\s*$", "x"),
    (r"(?<=\d)\s*个(?=\s*[A-Za-z小字比令词])", ""),
    (r"千兆字节|吉字节", "GB"),
    (r"兆字节", "MB"),
    (r"千字节", "kB"),
    (r"太字节", "TB"),
    (r"字节", "B"),
    (r"比特|(?<=[\d亿万])\s*位", "bit"),
    (r"毫秒", "ms"),
    (r"微秒", "us"),
    (r"分钟", "min"),
    (r"小时", "h"),
    (r"秒", "s"),
    (r"天", "d"),
    (r"词元|令牌", "tokens"),
    (r"(?<=\d)\s*万亿", "e12"),
    (r"(?<=\d)\s*千亿", "e11"),
    (r"(?<=\d)\s*十亿", "e9"),
    (r"(?<=\d)\s*百万", "e6"),
    (r"(?<=\d)\s*亿", "e8"),
    (r"(?<=\d)\s*万", "e4"),
    (r"\b(?i:kilo|mega|giga|tera)(?=bit|byte)", lambda match: match[0][0].upper()),
    (r"\b(?i:kibi|mebi|gibi|tebi)(?=bit|byte)", lambda match: match[0][0].upper() + "i"),
    (r"(?<![A-Za-z])([kmgt])(i?)b(?![A-Za-z/])", lambda match: match[1].upper() + match[2] + "B"),
    (r"(?<=\d)\s*(hrs?|hours?)\s*$", "h"),
    (r"(?<=\d)\s*mins\s*$", "min"),
    (r"(?<=\d)\s*secs\s*$", "s"),
]
# behind a count: what is counted goes without saying
COUNTED = re.compile(
    r"\s*(个|张|步|次|条|卡|段|层|轮|批|块|台|份|项|格)?\s*(参数|令牌|时隙|时间片|显卡|卡|步|序列|消息|micro-?batch(es)?|slots?|steps?|"
    r"cards?|GPUs?|ranks?|parameters?|params?|layers?|stages?|batches|rounds?|sequences?|messages?|nodes?|elements?|times|numbers?|"
    r"failures?|passes|segments?|units?)?\s*$"
)
COUNTS = (PURE, TOKEN)
# what may stand for a unit where only that kind is wanted
SHORT_BYTES = (r"(?<=\d)\s*([KMGT])\s*$", r"\1B")
SIDES = re.compile(r"(?<![<>])[=≈:]|,\s|;\s*|\bor\b|\bi\.e\.|或|也就是|即")
IN_BRACKETS = re.compile(r"(.*[^\s*/+^(-])\s*\(([^()]*)\)")
MATH_AND_UNIT = re.compile(r"(.*[\d)])\s*([^\d()]+)")
RANGE = re.compile(r"[\d.]+\s*[-~]\s*[\d.]+\s*[^\d\s*/+^(.-].*")

AT_LEAST, AT_MOST = "at_least", "at_most"
BOUNDS = {
    AT_LEAST: r"≥|⩾|≧|>=|=>|geq?\b|不少于|不小于|不低于|至少|最少|大于等于|at least|no (less|fewer) than",
    AT_MOST: r"≤|⩽|≦|<=|=<|leq?\b|不多于|不大于|不超过|不高于|至多|最多|小于等于|at most|no more than|up to",
}


def amount_of(text, unit, bound=None):
    """(value in base units, whether it has no unit) of a text, or None where it is no amount or its sides disagree.

    Before a `bound` asked for, at_least or at_most, its sign may stand. Raises UnitError where the text measures something else.
    """
    words = expression.characters(text).strip().rstrip(" .。;")
    if len(words) > limits.AMOUNT:
        return None
    if bound:
        words = re.sub(rf"^\w{{0,20}}\s*({BOUNDS[bound]})\s*", "", words, flags=re.IGNORECASE)
    value, factor = _side(words, unit) or _agreed(words, unit) or (None, None)
    return value if value is None else (value, factor is None)


def _agreed(words, unit):
    """The last side of `words`, if all agree. A side may be in words, and before an `=` also in letters or without the unit."""
    bracket = IN_BRACKETS.fullmatch(words)
    parts = (side.strip() for part in (bracket.groups() if bracket else [words]) for side in SIDES.split(part))
    sides = [(side, _side(side, unit)) for side in parts if side]
    found = [value for _, value in sides if value]
    unclear = any(re.search(r"\d", side) for side, value in sides if not value)
    if not found or (unclear and not ("=" in words and sides[-1][1])):
        return None
    last, factor = found[-1]
    same = (
        judge(value, last, within=NEAR).passed or (own is None and judge(value * (factor or 1), last, within=NEAR).passed)
        for value, own in found
    )
    return found[-1] if all(same) else None


def _side(words, unit):
    """(value in base units, what its unit is worth or None without one) of one side, or None where it is no amount."""
    if RANGE.fullmatch(words):
        return None
    words = respelt(words, unit)
    number, name = MATH_AND_UNIT.fullmatch(words).groups() if MATH_AND_UNIT.fullmatch(words) else (words, "")
    value = _arithmetic(number)
    try:
        factor, found = unit_named(name.strip(), unit) if name else (1, unit)
    except AmountError:
        return None
    if value is None:
        return None
    if found != unit:
        raise UnitError(f"{words!r} is in {spell(found)}, but {spell(unit)} is wanted")
    return (plain, float(factor) if name else None) if (plain := _plain(value, factor)) is not None else None


def _arithmetic(words):
    """The exact value of arithmetic without letters, or None where it is none, or has two readings."""
    try:
        values = {expression.value(tree, {}) for tree in expression.readings(words, ())}
    except (NotFormula, Undefined):
        return None
    return values.pop() if len(values) == 1 else None


def _plain(value, factor):
    """A value in base units as int where it is one, else float; None if it is too large to be one."""
    exact = value * Fraction(float(factor)) if isinstance(value, Fraction) else value * float(factor)
    try:
        found = float(exact)
    except OverflowError:
        return None
    return int(exact) if isinstance(exact, Fraction) and exact.denominator == 1 else found if math.isfinite(found) else None


@cache
def _spellings(unit):
    return [(re.compile(pattern), known) for pattern, known in [*SPELLINGS, *([SHORT_BYTES] if unit == BYTE else [])]]


def respelt(words, unit):
    """`words` in the spelling that numbers and units have here."""
    for pattern, known in _spellings(unit):
        words = pattern.sub(known, words.strip())
    return COUNTED.sub("", words) if unit in COUNTS else words
