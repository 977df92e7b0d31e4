"""The feedback page's exporter: what all of a class share, questions above all, is turned into HTML once."""

from functools import lru_cache

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter

KEPT = 4096  # texts


class Feedback(HTMLExporter):
    """nbconvert's HTML exporter without its pass over the finished page, which only marks parts of another template."""

    def from_notebook_node(self, nb, resources=None, **more):
        self.register_filter("highlight_code", self._highlight)
        self.register_filter("filter_data_type", WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self))
        return TemplateExporter.from_notebook_node(self, nb, self._init_resources(resources), **more)

    @pass_context
    def markdown2html(self, context, source):
        return self._markdown(source)

    @property
    def _highlight(self):
        return _highlighter(self)

    @lru_cache(KEPT)  # noqa: B019  there is one exporter in a process
    def _markdown(self, source):
        return HTMLExporter.markdown2html(self, {}, source)


@lru_cache(1)
def _highlighter(exporter):
    highlight = lru_cache(KEPT)(Highlight2HTML(pygments_lexer="ipython3", parent=exporter))
    return lambda source, metadata=None: highlight(source)
