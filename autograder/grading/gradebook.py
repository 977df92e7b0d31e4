"""nbgrader's gradebook, read and written for many submissions at once, with a journal of what was marked from what.

The journal is a table of the gradebook's own database: a batch of marks and the record that they were made are one
transaction, so whatever moment the grading is killed at, both are there or neither is. And an older copy of the gradebook
put back knows by itself which marks it lacks.
"""

import contextlib
import json
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from pathlib import Path

from sqlalchemy import bindparam, create_engine, delete, func, insert, inspect, select, tuple_, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError

from formulary import InputError

from .. import marking
from ..assignment import answer_id
from .schema import (
    ASSIGNMENT,
    BASE_CELL,
    COMMENT,
    GRADE,
    GRADE_CELL,
    JOURNAL,
    NOTEBOOK,
    SOURCE_CELL,
    STUDENT,
    SUBMITTED_ASSIGNMENT,
    SUBMITTED_NOTEBOOK,
    TASK_CELL,
)
from .work import NOTHING_READ

GRADED, WAITS, BROKEN = "graded", "needs a person", "broken"
# which cells nbgrader gives a row in each table
KINDS = {GRADE: ("GradeCell", "TaskCell"), COMMENT: ("SolutionCell", "TaskCell")}
NO_ROW = dict.fromkeys(("auto_score", "manual_score", "extra_credit", "auto_comment", "manual_comment")) | {"needs_manual_grade": True}
TOGETHER = 100  # students asked for at once: SQLite before 3.32 takes 999 values in a query


@dataclass(frozen=True)
class Handed:
    """What is known of a submission beside its marks: when it was handed in, its hashes, and how it came out."""

    timestamp: str | None
    source: str
    how: str
    state: str
    reason: str = ""
    notebook: str = ""


def moment(stamp):
    """The moment that a timestamp.txt says, in UTC without a zone, as nbgrader reads it. Raises all sorts for what is none."""
    with contextlib.suppress(ValueError):
        if (read := datetime.fromisoformat(stamp.removesuffix(" UTC"))).tzinfo is None:
            return read
    from nbgrader.utils import parse_utc  # here, since it is slow to load and the usual form needs it not

    return parse_utc(stamp)


