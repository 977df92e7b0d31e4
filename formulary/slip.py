"""Right digits in the wrong unit: recognised by the factor, and named in English and Chinese."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from . import amounts
from .units import BYTE, PURE, SECOND

NEAR = 0.005  # rounding that digits may have and still be the right ones
BYTES = (BYTE, BYTE / SECOND)


@dataclass(frozen=True)
class Slip:
    """What went wrong, by name and said in each language."""

    name: str
    en: str
    zh: str


@dataclass(frozen=True)
class Kind:
    """A slip: `factors(unit, ranks)` gives {factor: what it is, in English and Chinese}; then how it is said if too large or too small."""

    name: str
    factors: Callable
    large: tuple
    small: tuple


def _of_ranks(unit, ranks):
    return {ranks: (f"{ranks:g}", f"{ranks:g}")} if ranks and ranks > 1 else {}


def _of_binary(unit, ranks):
    factors = {amounts.BINARY[f"{name}i"] / amounts.DECIMAL[name]: (name, name) for name in "MGT"}
    return factors if unit in BYTES else {}


def _of_bits(unit, ranks):
    return {8: ("", "")} if unit in BYTES else {}


def _of_percent(unit, ranks):
    return {100: ("", "")} if unit == PURE else {}


def _of_time(unit, ranks):
    if unit != SECOND:
        return {}
    names = {"min": ("minutes", "分钟"), "h": ("hours", "小时"), "d": ("days", "天")}
    seconds = {name: float(amounts.ATOMS[name][0]) for name in names}
    from_seconds = {seconds[name]: (f"seconds and {en}", f"秒和{zh}") for name, (en, zh) in names.items()}
    return {**from_seconds, seconds["d"] / seconds["h"]: ("hours and days", "小时和天")}


def _of_prefix(unit, ranks):
    return {size: (f"{size:,}",) * 2 for size in amounts.DECIMAL.values()}


_BINARY = (
    "right digits, wrong unit: {what}B counts in thousands, {what}iB in 1024s",
    "数字对，单位不对：{what}B 按千进位，{what}iB 按 1024 进位",
)
_TIME = ("right digits, but {what} were mixed up", "数字对，但{what}弄混了")
# in the order in which they are tried
KINDS = (
    Kind(
        "ranks",
        _of_ranks,
        ("that is for all {what} ranks together, not for one", "这是 {what} 个 rank 合计的量，不是一个 rank 的量"),
        ("that is for one of {what} ranks, not for all together", "这是 {what} 个 rank 中一个的量，不是合计"),
    ),
    Kind("binary", _of_binary, _BINARY, _BINARY),
    Kind(
        "bits",
        _of_bits,
        ("eight times too large: that is in bits, and a byte has eight", "大了 8 倍：这是比特数，1 字节是 8 比特"),
        ("eight times too small: bytes were taken for bits", "小了 8 倍：把字节当成了比特"),
    ),
    Kind(
        "percent",
        _of_percent,
        ("a hundred times too large: behind a percentage write the % sign", "大了 100 倍：百分数要写上 % 号"),
        ("a hundred times too small: this was a fraction before the % sign", "小了 100 倍：加 % 号之前已经是比值"),
    ),
    Kind("time", _of_time, _TIME, _TIME),
    Kind(
        "prefix",
        _of_prefix,
        ("right digits, but {what} times too large: check the prefix", "数字对，但大了 {what} 倍：请检查前缀"),
        ("right digits, but {what} times too small: check the prefix", "数字对，但小了 {what} 倍：请检查前缀"),
    ),
)


def slip_of(stated, expected, unit, ranks=None, near=NEAR):
    """The Slip that turns `expected` into `stated`, both in base units, or None. `ranks`: over how many something is divided."""
    if not stated or not expected or (stated < 0) != (expected < 0):
        return None
    ratio = stated / expected
    met = next((slip for size, slip in _slips(unit, ranks) if math.isclose(ratio, size, rel_tol=near)), None)
    return met and Slip(*met)


@lru_cache
def _slips(unit, ranks):
    """(ratio, (name, words in each language)) of every slip there may be with a unit, in the order to look for them."""
    return tuple(
        (size, (kind.name, *(said.format(what=name) for said, name in zip(words, what, strict=True))))
        for kind in KINDS
        for factor, what in kind.factors(unit, ranks).items()
        for words, size in ((kind.large, factor), (kind.small, 1 / factor))
    )
