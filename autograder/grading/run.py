"""A class graded: find what has to be marked, have it marked, write gradebook and notebooks in batches, then the pages of feedback."""

import contextlib
import errno
import gc
import json
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from jupyter_core.paths import jupyter_config_path
from sqlalchemy.engine import make_url
from traitlets.config.loader import Config, PyFileConfigLoader

from formulary import InputError

from .. import repair, sandbox
from ..assignment import load_assignment
from ..rubric import Status
from ..students import secret
from . import cluster, pool
from .gradebook import BROKEN, GRADED, WAITS, Book, Handed, moment, waits
from .work import Job, Marker, Page, digest, version, write_page

BATCH_SECONDS = 1.0  # how long marks wait to be written together
BATCH_MOST = 50
# what nbgrader takes where nbgrader_config.py says nothing
FOLDERS = {f"{kind}_directory": kind for kind in ("source", "submitted", "autograded", "feedback")}
FOLDERS["directory_structure"] = "{nbgrader_step}/{student_id}/{assignment_id}"
ANYONE = "\0"  # which no folder's name holds
CONFIG = "nbgrader_config.py"
STAMP = 200  # bytes of a timestamp.txt that are read
NOBODYS_FAULT = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}  # what the next one would meet too


@dataclass(frozen=True)
class Course:
    """A course's folder, and what its nbgrader_config.py says, and the user's own where it does not."""

    folder: Path
    config: object

    @classmethod
    def load(cls, folder):
        """Raises InputError where there is no course."""
        folder = Path(folder).resolve()
        if not (folder / CONFIG).is_file():
            raise InputError(f"{folder} holds no {CONFIG}; name the course's folder with --course")
        config = Config()
        for place in reversed(jupyter_config_path()):  # where nbgrader looks too
            config.merge(_config(Path(place, CONFIG)))
        config.CourseDirectory.pop("root", None)  # which course it is, we are told
        config.merge(_config(folder / CONFIG))
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
        """Everyone who has a folder for the assignment in `submitted`; like nbgrader's, none is hidden."""
        top, part = self._top(assignment)
        before, after = part.split(ANYONE, 1)
        folders = sorted(path.name for path in top.iterdir() if path.is_dir()) if top.is_dir() else []
        theirs = (name for name in folders if name.startswith(before) and name.endswith(after) and not name.startswith("."))
        names = [name[len(before) :].removesuffix(after) for name in theirs]
        return [name for name in names if _is_there(self.place("submitted", name, assignment))]

    def is_link(self, student, assignment):
        """Whether what a student handed in lies behind a link, which may lead anywhere."""
        (top, _), folder = self._top(assignment), self.place("submitted", student, assignment)
        return any(path.is_symlink() for path in [folder, *folder.parents][: len(folder.parts) - len(top.parts)])

    def _top(self, assignment):
        """(the folder in which the class's folders lie, how those are called)."""
        parts = self.place("submitted", ANYONE, assignment).parts
        level = next(level for level, part in enumerate(parts) if ANYONE in part)
        return Path(*parts[:level]), parts[level]

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
            raise InputError(f"{self.folder / CONFIG} sets up no marking: call configure(c) there")
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


def _config(path):
    """What a configuration file says; nothing where there is none."""
    try:
        return PyFileConfigLoader(path.name, path=str(path.parent)).load_config() if path.is_file() else Config()
    except Exception as error:  # it is a program
        raise InputError(f"{path} cannot be run: {type(error).__name__}: {error}") from None


@dataclass
class Tally:
    """How a class came out; told by student: `faults` what we failed in, `left_out` why nothing was graded, `doubts` what to look at,
    `waits` what a person is needed for."""

    unchanged: int = 0
    graded: int = 0
    waiting: int = 0
    broken: int = 0
    pages: int = 0
    lines: int = 0
    faults: dict = field(default_factory=dict)
    left_out: dict = field(default_factory=dict)
    doubts: dict = field(default_factory=dict)
    waits: dict = field(default_factory=dict)
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
        except (BlockingIOError, PermissionError):
            raise InputError(f"{course.folder} is being graded by another `psi grade`; wait for it, or stop it") from None
        yield


@dataclass(frozen=True)
class _Planned:
    """A submission to mark, whole or `only` some exercises of it."""

    student: str
    paper: str
    source: str
    how: str
    timestamp: str | None
    told: tuple = ()
    only: tuple | None = None
    row: dict | None = None


