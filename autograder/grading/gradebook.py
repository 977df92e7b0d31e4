"""nbgrader's gradebook, read and written for many submissions at once, with a journal of what was marked from what.

The journal is a table of the gradebook's own database: a batch of marks and the record that they were made are one
transaction, so whatever moment the grading is killed at, both are there or neither is. And an older copy of the gradebook
put back knows by itself which marks it lacks.
"""

import contextlib
import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from sqlalchemy import bindparam, create_engine, delete, insert, inspect, select, tuple_, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError

from formulary import InputError

from .. import marking
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

GRADED, WAITS, BROKEN = "graded", "needs a person", "broken"
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
            self.assignment = self.db.execute(select(ASSIGNMENT).where(ASSIGNMENT.c.name == assignment)).one_or_none()
        if self.assignment is None:
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
    def names(self):
        """Name of each of these cells, by id."""
        return {cell["id"]: cell["name"] for cell in self.cells}

    def papers(self):
        """The Paper of each of the assignment's notebooks, by name."""
        return {name: self._paper(id_, name) for id_, name in self.notebooks.items()}

    def _paper(self, id_, name):
        mine = [cell for cell in self.cells if cell["notebook_id"] == id_]
        of = {kind: {cell["name"] for cell in mine if cell["type"] == kind} for kind in ("TaskCell", "SolutionCell")}
        points = {cell["name"]: cell["max_score"] for cell in mine if cell["max_score"] is not None}
        sources = self._all(select(SOURCE_CELL).where(SOURCE_CELL.c.notebook_id == id_))
        kernel = self.db.scalar(select(NOTEBOOK.c.kernelspec).where(NOTEBOOK.c.id == id_))
        return marking.paper(name, kernel, sources, points, of["TaskCell"], of["SolutionCell"])

    def students(self):
        """The rows of all students, by id."""
        return {student.id: student for student in self._all(select(STUDENT))}

    def journal(self):
        """The journal's rows by (student, paper); what a person has done since is done."""
        rows = self._journal()
        waiting = self._waiting()
        done = {where: {"state": GRADED, "reason": ""} for where, row in rows.items() if row["state"] == WAITS and where not in waiting}
        return {where: row | done.get(where, {}) for where, row in rows.items()}

    def _journal(self, *only):
        """The rows as they were written: all of them, or those that are `only`."""
        found = self.db.execute(select(JOURNAL).where(JOURNAL.c.assignment == self.name, *only)).mappings()
        return {(row["student"], row["paper"]): dict(row) for row in found}

    def _waiting(self):
        """The (student, paper) of which some line needs a person."""
        query = select(SUBMITTED_ASSIGNMENT.c.student_id, SUBMITTED_NOTEBOOK.c.notebook_id).distinct()
        query = query.join(SUBMITTED_NOTEBOOK, SUBMITTED_NOTEBOOK.c.assignment_id == SUBMITTED_ASSIGNMENT.c.id)
        query = query.join(GRADE, GRADE.c.notebook_id == SUBMITTED_NOTEBOOK.c.id)
        found = self._all(query.where(SUBMITTED_ASSIGNMENT.c.assignment_id == self.assignment.id, GRADE.c.needs_manual_grade))
        return {(student, self.notebooks[notebook]) for student, notebook in found}

    # --- writing ---

    def enter(self, batch, penalty):
        """Write (Done or None, (student, paper), Handed) triples in one transaction; None is a submission we could not mark.

        `penalty(student, score, seconds late)` is the course's own rule. A score that a person gave is kept, and shown to
        them again, as nbgrader does.
        """
        places = self._places([(where, handed) for _, where, handed in batch])
        grades, comments = self._rows(GRADE, places), self._rows(COMMENT, places)
        self._update(GRADE, [row for item in batch for row in _grades(item, grades[places[item[1]]], self.names)])
        self._update(COMMENT, [row for item in batch for row in _comments(item, comments[places[item[1]]], self.names)])
        self._penalise(places, penalty)
        self._record(batch)
        self.db.commit()

    def _places(self, handed):
        """The id of each submitted notebook, by (student, paper); made with all their rows where they are not there yet."""
        students = {student for (student, _), _ in handed}
        known = set(self.db.scalars(select(STUDENT.c.id).where(STUDENT.c.id.in_(students))))
        self._insert(STUDENT, [{"id": student} for student in sorted(students - known)])
        found = self._submitted(students)
        new = sorted(students - set(found))
        self._insert(SUBMITTED_ASSIGNMENT, [{"assignment_id": self.assignment.id, "student_id": student} for student in new])
        submitted = self._submitted(students)
        stamps = {student: told.timestamp for (student, _), told in handed if told.timestamp}
        self._update(SUBMITTED_ASSIGNMENT, [{"key": submitted[s], "timestamp": moment(stamp)} for s, stamp in stamps.items()])
        self._complete([submitted[student] for student in new])
        there = {where: row.id for where, row in self._notebooks(submitted).items()}
        return {where: there[where] for where, _ in handed}

    def _submitted(self, students):
        """The ids of these students' submissions, by student."""
        mine, columns = SUBMITTED_ASSIGNMENT.c.assignment_id == self.assignment.id, SUBMITTED_ASSIGNMENT.c
        return dict(self._all(select(columns.student_id, columns.id).where(mine, columns.student_id.in_(students))))

    def _notebooks(self, submitted):
        """The row of each submitted notebook by (student, paper), from the submissions' ids by student."""
        owners = {id_: student for student, id_ in submitted.items()}
        rows = self._all(select(SUBMITTED_NOTEBOOK).where(SUBMITTED_NOTEBOOK.c.assignment_id.in_(owners)))
        return {(owners[row.assignment_id], self.notebooks[row.notebook_id]): row for row in rows}

    def _complete(self, submitted):
        """Give new submissions the rows that nbgrader gives them: each notebook, and in it each grade and each comment."""
        self._insert(
            SUBMITTED_NOTEBOOK, [{"assignment_id": id_, "notebook_id": notebook} for id_ in submitted for notebook in self.notebooks]
        )
        made = self._all(select(SUBMITTED_NOTEBOOK).where(SUBMITTED_NOTEBOOK.c.assignment_id.in_(submitted)))
        for table, kinds in ((GRADE, ("GradeCell", "TaskCell")), (COMMENT, ("SolutionCell", "TaskCell"))):
            cells = [(cell["id"], cell["notebook_id"]) for cell in self.cells if cell["type"] in kinds]
            self._insert(table, [{"notebook_id": row.id, "cell_id": id_} for row in made for id_, home in cells if home == row.notebook_id])

    def _rows(self, table, places):
        """The rows of a table by submitted notebook."""
        found = {id_: [] for id_ in places.values()}
        for row in self.db.execute(select(table).where(table.c.notebook_id.in_(found))).mappings():
            found[row["notebook_id"]].append(row)
        return found

    def _all(self, query):
        return self.db.execute(query).all()

    def _insert(self, table, rows):
        if rows:
            self.db.execute(insert(table), rows)

    def _update(self, table, rows):
        """Update rows by their `key`; rows may set different columns."""
        for columns in dict.fromkeys(tuple(row) for row in rows):
            values = {name: bindparam(f"to_{name}") for name in columns if name != "key"}
            some = [{"key": row["key"]} | {f"to_{name}": row[name] for name in values} for row in rows if tuple(row) == columns]
            self.db.execute(update(table).where(table.c.id == bindparam("key")).values(values), some)

    def _penalise(self, places, penalty):
        """Set the penalties for being late, as nbgrader does after marking."""
        if self.assignment.duedate is None:
            return
        submitted = self._submitted({student for student, _ in places}).values()
        rows = self._all(select(SUBMITTED_ASSIGNMENT).where(SUBMITTED_ASSIGNMENT.c.id.in_(submitted)))
        late = {row.student_id: self._seconds_late(row) for row in rows}
        grades = self._rows(GRADE, places)
        taken = [{"key": id_, "late_submission_penalty": _taken(who, grades[id_], late[who], penalty)} for (who, _), id_ in places.items()]
        self._update(SUBMITTED_NOTEBOOK, taken)

    def _seconds_late(self, submitted):
        due = self.assignment.duedate + submitted.extension if submitted.extension else self.assignment.duedate
        return (submitted.timestamp - due).total_seconds() if submitted.timestamp else 0

    def _record(self, batch):
        """Write the journal; a submission that was marked again in part keeps what is not told anew."""
        again = {student for done, (student, _), _ in batch if done and not done.whole}
        known = self._journal(JOURNAL.c.student.in_(again)) if again else {}
        these = tuple_(JOURNAL.c.student, JOURNAL.c.paper).in_([where for _, where, _ in batch])
        self.db.execute(delete(JOURNAL).where(JOURNAL.c.assignment == self.name, these))
        for done, (student, paper), handed in batch:
            row = {"assignment": self.name, "student": student, "paper": paper, "feedback": "", "seconds": 0.0}
            row |= {"source": handed.source, "how": handed.how, "state": handed.state, "reason": handed.reason, "notebook": handed.notebook}
            self.db.execute(insert(JOURNAL), [row | (_told(done, known.get((student, paper), {})) if done else {})])

    def put_feedback(self, hashes):
        """Note what the pages of feedback were made from: hashes by (student, paper)."""
        for (student, paper), made_from in hashes.items():
            mine = [JOURNAL.c.assignment == self.name, JOURNAL.c.student == student, JOURNAL.c.paper == paper]
            self.db.execute(update(JOURNAL).where(*mine).values(feedback=made_from))
        self.db.commit()

    # --- what the pages of feedback show ---

    def standing(self, students):
        """What the gradebook holds of these students' notebooks, by (student, paper)."""
        students = sorted(students)
        groups = [students[first : first + TOGETHER] for first in range(0, len(students), TOGETHER)]
        return {where: told for group in groups for where, told in self._standing(group)}

    def _standing(self, students):
        rows = self._notebooks(self._submitted(students))
        most = {cell["name"]: cell["max_score"] for cell in self.cells if cell["max_score"] is not None}
        places = {where: row.id for where, row in rows.items()}
        late = {row.id: row.late_submission_penalty or 0 for row in rows.values()}
        grades, comments = self._rows(GRADE, places), self._rows(COMMENT, places)
        return [(where, _standing(grades[id_], comments[id_], late[id_], self.names, most)) for where, id_ in places.items()]


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


