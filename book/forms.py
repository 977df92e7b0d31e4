"""A question as a form in a page that has no kernel: choices, verdicts and amounts are marked in the browser, and the rest says so.

The keys of choices and verdicts are hashed, so that they are not read by accident; numbers stand in the page.
"""

import html

from markdown_it import MarkdownIt

from autograder import ask
from autograder.answer import example
from autograder.assignment import SEVERAL, heading, how
from formulary.amounts import unit_named

from .mathml import mathml
from .mounts import dumps

MARKED_HERE = ("verdict", "choice", "number")
TRUE_OR_FALSE = {"en": ("True", "False"), "zh": ("对", "错")}
MARKDOWN = MarkdownIt("commonmark").enable("table")
SAYS = {
    "check": ("Check", "检查"),
    "hint": ("Hint", "提示"),
    "solution": ("Solution", "解答"),
    "elsewhere": (
        "This part is marked by the book's marker, which needs Python: open the chapter in Jupyter, or compare with the solution.",
        "这一部分由本书的评分程序评阅，需要 Python：请在 Jupyter 中打开本章，或与解答对照。",
    ),
    "right": ("right", "正确"),
    "wrong": ("not right", "不对"),
    "blank": ("not answered", "未作答"),
    "unread": ("can't be read; write an amount such as", "读不出数值，请写成如"),
}


def say(key, languages):
    """A word of the page in these languages."""
    return " · ".join(SAYS[key][("en", "zh").index(language)] for language in languages)


def form(id, languages):
    """The HTML of the question of that id, in these languages."""
    asked = ask(id, languages[0] if len(languages) == 1 else None)
    exercise, languages = asked.exercise, asked.languages
    fields = "".join(_field(exercise, part, languages) for part in exercise.parts)
    words = {key: say(key, languages) for key in ("right", "wrong", "blank", "unread")}
    key = {"id": id, "words": words, "parts": {part.name: _key(exercise, part, languages) for part in exercise.parts}}
    hints = "".join(_folded(say("hint", languages), hint.say(languages, join="\n\n")) for hint in exercise.hints)
    solution = _folded(say("solution", languages), asked.solution()._repr_markdown_())
    button = f'<button type="submit">{say("check", languages)}</button>' if set(_types(exercise)) & set(MARKED_HERE) else ""
    return (
        f'<form class="psi-form" autocomplete="off">{_markdown(_question(exercise, languages))}{fields}{button}{hints}{solution}'
        f'<script type="application/json">{dumps(key)}</script></form>'
    )


def _question(exercise, languages):
    """Title and question; the options stand at the fields."""
    asked = exercise.question.say(languages, join="\n\n")
    several = [SEVERAL.say(languages, join="\n\n")] if any(exercise.several(part) for part in exercise.parts) else []
    return "\n\n".join([f"**{heading(exercise, languages)}**", asked, *several])


def _types(exercise):
    return [part.type for part in exercise.parts]


def _markdown(text):
    """Markdown with formulas between dollars as HTML."""
    pieces = text.split("$")
    if len(pieces) % 2 == 0:  # a dollar that is money
        return MARKDOWN.render(text)
    places = {f"PSIFORMULA{i}PSI": mathml(piece) for i, piece in enumerate(pieces) if i % 2}
    rendered = MARKDOWN.render("".join(f"PSIFORMULA{i}PSI" if i % 2 else piece for i, piece in enumerate(pieces)))
    for place, formula in places.items():
        rendered = rendered.replace(place, formula)
    return rendered


def _folded(title, text):
    return f"<details><summary>{title}</summary>{_markdown(text)}</details>"


def _field(exercise, part, languages):
    label = html.escape(part.label.say(languages))
    name = f"{exercise.id}-{part.name}"
    made = FIELDS[part.type](exercise, part, languages, name)
    return f'<fieldset data-part="{part.name}"><legend>{label}</legend>{made}<p class="psi-told" role="status"></p></fieldset>'


def _options(kind, name, rows):
    row = '<label><input type="{}" name="{}" value="{}"> {}</label>'.format
    return "".join(row(kind, name, value, shown) for value, shown in rows)


def _verdict(exercise, part, languages, name):
    says = (" · ".join(TRUE_OR_FALSE[language][i] for language in languages) for i in (0, 1))
    return _options("radio", name, zip(("True", "False"), says, strict=True))


def _choice(exercise, part, languages, name):
    rows = [(option.key, f"<b>{option.key}</b> {html.escape(option.text.say(languages))}") for option in part.options]
    return _options("checkbox" if exercise.several(part) else "radio", name, rows)


def _number(exercise, part, languages, name):
    said = html.escape(how(exercise, part).say(languages), quote=True)
    label = html.escape(part.label.say(languages), quote=True)
    return f'<input type="text" name="{name}" aria-label="{label}" placeholder="{said}" spellcheck="false">'


def _elsewhere(exercise, part, languages, name):
    label = html.escape(part.label.say(languages), quote=True)
    note = say("elsewhere", languages)
    return f'<textarea name="{name}" aria-label="{label}" rows="3"></textarea><p class="psi-elsewhere">{note}</p>'


FIELDS = {"verdict": _verdict, "choice": _choice, "number": _number, "expression": _elsewhere, "reason": _elsewhere}


def _key(exercise, part, languages):
    """What the browser marks the part by: hashes of texts, or figures with what may be wrong with them."""
    if part.type not in MARKED_HERE:
        return None
    kind = _number_key if part.type == "number" else _hashed_key
    hints = [(exercise.mistaken(part, m), m.hint.say(languages)) for m in part.mistakes]
    return {"type": part.type, **kind(exercise, part, hints)}


def _number_key(exercise, part, hints):
    expected = exercise.expected(part)
    unit = expected.unit
    return {
        "value": float(expected.value),
        "within": part.within,
        "unit": str(unit),
        "alone": float(unit_named(part.alone, unit)[0]) if part.alone else 1,  # what a number without its unit counts in
        "example": example(unit),
        "mistakes": [{"value": float(wrong.value), "hint": hint} for wrong, hint in hints],
    }


def _hashed_key(exercise, part, hints):
    hashed = lambda answer: digest(exercise.id, part.name, canonical(answer))
    return {"value": hashed(exercise.expected(part)), "mistakes": [{"value": hashed(wrong), "hint": hint} for wrong, hint in hints]}


def canonical(answer):
    """A verdict or chosen keys as the browser writes them too: "True", "A,C"."""
    return str(answer) if isinstance(answer, bool) else ",".join(sorted(answer))


def digest(exercise, part, answer):
    """FNV-1a over the text, as site.js computes it: enough to keep a key from being read by accident."""
    value = 0x811C9DC5
    for byte in f"{exercise}/{part}/{answer}".encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{value:08x}"