class _Run:
    def __init__(self, course, name, book, marker, options, tally):
        self.course, self.name, self.book, self.marker, self.options, self.tally = course, name, book, marker, options, tally
        self.states = {}  # by (student, paper), as they were marked
        self.how = {paper: digest(version(), _plain(told), marker.assignment.exercises) for paper, told in marker.papers.items()}

    # --- what has to be done ---

    def plan(self):
        """What has changed since it was last marked, as _Planned."""
        known, due, found = self.book.journal(), self.book.due(), []
        for student in self._students():
            when = self._when(student, due.get(student, self.book.assignment.duedate))
            for paper in self.marker.papers:
                planned = self._planned(student, paper, when, known.get((student, paper)))
                found += [planned] if planned else []
                if not planned:
                    self.tally.unchanged += 1
                    self._count((student, paper), known[student, paper]["state"])
        return found

    def _students(self):
        """Everyone whose folder can be graded; of the others it is told why not."""
        for student in self.course.students(self.name):
            name = student.encode(errors="backslashreplace").decode()
            if name != student:
                self.tally.left_out[name] = "the folder's name is not in UTF-8; rename it, and grade again"
            elif self.course.is_link(student, self.name):
                self.tally.left_out[name] = "the folder is a link, and links are not followed; put the folder itself there, and grade again"
            else:
                yield student

    def _when(self, student, due):
        """(what timestamp.txt says, what is to be told of it, a hash of that and of when it was due)."""
        stamp, told = _timestamp(self.course.place("submitted", student, self.name))
        if told:
            self.tally.doubts[student] = told[0].en
        return stamp, told, digest(stamp or "", len(told), str(due))

    def _planned(self, student, paper, when, row):
        stamp, told, lateness = when
        planned = _Planned(student, paper, self._source(student, paper), digest(self.how[paper], lateness), stamp, told)
        fresh = row and (row["source"], row["how"]) == (planned.source, planned.how) and row["state"] != BROKEN
        if self.options.force or not fresh or not self._is_as_written(student, paper, row):
            return planned
        old, new = json.loads(row["keys"]), self.marker.keys_for(student)
        changed = tuple(name for name in new if old.get(name) != new[name])
        return replace(planned, only=changed, row=row) if changed else None

    def _is_as_written(self, student, paper, row):
        """Whether the marked notebook is as we left it: nbgrader, a person or an accident may have changed it since."""
        try:
            return digest(self._written("autograded", student, paper).read_bytes()) == row["notebook"]
        except OSError:
            return False

    def _source(self, student, paper):
        """A hash of what a student handed in."""
        folder = self.course.place("submitted", student, self.name)
        around = repair.listed(folder)
        try:
            path, _ = repair.find(folder, paper, self.marker.papers)
            return digest(path.name, repair.load(path), around)
        except repair.Unreadable as error:
            return digest(error.why.en, around)

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
        for job, done in self._spread(self.marker, map(self._job, filter(self._is_still_there, plan))):
            where = job.student, job.paper
            try:
                batch.append(self._finished(planned[where], done))
                state = batch[-1][2].state
            except OSError as error:
                state = self._fault(job.student, error)
            self._count(where, state)
            watch(self.tally, total)
            if len(batch) >= BATCH_MOST or time.monotonic() - since > BATCH_SECONDS:
                self.book.enter(batch, self.course.penalty)
                batch, since = [], time.monotonic()
        if batch:
            self.book.enter(batch, self.course.penalty)
        self._count_again()

    def _count(self, where, state):
        self.states[where] = state
        self.tally.count(state)

    @cached_property
    def marked(self):
        """The journal as it is when all is marked."""
        return self.book.journal()

    def _count_again(self):
        """Who waits depends also on what a person has marked before, which the gradebook knows."""
        told = {where: self.marked[where] for where, state in self.states.items() if state != BROKEN and where in self.marked}
        final = Counter((self.states | {where: row["state"] for where, row in told.items()}).values())
        for state, field_ in FIELDS.items():
            setattr(self.tally, field_, final[state])
        self.tally.waits = waits(told)

    def _is_still_there(self, item):
        return _is_there(self.course.place("submitted", item.student, self.name))

    def _fault(self, student, error):
        """What can't be read or written of one student's is BROKEN and costs only them; raises what the next one would meet too."""
        _raise_if_nobodys(error)
        self.tally.faults.setdefault(student, str(error))
        return BROKEN

    def _spread(self, function, jobs):
        if self.options.dask:
            return cluster.spread(function, jobs, self.options.workers, self.options.dask)
        return pool.spread(function, jobs, self.options.workers)

    def _job(self, item):
        folder = self.course.place("submitted", item.student, self.name)
        if item.only is not None:
            with contextlib.suppress(OSError):  # it was there when that was planned; else all is marked
                notebook = self._written("autograded", item.student, item.paper).read_text(encoding="utf-8")
                return Job(item.student, item.paper, only=item.only, answers=item.row["answers"], notebook=notebook)
        try:
            path, repairs = repair.find(folder, item.paper, self.marker.papers)
            return Job(item.student, item.paper, repair.load(path), repairs=(*item.told, *repairs))
        except repair.Unreadable as error:
            return Job(item.student, item.paper, why=error.why)

    def _finished(self, item, done):
        """(Done or None, where, Handed) of a marked submission, whose notebook is now in `autograded`."""
        where = (item.student, item.paper)
        if isinstance(done, pool.Failure):
            self.tally.faults[item.student] = str(done)
            return None, where, Handed(item.timestamp, item.source, item.how, BROKEN, str(done)[:500])
        self.tally.lines += len(done.lines)
        notebook = done.notebook.encode()
        self._write_notebook(item, done.whole, notebook)
        lines = done.lines if done.whole else json.loads(item.row["lines"]) | done.lines
        state, reason = _outcome(lines, done.notes if done.whole else json.loads(item.row["notes"]), done.fault)
        if done.fault:
            self.tally.faults[item.student] = done.fault
        return done, where, Handed(item.timestamp, item.source, item.how, state, reason, digest(notebook))

    def _write_notebook(self, item, is_whole, notebook):
        """As nbgrader leaves a marked submission: the notebook, the time stamp, and the files that belong to it."""
        folder = self.course.place("autograded", item.student, self.name)
        folder.mkdir(parents=True, exist_ok=True)
        if is_whole:
            self._write_files(folder, self.course.place("submitted", item.student, self.name))
        if item.timestamp:
            _write(folder / "timestamp.txt", item.timestamp.encode())
        _write(folder / f"{item.paper}.ipynb", notebook)

    def _write_files(self, folder, submitted):
        """What was handed in beside the notebook, and the assignment's own other files, which nothing handed in takes the place of."""
        _clear(folder)
        for name, data in repair.beside(submitted):
            if not any(_in_place_of(name, own) for own in self._own_files):
                try:
                    _write(folder / name, data)
                except OSError as error:  # its name is too long where it comes to lie
                    _raise_if_nobodys(error)
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
        rows = self.marked
        standing = self.book.standing({student for student, _ in rows})
        reveals = self.marker.assignment.reveals()
        made_from = {where: digest(row["notebook"], standing[where], reveals) for where, row in rows.items() if row["notebook"]}
        wanted = [where for where, hashed in made_from.items() if hashed != rows[where]["feedback"] or not self._has_page(where)]
        written = {}
        for page, html in self._spread(write_page, self._pages(wanted, standing, reveals)):
            if isinstance(html, pool.Failure):
                self.tally.faults.setdefault(page.student, f"no feedback: {html}")
                continue
            try:
                _write(self._written("feedback", page.student, page.paper), html.encode(), 0o644)
                written[page.student, page.paper] = made_from[page.student, page.paper]
            except OSError as error:
                self._fault(page.student, error)
        self.tally.pages = len(written)
        self.book.put_feedback(written)

    def _has_page(self, where):
        return self._written("feedback", *where).is_file()

    def _pages(self, wanted, standing, reveals):
        """The Page of each notebook that is there; those of who is gone may be gone too."""
        for where in wanted:
            try:
                text = self._written("autograded", *where).read_text(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                continue
            except OSError as error:
                self._fault(where[0], error)
                continue
            told = (standing[where][key] for key in ("scores", "comments", "total", "most", "penalty", "by_person"))
            yield Page(*where, text, *told, reveals)


def _raise_if_nobodys(error):
    if error.errno in NOBODYS_FAULT:
        raise error


def _is_there(folder):
    """Whether a folder is there; one that we may not look into is, and a person is told so."""
    try:
        return folder.is_dir()
    except PermissionError:
        return True


def _plain(paper):
    return [[str(value) for value in vars(cell).values()] for cell in paper.cells]


def _timestamp(folder):
    """(what timestamp.txt says, if it is a time; what is to be told of it, if it is none)."""
    path = folder / "timestamp.txt"
    try:
        if not os.path.lexists(path):
            return None, ()
        said = repair.load(path)[:STAMP].decode("utf-8-sig").strip()
        moment(said)
        return said, ()
    except Exception:  # dateutil raises all sorts
        return None, (repair.said(repair.REPAIRS, "time"),)


def _outcome(lines, notes, fault):
    """(state, reason in words) by the journal's lines."""
    if fault:
        return BROKEN, fault
    broken = [name for name, (_, status, _, _) in lines.items() if status == Status.BROKEN.name]
    if broken:
        return BROKEN, f"we could not mark {', '.join(broken)}"
    return WAITS if any(human for _, _, human, _ in lines.values()) else GRADED, "; ".join(note["en"] for note in notes)


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
    try:
        beside.write_bytes(data)
        os.chmod(beside, mode)
        os.replace(beside, path)
    except OSError as error:
        error.filename = str(path)  # which a full disk does not tell
        beside.unlink(missing_ok=True)
        raise
