"""What a jailed process does: runs the cells it is sent, says what some names hold, and answers calls.

A hostile cell can rewrite all of this while it runs. That gains it nothing: everything sent from here is read as the
learner's own claim.
"""

import contextlib
import json
import os
import re
import struct
import sys
import types

from . import plain, wire

OUT_OF_MEMORY = 72  # exit status
_MAX_FAULT_TEXT = 500
_NOT_PYTHON = re.compile(r"^\s*[%!?].*$|^.*\?\s*$", re.MULTILINE)  # notebook magics, shell lines, questions


class Raised(Exception):
    """A learner's function raised; the text says what."""


def serve(reads, answers):
    """Answer the messages from handle `reads` on handle `answers`, until there are no more."""
    channel = _Channel(reads, answers)
    channel.send({"ready": True})
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # dataclasses and pickle look their module up
    main.__dict__["display"] = lambda *_, **__: None
    while (message := channel.receive()) is not None:
        do = _run if "cells" in message else _answer_call
        channel.send(do(message, main.__dict__, channel))


class _Channel:
    def __init__(self, reads, answers):
        self.reads, self.answers = reads, answers

    def send(self, message):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        data = wire.frame(message)
        while data:
            data = data[os.write(self.answers, data) :]

    def receive(self):
        """The next message, from the grader; None when there are no more."""
        head = self._exactly(4)
        return json.loads(self._exactly(*struct.unpack(">I", head))) if head else None

    def _exactly(self, count):
        data = bytearray()
        while len(data) < count:
            more = os.read(self.reads, count - len(data))
            if not more:
                return b""
            data += more
        return bytes(data)


def _run(message, namespace, channel):
    for name, text in message["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    namespace.update({name: plain.unpack(value, arrays=True) for name, value in message["given"].items()})
    namespace.update({name: _stub(name, channel) for name in message["calls"]})
    faults = [(index, fault) for index, source in enumerate(message["cells"], 1) if (fault := _fault(source, index, namespace))]
    return {
        "answers": {name: _packed(namespace[name]) for name in message["names"] if name in namespace},
        "faults": [[index, _describe(fault)] for index, fault in faults],
        "memory": any(isinstance(fault, MemoryError) for _, fault in faults),
    }


def _fault(source, index, namespace):
    """What running the cell raised, or None. Later cells run all the same, as in a notebook that is run to its end."""
    try:
        exec(_compiled(source, f"<cell {index}>"), namespace)
    except BaseException as fault:  # SystemExit too: leaving a cell is not leaving the notebook
        return fault
    return None


def _compiled(source, name):
    try:
        return compile(source, name, "exec")
    except SyntaxError:
        return compile(_NOT_PYTHON.sub("", source), name, "exec")


def _describe(fault):
    try:
        return f"{type(fault).__name__}: {fault}"[:_MAX_FAULT_TEXT]
    except BaseException:
        return "an error that can't be shown"


def _packed(value):
    try:
        return plain.pack(value)
    except MemoryError:
        raise
    except BaseException:
        return ["unreadable", "it raised while it was read"]


def _answer_call(message, namespace, channel):
    """Call one of the learner's functions with plain arguments."""
    try:
        arguments = [plain.unpack(value, arrays=True) for value in message["arguments"]]
        keywords = {name: plain.unpack(value, arrays=True) for name, value in message["keywords"].items()}
        return {"value": _packed(namespace[message["call"]](*arguments, **keywords))}
    except BaseException as fault:
        return {"raised": _describe(fault)}


def _stub(name, channel):
    """Stands for the learner's function `name`, which runs in another process."""

    def call(*arguments, **keywords):
        packed = [plain.pack(value) for value in arguments]
        channel.send({"call": name, "arguments": packed, "keywords": {key: plain.pack(value) for key, value in keywords.items()}})
        reply = channel.receive()
        if "raised" in reply:
            raise Raised(reply["raised"])
        return plain.unpack(reply["value"], arrays=True)

    call.__name__ = name
    return call
