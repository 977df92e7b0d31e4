"""Amounts read and written: prefixes, decimal against binary, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulary import amounts
from formulary.amounts import AmountError, read, write
from formulary.units import BYTE, FLOP, PURE, SECOND, TOKEN, UnitError


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("7B", PURE, 7 * 10**9),
        ("7e9", PURE, 7e9),
        ("7_000_000_000", PURE, 7 * 10**9),
        ("7.5 billion", PURE, 75 * 10**8),
        ("80GiB", BYTE, 80 * 2**30),
        ("80 GB", BYTE, 80 * 10**9),
        ("7 B", BYTE, 7),
        ("400 Gb/s", BYTE / SECOND, 50 * 10**9),
        ("312 TFLOP/s", FLOP / SECOND, 312 * 10**12),
        ("67.5 min", SECOND, 4050),
        ("10us", SECOND, 1e-5),
        ("9.9%", PURE, 0.099),
        ("380 tokens/s", TOKEN / SECOND, 380),
    ],
)
def test_read(text, unit, value):
    assert read(text, unit) == pytest.approx(value, rel=1e-15)


def test_whole_amounts_stay_whole():
    assert isinstance(read("7B"), int)
    assert read("1024 PB", BYTE) == 1024 * 10**15


REFUSED = ["", "GB", "seven", "7 parsecs", "1e9e9", "7 B B", "nan", "--7", "7" * 201, "7GB; import os"]
TOO_LARGE = ["1e400", "1e400 GB", "1e300 GB", "-1e400"]


@pytest.mark.parametrize("text", REFUSED + TOO_LARGE)
def test_what_is_not_an_amount_is_refused(text):
    with pytest.raises(AmountError):
        read(text, BYTE)


def test_another_unit_is_refused_with_what_is_wanted():
    with pytest.raises(UnitError, match=r"is in second, but byte is wanted; try TB, GB"):
        read("7 s", BYTE)


@pytest.mark.parametrize(
    ("value", "unit", "scale", "text"),
    [
        (38.5e9, BYTE, None, "38.5 GB"),
        (1120e9, BYTE, None, "1,120 GB"),
        (34 * 2**30, BYTE, "GiB", "34 GiB"),
        (0.49, SECOND, None, "490 ms"),
        (4050, SECOND, None, "1.125 h"),
        (0, BYTE, None, "0 B"),
        (7 * 10**9, PURE, None, "7,000,000,000"),
        (0.0985915, PURE, None, "0.09859"),
    ],
)
def test_write(value, unit, scale, text):
    assert write(value, unit, scale=scale) == text


@given(st.floats(1e-6, 1e16), st.sampled_from(list(amounts.SCALES)))
def test_what_is_written_reads_back(value, unit):
    assert read(write(value, unit, digits=12).replace("$", "dollars"), unit) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ([90, 30, 1.5], SECOND, ["1.5 min", "0.5 min", "0.025 min"]),
        ([2e9, 5e8, 0], BYTE, ["2 GB", "0.5 GB", "0 GB"]),
        ([17301504, 174763], PURE, ["17.3M", "0.1748M"]),
        ([1024, 0.5], PURE, ["1,024", "0.5"]),
        ([13e9, 2e7, 4000], BYTE, ["13 GB", "0.02 GB", "4 kB"]),
    ],
)
def test_values_under_each_other_have_one_unit(values, unit, texts):
    assert amounts.in_one_unit(values, unit) == texts