class Book:
    """The gradebook of a course, as it concerns one assignment. Use it in a `with` statement.

    Raises InputError if the assignment was never generated, or the database refuses.
    """

    def __init__(self, url, assignment):
        with _in_words():
            self.engine, self.name = _engine(url, assignment), assignment
            _make_journal(self.engine)
            self.db = self.engine.connect()
            self.assignment = next(iter(self._all(select(ASSIGNMENT).where(ASSIGNMENT.c.name == assignment))), None)
        if self.assignment is None or not self.notebooks:
            self.__exit__()
            raise _never_generated(assignment)

    def __enter__(self):
        return self

    def __exit__(self, _=None, error=None, __=None):
        self.db.close()
        self.engine.dispose()
        if isinstance(error, DatabaseError):
            raise _refused(error) from None

    @cached_property
    def notebooks(self):
        """Name of each notebook of the assignment, by id."""
        return dict(self._all(select(NOTEBOOK.c.id, NOTEBOOK.c.name).where(NOTEBOOK.c.assignment_id == self.assignment.id)))

    @cached_property
    def cells(self):
        """Rows (id, name, notebook_id, type, max_score) of the cells that have points or answers."""
        worth = (select(table.c.id, table.c.max_score) for table in (GRADE_CELL, TASK_CELL))
        most = {id_: points for query in worth for id_, points in self._all(query)}
        rows = self._all(select(BASE_CELL).where(BASE_CELL.c.notebook_id.in_(self.notebooks)))
        return [{**row._mapping, "max_score": most.get(row.id)} for row in rows]

    @cached_property
    def cells_of(self):
        """{id: name} of the cells of a paper that have a grade, or a comment, by (GRADE or COMMENT, paper)."""
        told = lambda id_, kinds: {cell["id"]: cell["name"] for cell in self.cells if cell["notebook_id"] == id_ and cell["type"] in kinds}
        return {(table, name): told(id_, kinds) for table, kinds in KINDS.items() for id_, name in self.notebooks.items()}

    def papers(self):
        """The Paper of each of the assignment's notebooks, by name."""
        return {name: self._paper(id_, name) for id_, name in self.notebooks.items()}

    def _paper(self, id_, name):
        mine = [cell for cell in self.cells if cell["notebook_id"] == id_]
        of = {kind: {cell["name"] for cell in mine if cell["type"] == kind} for kind in ("TaskCell", "SolutionCell")}
        points = {cell["name"]: cell["max_score"] for cell in mine if cell["max_score"] is not None}
        if not (sources := self._all(select(SOURCE_CELL).where(SOURCE_CELL.c.notebook_id == id_))):
            raise _never_generated(self.name)
        kernel = self.db.scalar(select(NOTEBOOK.c.kernelspec).where(NOTEBOOK.c.id == id_))
        return marking.paper(name, kernel, sources, points, of["TaskCell"], of["SolutionCell"])

    def students(self):
        """The rows of all students, by id."""
        return {student.id: student for student in self._all(select(STUDENT))}

    def journal(self):
        """The journal's rows by (student, paper) of all that is whole; who waits, and for how much, the gradebook tells."""
        rows, whole, waiting = self._journal(), self._whole(), self._counts(GRADE, GRADE.c.needs_manual_grade)
        return {where: row | _outcome(row, waiting.get(whole[where], 0)) for where, row in rows.items() if where in whole}

    def _journal(self, *only):
        """The rows as they were written: all of them, or those that are `only`."""
        found = self.db.execute(select(JOURNAL).where(JOURNAL.c.assignment == self.name, *only)).mappings()
        return {(row["student"], row["paper"]): dict(row) for row in found}

    def _whole(self):
        """The ids of the submitted notebooks of which all rows are there, by (student, paper)."""
        whose, what = SUBMITTED_ASSIGNMENT.c, SUBMITTED_NOTEBOOK.c
        query = select(whose.student_id, what.notebook_id, what.id).join(STUDENT, STUDENT.c.id == whose.student_id)
        query = query.join(SUBMITTED_NOTEBOOK, what.assignment_id == whose.id)
        found = self._all(query.where(whose.assignment_id == self.assignment.id, what.notebook_id.in_(self.notebooks)))
        places = {(student, self.notebooks[notebook]): id_ for student, notebook, id_ in found}
        counts = {table: self._counts(table) for table in KINDS}
        is_whole = lambda paper, id_: all(counts[table].get(id_, 0) >= len(self.cells_of[table, paper]) for table in KINDS)
        return {where: id_ for where, id_ in places.items() if is_whole(where[1], id_)}

    def _counts(self, table, *only):
        """How many rows, all or those that are `only`, each submitted notebook has in a table."""
        ours = select(table.c.notebook_id, func.count()).where(table.c.cell_id.in_(self._our_cells), *only)
        return dict(map(tuple, self._all(ours.group_by(table.c.notebook_id))))

    @property
    def _our_cells(self):
        """The ids of the assignment's cells, by which the tables that have rows of cells have an index."""
        return select(BASE_CELL.c.id).where(BASE_CELL.c.notebook_id.in_(self.notebooks))

    # --- writing ---

    def enter(self, batch, penalty):
        """Write (Done or None, (student, paper), Handed) triples in one transaction; None is a submission we could not mark.

        `penalty(student, score, seconds late)` is the course's own rule. A score that a person gave is kept, and shown to
        them again where what it was given for has changed.
        """
        places = self._places({student: handed.timestamp for _, (student, _), handed in batch})
        known = self._journal(JOURNAL.c.student.in_([student for _, (student, _), _ in batch]))
        held = {where: _as_before(done, handed.source, known.get(where)) for done, where, handed in batch}
        for table, told in ((GRADE, _grade), (COMMENT, _comment)):
            there, home = self._rows(table, places.values()), lambda where, cell: {"notebook_id": places[where], "cell_id": cell}
            wanted = {
                (key := (places[where], cell)): home(where, cell) | told(done, name, there.get(key), held[where])
                for done, where, _ in batch
                for cell, name in self.cells_of[table, where[1]].items()
            }
            self._put(table, there, wanted)
        self._penalise({where: places[where] for _, where, _ in batch}, penalty)
        self._record(batch, known)
        self.db.commit()

    def _places(self, stamps):
        """The id of each submitted notebook of these students, by (student, paper); what is not there yet is made."""
        known = {id_: {"id": id_} for id_ in self.db.scalars(select(STUDENT.c.id).where(STUDENT.c.id.in_(stamps)))}
        self._put(STUDENT, known, {student: {"id": student} for student in stamps})
        moments = {student: {"timestamp": moment(stamp)} for student, stamp in stamps.items() if stamp}
        wanted = {who: {"assignment_id": self.assignment.id, "student_id": who} | moments.get(who, {}) for who in stamps}
        self._put(SUBMITTED_ASSIGNMENT, self._submitted(stamps), wanted)
        submitted = self._submitted(stamps)
        home = lambda student, id_: {"assignment_id": submitted[student]["id"], "notebook_id": id_}
        wanted = {(student, name): home(student, id_) for student in stamps for id_, name in self.notebooks.items()}
        self._put(SUBMITTED_NOTEBOOK, self._notebooks(submitted), wanted)
        return {where: row["id"] for where, row in self._notebooks(submitted).items()}

    def _submitted(self, students):
        """The rows of these students' submissions, by student."""
        columns = SUBMITTED_ASSIGNMENT.c
        query = select(SUBMITTED_ASSIGNMENT).where(columns.assignment_id == self.assignment.id, columns.student_id.in_(students))
        return {row.student_id: row._mapping for row in self._all(query)}

    def _notebooks(self, submitted):
        """The row of each submitted notebook by (student, paper), from the submissions by student."""
        owners = {row["id"]: student for student, row in submitted.items()}
        columns = SUBMITTED_NOTEBOOK.c
        query = select(SUBMITTED_NOTEBOOK).where(columns.assignment_id.in_(owners), columns.notebook_id.in_(self.notebooks))
        found = self.db.execute(query).mappings()
        return {(owners[row["assignment_id"]], self.notebooks[row["notebook_id"]]): row for row in found}

    def _rows(self, table, notebooks):
        """The rows of a table for these submitted notebooks, by notebook and cell."""
        query = select(table).where(table.c.cell_id.in_(self._our_cells), table.c.notebook_id.in_(notebooks))
        return {(row["notebook_id"], row["cell_id"]): row for row in self.db.execute(query).mappings()}

    def _all(self, query):
        """All rows. Raises InputError where one holds something else than its column is for."""
        try:
            return self.db.execute(query).all()
        except ValueError as error:
            raise InputError(f"the gradebook holds what nbgrader would not write there: {error}") from None

    def _put(self, table, there, wanted):
        """Insert the rows that are `wanted` and not `there`, each by the same keys, and update those that differ."""
        self._write(insert(table), (row for key, row in wanted.items() if key not in there))
        changes = [_change(there[key], row) for key, row in wanted.items() if key in there]
        self._write(update(table).where(table.c.id == bindparam("key")), filter(None, changes))

    def _write(self, statement, rows):
        """Execute it with these rows, those together that set the same columns."""
        alike = {}
        for row in rows:
            alike.setdefault(tuple(row), []).append(row)
        for some in alike.values():
            self.db.execute(statement, some)

    def _penalise(self, places, penalty):
        """Set the penalties for being late, as nbgrader does after marking."""
        if self.assignment.duedate is None:
            return
        submitted = self._submitted({student for student, _ in places})
        rows = self._rows(GRADE, places.values())
        late = {student: self._seconds_late(row) for student, row in submitted.items()}
        taken = {}
        for (student, paper), id_ in places.items():
            score = math.fsum(_score(rows[id_, cell]) for cell in self.cells_of[GRADE, paper])  # in whichever order they come
            taken[student, paper] = {"late_submission_penalty": _taken(student, score, late[student], penalty)}
        self._put(SUBMITTED_NOTEBOOK, self._notebooks(submitted), taken)

    def _seconds_late(self, submitted):
        due = self.assignment.duedate + (submitted["extension"] or timedelta())
        return (submitted["timestamp"] - due).total_seconds() if submitted["timestamp"] else 0

    def _record(self, batch, known):
        """Write the journal; a submission that was marked again in part keeps what is not told anew."""
        these = tuple_(JOURNAL.c.student, JOURNAL.c.paper).in_([where for _, where, _ in batch])
        self.db.execute(delete(JOURNAL).where(JOURNAL.c.assignment == self.name, these))
        self._write(insert(JOURNAL), (self._entry(*item, known.get(item[1])) for item in batch))

    def _entry(self, done, where, handed, old):
        """A row of the journal."""
        row = {"assignment": self.name, "student": where[0], "paper": where[1], "feedback": "", "seconds": 0.0}
        row |= {"source": handed.source, "how": handed.how, "state": handed.state, "reason": handed.reason, "notebook": handed.notebook}
        return row | (_told(done, old) if done else {})

    def put_feedback(self, hashes):
        """Note what the pages of feedback were made from: hashes by (student, paper)."""
        mine = JOURNAL.c.assignment == self.name, JOURNAL.c.student == bindparam("who"), JOURNAL.c.paper == bindparam("what")
        rows = ({"who": student, "what": paper, "feedback": made_from} for (student, paper), made_from in hashes.items())
        self._write(update(JOURNAL).where(*mine), rows)
        self.db.commit()

    def due(self):
        """When those who have an extension are to hand in, by student."""
        columns = SUBMITTED_ASSIGNMENT.c
        mine = columns.assignment_id == self.assignment.id, columns.extension.is_not(None)
        rows = self._all(select(columns.student_id, columns.extension).where(*mine)) if self.assignment.duedate else []
        return {student: self.assignment.duedate + extension for student, extension in rows}

    # --- what the pages of feedback show ---

    def standing(self, students):
        """What the gradebook holds of these students' notebooks, by (student, paper)."""
        students = sorted(students)
        groups = [students[first : first + TOGETHER] for first in range(0, len(students), TOGETHER)]
        return {where: told for group in groups for where, told in self._standing(group)}

    def _standing(self, students):
        worth = {cell["id"]: cell["max_score"] or 0.0 for cell in self.cells}
        found = self._notebooks(self._submitted(students))
        rows = {table: self._rows(table, [row["id"] for row in found.values()]) for table in KINDS}
        for (student, paper), row in found.items():
            held = {
                table: {
                    name: (rows[table].get((row["id"], cell), NO_ROW), worth[cell]) for cell, name in self.cells_of[table, paper].items()
                }
                for table in KINDS
            }
            yield (student, paper), _standing(held[GRADE], held[COMMENT], row["late_submission_penalty"] or 0)


