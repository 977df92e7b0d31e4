"""The same attacks on stock nbgrader and on our jail, as a table: `python -m tests.hostile.compare` writes COMPARISON.md.

Stock nbgrader runs them without any wall, so only attacks are taken that touch nothing but the temporary folder made for
them and the process that runs them: each is named here, and no other is ever run so.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.jail import Limits, run_examined, run_jailed
from tests.hostile.attacks import HONEST, IN_PROCESS, PRELUDE, READ, TESTS, WRITE
from tests.hostile.world import World

TABLE = Path(__file__).with_name("COMPARISON.md")
# Tricks on the process that marks, none of which leaves it.
TRICKS = (
    "nothing", "patch abs", "patch isclose", "equal to everything", "a float that lies", "patch compile", "an import hook",
    "a trace function", "a display hook", "raise SystemExit while called", "raise text that looks like points", "not a function",
    "return a function", "return what can't be read", "leave while called", "true whatever is asked", "the examiner's own argument",
    "an array that equals each of its elements",
)  # fmt: skip
# And those that only a notebook's kernel can meet.
IPYTHON = {
    "an input transformer": "get_ipython().input_transformers_post.append(lambda lines: ['pass\\n'])\ndef twice(x): return 0",
    "an AST transformer": "import ast\nclass Empty(ast.NodeTransformer):\n    def visit_Module(self, node): node.body = []; return node\n"
    "get_ipython().ast_transformers.append(Empty())\ndef twice(x): return 0",
    "results that are not shown": "get_ipython().displayhook.write_format_data = lambda *a, **k: None\ndef twice(x): return 0",
    "a negative number of points": "import builtins; builtins.abs = lambda x: type('N', (float,), {'__lt__': lambda s, o: -1})(-1)\n"
    "def twice(x): return 0",
    "errors that are not shown": "get_ipython().showtraceback = lambda *a, **k: None\ndef twice(x): return 0",
}
# What reads or changes the files of a course; the course is one of the temporary folder.
FILES = (
    "read the key", "read the gradebook", "read another submission", "through a link of one's own", "through dots", "import the key",
    "map the key", "change into it", "write a file outside", "delete another submission", "give oneself points", "overwrite the key",
    "append to the key", "rename the key", "truncate by path", "truncate while opening to read", "make the key unreadable",
    "change its date", "label it", "make a folder outside", "move oneself out", "out of an archive",
)  # fmt: skip
STOCK_TESTS = (
    "assert twice(21) == 42",
    "import math\nassert math.isclose(twice(1.5), 3.0)",
    "(abs(twice(4) - 8) < 1e-9) * 1",
    "assert [twice(n) for n in (1, 2)] == [2, 4]",
    "import operator\nassert operator.eq(twice('ab'), 'abab')",
)
CONFIG = "c = get_config()\nc.CourseDirectory.course_id, c.CourseDirectory.root = 'stock', {folder!r}\nc.Execute.timeout = 8\n"
MOST = len(STOCK_TESTS)


def stock_points(cells, folder):
    """The points (None where nothing was scored) that stock nbgrader gives each of these answers, by name."""
    (folder / "nbgrader_config.py").write_text(CONFIG.format(folder=str(folder)))
    students = {f"student_{index:02}": cell for index, cell in enumerate(cells.values())}
    _hand_out(folder)
    for student, cell in students.items():
        _hand_in(folder, student, cell)
    _nbgrader(folder, "autograde", "twice")
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        scores = [[g.auto_score for g in gradebook.find_submission_notebook("twice", "twice", student).grades] for student in students]
    return {name: None if None in found else sum(found) for name, found in zip(cells, scores, strict=True)}


def _hand_out(folder):
    cells = [_cell("def twice(x):\n    ...", "answer", solution=True)]
    cells += [_cell(test, f"test_{number}", grade=True, locked=True, points=1) for number, test in enumerate(STOCK_TESTS)]
    (folder / "source" / "twice").mkdir(parents=True)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "source" / "twice" / "twice.ipynb")
    _nbgrader(folder, "generate_assignment", "twice")


def _cell(source, name, **flags):
    about = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3, "grade_id": name}
    return new_code_cell(source, id=name, metadata={"nbgrader": about | flags})


def _hand_in(folder, student, answer):
    notebook = nbformat.read(folder / "release" / "twice" / "twice.ipynb", as_version=4)
    notebook.cells[0].source = answer
    place = folder / "submitted" / student / "twice"
    place.mkdir(parents=True)
    nbformat.write(notebook, place / "twice.ipynb")


def _nbgrader(folder, *command):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, check=False
    )


def our_points(cell):
    """The points that the same answer earns here, where the tests run in another jail."""
    return run_examined([cell], [TESTS], ["points"], calls=["twice"], limits=Limits(seconds=2)).answers.get("points", 0)


def harm_in_kernel(attack, folder):
    """What an attack on files does in a kernel such as stock nbgrader starts, as words."""
    os.makedirs(folder / "work")
    world = World(folder / "course").settle()
    notebook = new_notebook(cells=[new_code_cell(PRELUDE.format(targets=world.targets()) + attack.code + "\nprint(loot)")])
    try:
        NotebookClient(notebook, timeout=20, kernel_name="python3", resources={"metadata": {"path": str(folder / "work")}}).execute()
    except CellExecutionError:
        pass
    finally:
        harm = world.harm(*notebook.cells[0].outputs)
        world.close()
    return "; ".join(harm)


def harm_in_jail(attack, folder):
    """What it does in our jail, as words."""
    world = World(folder / "course").settle()
    try:
        result = run_jailed([PRELUDE.format(targets=world.targets()), attack.code], ["loot"], limits=Limits(seconds=4))
        return "; ".join(world.harm(result))
    finally:
        world.close()


def table():
    """The comparison as Markdown."""
    tricks = {"honest work": HONEST} | {name: IN_PROCESS[name] for name in TRICKS} | IPYTHON
    attacks = {attack.name: attack for attack in (*READ, *WRITE) if attack.name in FILES}
    with tempfile.TemporaryDirectory() as top:
        stock = stock_points(tricks, Path(top))
    rows = [[name, _points(stock[name]), _points(our_points(cell))] for name, cell in tricks.items()]
    for name in FILES:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            kernel, jail = harm_in_kernel(attacks[name], Path(one)), harm_in_jail(attacks[name], Path(other))
        rows.append([name, kernel or "nothing", jail or "nothing"])
    head = ["attack", "stock nbgrader", "here"]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join([INTRODUCTION, "", *lines, ""])


def _points(points):
    return "not scored" if points is None else f"{points:g} of {MOST} points"


INTRODUCTION = """# The same attacks on stock nbgrader and here

Written by `python -m tests.hostile.compare`. No answer but the first does what is asked, so each point given is one gained by a
trick. Only attacks are compared that can be run without a wall and touch nothing but a temporary folder; `attacks.py` holds all."""


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
