"""Messages between a jailed process and its reader: a length of four bytes, then JSON."""

import json
import struct

from .plain import Garbled

_LENGTH = struct.Struct(">I")


class TooMuch(ValueError):
    """A message, or a stream of output, above its ceiling."""


def frame(message):
    """`message` as bytes on the wire."""
    body = json.dumps(message, allow_nan=False).encode()
    return _LENGTH.pack(len(body)) + body


class Reader:
    """Bytes in, whole messages out. Never raises anything but Garbled and TooMuch, whatever the bytes are."""

    def __init__(self, ceiling):
        self.ceiling, self.pending = ceiling, bytearray()

    def feed(self, data):
        self.pending += data

    def message(self):
        """The next whole message, a dict; None while there is none."""
        if len(self.pending) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self.pending)
        if length > self.ceiling:
            raise TooMuch(f"a message of {length} bytes; at most {self.ceiling} are read")
        if len(self.pending) < _LENGTH.size + length:
            return None
        body = bytes(self.pending[_LENGTH.size : _LENGTH.size + length])
        del self.pending[: _LENGTH.size + length]
        return _parse(body)


def _parse(body):
    try:
        message = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Garbled("a message that is not JSON") from None
    if type(message) is not dict:
        raise Garbled("a message that is not a table")
    return message
