"""Plain data: the only thing that leaves a jail. Packed by the jailed process, checked and unpacked by whoever reads it.

None, bool, int, float and str stand for themselves. Everything else is `[tag, …]`; what has no tag crosses as the name
of its type, never as an object. Nothing is pickled and no method of a learner's object runs on the reader's side.
"""

import dataclasses
import math
import sys
import unicodedata

MAX_DEPTH, MAX_ITEMS, MAX_TEXT, MAX_BITS = 12, 50_000, 200_000, 256  # an int of 256 bits still fits a float
KEY_BITS = 60  # of a whole number in a key: larger ones can be chosen to have all the same hash
_NOT_FINITE = ("nan", "inf", "-inf")
_ARRAY_TYPES = ("bool", "int32", "int64", "float32", "float64")
_LISTS = {list: "list", tuple: "tuple", set: "set", frozenset: "set"}


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A value that isn't plain data: all that crossed is what kind of thing it was."""

    kind: str


class Garbled(ValueError):
    """Bytes or data that no honest jailed process would send."""


class _Budget:
    """How much one value may still hold; counting stops a value that is small to write but huge to read."""

    def __init__(self):
        self.items, self.text = MAX_ITEMS, MAX_TEXT

    def spend(self, items=1, text=0):
        self.items -= items
        self.text -= text
        return self.items >= 0 and self.text >= 0


# ------------------------------------------------------------------ in the jail
def pack(value):
    """`value` as JSON can hold it."""
    budget = _Budget()
    packed = _pack(value, budget, MAX_DEPTH)
    return packed if budget.spend(0) else ["unreadable", f"{_kind(value)}: too large"]


def _pack(value, budget, depth):
    if not budget.spend():
        return None
    if depth == 0:
        return ["unreadable", "nested too deep"]
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value.bit_length() <= MAX_BITS else ["unreadable", "int: too large"]
    if kind is float:
        return value if math.isfinite(value) else ["float", str(value)]
    if kind is str:
        budget.spend(0, len(value))
        return _pack_text(value) if budget.text >= 0 else None
    if kind in _LISTS:
        return [_LISTS[kind], [_pack(item, budget, depth - 1) for item in _while_affordable(value, budget)]]
    if kind is dict:
        return _pack_dict(value, budget, depth)
    return _pack_foreign(value, budget, depth)


def _pack_text(value):
    return value if _is_text(value) else ["unreadable", "str: not text"]


def _while_affordable(items, budget):
    for item in items:
        if not budget.spend(0):
            return
        yield item


def _pack_dict(value, budget, depth):
    if not all(map(_is_key, value)):
        return ["unreadable", "dict with keys that are not plain"]
    pairs = _while_affordable(value.items(), budget)
    return ["dict", [[_pack(key, budget, depth - 1), _pack(item, budget, depth - 1)] for key, item in pairs]]


def _pack_foreign(value, budget, depth):
    """Numbers and arrays of the usual libraries as plain ones; sympy expressions as their text."""
    library = type(value).__module__.partition(".")[0]
    numpy, sympy = sys.modules.get("numpy"), sys.modules.get("sympy")
    if library == "torch" and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if numpy and isinstance(value, numpy.ndarray) and str(value.dtype) in _ARRAY_TYPES:
        return _pack_array(value, budget)
    if numpy and isinstance(value, numpy.generic):
        return _pack(value.item(), budget, depth - 1)
    if sympy and isinstance(value, sympy.Basic):
        return _pack_sympy(value, budget, depth)
    return ["unreadable", _kind(value)]


def _pack_array(value, budget):
    if not budget.spend(value.size):
        return None
    flat = [item if math.isfinite(item) else str(item) for item in value.ravel().tolist()]
    return ["array", str(value.dtype), list(value.shape), flat]


def _pack_sympy(value, budget, depth):
    if value.is_Integer or value.is_Float or value.is_Rational:
        return _pack(int(value) if value.is_Integer else float(value), budget, depth - 1)
    return _pack(str(value), budget, depth - 1)


def _kind(value):
    return "".join(letter for letter in type(value).__name__ if letter.isalnum() or letter == "_")[:80]


def _is_key(value):
    return type(value) in (str, bool, float) or (type(value) is int and value.bit_length() <= KEY_BITS)