def _taken(student, grades, late, penalty):
    """What is taken from a notebook's score for being so many seconds late, at most all of it; None for nothing."""
    score = sum(map(_score, grades))
    taken = penalty(student, score, late) if late > 0 else None
    return taken if taken is None else min(max(taken, 0), score)


def _told(done, old):
    lines = done.lines if done.whole else json.loads(old["lines"]) | done.lines
    told = {"keys": json.dumps(done.keys), "lines": json.dumps(lines), "answers": done.answers, "seconds": done.seconds}
    return told | {"notes": json.dumps(done.notes, ensure_ascii=False) if done.whole else old["notes"]}


def _grades(item, rows, cells):
    """What to set of each grade of a submission."""
    done = item[0]
    for row in rows:
        entry = done and done.entries.get(cells[row["cell_id"]])
        if entry:
            waits = entry.needs_manual_grade or row["manual_score"] is not None
            yield {"key": row["id"], "auto_score": entry.auto_score, "needs_manual_grade": waits}
        elif not done:  # our fault: what it had it keeps
            yield {"key": row["id"], "needs_manual_grade": True}


OURS = "We could not mark this submission; that is our fault, and a person will. · 我们未能评分，这是我们的问题，将由人工评分。"


def _comments(item, rows, cells):
    """What to set of each comment of a submission."""
    done = item[0]
    for row in rows:
        name = cells[row["cell_id"]]
        if not done:
            yield {"key": row["id"], "auto_comment": OURS}
        elif name in done.entries or name in done.remarks:
            yield {"key": row["id"], "auto_comment": done.entries[name].comment if name in done.entries else done.remarks[name]}


def _standing(grades, comments, late, cells, most):
    """What the pages and tables tell of a notebook; where a person has marked, our own proposal is out of date."""
    scores = {cells[row["cell_id"]]: (_score(row), most[cells[row["cell_id"]]]) for row in grades}
    by_person = [cells[row["cell_id"]] for row in grades if row["manual_score"] is not None]
    return {
        "scores": scores,
        "comments": {cells[row["cell_id"]]: _comment(row, cells[row["cell_id"]] in by_person) for row in comments},
        "total": sum(score for score, _ in scores.values()),
        "most": sum(worth for _, worth in scores.values()),
        "penalty": late,
        "by_person": sorted(by_person),
        "waiting": sum(row["needs_manual_grade"] for row in grades),
    }


def _comment(row, is_by_person):
    return row["manual_comment"] if is_by_person or row["manual_comment"] is not None else row["auto_comment"]


def _score(row):
    """A grade's score, as nbgrader counts it: a person's before the machine's, and extra credit on top."""
    own = row["manual_score"] if row["manual_score"] is not None else row["auto_score"]
    return 0.0 if own is None else own + (row["extra_credit"] or 0.0)
