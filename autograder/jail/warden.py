"""The trusted end of one jailed process, and of the zygote that forks it.

It reads with ceilings on everything and believes nothing: whatever comes out is the learner's own claim.
"""

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

from . import places, plain, sweep, wire
from .inmate import OUT_OF_MEMORY

_TAIL = 4000  # bytes kept of what was printed
_GRACE = 10.0  # s; the zygote ends a run that is over its time, so silence for longer than this means the zygote is stuck
_OVERSTEPPED = {
    "disk": ("too_much_output", "more or larger files than allowed"),
    "threads": ("killed", "more threads than allowed"),
}
_START = 120.0  # s, for the preloaded modules to import on a busy machine
_BOOT = """
import sys
handle, root, packages, preload, without = {arguments!r}
sys.path.insert(0, root)
from autograder.jail import zygote
sys.path.remove(root)
sys.path.extend(path for path in packages if path not in sys.path)
zygote.main(handle, preload, without)
"""
# All the environment a jailed process has: nothing of the grader's. One thread, since a fork keeps only one.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",  # the same order of sets, and so the same answers, in every run
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # large pages where allowed: fewer for each fork to take over and give back
    "MALLOC_ARENA_MAX": "2",  # else each thread takes address space by the hundred megabytes, which is counted
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")},
}


class JailFault(RuntimeError):
    """The jail itself failed: our fault, not the learner's."""


