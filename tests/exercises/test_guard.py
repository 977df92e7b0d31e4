"""The cell that stands for a line with a key: silent for a learner, and never a point where our marking is not set up."""

import pytest

from autograder.source import GUARD


def test_running_it_as_a_learner_does_nothing(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    exec(GUARD)


@pytest.mark.parametrize("by", ["autograde", "validate"])
def test_nbgrader_gives_no_points_for_it_and_calls_nothing_right(monkeypatch, by):
    monkeypatch.setenv("NBGRADER_EXECUTION", by)
    with pytest.raises(AssertionError, match="marked after you hand in"):
        exec(GUARD)
