"""A question as stock ipywidgets, for a chapter's "check yourself": fields that the keyboard reaches, a button, and the marks."""

import ipywidgets as widgets

from formulary.claim import Statement

from .assignment import how
from .exercise import Text

CHECK = Text(en="Check", zh="检查")
QUESTION = "application/vnd.sixteen-psi.question+json"  # which question it is, for a page that makes a form of its own of it
LAYOUT = {"width": "auto", "max_width": "48em"}


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
    return Form(question, shown(question.text), *fields.values(), button, marks)


def shown(markdown):
    """A widget that shows markdown, its formulas set."""
    out = widgets.Output()
    out.append_display_data(Statement(markdown))
    return out


def field(exercise, part, languages):
    """The widget to answer a part in, labelled."""
    box = FIELDS[part.type](exercise, part, languages)
    box.description, box.style.description_width = part.label.say(languages), "initial"  # read out with the field
    return box


def _verdict(exercise, part, languages):
    return widgets.Dropdown(options=[("", None), ("True", True), ("False", False)], layout=LAYOUT)


def _choice(exercise, part, languages):
    options = [(f"{option.key}  {option.text.say(languages)}", option.key) for option in part.options]
    if exercise.several(part):
        return widgets.SelectMultiple(options=options, layout=LAYOUT)
    return widgets.Dropdown(options=[("", None), *options], layout=LAYOUT)


FIELDS = {
    "verdict": _verdict,
    "choice": _choice,
    "number": lambda exercise, part, languages: widgets.Text(layout=LAYOUT, placeholder=how(exercise, part).say(languages)),
    "expression": lambda exercise, part, languages: widgets.Text(layout=LAYOUT, placeholder=how(exercise, part).say(languages)),
    "reason": lambda exercise, part, languages: widgets.Textarea(layout=LAYOUT),
}


def answer_of(box):
    """What a field holds, as plain data."""
    return list(box.value) if isinstance(box.value, tuple) else box.value
