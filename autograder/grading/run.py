"""A class graded: find what has to be marked, have it marked, write gradebook and notebooks in batches, then the pages of feedback."""

import contextlib
import gc
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sqlalchemy.engine import make_url
from traitlets.config.loader import PyFileConfigLoader

from formulary import InputError

from .. import repair, sandbox
from ..assignment import load_assignment
from ..rubric import Status
from ..students import secret
from . import cluster, pool
from .gradebook import BROKEN, GRADED, WAITS, Book, Handed, moment
from .work import Job, Marker, Page, digest, version, write_page

BATCH_SECONDS = 1.0  # how long marks wait to be written together
BATCH_MOST = 50
# what nbgrader takes where nbgrader_config.py says nothing
FOLDERS = {f"{kind}_directory": kind for kind in ("source", "submitted", "autograded", "feedback")}
FOLDERS["directory_structure"] = "{nbgrader_step}/{student_id}/{assignment_id}"
ANYONE = "\0"  # which no folder's name holds


@dataclass(frozen=True)
class Course:
    """A course's folder, and what its nbgrader_config.py says."""

    folder: Path
    config: object

    @classmethod
    def load(cls, folder):
        """Raises InputError where there is no course."""
        folder = Path(folder).resolve()
        if not (folder / "nbgrader_config.py").is_file():
            raise InputError(f"{folder} holds no nbgrader_config.py; name the course's folder with --course")
        try:
            config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
        except Exception as error:  # it is a program
            raise InputError(f"{folder / 'nbgrader_config.py'} cannot be run: {type(error).__name__}: {error}") from None
        return cls(folder, config)

    @cached_property
    def directory(self):
        """nbgrader's settings of the course's folders."""
        return {**FOLDERS, **self.config.CourseDirectory}

    @cached_property
    def root(self):
        """Where its folders lie; what is not said in full is said as seen from the course's folder."""
        return Path(self.folder, self.directory.get("root", ""))

    def place(self, kind, student, assignment):
        """A folder of `submitted`, `autograded`, `feedback` or `source`."""
        names = {"nbgrader_step": self.directory[f"{kind}_directory"], "student_id": student, "assignment_id": assignment}
        return Path(self.root, self.directory["directory_structure"].format(**names))

    def students(self, assignment):
        """Everyone who has a folder for the assignment in `submitted`."""
        parts = self.place("submitted", ANYONE, assignment).parts
        level = next(level for level, part in enumerate(parts) if ANYONE in part)
        top, before, after = Path(*parts[:level]), *parts[level].split(ANYONE, 1)
        folders = sorted(path.name for path in top.iterdir() if path.is_dir() and not path.is_symlink()) if top.is_dir() else []
        names = [name[len(before) :].removesuffix(after) for name in folders if name.startswith(before) and name.endswith(after)]
        return [name for name in names if _is_there(self.place("submitted", name, assignment))]

    def book(self, assignment):
        """The gradebook, for one assignment. Raises InputError if there is none of that name, or it was never generated."""
        self.assignment(assignment)
        url = make_url(self.directory.get("db_url", "sqlite:///gradebook.db"))
        if url.get_backend_name() == "sqlite":
            url = url.set(database=str(self.root / (url.database or "")))
        return Book(url, assignment)

    def refuse_nothing(self, assignment, marked):
        """Raises InputError where nothing of an assignment is marked."""
        if not marked:
            looked = self.place("submitted", "STUDENT", assignment)
            raise InputError(f"nothing of {assignment} is marked yet: `psi grade {assignment}` marks what lies in {looked}")

    def assignment(self, name):
        """The Assignment of that name. Raises InputError if the course has none."""
        if "assignments" not in self.config.WithBank:
            raise InputError(f"{self.folder / 'nbgrader_config.py'} sets up no marking: call configure(c) there")
        return load_assignment(name, self.config.WithBank.assignments)

    def penalty(self, student, score, seconds):
        """The points that the course's own rule takes for being so many seconds late, or None."""
        return self._late_rule.late_submission_penalty(student, score, seconds)

    @cached_property
    def _late_rule(self):
        from nbgrader.preprocessors import AssignLatePenalties  # here, since nbgrader is slow to load and few are late

        assigner = AssignLatePenalties(config=self.config)
        assigner.init_plugin()
        return assigner.plugin_inst

    def marker(self, name, papers):
        """The Marker of an assignment of this course."""
        assignment, told = self.assignment(name), self.config.WithBank
        return Marker(assignment, papers, told.bank, secret(Path(told.assignments).parent), told.get("book", ""))


