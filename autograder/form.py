"""A question as stock ipywidgets, for a chapter's "check yourself": fields that the keyboard reaches, a button, and the marks."""

import ipywidgets as widgets

from .exercise import Text

CHECK = Text(en="Check", zh="检查")
LAYOUT = {"width": "auto", "max_width": "48em"}


def form(question):
    """A box with the question, one labelled field a part, and a button that shows the marks below."""
    fields = {part.name: _field(part, question.languages) for part in question.exercise.parts}
    button, marks = widgets.Button(description=CHECK.say(question.languages)), widgets.HTML()

    def check(_):
        answers = {name: _answer(field.value) for name, field in fields.items()}
        marks.value = f'<div role="status">{question.check(**answers)._repr_html_()}</div>'

    button.on_click(check)
    return widgets.VBox([_shown(question), *fields.values(), button, marks])


def _shown(question):
    out = widgets.Output()
    out.append_display_data(question)
    return out


def _field(part, languages):
    field = FIELDS[part.type](part, languages)
    field.description, field.style.description_width = part.label.say(languages), "initial"  # read out with the field
    return field


def _verdict(part, languages):
    return widgets.Dropdown(options=[("", None), ("True", True), ("False", False)], layout=LAYOUT)


def _choice(part, languages):
    options = [(f"{option.key}  {option.text.say(languages)}", option.key) for option in part.options]
    if len(part.answer) == 1:
        return widgets.Dropdown(options=[("", None), *options], layout=LAYOUT)
    return widgets.SelectMultiple(options=options, layout=LAYOUT)


FIELDS = {
    "verdict": _verdict,
    "choice": _choice,
    "number": lambda part, languages: widgets.Text(layout=LAYOUT, continuous_update=False),
    "reason": lambda part, languages: widgets.Textarea(layout=LAYOUT),
}


def _answer(value):
    return list(value) if isinstance(value, tuple) else value
