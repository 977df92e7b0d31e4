import pytest

from tests.nbgrader.course import PS, Course


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A course whose sample class of three was graded by the stock commands, from source to feedback."""
    course = Course(tmp_path_factory.mktemp("course"))
    course.psi("course", "build", "--source-only")
    course.nbgrader("generate_assignment", PS)
    course.psi("course", "sample")
    course.nbgrader("autograde", PS)
    course.nbgrader("generate_feedback", PS)
    return course
