"""Scores as the CSV files that learning management systems import."""

from .report import write_table
from .run import Course


def export(folder, name, lms, to=None):
    """Write the scores of an assignment for `lms` (canvas or moodle); returns (path, how many submissions still wait for a person).

    Raises InputError where nothing is marked.
    """
    course = Course.load(folder)
    with course.book(name) as book:
        students = book.students()
        standing = book.standing(set(students))
        course.refuse_nothing(name, standing)
        title = course.marker(name, book.papers()).assignment.title.en
    path = to or course.folder / "reports" / f"{name}-{lms}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = sum(bool(found["waiting"]) for found in standing.values())
    return write_table(path, TABLES[lms](title, _totals(standing), students)), waiting


def _totals(standing):
    """(score, most) by student, over all notebooks of the assignment."""
    totals = {}
    for (student, _), found in sorted(standing.items()):
        score, most = totals.get(student, (0.0, 0.0))
        totals[student] = (score + found["total"] - found["penalty"], most + found["most"])
    return totals


def _canvas(title, totals, students):
    """Canvas: a second row holds the points possible."""
    most = max((worth for _, worth in totals.values()), default=0)
    head = {"Student": "    Points Possible", "ID": "", "SIS User ID": "", "SIS Login ID": "", "Section": "", title: most}
    return [head, *({**_canvas_student(students[who]), title: round(score, 2)} for who, (score, _) in totals.items())]


def _canvas_student(student):
    name = ", ".join(filter(None, [student.last_name, student.first_name])) or student.id
    return {"Student": name, "ID": student.lms_user_id or "", "SIS User ID": student.id, "SIS Login ID": student.id, "Section": ""}


def _moodle(title, totals, students):
    """Moodle: rows are found by ID number or e-mail address."""
    told = lambda student: {"ID number": student.lms_user_id or student.id, "Username": student.id, "Email address": student.email or ""}
    return [{**told(students[who]), title: round(score, 2)} for who, (score, _) in totals.items()]


TABLES = {"canvas": _canvas, "moodle": _moodle}
