"""The one comparison: right, wrong with the hint that fits, or broken and nobody's fault."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulary import Outcome, judge
from formulary.units import BYTE, FLOP, PURE, SECOND


def test_within_is_relative_to_the_reference():
    assert judge(101, 100, within=0.01).passed
    assert not judge(101.1, 100, within=0.01).passed
    assert not judge(100.0001, 100, within=0).passed


def test_the_hint_of_the_mistake_made():
    verdict = judge(12.25e9, 24.5e9, unit=BYTE, mistakes={"half": 12.25e9}, hints={"half": "you counted the reduce-scatter only"})
    assert verdict.mistake == "half"
    assert verdict.reason == "stated 12.25 GB, expected 24.5 GB (0.5x): you counted the reduce-scatter only"


@pytest.mark.parametrize(
    ("stated", "word"), [(38.5 * 2**30, "GiB"), (38.5e9 * 1e9 / 2**30, "GiB"), (38.5e6, "too small"), (38.5e12, "too large")]
)
def test_unit_slips_are_named(stated, word):
    verdict = judge(stated, 38.5e9, unit=BYTE)
    assert verdict.outcome is Outcome.FAILED
    assert word in verdict.hint


SLIPS = [
    (38.5e9 * 8, 38.5e9, BYTE, "bits", "bits", "比特"),
    (50e9 / 8, 50e9, BYTE / SECOND, "bits", "bytes", "字节"),
    (37.5, 0.375, PURE, "percent", "%", "%"),
    (0.00375, 0.375, PURE, "percent", "fraction", "比值"),
    (67.5, 67.5 * 60, SECOND, "time", "minutes", "分钟"),
    (67.5 * 60, 67.5, SECOND, "time", "minutes", "分钟"),
    (2 * 3600, 2, SECOND, "time", "hours", "小时"),
    (21.0, 21.0 * 86400, SECOND, "time", "days", "天"),
    (7.0, 7e9, PURE, "prefix", "prefix", "前缀"),
    (312e9, 312e12, FLOP / SECOND, "prefix", "1,000 times too small", "前缀"),
    (22.8e9, 24.5e9, BYTE, "binary", "GiB", "GiB"),
]


@pytest.mark.parametrize(("stated", "expected", "unit", "name", "en", "zh"), SLIPS)
def test_slips_have_names_and_are_said_in_both_languages(stated, expected, unit, name, en, zh):
    slip = judge(stated, expected, unit=unit).slip
    assert slip.name == name and en in slip.en and zh in slip.zh


def test_a_total_for_a_share_is_named_where_the_ranks_are_known():
    assert judge(112e9, 28e9, unit=BYTE, ranks=4).slip.name == judge(28e9, 112e9, unit=BYTE, ranks=4).slip.name == "ranks"
    assert judge(112e9, 28e9, unit=BYTE).slip is None and judge(28e9 * 1.5, 28e9, unit=BYTE, ranks=1).slip is None


def test_a_slip_within_a_wide_tolerance_passes_but_not_in_silence():
    verdict = judge(24.5 * 2**30, 24.5e9, unit=BYTE, within=0.1)
    assert verdict.passed and "GiB" in verdict.reason
    assert judge(24.6e9, 24.5e9, unit=BYTE, within=0.1).slip is None


def test_a_known_mistake_comes_before_a_slip():
    verdict = judge(112e9, 28e9, unit=BYTE, ranks=4, mistakes={"whole": 112e9}, hints={"whole": "not sharded"})
    assert verdict.hint == "not sharded" and verdict.slip is None


def test_no_byte_hint_for_seconds():
    assert judge(38.5 * 2**30, 38.5e9, unit=SECOND).hint == ""


@pytest.mark.parametrize("reference", [None, math.nan, math.inf, "14"])
def test_a_broken_reference_is_our_fault(reference):
    assert judge(14, reference).outcome is Outcome.BROKEN


@pytest.mark.parametrize("stated", [math.nan, math.inf, "14", True])
def test_what_is_no_number_fails_and_says_so(stated):
    verdict = judge(stated, 14)
    assert verdict.outcome is Outcome.FAILED
    assert "not a finite number" in verdict.reason


@given(st.floats(1e-300, 1e300), st.floats(0, 0.2))
def test_the_reference_itself_always_passes_and_double_never(reference, within):
    assert judge(reference, reference, within=within).passed
    assert not judge(reference * 2, reference, within=within).passed
