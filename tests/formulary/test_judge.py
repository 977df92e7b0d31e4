"""The one comparison: right, wrong with the hint that fits, or broken and nobody's fault."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulary import Outcome, judge
from formulary.units import BYTE, SECOND


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
