"""Jobs that go wrong, and a look at what processes they leave."""

import subprocess
import textwrap

import pytest

# Each rank first leaves the number of its process group beside the script.
PREAMBLE = """
import os, sys, time
with open(f"{os.path.dirname(__file__)}/group{os.environ['RANK']}", "w") as file:
    file.write(str(os.getpgid(0)))
"""


@pytest.fixture
def job(tmp_path):
    """Writes a job script."""

    def write(text):
        path = tmp_path / "job.py"
        path.write_text(PREAMBLE + textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def groups_left(tmp_path):
    """The process groups of the job's ranks that still have a process in them."""

    def left():
        told = {int(path.read_text()) for path in tmp_path.glob("group*")}
        assert told, "no rank got as far as telling its group"
        return told & _living_groups()

    return left


def _living_groups():
    """The groups of all processes but zombies, which have ended and only wait to be reaped."""
    table = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return {int(group) for group, state in map(str.split, table.splitlines()) if not state.startswith("Z")}
