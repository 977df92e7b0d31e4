"""A question as stock ipywidgets, for a chapter's "check yourself": fields that the keyboard reaches, a button, and the marks."""

import ipywidgets as widgets

from formulary.claim import Statement

from .assignment import how
from .exercise import Text

CHECK = Text(en="Check", zh="检查")
QUESTION = "application/vnd.sixteen-psi.question+json"  # which question it is, for a page that makes a form of its own of it
LAYOUT = {"width": "auto", "max_width": "48em"}
FIELD = "psi-field"
# ipywidgets sets a label beside its field, in one line that leaves a field what room is left, and cuts what is too long
STYLE = """<style>
.psi-field.jupyter-widgets { display: block; height: auto; }
.psi-field.jupyter-widgets > label.widget-label { display: block; width: auto; height: auto; margin: 0; text-align: left; }
.psi-field.jupyter-widgets, .psi-field.jupyter-widgets > label { line-height: 1.5; white-space: normal; overflow-wrap: anywhere; }
.psi-field.jupyter-widgets > :is(input, select, textarea) { width: 100%; min-width: 12em; min-height: 28px; }
.psi-field.jupyter-widgets > label.widget-label-basic { display: flex; align-items: baseline; }
.psi-field.jupyter-widgets > label > input { flex: none; align-self: baseline; }
</style>"""


class Form(widgets.VBox):
    """The form's box; where widgets cannot be shown, the question can be read in its place."""

    def __init__(self, question, *children):
        super().__init__(children)
        self.question = question

    def _repr_mimebundle_(self, **options):
        named = {"id": self.question.exercise.id, "languages": list(self.question.languages)}
        return super()._repr_mimebundle_(**options) | {"text/markdown": self.question._repr_markdown_(), QUESTION: named}


def form(question):
    """A box with the question, one labelled field a part, and a button that shows the marks below."""
    fields = {part.name: field(question.exercise, part, question.languages) for part in question.exercise.parts}
    button, marks = widgets.Button(description=CHECK.say(question.languages)), widgets.HTML()

    def check(_):
        answers = {name: answer_of(box) for name, box in fields.items()}
        marks.value = f'<div role="status">{question.check(**answers)._repr_html_()}</div>'

    button.on_click(check)
    return Form(question, shown(question.text), *fields.values(), style(), button, marks)


def style():
    """A widget that is not seen and says how fields look; whatever holds fields holds one."""
    return widgets.HTML(STYLE, layout={"display": "none"})


def shown(markdown):
    """A widget that shows markdown, its formulas set."""
    out = widgets.Output()
    out.append_display_data(Statement(markdown))
    return out


class Several(widgets.VBox):
    """A box to tick for each option (label, value); `.value` holds those of the ticked ones."""

    def __init__(self, options, description, layout):
        tick = lambda label: widgets.Checkbox(description=label, indent=False, layout=LAYOUT).add_class(FIELD)
        self.ticks = {value: tick(label) for label, value in options}
        super().__init__([widgets.Label(description).add_class(FIELD), *self.ticks.values()], layout=layout)

    @property
    def value(self):
        return tuple(value for value, tick in self.ticks.items() if tick.value)


def field(exercise, part, languages):
    """The widget to answer a part in, with its label, which is read out with it, above it."""
    return FIELDS[part.type](exercise, part, languages, description=part.label.say(languages), layout=LAYOUT).add_class(FIELD)


def _verdict(exercise, part, languages, **look):
    return widgets.Dropdown(options=[("", None), ("True", True), ("False", False)], **look)


def _choice(exercise, part, languages, **look):
    options = [(f"{option.key}  {option.text.say(languages)}", option.key) for option in part.options]
    return Several(options, **look) if exercise.several(part) else widgets.Dropdown(options=[("", None), *options], **look)


def _line(exercise, part, languages, **look):
    return widgets.Text(placeholder=how(exercise, part).say(languages), **look)


def _reason(exercise, part, languages, **look):
    return widgets.Textarea(**look)


FIELDS = {"verdict": _verdict, "choice": _choice, "number": _line, "expression": _line, "reason": _reason}


def answer_of(box):
    """What a field holds, as plain data."""
    return list(box.value) if isinstance(box.value, tuple) else box.value
