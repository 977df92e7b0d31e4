"""The feedback page's exporter: what all of a class share, questions above all, is turned into HTML once."""

from functools import cached_property, lru_cache

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter

KEPT = 1024  # texts
SHARED = 2_000  # characters; what a whole class shares is not longer, and what a learner wrote may be


class Feedback(HTMLExporter):
    """nbconvert's HTML exporter without its pass over the finished page, which only marks parts of another template."""

    def from_notebook_node(self, nb, resources=None, **more):
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


def _kept(convert):
    """`convert`, which keeps what it made of the latest short texts."""
    again = lru_cache(KEPT)(convert)
    return lambda source: (again if len(source) <= SHARED else convert)(source)
