"""nbgrader's gradebook, read and written for many submissions at once, with a journal of what was marked from what.

The journal is a table of the gradebook's own database: a batch of marks and the record that they were made are one
transaction, so whatever moment the grading is killed at, both are there or neither is. And an older copy of the gradebook
put back knows by itself which marks it lacks.
"""

import json
from dataclasses import dataclass

from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.utils import parse_utc
from sqlalchemy import Column, Float, MetaData, String, Table, Text, bindparam, delete, insert, select, update

from ..nbgrader_plugin import paper_of

JOURNAL = Table(
    "psi_marked",
    MetaData(),
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("paper", String(128), primary_key=True),
    Column("source", String(64)),  # hash of what was handed in, and when
    Column("how", String(64)),  # hash of the marking, and of what was handed out
    Column("keys", Text),  # {exercise: hash of what its marks depend on}
    Column("answers", Text),
    Column("lines", Text),  # {grade id: [points, status, needs a person, mistakes]}
    Column("notes", Text),  # what was repaired, lost or unreadable, in both languages
    Column("state", String(20)),
    Column("reason", Text),
    Column("notebook", String(64)),  # hash of the notebook in autograded/
    Column("feedback", String(64)),  # hash of what the page in feedback/ was made from
    Column("seconds", Float),
)


@dataclass(frozen=True)
class Handed:
    """What is known of a submission beside its marks: when it was handed in, its hashes, and how it came out."""

    timestamp: str | None
    source: str
    how: str
    state: str
    reason: str = ""
    notebook: str = ""


