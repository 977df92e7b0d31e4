"""The zygote: it knows no secret, forgets every run, survives none of its graders, and is fair to neighbours."""

import concurrent.futures
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import time

import pytest

from autograder import sandbox
from autograder.jail import JailFault, Limits, close, places, run_examined, run_jailed, warm
from autograder.jail.runs import zygote
from autograder.jail.warden import Zygote

LADDERS = {"every layer": (), "the floor alone": ("namespaces", "users")}
ladders = pytest.mark.parametrize("without", LADDERS.values(), ids=LADDERS.keys())


@ladders
def test_the_key_is_in_no_memory_environment_or_handle_of_it(without, monkeypatch, tmp_path):
    key = secrets.token_hex(16)
    monkeypatch.setenv("ANSWER_KEY", key)
    with open(tmp_path / key, "w+") as held:
        os.set_inheritable(held.fileno(), True)
        source = Zygote(without=without)
        try:
            for process in [source.process.pid, *_children(source.process.pid)]:
                memory = _memory(process)
                assert b"autograder.jail" in memory  # it is looked at, and where things are
                assert key.encode() not in memory
                assert key not in pathlib.Path(f"/proc/{process}/environ").read_bytes().decode()
                assert not any(key in os.readlink(handle) for handle in pathlib.Path(f"/proc/{process}/fd").iterdir())
        finally:
            source.close()


@ladders
def test_cells_of_one_learner_are_not_in_it_afterwards(without):
    text = secrets.token_hex(16)
    assert run_jailed([f"mine = {text!r}"], ["mine"], without=without).answers == {"mine": text}
    source = zygote(without=without)
    for process in [source.process.pid, *_children(source.process.pid)]:
        assert text.encode() not in _memory(process)


@ladders
def test_nothing_is_left_when_the_grader_is_killed(without):
    program = f"""
import threading, time
from autograder.jail import Limits, run_jailed
from autograder.jail.runs import zygote
top = zygote(without={without!r}).process.pid
endless = dict(limits=Limits(seconds=600, cpu_seconds=600), without={without!r})
threading.Thread(target=run_jailed, args=(["while True: pass"], []), kwargs=endless).start()
print(top, flush=True)
time.sleep(600)
"""
    grader = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=places.root())
    top = int(grader.stdout.readline())
    _wait_until(lambda: len(_children(top)) == (1 if without else 2))  # the run, and where there are namespaces their init
    family = [top, *_children(top)]
    grader.kill()
    grader.wait()
    grader.stdout.close()
    _wait_until(lambda: not any(map(_runs, family)))


@ladders
def test_a_killed_zygote_takes_its_runs_along_and_the_next_run_gets_a_new_one(without):
    source = zygote(without=without)
    jail = source.open(Limits(seconds=60))
    family = _children(source.process.pid)
    os.kill(source.process.pid, signal.SIGKILL)
    with pytest.raises(JailFault), jail:
        jail.ask({"cells": ["while True: pass"], "names": [], "files": {}, "calls": [], "given": {}})
    _wait_until(lambda: not any(map(_runs, family)))
    assert run_jailed(["answer = 1"], ["answer"], without=without).answers == {"answer": 1}


@ladders
def test_many_at_once(without):
    run = lambda n: run_jailed([f"answer = {n} ** 2"], ["answer"], without=without).answers["answer"]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(run, range(64))) == [n**2 for n in range(64)]


def test_forked_processes_share_it_and_leave_it_to_each_other():
    source = zygote()
    for _ in range(2):
        child = os.fork()
        if not child:
            try:
                mine = run_jailed(["answer = 1"], ["answer"]).answers
                close()
                os._exit(0 if mine == {"answer": 1} else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert zygote() is source


@pytest.mark.parametrize(
    ("source", "processes", "started"),
    [
        ("x = 1\nimport numpy as np", 2, [sandbox.SLOW]),
        ("from sympy.abc import x", 8, [sandbox.SLOW]),
        ("import numpy", 9, []),
        ("x = 'numpy'", 2, []),
        ("import os  # not numpy", 2, []),
    ],
)
def test_what_the_processes_of_a_class_share_is_started_beforehand(source, processes, started, monkeypatch):
    found = []
    monkeypatch.setattr(sandbox, "zygote", found.append)
    sandbox.get_ready(json.dumps({"cells": [{"source": source}]}).encode(), processes)
    assert found == started


def test_a_million_blank_lines_hold_nobody_up():
    assert sandbox.answers([("\n" * 10**6, None), ("x = [1][0]", ["x"])]) == [{"x": 1}]


# Honest cells that need something not yet imported, and its data files: each must work behind the wall.
HONEST = {
    "sympy": ("import sympy as s\nx = s.Symbol('x')\nanswer = str(s.integrate(s.exp(-x**2), (x, 0, s.oo)))", "sqrt(pi)/2"),
    "numpy": ("import numpy as np\nanswer = float(np.linalg.solve([[2.0, 0], [0, 4]], [2, 4]).sum())", 2.0),
    "a numpy number": ("import numpy as np\nanswer = np.float64(1) + np.int64(2)", 3.0),
    "a plot": (
        "import matplotlib.pyplot as plt, os\nplt.plot([1, 2]); plt.savefig('p.png')\nanswer = os.path.getsize('p.png') > 1000",
        True,
    ),
    "the formulary": ("from formulary import formula\nanswer = bool(formula('zero_state_bytes').inputs)", True),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor as P\nwith P(4) as p: answer = list(p.map(abs, [-1, -2]))",
        [1, 2],
    ),
    "asyncio": ("import asyncio\nasync def f(): return 7\nanswer = asyncio.run(f())", 7),
    "a file of its own": ("import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\nanswer = open('a/b/c').read()", 'x'),
    "a dataclass": ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 3\nanswer = P().x", 3),
    "a notebook's magics": ("%matplotlib inline\n!pip list\nanswer = 1\ndisplay(answer)", 1),
    "after an error": ("answer = 5\n1 / 0", 5),
    "its time zone": ("import datetime, zoneinfo\nanswer = datetime.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC')).year", 2024),
}  # fmt: skip


