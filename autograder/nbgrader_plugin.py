"""Our marking inside stock nbgrader: `configure(c)` in nbgrader_config.py puts these into its lists of preprocessors.

Reader takes any file that was handed in, whole or damaged. Restore rebuilds the notebook from the gradebook, so nothing
that a submission says about itself counts. Mark stands where nbgrader would run the learner's kernel: it reads the
answers, marks them here, and writes each grade cell's output as nbgrader expects it, so that its own saving, feedback,
formgrader and export work on. Propose then enters what nbgrader does not know of: points of task cells, proposals for a
person, and comments. Conceal keeps mark schemes out of feedback that is made before the deadline; TellByPerson says there
which lines a person has marked, and the page's exporter what they are called. `psi grade` marks by the same functions and
needs none of these but the exporter.
"""

from .assignment import COURSE
from .bank import ROOT

STOCK, STEPS = "nbgrader.preprocessors.", "autograder.nbgrader_steps."  # by name, since both are slow to load and often not needed

# whose a file is that `nbgrader zip_collect` has unpacked, by its path
COLLECTED = (
    r".*[/\\](?P<assignment>[^/\\]+)[/\\]extracted[/\\](?:.*[/\\])?"
    r"(?:(?P=assignment)_)?(?!(?P=assignment)[/\\.])(?P<student_id>[^/\\._][^/\\]*?)"
    r"(?:_attempt_(?P<timestamp>[0-9-]+)_"  # Blackboard: ps01_ANN_attempt_2026-01-30-15-30-10_ps01.ipynb
    r"|_(?:(?![^/\\]*_attempt_)[^/\\]*_)?"  # Canvas: ANN_LATE_123_456_ps01-1.ipynb
    r"|(?:_\d+_assignsubmission_file_?)?[/\\](?:(?P=assignment)[/\\])?"  # Moodle: ANN_123_assignsubmission_file_/ps01.ipynb
    r")(?P<file_id>(?P=assignment))(?:[- (][^/\\]*)?\.ipynb$"
)


def configure(c, assignments=str(COURSE / "assignments"), bank=str(ROOT / "bank")):
    """Make nbgrader mark with the bank. `assignments` and `bank` are the folders that hold their YAML files."""
    c.ClearSolutions.code_stub = {"python": ""}  # the answer cells hold stubs of their own
    c.FileNameCollectorPlugin.named_regexp = COLLECTED
    c.Autograde.exporter_class = STEPS + "Reader"
    c.Autograde.sanitize_preprocessors = [STEPS + "Restore"]
    c.Autograde.autograde_preprocessors = [
        STEPS + "Mark",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        STOCK + "LimitOutput",
        STOCK + "SaveAutoGrades",
        STEPS + "Propose",
        STOCK + "AssignLatePenalties",
        STOCK + "CheckCellMetadata",
    ]
    c.GenerateFeedback.exporter_class = "autograder.grading.page.Feedback"
    c.GenerateFeedback.preprocessors = [
        STEPS + "Conceal",
        STEPS + "TellByPerson",
        STOCK + "GetGrades",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.WithBank.assignments, c.WithBank.bank = assignments, bank
