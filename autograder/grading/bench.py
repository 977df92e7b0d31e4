"""`psi bench grade`: stock nbgrader and `psi grade` side by side on the same answers, cores and machine, scores compared cell by cell.

Stock nbgrader gets an ordinary course: the same questions and answer cells, and in place of our grade cells ordinary test
cells, which its kernel runs and which return the points. Their checks are written apart from ours, in plain Python. Lines
that read free text have no such test: stock nbgrader leaves those to a person, and they are not compared.
"""

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import yaml

from .. import marking
from ..assignment import COURSE, answer_id, as_written, load_assignment
from ..bank import ROOT, Bank
from ..source import build
from . import run

CONFIG = """from autograder.nbgrader_plugin import configure
c = get_config()
c.CourseDirectory.course_id, c.CourseDirectory.root = "bench", {folder!r}
configure(c, assignments={folder!r} + "/assignments")
"""
STOCK_CONFIG = """c = get_config()
c.CourseDirectory.course_id, c.CourseDirectory.root = "bench", {folder!r}
"""
# What an instructor may keep beside a notebook for its tests.
CHECKS = '''
"""Points of a line: `key` is a list of (name, kind, right answer, what else earns a share, tolerance), `all_` needs every one."""
import math

def share(value, kind, right, partly, within):
    if kind == "several":
        given = set(value.replace(",", " ").split()) if isinstance(value, str) else set()
        return max(0, len(given & set(right)) - len(given - set(right))) / len(right)
    if same(value, right, within):
        return 1
    return max((credit for wrong, credit in partly if same(value, wrong, within)), default=0)

def same(value, right, within):
    if value is None or isinstance(value, bool) != isinstance(right, bool):
        return False
    if isinstance(right, float):
        return isinstance(value, (int, float)) and math.isclose(value, right, rel_tol=within)
    return value == right

def points(held, key, most, all_=False):
    shares = [share(held.get(name), *rest) for name, *rest in key]
    return round((min(shares) if all_ else sum(shares) / len(shares)) * most, 4)
'''
CODE = """import numpy as np
import sympy as sp
import matplotlib.pyplot as plt
ranks = np.linspace(1, 64, 64)
figure, axes = plt.subplots(figsize=(4, 3))
axes.plot(ranks, 2 * (ranks - 1) / ranks)
axes.set_xlabel("ranks")
k = sp.Symbol("k", positive=True)
one = float(sp.integrate(2 * k, (k, 0, 1)))
"""
CODE_EXERCISES = 5


def main(argv):
    """Run `psi bench grade …`; returns 0 where every score is the same, else 1."""
    parser = argparse.ArgumentParser(prog="psi bench grade", description="Stock nbgrader and psi grade side by side.")
    parser.add_argument("--submissions", type=int, default=100, help="how many psi grade marks (100)")
    parser.add_argument("--stock", type=int, default=5, help="how many of them stock nbgrader marks too (5)")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--sizes", type=int, nargs="*", default=[], metavar="N", help="also the cost with so many submissions")
    parser.add_argument("--dask", type=int, nargs="*", default=[], metavar="N", help="also the time with so many local Dask workers")
    parser.add_argument("--kills", type=int, default=0, help="also kill -9 psi grade so many times, and compare the gradebooks")
    parser.add_argument("--only", choices=("paper_1", "bench_code"))
    options = parser.parse_args(argv[2:])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.workers} workers, {options.submissions} submissions")
    same = [_compare(name, options) for name in ([options.only] if options.only else ["paper_1", "bench_code"])]
    return 0 if all(same) else 1


