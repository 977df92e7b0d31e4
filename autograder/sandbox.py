"""Answers that code must be run for: in a jail, apart from the marking, which hands back plain data and nothing else.

Cells whose answers are literal are read and never run. Where the machine can't lock code in, code is not run at all and a
person marks it.
"""

import contextlib
import re
import time

from formulary.arithmetic import BITS

from . import limits
from .answer import Unread, quote
from .cells import plain_answers, read_cell
from .exercise import Text
from .jail import JailFault, Limits, Unreadable, floor, run_jailed
from .jail.runs import zygote

NOT_RUN = Text(en="this answer is code, and code is not run on this system", zh="该答案是代码，而本系统不运行代码")
FAILED = Text(en="the code ended in {error}", zh="代码出错：{error}")
NO_NAME = Text(en="the code ended in {error}: a letter or a text is written in quotes", zh="代码出错：{error}；字母和文字要写在引号里")
STOPPED = Text(en="the code was stopped before it came to this answer", zh="代码在得出该答案之前被终止")
NO_DATA = Text(en="it is a {type}, not a number, a text or True/False", zh="它是 {type}，不是数、文字或 True/False")
OUR_FAULT = Text(en="we could not run this code; that is our fault", zh="我们未能运行这段代码，这是我们的问题")

# Put behind a cell: keep what its names hold under a name of our own, and free them, since the next exercise may use them too.
# A list of words may be a set or a tuple as well; what is in it is looked at on the trusted side.
KEEP = """
{kept} = {{name: globals().pop(name) for name in {names} if name in globals()}}
{kept} = {{name: list(held) if type(held) in (set, frozenset, tuple) else held for name, held in {kept}.items()}}
"""

# Slow modules: where a notebook imports any of them, its process is forked from one that has them all.
# The last four they import only on first use, which in a fork is every time.
SLOW = ("numpy", "sympy", "matplotlib.pyplot", "matplotlib.backends.backend_agg")
SLOW += ("sympy.integrals.heurisch", "sympy.integrals.manualintegrate", "sympy.integrals.risch")
IMPORTS_SLOW = re.compile(r"^[ \t]*(?:import|from)[ \t][^#\n]*\b(?:numpy|sympy|matplotlib)\b", re.MULTILINE)
SEEMS_SLOW = re.compile(rb'(?:import|from) [^#"\\]{0,99}\b(?:numpy|sympy|matplotlib)\b')  # the same in a notebook's bytes
SHARED_BY = 8  # processes that one zygote forks for without keeping any waiting


def answers(cells):
    """Answers by name for each cell that has any, from (source, names or None) pairs in notebook order.

    Cells whose answers are all literal are read and not run. If some are not, the whole notebook runs once. Where a cell
    fails, the answers that stand plainly behind the failure are read after all.
    """
    known = {}
    read = [read_cell(source, names, known) if names is not None else {} for source, names in cells]
    if None not in read:
        return [found for found, (_, names) in zip(read, cells, strict=True) if names is not None]
    ran = iter(_run(cells))
    told = [(found, next(ran), source, names) for found, (source, names) in zip(read, cells, strict=True) if names is not None]
    return [_with_plain(outcome(names), source, names) if found is None else found for found, outcome, source, names in told]


def _with_plain(answers, source, names):
    """The answers of a cell that was run, those read that running it did not give."""
    lost = [name for name, answer in answers.items() if isinstance(answer, Unread)]
    return answers | (plain_answers(source, names, lost) if lost else {})


def get_ready(notebook, processes):
    """Start what so many `processes`, forked from this one, will share to mark notebooks like this one, given as bytes.

    It is a guess from the first of a class: a wrong one costs time and nothing else.
    """
    if processes <= SHARED_BY and SEEMS_SLOW.search(notebook[: limits.IMPORTS]) and floor():
        with contextlib.suppress(JailFault):  # then each will try for itself, and say so
            zygote(SLOW)


def _run(cells):
    """For each cell with names, a function from the names to their answers."""
    wanted = [index for index, (_, names) in enumerate(cells) if names is not None]
    if not floor():
        return [lambda names: dict.fromkeys(names, Unread(NOT_RUN))] * len(wanted)
    try:
        whole = _jailed(cells, limits.SECONDS)
        complete = all(_kept(index) in whole.answers for index in wanted)
        results = dict.fromkeys(wanted, whole) if complete else _one_by_one(cells, wanted)
    except JailFault:
        return [lambda names: dict.fromkeys(names, Unread(OUR_FAULT))] * len(wanted)
    return [lambda names, index=index: _outcome(results.get(index), index, names) for index in wanted]


def _one_by_one(cells, wanted):
    """Results of running only as far as each cell, up to the one that ends the run: an early end costs no earlier answer.

    Together they may take as long as one.
    """
    results, deadline = {}, time.monotonic() + limits.SECONDS
    for index in wanted:
        result = _jailed(cells[: index + 1], deadline - time.monotonic())
        if _kept(index) not in result.answers:
            break
        results[index] = result
    return results


def _jailed(cells, seconds):
    sources = [_source(index, source, names) for index, (source, names) in enumerate(cells)]
    flat = [part for parts in sources for part in parts]
    kept = [_kept(index) for index, (_, names) in enumerate(cells) if names is not None]
    preload = SLOW if any(IMPORTS_SLOW.search(source) for source, _ in cells) else ()
    run = lambda: run_jailed(
        flat, kept, preload=preload, limits=Limits(seconds=seconds, cpu_seconds=limits.SECONDS, answer_bytes=limits.OUTPUT)
    )
    try:
        return run()
    except JailFault:  # another's run, or the kernel when memory was short, may have taken down what both were forked from
        return run()


def _source(index, source, names):
    """A cell without the lines that are for IPython alone, and what keeps its answers."""
    lines = ["pass" if line.startswith(("%", "!")) else line for line in source.splitlines()]
    keep = KEEP.format(kept=_kept(index), names=list(names)) if names is not None else "pass"
    return "\n".join(lines), keep


def _kept(index):
    return f"__answers_{index}__"


def _outcome(result, index, names):
    """The answers of one cell; `result` is None where the run ended before it."""
    if result is None:
        return dict.fromkeys(names, Unread(STOPPED))
    held = result.answers.get(_kept(index))
    held = held if isinstance(held, dict) else {}
    return {name: _answer(held[name]) if name in held else _missing(result.faults.get(2 * index + 1)) for name in names}


def _missing(error):
    """What stands for an answer that a cell did not give, by what it raised."""
    return Unread((NO_NAME if error.startswith("NameError") else FAILED).format(error=quote(error, 200))) if error else None


def _answer(value):
    if _is_answer(value):
        return value[: limits.TEXT] if isinstance(value, str) else value
    kind = value.kind if isinstance(value, Unreadable) else type(value).__name__
    return Unread(NO_DATA.map(lambda words: words.format(type=quote(kind, 40))))


def _is_answer(value):
    if isinstance(value, list):
        return len(value) <= 100 and all(isinstance(item, str) and len(item) <= 100 for item in value)
    if isinstance(value, int):
        return value.bit_length() <= BITS
    return value is None or isinstance(value, float | str)
