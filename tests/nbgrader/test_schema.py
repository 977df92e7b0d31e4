"""What we write down of nbgrader, since its own classes are slow to load, is what nbgrader says."""

import pytest
from nbgrader.api import Base
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc

from autograder.grading import gradebook, run, schema


@pytest.mark.parametrize("table", schema.NBGRADER.tables.values(), ids=str)
def test_a_table_is_nbgraders(table):
    theirs = Base.metadata.tables[table.name]
    for column in table.columns:
        assert theirs.columns[column.name].type.python_type is column.type.python_type
        assert theirs.columns[column.name].primary_key == column.primary_key


@pytest.mark.parametrize("table", schema.NBGRADER.tables.values(), ids=str)
def test_a_row_we_make_holds_what_nbgrader_would_put_there(table):
    wanted = {column.name: column.default for column in Base.metadata.tables[table.name].columns if column.default is not None}
    if table.name in ("grade", "comment", "submitted_notebook", "submitted_assignment"):  # those we make
        for name, default in wanted.items():
            ours = table.columns[name].default
            assert ours.is_callable == default.is_callable
            assert ours.is_callable or ours.arg == default.arg


def test_every_column_that_must_hold_something_is_filled():
    for table in (schema.GRADE, schema.COMMENT, schema.SUBMITTED_NOTEBOOK, schema.SUBMITTED_ASSIGNMENT, schema.STUDENT):
        needed = {column.name for column in Base.metadata.tables[table.name].columns if not column.nullable}
        assert needed <= set(table.columns.keys())


def test_the_folders_are_where_nbgrader_looks_for_them():
    told = CourseDirectory()
    assert {name: getattr(told, name) for name in run.FOLDERS} == run.FOLDERS


@pytest.mark.parametrize(
    "stamp",
    ["2026-01-30 15:58:23.948203 UTC", "2026-01-30 15:58:23 UTC", "2026-01-30", "2026-01-30 15:58:23.5 PST", "2026-01-30T15:58:23+08:00"],
)
def test_a_moment_is_read_as_nbgrader_reads_it(stamp):
    assert gradebook.moment(stamp) == parse_utc(stamp)