def _is_text(value):
    """Half a surrogate pair is a str, but the first to write it to a file would fail."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# ------------------------------------------------------------------ for whoever reads it
def text(value, limit):
    """`value` as text to show: at most `limit` characters, none of which moves a cursor or breaks a file; empty if it is no str."""
    if type(value) is not str:
        return ""
    shown = value[:limit].encode(errors="replace").decode()
    return "".join("�" if unicodedata.category(letter)[0] == "C" and letter not in "\n\t" else letter for letter in shown)


def unpack(packed, *, arrays=False):
    """The value that was packed, of exact built-in types.

    With `arrays`, in a jail that goes on computing, tuples, sets, arrays and non-finite numbers come back as such; without,
    for marking, arrays and all other sequences are lists and a non-finite number is Unreadable. Raises Garbled.
    """
    return _Unpacker(arrays).value(packed, MAX_DEPTH)


class _Unpacker:
    def __init__(self, arrays):
        self.arrays, self.budget = arrays, _Budget()
        self.tags = {
            "list": self._sequence(list),
            "tuple": self._sequence(tuple if arrays else list),
            "set": self._sequence(set if arrays else list),
            "dict": self._dict,
            "float": self._not_finite,
            "array": self._array,
            "unreadable": self._unreadable,
        }

    def value(self, packed, depth):
        self._require(depth >= 0, "nested too deep")
        kind = type(packed)
        self._require(self.budget.spend(1, len(packed) if kind is str else 0), "too large")
        if packed is None or kind is bool:
            return packed
        if kind is str:
            self._require(_is_text(packed), "a str that is not text")
            return packed
        if kind is int:
            self._require(packed.bit_length() <= MAX_BITS, "an int of too many bits")
            return packed
        if kind is float:
            self._require(math.isfinite(packed), "a float that is not finite")
            return packed
        self._require(kind is list and packed and type(packed[0]) is str and packed[0] in self.tags, "no known tag")
        return self.tags[packed[0]](packed[1:], depth - 1)

    def _sequence(self, build):
        def sequence(rest, depth):
            (items,) = self._parts(rest, list)
            return self._hashable(build, [self.value(item, depth) for item in items])

        return sequence

    def _dict(self, rest, depth):
        (pairs,) = self._parts(rest, list)
        self._require(all(type(pair) is list and len(pair) == 2 for pair in pairs), "a dict of no pairs")
        keys = [self.value(key, depth) for key, _ in pairs]
        self._require(all(map(_is_key, keys)), "a dict key that is not plain")
        return dict(zip(keys, [self.value(item, depth) for _, item in pairs], strict=True))

    def _not_finite(self, rest, depth):
        (text,) = self._parts(rest, str)
        self._require(text in _NOT_FINITE, "an unknown float")
        return float(text) if self.arrays else Unreadable(f"float: {text}")

    def _unreadable(self, rest, depth):
        (kind,) = self._parts(rest, str)
        return Unreadable(text(kind, 120))

    def _array(self, rest, depth):
        dtype, shape, flat = self._parts(rest, str, list, list)
        self._require(dtype in _ARRAY_TYPES and len(shape) < MAX_DEPTH, "an unknown array")
        self._require(all(type(length) is int and 0 <= length <= MAX_ITEMS for length in shape), "an odd shape")
        self._require(math.prod(shape) == len(flat), "an array of another size")
        items = [self._element(item) for item in flat]
        if self.arrays:
            import numpy  # only in a jail that had one to pack

            return numpy.array([float(item.kind) if type(item) is Unreadable else item for item in items], dtype).reshape(shape)
        return _nest(items, shape)

    def _element(self, item):
        if type(item) is str:
            self._require(item in _NOT_FINITE, "an unknown float")
            return Unreadable(item)
        self._require(type(item) in (bool, int, float), "an array of no numbers")
        return self.value(item, 1)

    def _hashable(self, build, items):
        try:
            return build(items)
        except TypeError:
            raise Garbled("a set of what can't be in one") from None

    def _parts(self, rest, *kinds):
        self._require(len(rest) == len(kinds) and all(type(part) is kind for part, kind in zip(rest, kinds, strict=True)), "odd parts")
        return rest

    def _require(self, holds, what):
        if not holds:
            raise Garbled(what)


def _nest(items, shape):
    """The flat `items` as lists of lists of `shape`."""
    if not shape:
        return items[0]
    for length in reversed(shape[1:]):
        items = [items[start : start + length] for start in range(0, len(items), length)] if length else []
    return items