class Zygote:
    """A process with `preload` imported that forks jailed ones; `without` leaves out layers above the floor.

    Processes forked from the one that started it may ask it for runs too; it ends with that one.
    """

    def __init__(self, preload=(), without=()):
        self.starter = os.getpid()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments = theirs.fileno(), places.root(), places.packages(), tuple(preload), tuple(without)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-X", "utf8", "-c", _BOOT.format(arguments=arguments)],
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in the grader's terminal is the grader's to handle
            )
        self.folder = ""  # where its runs keep their files, if on this machine's disk
        self.layers = self._hello()

    def _hello(self):
        """Wait until it is ready; what it locks its runs in with."""
        self.control.settimeout(_START)
        with contextlib.suppress(TimeoutError):
            if hello := self.control.recv(1 << 12):
                self.control.settimeout(_GRACE)
                layers = json.loads(hello)
                self.folder = layers.pop("folder")
                return layers
        self._end()
        with self.process.stderr as said:
            raise JailFault(f"the zygote did not start: {said.read().decode(errors='replace')[-_TAIL:]}")

    @property
    def alive(self):
        """After its hello it says nothing, so there is something to read only once it is gone."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        return not poll.poll(0)

    def open(self, limits):
        """A fresh jailed process, as a Jail."""
        return Jail(self, limits)

    def close(self):
        """End it and every run it started; from a process that only shares it, let go of it."""
        if os.getpid() != self.starter:
            return self.control.close()
        self._end()
        self.process.stderr.close()
        if self.folder:  # it cleans up after itself, unless somebody killed it
            sweep.remove(self.folder)

    def _end(self):
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)  # closing alone would leave it to those who share it
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE)
        self.process.kill()
        self.process.wait()


class Jail:
    """One jailed process: ask it, then close it. Nothing of it is left once `close` has returned."""

    def __init__(self, zygote, limits):
        self.limits, self.started = limits, time.monotonic()
        self.broke = ""  # how it broke the protocol or a ceiling of ours, as a verdict
        self.error = ""
        self.report = None  # how it ended, from the zygote
        self.reader = wire.Reader(limits.answer_bytes)
        self.printed = {"stdout": b"", "stderr": b""}
        self.amounts = dict.fromkeys(self.printed, 0)
        self.input, self.answers, self.streams, self.leash = _handles(zygote, limits)
        self.poll = select.poll()
        for handle in (self.answers, *self.streams, self.leash.fileno()):
            self.poll.register(handle, select.POLLIN)
        try:
            self.ready = self._next(b"") == {"ready": True}  # sent once locked in, before it has read a cell
        except JailFault:
            self._let_go()
            raise

    def ask(self, message):
        """The reply, a dict; None once it has ended or broken a rule: `verdict` then says how."""
        data = wire.frame(message)
        if not self.ready or self.broke or self.report:
            return None
        if len(data) > self.limits.input_bytes:
            self._break("error", f"{len(data)} bytes of cells and files; at most {self.limits.input_bytes} are run")
            return None
        return self._next(data)

    def verdict(self):
        """(verdict, error) of a process that did not answer."""
        if self.broke:
            return self.broke, self.error
        status, broke = self.report["status"], self.report["broke"]
        if broke == "time" or status == -signal.SIGXCPU or self.report["cpu_seconds"] >= self.limits.cpu_seconds:
            return "timeout", f"not done after {self.limits.seconds:g} s, or {self.limits.cpu_seconds} s of computing"
        if broke in _OVERSTEPPED:
            return _OVERSTEPPED[broke]
        if status == OUT_OF_MEMORY:
            return "memory", "out of memory"
        if not self.ready:
            return "refused", self.tail("stderr")
        if status < 0:
            return "killed", f"ended by {signal.Signals(-status).name}"
        return "error", f"the process left with status {status} before it had answered"

    def tail(self, stream):
        """The end of what it printed, as text."""
        return plain.text(self.printed[stream].decode(errors="replace"), _TAIL)

    def close(self):
        """End it, and wait until it is gone and its folder removed."""
        with contextlib.suppress(OSError):
            self.leash.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + _GRACE
        try:
            while self.report is None:
                self._wait(b"", deadline)
        finally:
            self._let_go()
        self.seconds = time.monotonic() - self.started

    def _let_go(self):
        for handle in (self.input, self.answers, *self.streams):
            os.close(handle)
        self.leash.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _next(self, data):
        """Write `data` and return the next message; None when there won't be one."""
        deadline = self.started + self.limits.seconds + _GRACE
        try:
            while (message := self.reader.message()) is None and self.report is None:
                data = self._wait(data, deadline)
            return message
        except wire.TooMuch as fault:
            self._break("too_much_output", str(fault))
        except plain.Garbled as fault:
            self._break("error", f"garbled: {fault}")
        return None

    def _break(self, verdict, error):
        self.broke, self.error = verdict, error

    def _wait(self, data, deadline):
        """One round of writing and reading; what is left of `data` to write."""
        if data:
            self.poll.register(self.input, select.POLLOUT)
        ready = dict(self.poll.poll(1000 * max(0, deadline - time.monotonic())))
        if not ready:
            raise JailFault("the zygote does not answer")
        if self.input in ready:
            data = self._write(data)
        for handle in (self.answers, *self.streams):
            if handle in ready:
                self._read(handle)
        if self.leash.fileno() in ready and not ready.keys() & {self.answers, *self.streams}:  # last words first
            self._ended()
        return data

    def _write(self, data):
        with contextlib.suppress(BlockingIOError):
            try:
                data = data[os.write(self.input, data) :]
            except BrokenPipeError:  # it has ended: the leash will say how
                data = b""
        if not data:
            self.poll.unregister(self.input)
        return data

    def _read(self, handle):
        data = os.read(handle, 1 << 16)
        if not data:
            self.poll.unregister(handle)
        elif handle == self.answers:
            self.reader.feed(data)
        else:
            self._keep_tail(("stdout", "stderr")[self.streams.index(handle)], data)

    def _keep_tail(self, stream, data):
        self.amounts[stream] += len(data)
        self.printed[stream] = (self.printed[stream] + data)[-_TAIL:]
        if self.amounts[stream] > self.limits.output_bytes and not self.broke:
            raise wire.TooMuch(f"more than {self.limits.output_bytes} bytes printed")

    def _ended(self):
        report = self.leash.recv(1 << 12)
        if not report:
            raise JailFault("the zygote could not start a process, or has ended")
        self.report = json.loads(report)


def _handles(zygote, limits):
    """Ask for a process; our ends of its pipes: (input, answers, (stdout, stderr), leash)."""
    theirs_in, ours_in = os.pipe()
    pipes = [os.pipe() for _ in range(3)]  # answers, stdout, stderr
    leash, their_leash = socket.socketpair()
    given = [theirs_in, *(write for _, write in pipes), their_leash.fileno()]
    try:
        socket.send_fds(zygote.control, [json.dumps(dataclasses.asdict(limits)).encode()], given)
    except OSError as fault:
        raise JailFault(f"the zygote has ended: {fault}") from None
    finally:
        for handle in given[:-1]:
            os.close(handle)
        their_leash.close()
    os.set_blocking(ours_in, False)
    answers, out, err = (read for read, _ in pipes)
    return ours_in, answers, (out, err), leash