PATIENCE = 30.0  # s that we wait for another program, a formgrader say, to be done with the file


@contextlib.contextmanager
def _in_words():
    """The database's refusals in words."""
    try:
        yield
    except DatabaseError as error:
        raise _refused(error) from None


ADVICE = {
    "no such": "another version of nbgrader made it; `nbgrader db upgrade` brings it up to date",
    "locked": "another program is writing to it; when that is done, grade again: what is marked is kept",
    "readonly": (writable := "let yourself write to the file and to the folder it lies in, and grade again"),
    "unable to open": writable,
    "full": "make room, and grade again: what is marked is kept",
    "malformed": "put a copy of it back, and grade again: what is marked since is marked anew",
}


def _refused(error):
    said = str(error.orig)
    advice = [what for word, what in ADVICE.items() if word in said]
    return InputError("; ".join([f"the gradebook can't be used: {said}", *advice]))


def _engine(url, assignment):
    """Raises InputError where nbgrader would have to make the gradebook first: SQLite would make an empty file."""
    file = make_url(url).database if make_url(url).get_backend_name() == "sqlite" else None
    if file and not Path(file).is_file():
        raise _never_generated(assignment)
    engine = create_engine(url, connect_args={"timeout": PATIENCE} if file else {})
    if not inspect(engine).has_table(ASSIGNMENT.name):
        raise _never_generated(assignment)
    return engine