def _compare(name, options):
    """Measure one assignment; whether every score was the same."""
    with tempfile.TemporaryDirectory() as top:
        bench = _Bench(Path(top), name)
        bench.build()
        bench.hand_in(bench.ours, options.submissions)
        bench.hand_in(bench.stock, 1)
        first = bench.autograde()
        bench.hand_in(bench.stock, options.stock)
        whole = bench.autograde()
        ours = bench.grade(options.workers)
        same, cells = bench.same_scores()
        stock = {what: _of_class(options, first[what], whole[what]) for what in ("wall", "cpu")}
        print(f"\n{name}: {same} of {cells} scores the same, on {options.stock} submissions")
        print(
            f"  stock nbgrader: {_seconds(stock)} for {options.submissions}, reckoned from {options.stock}; {_seconds(first)} for the first"
        )
        _show(f"psi grade {options.submissions}", ours, stock)
        print(f"    {ours['said']}; largest process {ours['mib']} MiB")
        _show_floor(bench)
        if not bench.code:
            _show_same_work(bench, options, stock)
        for size in options.sizes:
            _show_size(bench, size, options.workers)
        for workers in options.dask:
            _show_dask(bench, options.submissions, workers)
        kept = not options.kills or _show_kills(bench, options)
    return same == cells and cells > 0 and kept


def _of_class(options, first, whole):
    """What stock nbgrader takes for all of a class: the first, and as much for each other as for those it was measured on."""
    each = (whole - first) / (options.stock - 1) if options.stock > 1 else first
    return first + each * (options.submissions - 1)


def _seconds(taken):
    return f"{taken['wall']:.1f} s by the clock, {taken['cpu']:.1f} s of processor"


def _show(what, ours, stock):
    times = {name: stock[name] / ours[name] for name in ("wall", "cpu")}
    print(f"  {what}: {_seconds(ours)}, start included: {times['wall']:.0f} and {times['cpu']:.0f} times faster")


def _show_same_work(bench, options, stock):
    """The same class with its reasons left out: stock nbgrader reads none, and leaves those lines to a person."""
    bench.reasons = False
    bench.hand_in(bench.ours, options.submissions)
    _show("the lines that both mark, no reasons to read", bench.grade(options.workers), stock)
    bench.reasons = True


def _show_floor(bench):
    floor, marked = bench.floor()
    rest = "the answers read and run in jails" if bench.code else "the answers read from the syntax tree"
    print(f"  one core, nothing else: {1000 * floor:.1f} ms a submission for {rest}; {1000 * marked:.1f} ms with the marking")


def _show_size(bench, size, workers):
    bench.hand_in(bench.ours, size)
    ours = bench.grade(workers)
    each = {what: 1000 * ours[what] / size for what in ("wall", "cpu")}
    print(f"  {size:>5} submissions: {each['wall']:.0f} ms each by the clock, {each['cpu']:.0f} ms of processor; {ours['mib']} MiB at most")
    print(f"        {ours['said']}")


def _show_dask(bench, count, workers):
    bench.hand_in(bench.ours, count)
    ours = bench.grade(workers, "--dask", "local")
    print(f"  {workers} Dask workers: {ours['wall']:.1f} s by the clock for {count}, of which: {ours['said'].strip()}")


def _show_kills(bench, options):
    """Kill a grading at random moments of the time that it takes, let it end, and compare all of the gradebook.

    The gradings are forked from here, so that none of the moments is spent on loading. Whenever a class is marked, it hands in anew.
    """
    chosen = run.Options(options.workers, feedback=False)
    bench.hand_in(bench.ours, options.submissions)
    run.grade(bench.ours, bench.name, chosen)  # loads what the next one will find
    bench.hand_in(bench.ours, options.submissions)
    before = time.perf_counter()
    run.grade(bench.ours, bench.name, chosen)
    seconds, undisturbed = time.perf_counter() - before, _everything(bench.ours)
    bench.hand_in(bench.ours, options.submissions)
    draw, marked, same = random.Random(options.kills), [], True
    for _ in range(options.kills):
        _graded_and_killed(lambda: run.grade(bench.ours, bench.name, chosen), draw.uniform(0, seconds))
        marked.append(bench.marked())
        if marked[-1] == options.submissions:
            same = same and _everything(bench.ours) == undisturbed
            bench.hand_in(bench.ours, options.submissions)
    run.grade(bench.ours, bench.name, chosen)
    same = same and _everything(bench.ours) == undisturbed
    told = "the same" if same else "NOT THE SAME"
    print(f"  killed {options.kills} times, and after each so many were marked: {marked}; whenever all were, the gradebook was {told}")
    return same


