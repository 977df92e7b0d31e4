"""What a worker does: mark one submission, or write one page of feedback. It needs neither the gradebook nor the course's folder."""

import hashlib
import json
import time
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from .. import limits, marking, sandbox
from ..answer import Unread
from ..assignment import Assignment, answer_id, grade_id, solution
from ..bank import Bank
from ..exercise import Text
from ..reasons.rubric import RUBRIC_FOLDER, VOCABULARY_FILE
from ..rubric import Status
from ..students import StudentBank, seed

PACKAGE = Path(__file__).resolve().parent.parent
# modules of the formulary that read, write and compare; what its formulas say is told by the keys
READERS = ("amounts", "arithmetic", "judge", "reckon", "units")
NOTHING_READ = "nothing could be read: "  # a reason beside which it needs not be told how many lines wait
NOTHING = Text(en=NOTHING_READ + "{why}", zh="无法读取：{why}")


@cache
def version():
    """What tells one state of the marking from another: a hash of its sources."""
    ours = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".yaml") and "grading" not in path.parts]
    theirs = [PACKAGE.parent / "formulary" / f"{name}.py" for name in READERS]
    return digest(*(path.read_bytes() for path in [*ours, *theirs]), Path(__file__).read_bytes())


@cache
def formulas():
    """A hash of the formulary's sources."""
    return digest(*(path.read_bytes() for path in sorted((PACKAGE.parent / "formulary").glob("*.py"))))


def digest(*parts):
    """A hash of bytes, texts and what can be written as JSON."""
    found = hashlib.sha256()
    for part in parts:
        part = part if isinstance(part, bytes | str) else json.dumps(part, sort_keys=True)
        part = part.encode(errors="surrogatepass") if isinstance(part, str) else part  # a file's name need not be in UTF-8
        found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()


@dataclass(frozen=True)
class Job:
    """A submission to mark: its bytes, or why it can't be read.

    Where `only` is given, only these exercises are marked again, from the `answers` known, into the `notebook` written before.
    """

    student: str
    paper: str
    data: bytes = b""
    why: Text | None = None
    repairs: tuple = ()
    only: tuple | None = None
    answers: str = ""
    notebook: str = ""


@dataclass(frozen=True)
class Done:
    """A submission marked. `entries` and `remarks` go into the gradebook by name of the cell; the rest into the journal.

    `fault` says what we failed in: for that it is marked again the next time.
    """

    student: str
    paper: str
    entries: dict
    remarks: dict
    notebook: str
    answers: str
    lines: dict
    keys: dict
    notes: list = field(default_factory=list)
    fault: str = ""
    whole: bool = True
    seconds: float = 0.0


class Marker:
    """The marking of one assignment, kept warm: call it with a Job."""

    def __init__(self, assignment, papers, bank, secret="", book=""):
        self.assignment, self.papers, self.root, self.secret, self.book = assignment, papers, Path(bank), secret, book

    def __getstate__(self):
        return {**self.__dict__, "assignment": self.assignment.model_dump(mode="json"), "bank": None, "keys": None}

    def __setstate__(self, state):
        state.pop("bank"), state.pop("keys")
        self.__dict__ |= state | {"assignment": Assignment(**state["assignment"])}

    @cached_property
    def bank(self):
        return Bank(self.root)

    @cached_property
    def keys(self):
        """What the marks of each exercise depend on, as a hash, by exercise id."""
        return {name: digest(*_depends_on(self.bank[name]), self._told_in) for name in self.assignment.exercises}

    @property
    def _told_in(self):
        return [self.assignment.language, self.assignment.languages, self.assignment.reveals(), self.book]

    @property
    def is_personal(self):
        return self.assignment.variants == "per_student"

    def bank_for(self, student):
        """The bank as a student met it."""
        return StudentBank(self.bank, student, self.assignment, self.secret) if self.is_personal else self.bank

    def keys_for(self, student):
        """The keys of a student, whose own numbers follow from their seeds and the formulas: they need not be drawn to be told apart."""
        if not self.is_personal:
            return self.keys
        seeds = {name: seed(student, self.assignment.id, name, self.secret) for name in self.keys}
        return {name: digest(key, seeds[name], formulas()) for name, key in self.keys.items()}

    def warm_up(self):
        """Mark the solutions, so that everything is loaded that marking needs."""
        answers = {answer_id(name): solution(self.bank[name], "en") for name in self.assignment.exercises}
        marking.mark_answers(answers, self.assignment, self.bank, self.book)

    def __call__(self, job):
        """The Done of a Job."""
        started = time.perf_counter()
        bank = self.bank_for(job.student)
        paper = marking.personal(self.papers[job.paper], self.assignment, bank)
        make = self._again if job.only is not None else self._whole
        notebook, marked, parts = make(job, paper, bank)
        marking.write_outputs(notebook, marked, self.assignment.reveals(), None if job.only is None else set(marked.results))
        # of several notebooks each holds only some exercises, and a line may be of none that the bank still has
        names = [name for name in (paper.lines if job.only is None else marked.results) if name in paper.lines]
        return Done(
            job.student,
            job.paper,
            {name: marking.entry(paper.lines[name], marked) for name in names},
            notebook=json.dumps(notebook, ensure_ascii=False) + "\n",
            answers=pack(marked.answers),
            lines={name: _line(marked.results.get(name)) for name in names},
            keys=self.keys_for(job.student),
            whole=job.only is None,
            seconds=time.perf_counter() - started,
            **parts,
        )

    def _whole(self, job, paper, bank):
        """(notebook, Marked, what else is told) of a submission marked from its bytes."""
        taken = marking.nothing_of(paper, job.why) if job.why else marking.taken(job.data, paper, job.repairs)
        marked = marking.mark_taken(taken, self.assignment, bank, self.book)
        sources = {cell["metadata"]["nbgrader"]["grade_id"]: cell["source"] for cell in taken.notebook["cells"] if cell["metadata"]}
        remarks = {
            cell.name: marking.remark_on(cell, sources[cell.name], taken.lost.get(cell.name)) for cell in paper.cells if cell.solution
        }
        notes = [NOTHING.format(why=taken.unreadable)] if taken.unreadable else [*taken.repairs, *taken.lost.values()]
        told = {"remarks": remarks, "notes": [note.model_dump() for note in notes], "fault": _fault(marked.answers)}
        return taken.notebook, marked, told

    def _again(self, job, paper, bank):
        """The same for some exercises of a submission whose answers are known."""
        marked = marking.mark_answers(unpack(job.answers), self.assignment, bank, self.book, set(job.only))
        return json.loads(job.notebook), marked, {"remarks": {}}

    def lines_of(self, exercise):
        """The grade ids of an exercise's lines."""
        return [grade_id(self.bank[exercise], line) for line in self.bank[exercise].rubric]


