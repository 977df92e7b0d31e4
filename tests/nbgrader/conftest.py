import pytest

from tests.nbgrader.course import Copy, Course


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A course whose sample class of three was graded by the stock commands, from source to feedback."""
    course = Course(tmp_path_factory.mktemp("course"))
    course.grade()
    return course


@pytest.fixture
def fresh(course, tmp_path):
    """The sample class of three, not marked yet."""
    return Copy(course, tmp_path / "course")