def _graded_and_killed(work, seconds):
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class _Bench:
    """Two courses with the same assignment and the same answers: one ours, one stock nbgrader's."""

    def __init__(self, top, name):
        self.name, self.code, self.bank = name, name == "bench_code", Bank()
        self.ours, self.stock, self.reasons = top / "ours", top / "stock", True
        for folder, config in ((self.ours, CONFIG), (self.stock, STOCK_CONFIG)):
            (folder / "assignments").mkdir(parents=True)
            (folder / "nbgrader_config.py").write_text(config.format(folder=str(folder)))
        self.assignment = self._assignment()

    def _assignment(self):
        path = self.ours / "assignments" / f"{self.name}.yaml"
        if self.code:
            names = [name for name in self.bank if _is_countable(self.bank[name])][:CODE_EXERCISES]
            about = {"id": self.name, "title": {"en": "Code", "zh": "代码"}, "exercises": names}
            path.write_text(yaml.safe_dump(about, allow_unicode=True), encoding="utf-8")
        else:
            shutil.copy(COURSE / "assignments" / path.name, path)
        return load_assignment(self.name, path.parent)

    def build(self):
        _run("-m", "psi", "course", "build", self.name, "--source-only", "--course", str(self.ours), cwd=ROOT.parent)
        source = self.stock / "source" / self.name
        source.mkdir(parents=True)
        nbformat.write(self._stock_notebook(), source / f"{self.name}.ipynb")
        (source / "checks.py").write_text(CHECKS)
        for folder in (self.ours, self.stock):
            _run("-m", "nbgrader", "generate_assignment", self.name, cwd=folder)

    def _stock_notebook(self):
        """The same notebook, its grade cells ordinary tests."""
        notebook, lines = build(self.assignment, self.bank), self.assignment.lines(self.bank)
        for cell in notebook.cells:
            name = cell.metadata.nbgrader.grade_id
            if cell.metadata.nbgrader.grade:
                exercise, line = lines[name]
                key = [_key(exercise, exercise.part(part)) for part in line.parts]
                hidden = f"### BEGIN HIDDEN TESTS\nkey = {key!r}\n### END HIDDEN TESTS"
                cell.source = f"import checks\n{hidden}\nchecks.points(globals(), key, {line.points}, {line.credit == 'all'})"
        return notebook

    def hand_in(self, folder, count):
        """Have a class of `count` hand in, and nothing be marked."""
        for place in ("submitted", "autograded", "feedback"):
            shutil.rmtree(folder / place, ignore_errors=True)
        with sqlite3.connect(folder / "gradebook.db") as database:
            tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
            for table in tables & {"grade", "comment", "submitted_notebook", "submitted_assignment", "psi_marked"}:
                database.execute(f"delete from {table}")
        released = json.loads((folder / "release" / self.name / f"{self.name}.ipynb").read_text(encoding="utf-8"))
        for number in range(count):
            place = folder / "submitted" / f"student_{number:04}" / self.name
            place.mkdir(parents=True)
            for name, source in self._answers(number):
                _cell(released, name)["source"] = source
            (place / f"{self.name}.ipynb").write_text(json.dumps(released, ensure_ascii=False), encoding="utf-8")

    def _answers(self, number):
        draw = random.Random(number)
        for place, name in enumerate(self.assignment.exercises):
            exercise = self.bank[name]
            said = {part.name: _said(exercise, part, draw) for part in exercise.parts if self.reasons or part.type != "reason"}
            written = "\n".join(f"{part} = {self._written(value)}" for part, value in said.items())
            yield answer_id(name), (CODE if self.code and not place else "") + written

    def _written(self, value):
        computed = self.code and isinstance(value, float)
        return f"float(np.full(4, {value!r}).sum()) / (4 * one)" if computed else repr(value)

    def autograde(self):
        return _measured("-m", "nbgrader", "autograde", self.name, cwd=self.stock)

    def grade(self, workers, *more):
        command = ("-m", "psi", "grade", self.name, "--course", str(self.ours), "--workers", str(workers), "--no-feedback", "--timing")
        return _measured(*command, *more, cwd=ROOT.parent)

    def marked(self):
        """How many submissions the journal knows as marked."""
        with sqlite3.connect(self.ours / "gradebook.db") as database:
            return database.execute("select count(*) from psi_marked").fetchone()[0]

    def same_scores(self):
        """(how many scores are the same, how many lines both marked)."""
        ours, stock = _scores(self.ours), _scores(self.stock)
        both = [key for key, score in stock.items() if score is not None]
        return sum(abs(stock[key] - ours[key]) < 1e-9 for key in both if ours[key] is not None), len(both)

    def floor(self, count=20):
        """Seconds of processor time a submission takes at least: for its answers alone, and with the marking."""
        exercises = {answer_id(name): self.bank[name] for name in self.assignment.exercises}
        notebooks = [path.read_bytes() for path in sorted((self.ours / "submitted").glob("*/*/*.ipynb"))[:count]]
        read = [json.loads(data)["cells"] for data in notebooks]
        marking._answers(read[0], exercises)
        before = time.process_time(), time.perf_counter()
        for cells in read:
            marking._answers(cells, exercises)
        spent = time.perf_counter() - before[1] if self.code else time.process_time() - before[0]
        answers = [marking._answers(cells, exercises) for cells in read]
        marking.mark_answers(answers[0], self.assignment, self.bank)
        before = time.process_time()
        for found in answers:
            marking.mark_answers(found, self.assignment, self.bank)
        return spent / len(read), spent / len(read) + (time.process_time() - before) / len(read)


