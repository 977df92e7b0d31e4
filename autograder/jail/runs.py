"""Run a learner's cells in a jail, alone or under tests in a second jail, and say what came of it."""

import atexit
import dataclasses
import functools
import threading

from . import landlock, places, plain, seccomp
from .limits import Limits
from .warden import Zygote

_DEFAULT = Limits()
_MAX_ERROR = 2000
_GONE = {"raised": "the process that runs your code has ended"}


@dataclasses.dataclass(frozen=True)
class JailResult:
    """What came out of a run. `answers` holds None, bool, int, finite float, str, list, dict, and Unreadable for all else.

    `verdict` is ok, timeout, memory, killed, too_much_output, error (a cell raised; the answers may still be there) or
    refused (nothing was run); `error` says the first thing that went wrong, empty where nothing did; `faults` what each
    cell raised, by its number from 1 on.
    """

    answers: dict
    error: str
    verdict: str
    stderr_tail: str = ""
    stdout_tail: str = ""
    seconds: float = 0.0
    faults: dict = dataclasses.field(default_factory=dict)


@functools.cache
def floor():
    """Whether code can be locked in here at all: Linux with Landlock and seccomp, the project out of its sight. Else none is run."""
    return landlock.abi() > 0 and seccomp.available() and not places.exposes(places.root())


def run_jailed(sources, names, *, preload=(), limits=_DEFAULT, workdir_files=None, without=()):
    """Run `sources` in order in a fresh jailed process and return what `names` then hold, as a JailResult.

    `workdir_files` (name: text) lie in the folder it starts in. A cell that raises doesn't stop the later ones.
    `without` leaves out layers above the floor: "namespaces", "users".
    """
    if not floor():
        return _refused()
    with zygote(preload, without).open(limits) as learner:
        reply = learner.ask(_request(sources, names, files=workdir_files))
    return _result(learner, reply, names)


def run_examined(sources, tests, names, *, calls=(), reads=(), preload=(), limits=_DEFAULT, workdir_files=None, without=()):
    """Run `tests` against `sources` in two jailed processes, and return what `names` then hold in the tests, as a JailResult.

    Only plain data passes between them. In the tests each name in `calls` is a function that runs the learner's one over
    there, and each name in `reads` holds what it held there. No object of the learner's, no patched function and no hook
    reaches the process that scores. The verdict is of the learner's process where that failed, else of the tests.
    """
    if not floor():
        return _refused()
    source = zygote(preload, without)
    patient = dataclasses.replace(limits, seconds=2 * limits.seconds + 1)  # the tests outlast a function that hangs
    with source.open(limits) as learner, source.open(patient) as examiner:
        seen = learner.ask(_request(sources, reads, files=workdir_files))
        given = {name: value for name, value in _claims(seen, reads).items() if _is_plain(value)}
        reply = _examine(examiner, learner, _request(tests, names, calls=calls, given=given))
    mine, theirs = _result(learner, seen, reads), _result(examiner, reply, names)
    if mine.verdict != "ok":
        return dataclasses.replace(mine, answers=theirs.answers, seconds=theirs.seconds)
    return dataclasses.replace(theirs, error=theirs.error and f"the tests: {theirs.error}")


_zygotes, _lock = {}, threading.Lock()


def zygote(preload=(), without=()):
    """The running zygote with these modules, started on first use; processes forked later share it."""
    key = tuple(preload), tuple(without)
    with _lock:
        if key in _zygotes and not _zygotes[key].alive:
            _zygotes.pop(key).close()
        if key not in _zygotes:
            _zygotes[key] = Zygote(preload, without)
        return _zygotes[key]


@atexit.register
def close():
    """End this process's zygotes, and with them everything they started; let go of those that it shares."""
    with _lock:
        while _zygotes:
            _zygotes.popitem()[1].close()


def _request(sources, names, *, files=None, calls=(), given=None):
    return {"cells": list(sources), "names": list(names), "files": files or {}, "calls": list(calls), "given": given or {}}


def _examine(examiner, learner, request):
    """Pass the calls of the tests on to the learner's process until the tests are done; their last message."""
    reply = examiner.ask(request)
    while reply is not None and "call" in reply:
        reply = examiner.ask(_outcome(learner.ask(reply)))
    return reply


def _outcome(reply):
    """What a call came to, checked: a value that is plain data, or the text of what it raised."""
    if reply is None:
        return _GONE
    if _is_plain(reply.get("value", reply)):
        return {"value": reply["value"]}
    return {"raised": plain.text(reply.get("raised"), _MAX_ERROR) or "a reply that is not plain data"}


def _is_plain(packed):
    try:
        plain.unpack(packed)
    except plain.Garbled:
        return False
    return True


def _claims(reply, names):
    """The packed values of those `names` that the reply holds, whatever else it may hold."""
    answers = reply.get("answers") if reply else None
    return {name: answers[name] for name in names if name in answers} if type(answers) is dict else {}


def _result(jail, reply, names):
    printed = {"stderr_tail": jail.tail("stderr"), "stdout_tail": jail.tail("stdout"), "seconds": jail.seconds}
    if reply is None:
        verdict, error = jail.verdict()
        return JailResult({}, error, verdict, **printed)
    try:
        answers = {name: plain.unpack(value) for name, value in _claims(reply, names).items()}
    except plain.Garbled as fault:
        return JailResult({}, f"garbled: {fault}", "error", **printed)
    faults = _faults(reply)
    error = next((f"cell {cell}: {said}" for cell, said in faults.items()), "")
    verdict = "memory" if error and reply.get("memory") is True else "error" if error else "ok"
    return JailResult(answers, error, verdict, **printed, faults=faults)


def _faults(reply):
    """What each cell raised, by its number, of what the reply says, whatever that is."""
    said = reply.get("faults")
    pairs = [pair for pair in said if type(pair) is list and len(pair) == 2 and type(pair[0]) is int] if type(said) is list else []
    return {cell: plain.text(text, _MAX_ERROR) for cell, text in pairs}


def _refused():
    return JailResult({}, "this machine can't lock code in (see: psi grade doctor); a person has to mark it", "refused")
