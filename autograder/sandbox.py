"""Answers that code must be run for: in another process, with limits and an empty environment, which hands back plain data.

This is a boundary, not yet a jail: the process can read files that the grader's user can read, and reach the network.
It never shares memory with the marking, the key is not passed to it, and what it returns is checked like any answer.
Where the operating system has no such limits (no `resource` module), code is not run at all and a person marks it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from formulary.arithmetic import BITS

from . import limits
from .answer import Unread
from .cells import read_cell
from .exercise import Text

try:
    import resource
except ImportError:  # not Unix
    resource = None

RESOURCES = {
    "RLIMIT_CPU": limits.SECONDS,
    "RLIMIT_AS": limits.MEMORY,
    "RLIMIT_FSIZE": limits.OUTPUT,
    "RLIMIT_NOFILE": limits.FILES,
    "RLIMIT_CORE": 0,
}
RUNNER = Path(__file__).with_name("runner.py")

NOT_RUN = Text(en="this answer is code, and code is not run on this system", zh="该答案是代码，而本系统不运行代码")
FAILED = Text(en="the code ended in {error}", zh="代码出错：{error}")
STOPPED = Text(en="the code was stopped before it came to this answer", zh="代码在得出该答案之前被终止")
NO_DATA = Text(en="it is a {type}, not a number, a text or True/False", zh="它是 {type}，不是数、文字或 True/False")


def answers(cells):
    """Answers by name for each cell that has any, from (source, names or None) pairs in notebook order.

    Cells whose answers are all literal are read and not run. If some are not, the whole notebook runs once.
    """
    known = {}
    read = [read_cell(source, names, known) if names is not None else {} for source, names in cells]
    if None not in read:
        return [found for found, (_, names) in zip(read, cells, strict=True) if names is not None]
    ran = iter(_run(cells))
    pairs = [(found, next(ran), names) for found, (_, names) in zip(read, cells, strict=True) if names is not None]
    return [_from_run(outcome, names) if found is None else found for found, outcome, names in pairs]


def _from_run(outcome, names):
    """The answers of one cell that ran; `outcome` is None where the process ended before it, or a Text where it never started."""
    if not isinstance(outcome, dict):
        return dict.fromkeys(names, Unread(outcome or STOPPED))
    return {name: _from_data(outcome.get(name), outcome.get("error")) for name in names}


def _from_data(data, error):
    if isinstance(data, dict) and "value" in data and _is_answer(data["value"]):
        return data["value"]
    if isinstance(data, dict):
        return Unread(NO_DATA.map(lambda words: words.format(type=str(data.get("type"))[:40])))
    return Unread(FAILED.map(lambda words: words.format(error=str(error)[:200]))) if error else None


def _is_answer(value):
    if isinstance(value, list):
        return len(value) <= 100 and all(isinstance(item, str) and len(item) <= 100 for item in value)
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= limits.TEXT)


def _run(cells):
    """What the runner wrote for each answer cell, filled up with None to as many as there are."""
    wanted = sum(names is not None for _, names in cells)
    if resource is None:
        return [NOT_RUN] * wanted
    with tempfile.TemporaryDirectory(prefix="answers-") as folder:
        Path(folder, "cells.json").write_text(json.dumps(cells), encoding="utf-8")
        _run_in(folder)
        return (_outcomes(Path(folder, "answers.json")) + [None] * wanted)[:wanted]


def _run_in(folder):
    environment = {"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8", "NBGRADER_EXECUTION": "autograde"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-I", str(RUNNER), "cells.json", "answers.json", str(limits.TEXT), str(BITS)]
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, preexec_fn=_limit, **quiet)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=limits.SECONDS)
    finally:
        _end(process)


def _limit():
    for name, most in RESOURCES.items():
        resource.setrlimit(getattr(resource, name), (most, most))


def _end(process):
    """End the process and what it started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _outcomes(path):
    """The list in a file the runner wrote, or an empty one if it is missing, too large, a link, or not a list."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            data = json.loads(file.read(limits.OUTPUT))
    except (OSError, ValueError, RecursionError):
        return []
    return data if isinstance(data, list) else []
