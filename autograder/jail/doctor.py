"""`psi grade doctor`: what this machine offers to lock code in with, and what a locked-in process really meets."""

import platform
import sys

from . import kernel, landlock, places, runs, seccomp
from .limits import Limits
from .warden import JailFault, Zygote

# What a locked-in process tries. Each line must raise.
_TRIALS = {
    "read a file outside": "open('/etc/passwd')",
    "write a file outside": "open('/tmp/jail-trial', 'w')",
    "open a network socket": "import socket; socket.socket()",
    "start a process": "import os; os.fork()",
    "run a program": "import os; os.execv('/bin/true', ['true'])",
    "signal its parent": "import os; os.kill(os.getppid(), 0)",
    "change a file's mode": "import os; os.chmod('.', 0o777)",
    "raise its memory limit": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "allocate 4 GiB": "bytearray(4 << 30)",
}


def main(argv):
    """Print the report; 0 where code can be marked, 1 where only literal answers can."""
    if argv != ["grade", "doctor"]:
        print("usage: psi grade doctor", file=sys.stderr)
        return 2
    text, sound = report()
    print(text)
    return 0 if sound else 1


def report():
    """(the report as text, whether code may be run here)."""
    sections = {"Needed to run code at all": _needed()}
    trials = []
    if runs.floor():
        trials = _trials()
        sections |= {"On top, where allowed": _on_top(), "Tried by a process that is locked in, and stopped": trials}
    sound = bool(trials) and all(held for held, _, _ in trials)
    lines = [line for title, rows in sections.items() for line in (title, *map(_line, rows))]
    return "\n".join([*lines, "", _conclusion(sound)]), sound


def _needed():
    version = landlock.abi()
    return [
        (kernel.SUPPORTED, "Linux on x86_64 or aarch64", f"{platform.system()} on {platform.machine()}"),
        (version > 0, "Landlock: files, and from version 4 TCP, from 6 signals", f"version {version}"),
        (seccomp.available(), "seccomp: no sockets, processes, programs, signals to others", ""),
        (kernel.SUPPORTED, "limits on memory, computing, files, threads, output", ""),
        (not places.exposes(places.root()), "the project elsewhere than the libraries that code may read", places.root()),
    ]


def _on_top():
    try:
        zygote = Zygote()
    except JailFault as fault:
        return [(False, "a zygote to fork from", str(fault))]
    layers = zygote.layers
    zygote.close()
    return [
        (layers["users"], "a user of its own for each run", "" if layers["users"] else "needs root, and an interpreter all users can read"),
        (
            layers["namespaces"],
            "namespaces: no other file, process or network in sight",
            "" if layers["namespaces"] else "not allowed here: a run can't remove or rename its files, so that its disk can be counted",
        ),
    ]


def _trials():
    """Whether each trial was stopped, as (held, what, how)."""
    found = []
    for what, cell in _TRIALS.items():
        result = runs.run_jailed([cell], [], limits=Limits(seconds=5))
        found.append((result.verdict in ("error", "memory"), what, result.error.removeprefix("cell 1: ") or "not stopped"))
    return found


def _line(row):
    held, what, note = row
    return f"  {'yes' if held else 'NO ':<4} {what}{f'  ({note})' if note else ''}"


def _conclusion(sound):
    if sound:
        return "Code is run and marked here, locked in."
    return "Only literal answers are marked here. Code waits for a person, or for a machine or container with Linux 5.13 or newer."
