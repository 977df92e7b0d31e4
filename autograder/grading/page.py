"""The feedback page's exporter: what all of a class share, questions above all, is turned into HTML once."""

import re
from functools import cached_property, lru_cache
from pathlib import Path

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from traitlets import default

from ..source import WAIT

LINE = re.compile(rf"(?:# |\*\*)(.+) \([^()]+\)(?:\*\*)?: (?:{WAIT.en}|{WAIT.zh})")  # how `source` heads the cell of a line
QUESTION = re.compile("## (.+)")
KEPT = 1024  # texts
SHARED = 2_000  # characters; what a whole class shares is not longer, and what a learner wrote may be


class Feedback(HTMLExporter):
    """nbconvert's HTML exporter without its pass over the finished page, which only marks parts of another template."""

    @default("raw_template")
    def _raw_template_default(self):
        return Path(__file__).with_name("feedback.html.j2").read_text(encoding="utf-8")

    def from_notebook_node(self, nb, resources=None, **more):
        _name_cells(nb)
        self.register_filter("highlight_code", self._highlight)
        self.register_filter("filter_data_type", WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self))
        return TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **more)

    @pass_context
    def markdown2html(self, context, source):
        return self._markdown(source)

    @cached_property
    def _markdown(self):
        return _kept(lambda source: HTMLExporter.markdown2html(self, {}, source))

    @cached_property
    def _highlight(self):
        highlight = _kept(Highlight2HTML(pygments_lexer="ipython3", parent=self))
        return lambda source, metadata=None: highlight(source)


def _name_cells(notebook):
    """Tell the list on top what the questions and lines are called."""
    for cell in notebook.cells:
        if about := cell.metadata.get("nbgrader"):
            is_worth = about.grade or about.task
            named = (LINE if is_worth else QUESTION).match(cell.source)
            about["title"] = named[1] if named else about.grade_id if is_worth else ""


def _kept(convert):
    """`convert`, which keeps what it made of the latest short texts."""
    again = lru_cache(KEPT)(convert)
    return lambda source: (again if len(source) <= SHARED else convert)(source)