class Book:
    """The gradebook of a course, as it concerns one assignment. Use it in a `with` statement."""

    def __init__(self, url, course, assignment):
        self.gradebook, self.name = Gradebook(url, course), assignment
        JOURNAL.create(self.gradebook.engine, checkfirst=True)
        self.assignment = self.gradebook.find_assignment(assignment)  # MissingEntry: it was never generated

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gradebook.close()
        self.gradebook.engine.dispose()

    @property
    def db(self):
        return self.gradebook.db

    def papers(self):
        """The Paper of each of the assignment's notebooks, by name."""
        return {notebook.name: paper_of(notebook) for notebook in self.assignment.notebooks}

    def journal(self, students=None):
        """The journal's rows by (student, paper), all of them or these students'."""
        wanted = [JOURNAL.c.assignment == self.name] + ([] if students is None else [JOURNAL.c.student.in_(students)])
        rows = self.db.execute(select(JOURNAL).where(*wanted)).mappings()
        return {(row["student"], row["paper"]): dict(row) for row in rows}

    # --- writing ---

    def enter(self, batch, penalty):
        """Write (Done or None, (student, paper), Handed) triples in one transaction; None is a submission we could not mark.

        `penalty(student, score, seconds late)` is the course's own rule. A score that a person gave is kept, and shown to
        them again, as nbgrader does.
        """
        places = self._places([(where, handed) for _, where, handed in batch])
        cells = self._cells()
        grades, comments = self._rows(Grade, places), self._rows(Comment, places)
        self._update(Grade, [row for item in batch for row in _grades(item, grades[places[item[1]]], cells)])
        self._update(Comment, [row for item in batch for row in _comments(item, comments[places[item[1]]], cells)])
        self._penalise(places, penalty)
        self._record(batch)
        self.db.commit()

    def _places(self, handed):
        """The id of each submitted notebook, by (student, paper); made with all their rows where they are not there yet."""
        students = {student for (student, _), _ in handed}
        known = set(self.db.scalars(select(Student.id).where(Student.id.in_(students))))
        self._insert(Student, [{"id": student} for student in sorted(students - known)])
        found = self._submitted(students)
        self._insert(
            SubmittedAssignment, [{"assignment_id": self.assignment.id, "student_id": student} for student in sorted(students - set(found))]
        )
        submitted = self._submitted(students)
        stamps = {student: told.timestamp for (student, _), told in handed if told.timestamp}
        self._update(SubmittedAssignment, [{"key": submitted[s], "timestamp": parse_utc(stamp)} for s, stamp in stamps.items()])
        self._complete([submitted[student] for student in students - set(found)])
        rows = self.db.execute(
            select(SubmittedAssignment.student_id, Notebook.name, SubmittedNotebook.id)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
            .where(SubmittedAssignment.id.in_(submitted.values()))
        )
        there = {(student, paper): id_ for student, paper, id_ in rows}
        return {where: there[where] for where, _ in handed}

    def _submitted(self, students):
        mine = SubmittedAssignment.assignment_id == self.assignment.id
        rows = self.db.execute(
            select(SubmittedAssignment.student_id, SubmittedAssignment.id).where(mine, SubmittedAssignment.student_id.in_(students))
        )
        return dict(rows.all())

    def _complete(self, submitted):
        """Give new submissions the rows that nbgrader gives them: each notebook, and in it each grade and each comment."""
        notebooks = list(self.assignment.notebooks)
        self._insert(SubmittedNotebook, [{"assignment_id": id_, "notebook_id": notebook.id} for id_ in submitted for notebook in notebooks])
        for notebook in notebooks:
            mine = SubmittedNotebook.notebook_id == notebook.id
            made = list(self.db.scalars(select(SubmittedNotebook.id).where(mine, SubmittedNotebook.assignment_id.in_(submitted))))
            graded, told = [*notebook.grade_cells, *notebook.task_cells], [*notebook.solution_cells, *notebook.task_cells]
            for table, cells in ((Grade, graded), (Comment, told)):
                self._insert(table, [{"notebook_id": id_, "cell_id": cell.id} for id_ in made for cell in cells])

    def _cells(self):
        """Name of each cell by its id."""
        ids = [notebook.id for notebook in self.assignment.notebooks]
        return dict(self.db.execute(select(BaseCell.id, BaseCell.name).where(BaseCell.notebook_id.in_(ids))).all())

    def _rows(self, table, places):
        """The rows of a table by submitted notebook."""
        found = {id_: [] for id_ in places.values()}
        for row in self.db.execute(select(table.__table__).where(table.__table__.c.notebook_id.in_(found))).mappings():
            found[row["notebook_id"]].append(row)
        return found

    def _insert(self, table, rows):
        if rows:
            self.db.execute(insert(table.__table__), rows)

    def _update(self, table, rows):
        """Update rows by their `key`; rows may set different columns."""
        for columns in dict.fromkeys(tuple(row) for row in rows):
            values = {name: bindparam(f"to_{name}") for name in columns if name != "key"}
            some = [{"key": row["key"]} | {f"to_{name}": row[name] for name in values} for row in rows if tuple(row) == columns]
            self.db.connection().execute(update(table.__table__).where(table.__table__.c.id == bindparam("key")).values(values), some)

    def _penalise(self, places, penalty):
        """Set the penalties for being late, as nbgrader does after marking."""
        if self.assignment.duedate is None:
            return
        self.db.expire_all()
        for (student, _), id_ in places.items():
            notebook = self.db.get(SubmittedNotebook, id_)
            late, taken = notebook.assignment.total_seconds_late, None
            if late > 0 and (taken := penalty(student, notebook.score, late)) is not None:
                taken = min(max(taken, 0), notebook.score)
            notebook.late_submission_penalty = taken

    def _record(self, batch):
        """Write the journal; a submission that was marked again in part keeps what is not told anew."""
        again = {student for done, (student, _), _ in batch if done and not done.whole}
        known = self.journal(again) if again else {}
        for done, (student, paper), handed in batch:
            mine = [JOURNAL.c.assignment == self.name, JOURNAL.c.student == student, JOURNAL.c.paper == paper]
            old = known.get((student, paper), {})
            row = {"assignment": self.name, "student": student, "paper": paper, "feedback": "", "seconds": 0.0}
            row |= {"source": handed.source, "how": handed.how, "state": handed.state, "reason": handed.reason, "notebook": handed.notebook}
            self.db.execute(delete(JOURNAL).where(*mine))
            self.db.execute(insert(JOURNAL), [row | (_told(done, old) if done else {})])

    def put_feedback(self, hashes):
        """Note what the pages of feedback were made from: hashes by (student, paper)."""
        for (student, paper), made_from in hashes.items():
            mine = [JOURNAL.c.assignment == self.name, JOURNAL.c.student == student, JOURNAL.c.paper == paper]
            self.db.execute(update(JOURNAL).where(*mine).values(feedback=made_from))
        self.db.commit()

    # --- what the pages of feedback show ---

    def standing(self, students):
        """What the gradebook holds of these students' notebooks, by (student, paper)."""
        submitted, cells = self._submitted(students), self._cells()
        most = {
            cell.name: cell.max_score for notebook in self.assignment.notebooks for cell in [*notebook.grade_cells, *notebook.task_cells]
        }
        owners = {id_: student for student, id_ in submitted.items()}
        query = select(SubmittedNotebook, Notebook.name).join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        rows = list(self.db.execute(query.where(SubmittedNotebook.assignment_id.in_(owners))).all())
        places = {(owners[row.assignment_id], name): row.id for row, name in rows}
        late = {row.id: row.late_submission_penalty or 0 for row, _ in rows}
        grades, comments = self._rows(Grade, places), self._rows(Comment, places)
        return {where: _standing(grades[id_], comments[id_], late[id_], cells, most) for where, id_ in places.items()}


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
    scores = {cells[row["cell_id"]]: (_score(row), most[cells[row["cell_id"]]]) for row in grades}
    told = {cells[row["cell_id"]]: row["manual_comment"] if row["manual_comment"] is not None else row["auto_comment"] for row in comments}
    return {
        "scores": scores,
        "comments": told,
        "total": sum(score for score, _ in scores.values()),
        "most": sum(worth for _, worth in scores.values()),
        "penalty": late,
        "waiting": sum(row["needs_manual_grade"] for row in grades),
    }


def _score(row):
    """A grade's score, as nbgrader counts it: a person's before the machine's, and extra credit on top."""
    own = row["manual_score"] if row["manual_score"] is not None else row["auto_score"]
    return 0.0 if own is None else own + (row["extra_credit"] or 0.0)
