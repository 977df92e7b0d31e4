"""The tables of nbgrader's gradebook, as far as grading reads and writes them, and our own journal beside them.

They are written down here because loading nbgrader's own classes takes longer than marking many submissions; a test holds
them against those.
"""

from secrets import token_hex

from sqlalchemy import Boolean, Column, DateTime, Float, Interval, MetaData, String, Table, Text

NBGRADER = MetaData()


def _table(name, *columns):
    return Table(name, NBGRADER, Column("id", String(32), primary_key=True, default=lambda: token_hex(16)), *columns)


def _key(name):
    return Column(name, String(32))


def _name(name="name"):
    return Column(name, String(128))


ASSIGNMENT = _table("assignment", _name(), Column("duedate", DateTime))
NOTEBOOK = _table("notebook", _name(), _key("assignment_id"), Column("kernelspec", String(1024)))
BASE_CELL = _table("base_cell", _name(), _key("notebook_id"), Column("type", String(50)))
GRADE_CELL = _table("grade_cells", Column("max_score", Float))
TASK_CELL = _table("task_cells", Column("max_score", Float))
SOURCE_CELL = _table(
    "source_cell",
    _name(),
    _key("notebook_id"),
    Column("cell_type", String(8)),
    Column("locked", Boolean),
    Column("source", Text),
    _name("checksum"),
)
STUDENT = Table(
    "student", NBGRADER, Column("id", String(128), primary_key=True), *map(_name, ("first_name", "last_name", "email", "lms_user_id"))
)
SUBMITTED_ASSIGNMENT = _table(
    "submitted_assignment", _key("assignment_id"), _name("student_id"), Column("timestamp", DateTime), Column("extension", Interval)
)
SUBMITTED_NOTEBOOK = _table(
    "submitted_notebook",
    _key("assignment_id"),
    _key("notebook_id"),
    Column("flagged", Boolean, default=False),
    Column("late_submission_penalty", Float),
)
GRADE = _table(
    "grade",
    _key("notebook_id"),
    _key("cell_id"),
    *(Column(name, Float) for name in ("auto_score", "manual_score", "extra_credit")),
    Column("needs_manual_grade", Boolean, default=True),
)
COMMENT = _table("comment", _key("notebook_id"), _key("cell_id"), Column("auto_comment", Text), Column("manual_comment", Text))

JOURNAL = Table(
    "psi_marked",
    MetaData(),
    *(Column(name, String(128), primary_key=True) for name in ("assignment", "student", "paper")),
    Column("source", String(64)),  # hash of what was handed in
    Column("how", String(64)),  # hash of the marking, of what was handed out, and of when it was handed in and due
    Column("keys", Text),  # {exercise: hash of what its marks depend on}
    Column("answers", Text),
    Column("lines", Text),  # {grade id: [points, status, needs a person, mistakes]}
    Column("notes", Text),  # what was repaired, lost or unreadable, in both languages
    Column("state", String(20)),
    Column("reason", Text),  # but for how many lines wait, which the gradebook tells
    Column("notebook", String(64)),  # hash of the notebook in autograded/
    Column("feedback", String(64)),  # hash of what the page in feedback/ was made from
    Column("seconds", Float),
)