def _make_journal(engine):
    """The journal's table; one that another version of ours made is made anew, and all is marked again."""
    known = inspect(engine)
    if known.has_table(JOURNAL.name) and {column["name"] for column in known.get_columns(JOURNAL.name)} != set(JOURNAL.c.keys()):
        JOURNAL.drop(engine)
    JOURNAL.create(engine, checkfirst=True)


def _never_generated(assignment):
    return InputError(f"{assignment} is not in the gradebook: `psi course build {assignment}` puts it there")


def _taken(student, score, late, penalty):
    """What is taken from a notebook's score for being so many seconds late, at most all of it; None for nothing."""
    taken = penalty(student, score, late) if late > 0 else None
    return taken if taken is None else min(max(taken, 0), score)


def _told(done, old):
    lines = done.lines if done.whole else json.loads(old["lines"]) | done.lines
    told = {"keys": json.dumps(done.keys), "lines": json.dumps(lines), "answers": done.answers, "seconds": done.seconds}
    return told | {"notes": json.dumps(done.notes, ensure_ascii=False) if done.whole else old["notes"]}


def _change(old, new):
    """What differs in a row, to be set where its key is, or nothing."""
    changed = {name: value for name, value in new.items() if old[name] != value}
    return changed and {"key": old["id"]} | changed


