"""What to tell after an answer: the right answers, the worked solution, and where its formulas come from."""

from formulary import formula
from formulary.units import without_units

from ..assignment import as_written
from ..exercise import FormulaCall, Text

WORDS = {
    "answers": Text(en="Right answers", zh="正确答案"),
    "solution": Text(en="Solution", zh="解答"),
    "derivation": Text(en="Where the formulas come from", zh="公式的推导"),
}


def plain(formula):
    """A formula as a line of text."""
    return f"`{formula.name} = {without_units(formula.expr)}`"


def tex(formula):
    """A formula to be set, in markdown."""
    return f"$${formula.latex}$$"


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


def explained(exercise, languages, write=tex):
    """All of it as markdown, the formulas as `write` has them."""
    rows = [f"- {label}: {told}" for label, told in answers(exercise, languages)]
    blocks = [_titled("answers", "\n".join(rows), languages), _titled("solution", exercise.solution.say(languages, join="\n\n"), languages)]
    if steps := [_derived(it, cases, write) for it, cases in formulas(exercise).items()]:
        blocks.append(_titled("derivation", "\n\n".join(steps), languages))
    return "\n\n".join(blocks)


def _titled(title, text, languages):
    return f"**{WORDS[title].say(languages)}**\n\n{text}"


def _derived(formula, cases, write):
    """What the formula says here, and why it is so, a reason a step; where it was fitted and not derived, its source."""
    why = [step.because for step in formula.derivation.steps] if formula.derivation else [formula.source]
    return "\n".join([f"{formula.quantity.meaning}:", "", "\n\n".join(map(write, cases)), "", *(f"- {reason}" for reason in why)])
