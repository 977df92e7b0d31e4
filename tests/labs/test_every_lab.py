"""What every lab must have: a job, predictions that show themselves, a notebook with its seven parts that opens with Colab's cell."""

from pathlib import Path

import pytest

from labs import LABS, load
from labs.launch import ROOT

NOTEBOOKS = Path(ROOT, "labs/notebooks")
# part of a lab: how its notebook shows it
PARTS = {
    "the job": "labs/jobs/",
    "the learner's prediction": "my_prediction = {",
    "the formulas'": "formula(",
    "the run": "lab.run(",
    "a picture": ".figure()",
    "points for the prediction": ".guesses(my_prediction",
    "the differences by name": "differences, by name",
    "points for the explanation": ".explained(my_explanation)",
}


@pytest.mark.parametrize("name", LABS)
def test_a_lab_has_its_parts(name):
    lab = load(name)
    assert lab.name == name and lab.script.is_file() and lab.conditions["device"] == "cpu"
    assert lab.script.name in lab.script.read_text(), "the job says how it is started"
    source = (NOTEBOOKS / f"{name}.py").read_text()
    assert [part for part, sign in PARTS.items() if sign not in source] == []
    assert source.index('if "google.colab" in sys.modules') < source.index("from labs")
    assert "| prediction |" in lab.predictions()._repr_markdown_()


def test_every_notebook_is_of_a_lab():
    assert {path.stem for path in NOTEBOOKS.glob("*.py")} == set(LABS)