def _as_before(done, source, old):
    """The lines whose answers, key and mark are as the journal tells: what a person said of them still holds.

    Of a line that no exercise of ours has, we know only whether the whole submission is as it was.
    """
    if not done or not old or not old["lines"]:
        return set()
    lines, keys, answers = (json.loads(old[column]) for column in ("lines", "keys", "answers"))
    now = json.loads(done.answers)
    same = {name for name, key in done.keys.items() if (keys.get(name), answers.get(answer_id(name))) == (key, now.get(answer_id(name)))}
    is_same = lambda exercise: exercise in same if exercise in done.keys else source == old["source"]
    return {name for name, line in done.lines.items() if lines.get(name) == line and is_same(name.rpartition("-")[0])}


def _grade(done, name, old, as_before):
    """What to set of a grade, whose row may be `old`."""
    if not done:  # our fault: what it had it keeps
        return {"needs_manual_grade": True}
    if not (entry := done.entries.get(name)):
        return {}
    waits = entry.needs_manual_grade or bool(old and old["manual_score"] is not None)
    return {"auto_score": entry.auto_score, "needs_manual_grade": old["needs_manual_grade"] if old and name in as_before else waits}


OURS = "We could not mark this submission; that is our fault, and a person will. · 我们未能评分，这是我们的问题，将由人工评分。"


def _comment(done, name, *_):
    """What to set of a comment."""
    if not done:
        return {"auto_comment": OURS}
    if name in done.entries:
        return {"auto_comment": done.entries[name].comment}
    return {"auto_comment": done.remarks[name]} if name in done.remarks else {}


def _outcome(row, waiting):
    """State, and reason in words, of a row of the journal of which so many lines wait."""
    if row["state"] == BROKEN:
        return {}
    count = "" if not waiting or row["reason"].startswith(NOTHING_READ) else "1 line waits" if waiting == 1 else f"{waiting} lines wait"
    return {"state": WAITS if waiting else GRADED, "reason": "; ".join(filter(None, [count, row["reason"]]))}


def waits(rows):
    """The reasons of who waits for a person, from rows of the journal: by student, or student and paper where there are several."""
    label = itemgetter(0) if len({paper for _, paper in rows}) == 1 else " ".join
    return {label(where): row["reason"] for where, row in sorted(rows.items()) if row["state"] == WAITS}


def _standing(grades, comments, late):
    """What the pages and tables tell of a notebook; where a person has marked, our own proposal is out of date."""
    scores = {name: (_score(row), worth) for name, (row, worth) in grades.items()}
    by_person = sorted(name for name, (row, _) in grades.items() if row["manual_score"] is not None)
    return {
        "scores": scores,
        "comments": {name: _said(row, name in by_person) for name, (row, _) in comments.items()},
        "total": sum(score for score, _ in scores.values()),
        "most": sum(worth for _, worth in scores.values()),
        "penalty": late,
        "by_person": by_person,
        "waiting": sum(row["needs_manual_grade"] for row, _ in grades.values()),
    }


def _said(row, is_by_person):
    return row["manual_comment"] if is_by_person or row["manual_comment"] is not None else row["auto_comment"]


def _score(row):
    """A grade's score, as nbgrader counts it: a person's before the machine's, and extra credit on top."""
    own = row["manual_score"] if row["manual_score"] is not None else row["auto_score"]
    return 0.0 if own is None else own + (row["extra_credit"] or 0.0)
