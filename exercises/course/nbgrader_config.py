from pathlib import Path

from autograder.nbgrader_plugin import configure

c = get_config()  # noqa: F821  nbgrader provides it
c.CourseDirectory.course_id = "sixteen_psi"
c.CourseDirectory.root = str(Path(__file__).parent)
configure(c, assignments=str(Path(__file__).parent / "assignments"))
