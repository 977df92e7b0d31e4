"""Each student's own numbers: the same bank seen by one student of a course, reproducible by the grader and the instructor.

nbgrader releases one notebook for all. Where an assignment says `variants: per_student`, its release still holds the
bank's own numbers; `psi course variant STUDENT ASSIGNMENT --write` makes from it the notebook to hand to one student,
under the same names, so that submissions are collected as ever. When marking, nbgrader says whose submission it is, and
questions, mark schemes and keys are worked out again for that student.
"""

import hashlib
from collections.abc import Mapping

from .assignment import solution

SECRET = "variant_secret.txt"


def secret(course):
    """What the course keeps to itself, so that nobody can draw another's numbers; empty if there is no such file."""
    path = course / SECRET
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def seed(student, assignment, exercise, key=""):
    """The seed of a student's numbers in an exercise of an assignment."""
    return hashlib.sha256("\0".join([key, student, assignment, exercise]).encode()).hexdigest()


class StudentBank(Mapping):
    """A bank as a student of a course meets it in an assignment."""

    def __init__(self, bank, student, assignment, key=""):
        self.bank, self.student, self.assignment, self.key, self.drawn = bank, student, assignment, key, {}

    def __getitem__(self, name):
        if name not in self.drawn:
            self.drawn[name] = self.bank[name].variant(seed(self.student, self.assignment.id, name, self.key))
        return self.drawn[name]

    def __iter__(self):
        return iter(self.bank)

    def __len__(self):
        return len(self.bank)


def bank_for(bank, student, assignment, course):
    """The bank that a student's submission is marked by."""
    return StudentBank(bank, student, assignment, secret(course)) if assignment.variants == "per_student" else bank


def numbers(assignment, bank):
    """Given values and keys of each exercise that has numbers of its own, as an instructor may want to check them."""
    for name in assignment.exercises:
        exercise = bank[name]
        if exercise.ranges:
            key = {part: answer for part, answer in solution(exercise, "en").items() if exercise.part(part).type != "reason"}
            yield {"exercise": name, "given": dict(exercise.given), "key": key}