@dataclass
class Tally:
    """How a class came out; `faults` says for each broken submission what went wrong."""

    unchanged: int = 0
    graded: int = 0
    waiting: int = 0
    broken: int = 0
    pages: int = 0
    lines: int = 0
    faults: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)

    def count(self, state):
        setattr(self, FIELDS[state], getattr(self, FIELDS[state]) + 1)


FIELDS = {GRADED: "graded", WAITS: "waiting", BROKEN: "broken"}


@dataclass(frozen=True)
class Options:
    """workers: processes. dask: a scheduler's address, "local", or None. force: mark again what is marked."""

    workers: int = 1
    dask: str | None = None
    force: bool = False
    feedback: bool = True


def grade(folder, name, options, watch=lambda tally, total: None):
    """Grade the assignment `name` of the course in `folder`; returns the Tally. `watch` is told of every step."""
    course, tally, clock = Course.load(folder), Tally(), _Clock()
    with _alone(course), course.book(name) as book:
        run = _Run(course, name, book, course.marker(name, book.papers()), options, tally)
        clock.lap("start", tally)
        plan = run.plan()
        clock.lap("keys and plan", tally)
        if plan and not options.dask:
            run.warm_up(plan)
        gc.enable()
        clock.lap("warm up", tally)
        run.mark(plan, watch)
        clock.lap("mark", tally)
        if options.feedback:
            run.write_feedback()
            clock.lap("feedback", tally)
    return tally


class _Clock:
    def __init__(self):
        self.last = time.perf_counter()

    def lap(self, what, tally):
        now = time.perf_counter()
        tally.seconds[what], self.last = now - self.last, now