@ladders
@pytest.mark.parametrize("name", HONEST)
def test_honest_cells_work(name, without):
    cell, answer = HONEST[name]
    result = run_jailed([cell], ["answer"], limits=Limits(seconds=60, cpu_seconds=60), without=without)
    assert result.answers == {"answer": answer}, result


# What a run leaves in the libraries that its zygote has warmed, and the dice they throw.
TRACES = """
import locale, os, random, signal, sys, warnings
import matplotlib as mpl, matplotlib.pyplot as plt, numpy as np, sympy as sp, sympy.core.random as dice
traces = [plt.get_fignums(), mpl.rcParams["lines.linewidth"], sp.Symbol("x").is_positive, hasattr(np, "mark")]
traces += [os.environ.get("MARK"), os.umask(0), len(warnings.filters), locale.setlocale(locale.LC_ALL), sys.getrecursionlimit()]
traces += [str(signal.getsignal(signal.SIGINT)), "mark" in sys.modules, np.geterr(), sp.Rational.limit_denominator.__name__]
thrown = [float(np.random.rand()), random.random(), dice.rng.random()]
plt.figure(), mpl.rcParams.update({"lines.linewidth": 99})
sp.Symbol.is_positive, np.mark = True, True
os.environ["MARK"], sys.modules["mark"], sp.Rational.limit_denominator = "x", np, max
os.chdir("/"), warnings.simplefilter("error"), locale.setlocale(locale.LC_ALL, "C"), sys.setrecursionlimit(99)
signal.signal(signal.SIGINT, signal.SIG_IGN), np.seterr(all="raise")
"""


def test_runs_of_warmed_zygotes_find_no_trace_of_another_and_throw_the_same_dice():
    found = [run_jailed([TRACES], ["traces", "thrown"], preload=sandbox.SLOW, without=without) for without in ((), (), ("namespaces",))]
    assert found[0].answers == found[1].answers == found[2].answers, found
    assert found[0].answers["traces"][0] == [] and {run.verdict for run in found} == {"ok"}, found


@pytest.mark.parametrize("name", warm.FIRST_USES)
def test_what_a_zygote_warms_works_with_the_versions_we_pin(name):
    cell = f"from autograder.jail import warm\nwarm.FIRST_USES[{name!r}]()\nanswer = True"
    assert run_jailed([cell], ["answer"], preload=sandbox.SLOW).answers == {"answer": True}


def test_a_warmed_zygote_holds_no_file_open():
    source = zygote(sandbox.SLOW)
    forks = [source.process.pid, *_children(source.process.pid)][-1]
    assert {path for handle in pathlib.Path(f"/proc/{forks}/fd").iterdir() if (path := os.readlink(handle))[0] == "/"} == {"/dev/null"}


@ladders
def test_no_memory_of_it_is_shared_so_that_one_run_could_write_it_for_another(without):
    source = zygote(sandbox.SLOW, without)
    for process in [source.process.pid, *_children(source.process.pid)]:
        rights = [line.split()[1] for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines()]
        assert rights and not [right for right in rights if right.endswith("s") and "w" in right]


def test_arrays_pass_to_the_tests_and_back():
    tests = "import numpy as np\nout = scaled(np.ones((2, 3)), by=2.0)\nholds = bool((out == 2).all()) and out.shape == (2, 3)"
    result = run_examined(
        ["def scaled(x, by): return x * by"], [tests], ["holds"], calls=["scaled"], preload=("numpy",), limits=Limits(seconds=30)
    )
    assert result.answers == {"holds": True}, result


def test_tests_see_what_was_raised_and_go_on():
    tests = "try: f(1)\nexcept Exception as fault: text = str(fault)\nnumber = g(2)\nheld = kept"
    cells = ["def f(x): raise ValueError('no')\ndef g(x): return x + 1\nkept = (1, [2])"]
    result = run_examined(cells, [tests], ["text", "number", "held"], calls=["f", "g"], reads=["kept"])
    assert (result.verdict, result.answers) == ("ok", {"text": "ValueError: no", "number": 3, "held": [1, [2]]})


def test_a_zygote_that_can_not_import_says_so():
    with pytest.raises(JailFault, match="No module named 'no_such_module'"):
        Zygote(("no_such_module",))


def test_a_given_module_can_be_imported():
    result = run_jailed(["import helper\nanswer = helper.x"], ["answer"], workdir_files={"helper.py": "x = 4"})
    assert result.answers == {"answer": 4}


def test_files_are_given_and_gone_afterwards():
    cell = "import os\nanswer = open('data.csv').read()\nopen('more', 'w').write('x')\nseen = sorted(os.listdir())"
    for _ in range(2):
        result = run_jailed([cell], ["answer", "seen"], workdir_files={"data.csv": "1,2\n"})
        assert result.answers == {"answer": "1,2\n", "seen": ["data.csv", "more"]}


def _memory(process):
    """All of a process's memory that can be read."""
    found = bytearray()
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines():
            start, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if rights[1] == "w":  # what is not writable comes from a file
                memory.seek(int(start, 16))
                found += memory.read(int(end, 16) - int(start, 16))
    return bytes(found)


def _children(process):
    """Every process below `process`."""
    found = []
    for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split():
        found += [int(child), *_children(int(child))]
    return found


def _runs(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _wait_until(holds):
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("not so after two minutes")
