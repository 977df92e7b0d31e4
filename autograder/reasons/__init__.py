"""Marking free-text reasons by what they claim.

TODO method
"""

from autograder.reasons.mark import Match, ReasonMark, mark_reason
from autograder.reasons.rubric import Rubric, RubricError, load_rubric

__all__ = ["Match", "ReasonMark", "Rubric", "RubricError", "load_rubric", "mark_reason"]