@contextlib.contextmanager
def _alone(course):
    """One grading of a course at a time; a killed one lets go by itself."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(course.folder / ".grading", "w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which forked workers do not inherit
        except OSError:
            raise InputError(f"{course.folder} is being graded by another `psi grade`; wait for it, or stop it") from None
        yield


@dataclass(frozen=True)
class _Planned:
    """A submission to mark, whole or `only` some exercises of it."""

    student: str
    paper: str
    source: str
    timestamp: str | None
    only: tuple | None = None
    row: dict | None = None


class _Run:
    def __init__(self, course, name, book, marker, options, tally):
        self.course, self.name, self.book, self.marker, self.options, self.tally = course, name, book, marker, options, tally
        self.how = {paper: digest(version(), _plain(told), marker.assignment.exercises) for paper, told in marker.papers.items()}

    # --- what has to be done ---

    def plan(self):
        """What has changed since it was last marked, as _Planned."""
        known = self.book.journal()
        found = []
        for student in self._students():
            for paper in self.marker.papers:
                planned = self._planned(student, paper, known.get((student, paper)))
                found += [planned] if planned else []
                if not planned:
                    self.tally.unchanged += 1
                    self.tally.count(known[student, paper]["state"])
        return found

    def _students(self):
        """Everyone whose name can be written into the gradebook."""
        for student in self.course.students(self.name):
            name = student.encode(errors="backslashreplace").decode()
            if name == student:
                yield student
            else:
                self.tally.faults[name] = "the folder's name is not in UTF-8; rename it, and grade again"

    def _planned(self, student, paper, row):
        source, timestamp = self._source(student, paper)
        planned = _Planned(student, paper, source, timestamp)
        path = self._written("autograded", student, paper)
        fresh = row and (row["source"], row["how"]) == (source, self.how[paper]) and row["state"] != BROKEN
        if self.options.force or not fresh or not path.is_file():
            return planned
        old, new = json.loads(row["keys"]), self.marker.keys_for(student)
        changed = tuple(name for name in new if old.get(name) != new[name])
        if not changed:
            return None
        if digest(path.read_bytes()) != row["notebook"]:  # nbgrader has written there since
            return planned
        return _Planned(student, paper, source, timestamp, changed, row)

    def _source(self, student, paper):
        """(hash of what a student handed in, when they did)."""
        folder = self.course.place("submitted", student, self.name)
        stamp = _timestamp(folder)
        around = stamp or "", repair.listed(folder)
        try:
            path, _ = repair.find(folder, paper)
            return digest(path.name, repair.load(path), *around), stamp
        except repair.Unreadable as error:
            return digest(error.why.en, *around), stamp

    def _written(self, kind, student, paper):
        ending = "html" if kind == "feedback" else "ipynb"
        return self.course.place(kind, student, self.name) / f"{paper}.{ending}"

    # --- marking ---

    def warm_up(self, plan):
        """Load and start what the workers, which are forked, then need not."""
        self.marker.warm_up()
        gc.freeze()  # else every worker would look through all of it, and by that copy it
        sandbox.get_ready(self._job(plan[0]).data, self.options.workers)

    def mark(self, plan, watch):
        """Have everything planned marked, and write it as it comes."""
        planned = {(item.student, item.paper): item for item in plan}
        batch, since, total = [], time.monotonic(), len(plan) + self.tally.unchanged
        watch(self.tally, total)
        for job, done in self._spread(self.marker, (self._job(item) for item in plan)):
            batch.append(self._finished(planned[job.student, job.paper], done))
            self.tally.count(batch[-1][2].state)
            watch(self.tally, total)
            if len(batch) >= BATCH_MOST or time.monotonic() - since > BATCH_SECONDS:
                self.book.enter(batch, self.course.penalty)
                batch, since = [], time.monotonic()
        if batch:
            self.book.enter(batch, self.course.penalty)

    def _spread(self, function, jobs):
        if self.options.dask:
            return cluster.spread(function, jobs, self.options.workers, self.options.dask)
        return pool.spread(function, jobs, self.options.workers)

    def _job(self, item):
        folder = self.course.place("submitted", item.student, self.name)
        if item.only is not None:
            notebook = self._written("autograded", item.student, item.paper).read_text(encoding="utf-8")
            return Job(item.student, item.paper, only=item.only, answers=item.row["answers"], notebook=notebook)
        try:
            path, repairs = repair.find(folder, item.paper)
            return Job(item.student, item.paper, repair.load(path), repairs=repairs)
        except repair.Unreadable as error:
            return Job(item.student, item.paper, why=error.why)

    def _finished(self, item, done):
        """(Done or None, where, Handed) of a marked submission, whose notebook is now in `autograded`."""
        where = (item.student, item.paper)
        if isinstance(done, pool.Failure):
            self.tally.faults[item.student] = str(done)
            return None, where, Handed(item.timestamp, item.source, self.how[item.paper], BROKEN, str(done)[:500])
        self.tally.lines += len(done.lines)
        self._write_notebook(item, done)
        lines = done.lines if done.whole else json.loads(item.row["lines"]) | done.lines
        state, reason = _outcome(lines, done.notes if done.whole else json.loads(item.row["notes"]), done.fault)
        if done.fault:
            self.tally.faults[item.student] = done.fault
        hashed = digest(done.notebook.encode())
        return done, where, Handed(item.timestamp, item.source, self.how[item.paper], state, reason, hashed)

    def _write_notebook(self, item, done):
        """As nbgrader leaves a marked submission: the notebook, the time stamp, and the files that belong to it."""
        folder = self.course.place("autograded", item.student, self.name)
        folder.mkdir(parents=True, exist_ok=True)
        if done.whole:
            self._write_files(folder, self.course.place("submitted", item.student, self.name))
        if item.timestamp:
            _write(folder / "timestamp.txt", item.timestamp.encode())
        _write(folder / f"{item.paper}.ipynb", done.notebook.encode())

    def _write_files(self, folder, submitted):
        """What was handed in beside the notebook, and the assignment's own other files, which nothing handed in takes the place of."""
        _clear(folder)
        for name, data in repair.beside(submitted):
            if not any(_in_place_of(name, own) for own in self._own_files):
                with contextlib.suppress(OSError):  # its name is too long where it comes to lie
                    _write(folder / name, data)
        for name, path in self._own_files.items():
            _write(folder / name, path.read_bytes())

    @cached_property
    def _own_files(self):
        """The assignment's files beside its notebooks, by their path in its folder."""
        folder = self.course.place("source", ".", self.name)
        return {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".ipynb"}

    # --- feedback ---

    def write_feedback(self):
        """Write the pages whose marks, scores or comments have changed since they were written."""
        rows = self.book.journal()
        standing = self.book.standing({student for student, _ in rows})
        wanted, reveals = {}, self.marker.assignment.reveals()
        for where, row in rows.items():
            made_from = digest(row["notebook"], standing[where], reveals) if row["notebook"] and where in standing else ""
            if made_from and (made_from != row["feedback"] or not self._written("feedback", *where).is_file()):
                wanted[where] = made_from
        written = {}
        for page, html in self._spread(write_page, (self._page(where, standing[where], reveals) for where in wanted)):
            if isinstance(html, pool.Failure):
                self.tally.faults.setdefault(page.student, f"no feedback: {html}")
                continue
            path = self._written("feedback", page.student, page.paper)
            _write(path, html.encode(), 0o644)
            written[page.student, page.paper] = wanted[page.student, page.paper]
        self.tally.pages = len(written)
        self.book.put_feedback(written)

    def _page(self, where, standing, reveals):
        text = self._written("autograded", *where).read_text(encoding="utf-8")
        return Page(*where, text, *(standing[key] for key in ("scores", "comments", "total", "most", "penalty", "by_person")), reveals)


