"""A paper as the gradebook would hold it, and submissions of it, without a gradebook."""

import json

from autograder import marking
from autograder.assignment import answer_id, load_assignment, solution
from autograder.bank import Bank
from autograder.sample import flawed
from autograder.source import build

BANK = Bank()
ASSIGNMENT = load_assignment("ps01_memory")


def original(cell):
    about = cell.metadata.nbgrader
    stub = cell.source.partition("### BEGIN SOLUTION")[0].strip()
    flags = (about.locked, about.grade, about.solution, about.task)
    made = marking.Original(about.grade_id, cell.cell_type, stub, *flags, about.get("points"), None)
    return marking.Original(**(vars(made) | {"checksum": marking.checksum(made, stub)}))


PAPER = marking.Paper(ASSIGNMENT.id, tuple(original(cell) for cell in build(ASSIGNMENT, BANK).cells), {"name": "python3"})
WHO = {"perfect": solution, "flawed": flawed, "blank": lambda exercise, language: {}}


def notebook(who):
    """A submission as a dict, just as it was handed out but for the answers."""
    handed_in = marking.nothing_of(PAPER, None).notebook
    for name in ASSIGNMENT.exercises:
        if answers := WHO[who](BANK[name], "en"):
            cell_of(handed_in, answer_id(name))["source"] = "\n".join(f"{part} = {said!r}" for part, said in answers.items())
    return handed_in


def cell_of(handed_in, name):
    return next(cell for cell in handed_in["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == name)


def mark(data):
    """(Taken, results by grade id) of a submission's bytes, or of a dict."""
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    taken = marking.taken(data, PAPER)
    return taken, marking.mark_taken(taken, ASSIGNMENT, BANK).results


def score(results):
    return sum(result.points or 0 for result in results.values())
