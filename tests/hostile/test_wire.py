"""What comes out of a jail can be any bytes: reading them never raises, and never yields more than was asked for."""

import json
import math
import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.jail import Limits, Unreadable, plain, run_jailed, runs, wire

PLAIN = (type(None), bool, int, float, str, list, dict, Unreadable)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_like = st.recursive(
    scalars | st.sampled_from(["list", "dict", "array", "float", "tuple", "set", "unreadable", "float64", "nan"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)
_LARGEST_KEY = 2**plain.KEY_BITS - 1
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**255), 2**255) | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-_LARGEST_KEY, _LARGEST_KEY), inner, max_size=4)
    ),
    max_leaves=20,
)


class _Jail:
    """Stands for a process whose only message is at hand."""

    seconds = 0.0

    def tail(self, stream):
        return ""

    def verdict(self):
        return "error", "no reply"


def _read(data, names=("answer",)):
    """The result that the trusted side makes of `data`."""
    reader = wire.Reader(ceiling=10_000)
    reader.feed(data)
    try:
        reply = reader.message()
    except (plain.Garbled, wire.TooMuch):
        reply = None
    return runs._result(_Jail(), reply, names)


def _is_plain(value):
    if type(value) in (list, dict):
        inner = [*value, *value.values()] if type(value) is dict else value
        return all(map(_is_plain, inner))
    return type(value) in PLAIN and not (type(value) is float and not math.isfinite(value))


def _check(result):
    assert set(result.answers) <= {"answer"}
    assert all(map(_is_plain, result.answers.values()))
    assert type(result.error) is str
    assert result.verdict in ("ok", "error", "memory", "too_much_output", "timeout")


@given(st.binary(max_size=2000))
def test_any_bytes(data):
    _check(_read(data))


@given(json_like)
def test_any_json(message):
    body = json.dumps(message).encode()
    _check(_read(struct.pack(">I", len(body)) + body))


@given(json_like, json_like, json_like)
def test_any_answers(answer, other, fault):
    body = json.dumps({"answers": {"answer": answer, "other": other}, "faults": fault, "memory": other}).encode()
    _check(_read(struct.pack(">I", len(body)) + body))


@given(json_like)
def test_any_outcome_of_a_call_is_a_value_or_a_text(reply):
    outcome = runs._outcome(reply if type(reply) is dict else {"value": reply})
    assert list(outcome) in (["value"], ["raised"])
    if "value" in outcome:
        plain.unpack(outcome["value"], arrays=True)
    else:
        assert type(outcome["raised"]) is str


@given(values)
def test_plain_values_come_back_as_they_were(value):
    assert repr(plain.unpack(_through_json(value), arrays=True)) == repr(value)


@given(values)
def test_whatever_is_packed_can_be_read(value):
    assert _is_plain(plain.unpack(_through_json(value)))


@pytest.mark.parametrize(
    "value",
    [[0] * 10**6, "x" * 10**7, [["x" * 1000] * 1000] * 10, {n: n for n in range(10**5)}, 10**100, {(1, 2): 3}, object(), b"", range(3)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_or_too_large_crosses_as_a_word(value):
    assert type(plain.unpack(_through_json(value))) is Unreadable


def test_no_table_is_made_of_keys_that_have_all_the_same_hash():
    same = sys.hash_info.modulus
    pairs = [[same * n, None] for n in range(1, 20_000)]
    assert len({hash(key) for key, _ in pairs}) == 1
    with pytest.raises(plain.Garbled, match="key"):
        plain.unpack(["dict", pairs])


def test_arrays_cross_with_their_type_and_shape():
    import numpy

    array = numpy.array([[1.5, -math.inf], [math.nan, 0]], dtype="float32")
    packed = _through_json(array)
    again = plain.unpack(packed, arrays=True)
    assert again.dtype == array.dtype
    numpy.testing.assert_array_equal(again, array)
    assert plain.unpack(packed) == [[1.5, Unreadable("-inf")], [Unreadable("nan"), 0.0]]


@settings(max_examples=12, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_from_a_real_jail(data):
    cell = f"import os\nfor handle in range(3, 10):\n    try: os.write(handle, {data!r})\n    except OSError: pass\nanswer = 1"
    _check(run_jailed([cell], ["answer"], limits=Limits(seconds=1)))


def _through_json(value):
    return json.loads(json.dumps(plain.pack(value), allow_nan=False))