def _fault(answers):
    """What we failed in when the answers were read, in words."""
    unread = (answer.why for parts in answers.values() for answer in parts.values() if isinstance(answer, Unread))
    return sandbox.OUR_FAULT.en if sandbox.OUR_FAULT in unread else ""


def _depends_on(exercise):
    """All that the marks of an exercise come from but the marking itself: its text, its keys worked out, its rubric of reasons."""
    yield exercise.model_dump_json()
    for part in exercise.parts:
        if part.type != "reason":
            yield _told(exercise.expected(part))
            yield from (_told(exercise.mistaken(part, mistake)) for mistake in part.mistakes)
    own = RUBRIC_FOLDER / f"{exercise.id}.yaml"
    if own.is_file():
        yield own.read_bytes()
        yield (RUBRIC_FOLDER / VOCABULARY_FILE).read_bytes()


def _told(value):
    return repr(sorted(value)) if isinstance(value, set) else repr(value)


def _line(result):
    """What the journal and the report keep of a line: points, status, whether it needs a person, the mistakes met."""
    if result is None:  # no exercise of ours has it
        return [None, Status.HUMAN.name, True, []]
    mistakes = [[finding.part, finding.mistake] for finding in result.findings if finding.mistake]
    return [result.points, result.status.name, result.needs_human, mistakes]


# --- answers as JSON -------------------------------------------------------------------------------------------------


def pack(answers):
    """Answers by cell and part as JSON."""
    return json.dumps(answers, default=_packed, ensure_ascii=False)


def _packed(value):
    if isinstance(value, Unread):
        return {"unread": value.why.model_dump(), "raw": value.raw}
    if value is ...:
        return None  # as blank as it was
    raise TypeError(f"{type(value).__name__} is no answer")


def unpack(text):
    """The answers that `pack` wrote."""
    return {
        cell: {part: Unread(Text(**value["unread"]), value["raw"]) if isinstance(value, dict) else value for part, value in parts.items()}
        for cell, parts in json.loads(text).items()
    }


# --- feedback --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """A page of feedback to write: a marked notebook, and by grade id what the gradebook holds."""

    student: str
    paper: str
    notebook: str
    scores: dict  # name: (score, most)
    comments: dict
    total: float
    most: float
    penalty: float
    by_person: list  # names of the lines that a person has marked
    reveals: bool


def write_page(page):
    """The HTML of a Page, as `nbgrader generate_feedback` writes it."""
    from nbformat import from_dict

    notebook = json.loads(page.notebook)
    if not page.reveals:
        marking.conceal(notebook)
    marking.tell_by_person(notebook, {name: page.scores[name] for name in page.by_person})
    notebook = from_dict(notebook)
    for cell in notebook.cells:
        cell.source = cell.source[: limits.CELL]  # more was not read as an answer, and to set it takes long
        if about := cell.metadata.get("nbgrader"):
            if about.solution or about.task:
                about["comment"] = page.comments.get(about.grade_id)
            if about.grade or about.task:
                about["score"], about["points"] = page.scores[about.grade_id]
    told = {"notebook": page.paper, "student": page.student, "score": page.total - page.penalty}
    told |= {"max_score": page.most, "late_penalty": page.penalty}
    return _exporter().from_notebook_node(notebook, resources={"nbgrader": told, "unique_key": page.paper})[0]


@cache
def _exporter():
    """nbgrader's own template for feedback, set up once."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    from .page import Feedback

    made = Feedback(config=GenerateFeedback(coursedir=CourseDirectory()).config)
    made.register_preprocessor("nbconvert.preprocessors.CSSHTMLHeaderPreprocessor", enabled=True)
    return made