def _is_there(folder):
    """Whether a folder is there; one that we may not look into is, and a person is told so."""
    try:
        return folder.is_dir()
    except PermissionError:
        return True


def _plain(paper):
    return [[str(value) for value in vars(cell).values()] for cell in paper.cells]


def _timestamp(folder):
    """What timestamp.txt says, if it is a time."""
    path = folder / "timestamp.txt"
    with contextlib.suppress(Exception):  # dateutil raises all sorts
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return None
        said = path.read_text(encoding="utf-8").strip()
        moment(said)
        return said
    return None


def _outcome(lines, notes, fault):
    """(state, reason in words) by the journal's lines."""
    if fault:
        return BROKEN, fault
    broken = [name for name, (_, status, _, _) in lines.items() if status == Status.BROKEN.name]
    waiting = [name for name, (_, _, human, _) in lines.items() if human]
    told = "; ".join(note["en"] for note in notes)
    if broken:
        return BROKEN, f"we could not mark {', '.join(broken)}"
    lines = "1 line waits" if len(waiting) == 1 else f"{len(waiting)} lines wait"
    return (WAITS, lines + (f"; {told}" if told else "")) if waiting else (GRADED, told)


def _clear(folder):
    """Remove all but the notebooks that are marked."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.suffix != ".ipynb":
            path.unlink()


def _in_place_of(name, own):
    """Whether a path is another, or a folder of it, or lies in it, also where capital letters are not told apart."""
    return all(one.lower() == other.lower() for one, other in zip(name.parts, own.parts, strict=False))


def _write(path, data, mode=0o444):
    """Put a file there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(".new")  # short, since the file's own name may be as long as a name can be
    beside.unlink(missing_ok=True)
    beside.write_bytes(data)
    os.chmod(beside, mode)
    os.replace(beside, path)
