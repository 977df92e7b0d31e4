"""The ten slips of chapter 0: the right amounts pass, what is printed in the chapter does not."""

import re
from pathlib import Path

import jupytext
import pytest

RIGHT = ["36.51 GB", "335.5 MB", "13.42 GB", "805.3 MB", "77.31 GB", "50 GB/s", "14 GB", "1.12 TB", "1.12 TB", "49 s"]
PRINTED = ["34 GB", "320 MB", "12.8 GB", "768 MB", "72 GB", "400 GB/s", "7 GB", "1.019 TB", "140 GB", "49 min"]


@pytest.fixture(scope="module")
def marked():
    """`marked(answers)`: what the cell of the answers prints, a line for each."""
    path = Path(__file__).parents[2] / "chapters/00_conventions.py"
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    (last,) = (place for place, cell in enumerate(cells) if cell.startswith("answers = {1: None"))
    names = {}
    for cell in (cells[0], *cells[last - 2 : last]):
        exec(cell, names)

    def marked(answers, capsys):
        given = dict(enumerate(answers, 1))
        capsys.readouterr()
        exec(re.sub(r"answers = .*", lambda _: f"answers = {given}", cells[last], count=1), names)
        return capsys.readouterr().out.splitlines()

    return marked


def test_ten_right_amounts_pass(marked, capsys):
    assert [line.split()[1] for line in marked(RIGHT, capsys)] == ["passed"] * 10


def test_the_printed_figures_do_not(marked, capsys):
    assert [line.split()[1] for line in marked(PRINTED, capsys)] == ["failed"] * 10