def _is_countable(exercise):
    """Whether an exercise is all numbers, which code can compute."""
    return all(part.type == "number" for part in exercise.parts) and all(line.marked_by == "key" for line in exercise.rubric)


def _cell(notebook, name):
    return next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == name)


def _plain(exercise, part, answer):
    """A key as a plain test would hold it: numbers in base units, else as a learner writes it."""
    if part.type == "number":
        return float(answer.value)
    return sorted(answer) if exercise.several(part) else as_written(exercise, part, answer, "en")


def _key(exercise, part):
    kind = "several" if exercise.several(part) else part.type
    partly = [(_plain(exercise, part, exercise.mistaken(part, m)), m.credit) for m in part.mistakes if m.credit]
    return part.name, kind, _plain(exercise, part, exercise.expected(part)), partly, getattr(part, "within", 0)


def _said(exercise, part, draw):
    """What a student of the class answers: mostly right, sometimes a known mistake, sometimes off, sometimes nothing."""
    right = exercise.expected(part)
    if part.type == "reason":
        sentences = re.split(r"(?<=[.;。；])\s*", right.en)
        kept = [sentence for sentence in sentences if sentence and draw.random() < 0.7]
        return " ".join(kept) + f" I checked this with {draw.randint(2, 99)} ranks."
    chance = draw.random()
    if chance < 0.1:
        return None
    if chance < 0.25 and part.type == "number":
        return float(right.value) * draw.uniform(3.1, 3.9)  # off by a factor that no other answer follows from
    if chance < 0.25 and part.type == "verdict":
        return not right
    return float(right.value) if part.type == "number" else as_written(exercise, part, right, "en")


OF_CELLS = """from {table} as it join base_cell as cell on it.cell_id = cell.id
join submitted_notebook as mine on it.notebook_id = mine.id join submitted_assignment as whole on mine.assignment_id = whole.id"""


def _scores(folder):
    with sqlite3.connect(folder / "gradebook.db") as database:
        rows = database.execute(f"select student_id, cell.name, auto_score {OF_CELLS.format(table='grade')}")
        return {(student, name): score for student, name, score in rows}


def _everything(folder):
    """Every grade and comment of a gradebook, but for the ids."""
    columns = {"grade": "auto_score, manual_score, needs_manual_grade", "comment": "auto_comment, manual_comment"}
    with sqlite3.connect(folder / "gradebook.db") as database:
        return [
            sorted(map(repr, database.execute(f"select student_id, cell.name, {named} {OF_CELLS.format(table=table)}")))
            for table, named in columns.items()
        ]


def _environment():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT.parent), os.environ.get("PYTHONPATH")]))}
    return environment | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])}


def _run(*command, cwd):
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=_environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def _measured(*command, cwd):
    """Seconds by the clock and of processor time, the largest process in MiB, and the last line said."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    said = _run(*command, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = said.strip().splitlines()[-1:] or [""]
    return {"wall": time.perf_counter() - started, "cpu": cpu, "mib": after.ru_maxrss >> 10, "said": told[0].strip()}
