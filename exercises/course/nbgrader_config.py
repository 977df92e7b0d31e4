from pathlib import Path

try:
    from autograder.nbgrader_plugin import configure
except Exception as error:  # nbgrader would only log it, run the learners' code itself, and give everyone zero
    raise SystemExit(f"nbgrader_config.py: the marking cannot be loaded, so nothing is graded: {error!r}") from error

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.course_id = "sixteen_psi"
c.CourseDirectory.root = str(Path(__file__).parent)
configure(c, assignments=str(Path(__file__).parent / "assignments"))
