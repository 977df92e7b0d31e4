"""What to tell after an answer: the right answers, the worked solution, and where its formulas come from."""

from formulary import formula, look_up, tex
from formulary.units import without_units

from ..assignment import as_written
from ..exercise import FormulaCall, Text

WORDS = {
    "answers": Text(en="Right answers", zh="正确答案"),
    "solution": Text(en="Solution", zh="解答"),
    "derivation": Text(en="Where the formulas come from", zh="公式的推导（英文）"),
    "used": Text(en="Formulas used", zh="用到的公式（推导只有英文，语言选 both 时显示）"),
}


def plain(name, expr):
    """An expression as a text, named if it has a name."""
    return f"`{name} = {without_units(expr)}`" if name else f"`{without_units(expr)}`"


def set_(name, expr):
    """The same to be set, in markdown."""
    return f"${latex(name, expr)}$"


def latex(name, expr):
    """TeX of an expression, named if it has a name."""
    return f"{look_up(name).tex} = {tex(expr)}" if name else tex(expr)


def formulas(exercise):
    """{formula: the cases of it that the answers come from}: with the conventions, and the stage or the like, that hold here."""
    calls = [call for call in (*exercise.values.values(), *(part.answer for part in exercise.parts)) if isinstance(call, FormulaCall)]
    found = {}
    for call in calls:
        found.setdefault(call.formula, {})[str(call)] = _case(call)
    return {formula(name): list(cases.values()) for name, cases in found.items()}


def _case(call):
    chosen = call.chosen().by_convention()
    fixed = {name: value for name, value in call.values.items() if name in chosen.inputs and chosen.inputs[name].choices}
    return chosen.given(**fixed) if fixed else chosen


def answers(exercise, languages):
    """(label, right answer) of each part, as texts."""
    for part in exercise.parts:
        right = exercise.expected(part)
        told = right.say(languages, join="\n\n") if isinstance(right, Text) else str(as_written(exercise, part, right, languages[0]))
        yield part.label.say(languages), told


def explained(exercise, languages, write=set_):
    """All of it as markdown, the formulas as `write` has them."""
    rows = [f"- {label}: {told}" for label, told in answers(exercise, languages)]
    blocks = [_titled("answers", "\n".join(rows), languages), _titled("solution", exercise.solution.say(languages, join="\n\n"), languages)]
    if used := formulas(exercise):
        blocks.append(_where_from(used, write, languages) if "en" in languages else _used(used, write, languages))
    return "\n\n".join(blocks)


def _titled(title, text, languages):
    return f"**{WORDS[title].say(languages)}**\n\n{text}"


def _used(formulas, write, languages):
    """What each formula says here."""
    rows = dict.fromkeys(f"- {write(case.quantity.name, case.expr)}" for cases in formulas.values() for case in cases)
    return _titled("used", "\n".join(rows), languages)


def _where_from(formulas, write, languages):
    """What each formula says here, and why; the steps have only English words."""
    return _titled("derivation", "\n\n".join(_derived(it, cases, write) for it, cases in formulas.items()), languages)


def _derived(formula, cases, write):
    """Why the formula says what it says here; where it was fitted and not derived, its source."""
    source = [] if formula.derivation else [f"- {formula.source}"]
    told = {}
    for because, expr, name in (step for case in cases for step in _steps(formula, case)):
        told[because, expr] = name or told.get((because, expr), "")  # the end of one case is on the way to another
    rows = (f"- {because}{write(name, expr)}" for (because, expr), name in told.items())
    return "\n".join([f"{formula.quantity.meaning}:", "", *source, *rows])


def _steps(formula, case):
    """(reason, expression, name) of each step that changes something in this case; only the last, which is the formula, has a name."""
    before, name = None, case.quantity.name
    for step in formula.derivation.given(**case.fixed).steps if formula.derivation else ():
        if step.expr != before:
            yield f"{step.because}: ", step.expr, name if step.expr == case.expr else ""
        before = step.expr
    if before != case.expr:
        yield "", case.expr, name
