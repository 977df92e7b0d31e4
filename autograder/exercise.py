"""What an exercise is: questions, parts to answer, rubric lines and misconceptions, in two languages; its answers come from formulas."""

import itertools
import re
import string
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, StringConstraints
from sympy import oo

from formulary import InputError, UnitError, formula, look_up
from formulary import glossary as _glossary  # noqa: F401  fills the table that look_up reads
from formulary.amounts import AmountError
from formulary.arithmetic import NotArithmetic
from formulary.reckon import Amount, reckon
from formulary.units import spell

from . import equivalence, symbols, variants
from .expression import plain, readings

LANGUAGES = ("en", "zh")

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Arithmetic = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v)]


FAILURES = (InputError, UnitError, NotArithmetic, AmountError)  # of an amount that cannot be worked out


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Text(Strict):
    """The same words in each language; `{name}` and `{name:GiB}` are blanks that the exercise's amounts fill."""

    en: Words
    zh: Words

    def say(self, languages=LANGUAGES, join=" · "):
        """The words in these languages, joined, or once where they are the same."""
        return join.join(dict.fromkeys(getattr(self, language) for language in languages))

    def map(self, change):
        return Text(**{language: change(getattr(self, language)) for language in LANGUAGES})

    def format(self, **values):
        """The words with their blanks filled; values may be a Text each."""
        pick = lambda language: {name: getattr(v, language) if isinstance(v, Text) else v for name, v in values.items()}
        return Text(**{language: getattr(self, language).format(**pick(language)) for language in LANGUAGES})


class FormulaCall(Strict):
    """A formula of the formulary, under conventions, turned round (`solve_for`) or at a limit, at the exercise's given values and these.

    A value may also be the name of an earlier amount of the exercise.
    """

    formula: str
    under: tuple[str, ...] = ()
    values: dict[str, float | str] = {}
    solve_for: str = ""
    limit: dict[str, float | Literal["oo"]] = {}

    def chosen(self):
        """The Formula. Raises InputError for names that it, or the formulary, does not know."""
        return self._chosen

    @cached_property
    def _chosen(self):  # kept, since a formula is made ready to compute when it first does
        found = formula(self.formula).under(*self.under)
        if self.solve_for:
            found = found.by_convention().solve_for(self.solve_for)
        for name, to in self.limit.items():
            found = found.limit(name, oo if to == "oo" else to)
        return found

    @cached_property
    def computing(self):
        """The Formula as far as it computes, which is kept with the exercise: no formula has to be loaded for it."""
        return self._chosen.bare()

    def __getstate__(self):
        state = super().__getstate__()
        return state | {"__dict__": {name: value for name, value in state["__dict__"].items() if name != "_chosen"}}


class Mistake(Strict):
    """A wrong answer that people give, the hint that meets it, and the share of the part's points it keeps."""

    name: Name
    answer: Arithmetic | bool | tuple[str, ...] | FormulaCall
    hint: Text
    credit: float = Field(0, ge=0, le=1)


class Option(Strict):
    key: Annotated[str, StringConstraints(pattern=r"^[A-H]$")]
    text: Text


class Part(Strict):
    """One thing to answer: the name of the variable that holds it, and what it is."""

    name: Name
    label: Text
    mistakes: tuple[Mistake, ...] = ()


class VerdictPart(Part):
    type: Literal["verdict"]
    answer: bool


class ChoicePart(Part):
    """One option is right, or one or more where `several` is set, or the exercise is a multi_choice."""

    type: Literal["choice"]
    several: bool = False
    options: tuple[Option, ...] = Field(min_length=2)
    answer: tuple[str, ...] = Field(min_length=1)


class NumberPart(Part):
    """`answer` is arithmetic over the exercise's amounts; `within` the relative error allowed; `scale` the unit it is shown in.

    Where the answer follows from what an earlier part asked for, it is written over that part's name, or `follows` says
    which amounts in it are the answers to which parts: a learner's own earlier value can then be carried forward.
    `bound` says that a least or largest value is asked for, so that `≥ 63` is read as 63; `alone` is the unit of a number
    that is written without one, where the label says so.
    """

    type: Literal["number"]
    answer: Arithmetic
    within: float = Field(0.01, ge=0, lt=0.2)
    scale: str | None = None
    bound: Literal["at_least", "at_most"] | None = None
    alone: str | None = None
    follows: dict[Name, Name] = {}


class ExpressionPart(Part):
    """`answer` is arithmetic over names of formulas and quantities, or one formula; `letters` says what else they may be called.

    A letter may also stand for a symbol of the exercise's own, which no quantity is called: `letters: {x: share_left}`.
    """

    type: Literal["expression"]
    answer: Arithmetic | FormulaCall
    letters: dict[str, Name] = {}


class ReasonPart(Part):
    """Free text; `answer` is a model answer."""

    type: Literal["reason"]
    answer: Text


AnyPart = Annotated[VerdictPart | ChoicePart | NumberPart | ExpressionPart | ReasonPart, Field(discriminator="type")]


class Line(Strict):
    """A rubric line. The title is for everyone; the criterion is told after marking.

    marked_by: `key` compares the parts with their answers, and each part carries an equal share (`each`) or all must be
    right (`all`); `claims` reads a reason by the exercise's rubric of reasons; `human` always waits for a person.
    `carry` is the share that a wrong number keeps where it follows correctly from the learner's own earlier answers.
    """

    name: Name
    points: float = Field(gt=0)
    title: Text
    criterion: Text
    parts: tuple[Name, ...] = Field(min_length=1)
    marked_by: Literal["key", "claims", "human"]
    credit: Literal["each", "all"] = "each"
    carry: float = Field(1, ge=0, le=1)


KINDS = {
    "true_false": {"verdict", "reason"},
    "single_choice": {"choice"},
    "multi_choice": {"choice"},
    "calculation": {"number", "expression"},
    "derivation": {"reason", "expression"},
    "design": {"reason"},
    "short_answer": {"reason", "expression"},
}


class Exercise(Strict):
    """A question with its parts, rubric and worked solution. `faults()` tells what the field types alone can't.

    `section` is the heading in its chapter under which the subject is explained.
    `ranges` says what else may be given: values of a quantity, or mappings of several that go together, or titles of
    presets under `model` or `card`. `holds` are comparisons of amounts, `states > memory_capacity`, that verdicts rest on.
    """

    id: Annotated[str, StringConstraints(pattern=r"^E\d{3}-[A-Z]{1,2}\d{2}$")]
    kind: Literal[tuple(KINDS)]
    chapter: int = Field(ge=0)
    section: str = ""
    difficulty: int = Field(ge=1, le=5)
    title: Text
    question: Text
    hints: tuple[Text, ...] = ()
    given: dict[str, float | str] = {}
    ranges: dict[Name, Annotated[tuple[float | str | dict[str, float | str], ...], Field(min_length=2)]] = {}
    values: dict[Name, FormulaCall | Arithmetic] = {}
    holds: tuple[Annotated[str, StringConstraints(pattern=r"^[^<>]+[<>][^<>]+$")], ...] = ()
    letters: dict[str, Name] = {}
    parts: tuple[AnyPart, ...] = Field(min_length=1)
    rubric: tuple[Line, ...] = Field(min_length=1)
    solution: Text
    _template: "Exercise | None" = PrivateAttr(None)

    @property
    def points(self):
        return sum(line.points for line in self.rubric)

    @property
    def template(self):
        """The exercise with the blanks in its texts open."""
        return self._template or self

    def part(self, name):
        """The part of that name. Raises InputError if there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise InputError(f"{self.id} has no part {name!r}; it has {', '.join(p.name for p in self.parts)}")

    @property
    def ranks(self):
        """Over how many ranks things are divided here, if the exercise says so."""
        return next((self.amounts[name].value for name in ("world_size", "num_gpus", "tensor_parallel") if name in self.given), None)

    def several(self, part):
        """Whether more than one option of a part may be right, by kind, so that the number of right ones stays untold."""
        return part.type == "choice" and (part.several or self.kind == "multi_choice")

    @cached_property
    def amounts(self):
        """Every named amount: the given quantities, then the values in order, each over those before it, then the parts' answers."""
        return self._amounts({})

    def _amounts(self, instead):
        found = self._values(instead)
        for part in self._named_answers():
            found[part.name] = instead.get(part.name) or reckon(part.answer, found)
        return found

    def _values(self, instead):
        """The given quantities and the values, some stated `instead`; those that do not follow from these stay what they are."""
        known, changed = self.amounts if instead else {}, set(instead)
        found = {name: Amount(look_up(name).accept(value), look_up(name).unit) for name, value in self.given.items()}
        for name, value in self.values.items():
            if name in known and name not in instead and not _follows(value, changed):
                found[name] = known[name]
                continue
            found[name] = instead.get(name) or (self._call(value, found) if isinstance(value, FormulaCall) else reckon(value, found))
            changed.add(name)
        return found

    def _named_answers(self):
        """The number parts whose names later answers may use: those that no value or given quantity has."""
        return [part for part in self.parts if part.type == "number" and part.name not in {*self.values, *self.given}]

    def sources(self, part):
        """{name of an amount in a part's answer: the earlier part that asked for it}."""
        earlier = itertools.takewhile(lambda other: other is not part, self._named_answers())
        return {other.name: other.name for other in earlier if _mentions(part.answer, other.name)} | part.follows

    def carried(self, part, stated):
        """The answer of a part that follows from a learner's own amounts `stated` by part name, or None if nothing follows."""
        instead = {name: stated[source] for name, source in self.sources(part).items() if source in stated}
        try:
            return reckon(part.answer, self._amounts(instead)) if instead else None
        except (InputError, UnitError, NotArithmetic):  # half a card, or no parameters at all: nothing follows from that
            return None

    def _call(self, call, found):
        chosen = call.computing
        given = {name: value for name, value in self.given.items() if name in chosen.inputs}
        stated = {name: _settled(look_up(name), value, found) for name, value in call.values.items()}
        return Amount(chosen(**given | stated), chosen.unit)

    def expression(self, answer, own=()):
        """A FormulaCall, or arithmetic over formulas, quantities, values and the names `own`, as a sympy expression without units."""
        if isinstance(answer, FormulaCall):
            return symbols.filled(answer.chosen(), answer.values)
        named = {name: self.expression(value, own) for name, value in self.values.items() if _mentions(answer, name)}
        return symbols.symbolic(answer, own, named)

    def alphabet(self, part):
        """{letter: names of what it may stand for} in an answer to an expression part."""
        if part.name not in self._alphabets:
            self._alphabets[part.name] = self._alphabet(part)
        return self._alphabets[part.name]

    @cached_property
    def _alphabets(self):
        return {}

    def _alphabet(self, part):
        letters = {**self.letters, **part.letters}
        return symbols.alphabet(dict.fromkeys([*self.meant(part), *letters.values(), *self.given]), letters)

    def meant(self, part):
        """The names that answers to an expression part, right or wrong, are made of, and those that it chooses letters for."""
        own = {**self.letters, **part.letters}.values()
        answers = (self.expression(answer, own) for answer in (part.answer, *(m.answer for m in part.mistakes)))
        return [*(name for answer in answers for name in sorted(map(str, answer.free_symbols))), *part.letters.values()]

    def expected(self, part):
        """The right answer of a part: a bool, a set of keys, an Amount, a Key, or a Text."""
        return self._worked_out(part, "", part.answer)

    def mistaken(self, part, mistake):
        """A known wrong answer of a part, in the same form as the right one."""
        return self._worked_out(part, mistake.name, mistake.answer)

    def _worked_out(self, part, mistake, answer):
        if (part.name, mistake) not in self._answers:
            self._answers[part.name, mistake] = self._value(part, answer)
        return self._answers[part.name, mistake]

    @cached_property
    def _answers(self):
        return {}

    def _value(self, part, answer):
        if part.type == "number":
            return reckon(answer, self.amounts)
        if part.type == "expression":
            own = {**self.letters, **part.letters}.values()
            return equivalence.key(self.expression(answer, own), frozenset(names_of(self.alphabet(part))))
        return set(answer) if part.type == "choice" else answer

    @cached_property
    def findings(self):
        """What answers came to that were marked before, by part and answer."""
        return {}

    @cached_property
    def results(self):
        """What lines came to before, by all that tells one result from another."""
        return {}

    def worked_out(self):
        """The exercise, once all has been worked out that its marking asks for."""
        for part in self.parts:
            self.expected(part)
            for mistake in part.mistakes:
                self.mistaken(part, mistake)
            if part.type == "expression":
                self.alphabet(part)
        return self

    def filled(self):
        """The exercise with the blanks in all its texts filled."""
        made = _with_texts(self, lambda text: text.map(lambda words: fill(words, self.amounts)))
        made._template = self
        return made

    def asked_of(self, given):
        """The exercise with other given values, its blanks open."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | {"given": given})

    def variant(self, seed):
        """The exercise with fresh given values from its `ranges`, the same for the same seed; itself where it has none."""
        return variants.variant(self.template, seed).filled() if self.ranges else self

    def faults(self):
        """(where, what) for each thing wrong that concerns more than one field."""
        yield from _each(("rubric",), self.rubric, self._line_faults)
        yield from _names_twice(self)
        if failed := self._failure():
            yield failed
            return
        yield from _each(("parts",), self.parts, self._part_faults)
        yield from self._range_faults()
        yield from self._hold_faults()
        yield from self._blank_faults()
        if not KINDS[self.kind] & {part.type for part in self.parts}:
            yield ("kind",), f"a {self.kind} needs a part of type {' or '.join(sorted(KINDS[self.kind]))}"

    def _failure(self):
        """(where, what) of the first amount that cannot be worked out, or None."""
        try:
            self.amounts  # noqa: B018  evaluating is the check
        except FAILURES as error:
            return self._failed(), str(error)

    def _failed(self):
        """Where the first amount is that cannot be worked out."""
        try:
            found = self._values({})
        except FAILURES:
            return ("values",)
        for part in self._named_answers():
            try:
                found[part.name] = reckon(part.answer, found)
            except FAILURES:
                return "parts", self.parts.index(part), "answer"

    def _line_faults(self, line):
        types = {part.name: part.type for part in self.parts}
        for name in line.parts:
            if name not in types:
                yield ("parts",), f"no part is called {name!r}; the parts are {', '.join(types)}"
            elif line.marked_by == "key" and types[name] == "reason":
                yield ("marked_by",), f"{name} is free text, which has no key: mark it by claims or human"
            elif line.marked_by == "claims" and types[name] != "reason":
                yield ("marked_by",), f"claims are read in free text, but {name} is a {types[name]}"

    def _part_faults(self, part):
        before = list(itertools.takewhile(lambda other: other is not part, self.parts))
        for name, source in getattr(part, "follows", {}).items():
            if name not in self.amounts or source not in [other.name for other in before if other.type == "number"]:
                yield ("follows",), f"{name}: {source} wants an amount of this exercise, and a number asked for in an earlier part"
        for where, answer in [(("answer",), part.answer), *((("mistakes", i, "answer"), m.answer) for i, m in enumerate(part.mistakes))]:
            try:
                WELL_FORMED[part.type](self, part, answer)
            except (ValueError, UnitError) as error:  # NotArithmetic, NotFormula and InputError are ValueErrors
                yield where, str(error)

    def _range_faults(self):
        try:
            drawn = {name: value for values in variants.every_value(self) for name, value in values.items()}
            for name in drawn:
                look_up(name)
        except InputError as error:
            yield ("ranges",), str(error)
            return
        question = self.template.question
        for name in drawn:
            if name not in self.given:
                yield ("ranges",), f"{name} is drawn but not given"
            elif not all(re.search(rf"\{{{name}[:}}]", getattr(question, language)) for language in LANGUAGES):
                yield ("ranges",), f"{name} is drawn, so the question must show it as {{{name}}} in each language"

    def _hold_faults(self):
        for index, said in enumerate(self.holds):
            try:
                left, right = (reckon(side, self.amounts) for side in re.split("[<>]", said))
            except (NotArithmetic, UnitError) as error:
                yield ("holds", index), str(error)
                continue
            if left.unit != right.unit or not (left.value < right.value if "<" in said else left.value > right.value):
                yield ("holds", index), f"{said} does not hold: {left.say()} and {right.say()}"

    def _blank_faults(self):
        for where, text in texts(self):
            for language in LANGUAGES:
                try:
                    fill(getattr(text, language), self.amounts)
                except (KeyError, ValueError, UnitError) as error:
                    yield (*where, language), f"a blank nothing fills: {error}"


def names_of(alphabet):
    """Every name that some letter of an alphabet may stand for, each once, in order."""
    return list(dict.fromkeys(name for names in alphabet.values() for name in names))


def _mentions(text, name):
    return re.search(rf"(?<![\w.]){name}(?![\w.])", text)


def _follows(value, names):
    """Whether a value of an exercise is worked out from any amount of these names."""
    if isinstance(value, FormulaCall):
        return not names.isdisjoint(map(str, value.values.values()))
    return any(_mentions(value, name) for name in names)


def _settled(quantity, value, found):
    """A value as a call states it, or that of the earlier amount it names. Raises UnitError if that measures something else."""
    if value not in found:
        return value
    if found[value].unit != quantity.unit:
        raise UnitError(f"{value} is in {spell(found[value].unit)}, but {quantity.name} in {spell(quantity.unit)}")
    return found[value].value


def _each(where, things, faults):
    for index, thing in enumerate(things):
        for inner, what in faults(thing):
            yield (*where, index, *inner), what


def _names_twice(exercise):
    for field in ("parts", "rubric"):
        names = [thing.name for thing in getattr(exercise, field)]
        for index, name in enumerate(names):
            if name in names[:index] or (field == "rubric" and name in ("question", "answer")):
                yield (field, index, "name"), f"the name {name!r} is taken"


def texts(thing, where=()):
    """(where, Text) for every Text in a model, however deep."""
    if isinstance(thing, Text):
        yield where, thing
    elif isinstance(thing, BaseModel):
        for name in type(thing).model_fields:
            yield from texts(getattr(thing, name), (*where, name))
    elif isinstance(thing, tuple):
        for index, item in enumerate(thing):
            yield from texts(item, (*where, index))


def _with_texts(thing, change):
    """A copy of a model with every Text in it changed."""
    if isinstance(thing, Text):
        return change(thing)
    if isinstance(thing, BaseModel):
        return thing.model_copy(update={name: _with_texts(getattr(thing, name), change) for name in type(thing).model_fields})
    return tuple(_with_texts(item, change) for item in thing) if isinstance(thing, tuple) else thing


def fill(words, amounts):
    """`words` with each `{name}` or `{name:unit}` written out. Raises KeyError for a name that no amount has."""
    said = []
    for before, name, scale, _ in string.Formatter().parse(words):
        if name is not None and name not in amounts:
            raise KeyError(f"{{{name}}}; the amounts are {', '.join(amounts) or 'none'}")
        said += [before, "" if name is None else amounts[name].say(scale or None)]
    return "".join(said)


def _is_bool(exercise, part, answer):
    if not isinstance(answer, bool):
        raise ValueError(f"a verdict is true or false, not {answer!r}")


def _is_options(exercise, part, answer):
    known = [option.key for option in part.options]
    if not isinstance(answer, tuple) or not set(answer) <= set(known) or len(set(known)) != len(known):
        raise ValueError(f"{answer!r} must be a list of different keys among {', '.join(known)}")
    if not exercise.several(part) and len(part.answer) != 1:
        raise ValueError("a single choice has one right key; `several: true` says that there may be more")


def _is_amount(exercise, part, answer):
    if not isinstance(answer, str):
        raise ValueError(f"arithmetic over {', '.join(exercise.amounts)} is wanted, not {answer!r}")
    unit, wanted = reckon(answer, exercise.amounts).unit, reckon(part.answer, exercise.amounts).unit
    if unit != wanted:
        raise UnitError(f"{answer} is in {unit}, but the answer is in {wanted}")


def _is_text(exercise, part, answer):
    if not isinstance(answer, Text):
        raise ValueError("free text has no known wrong answers: write what contradicts into its rubric of reasons")


def _is_expression(exercise, part, answer):
    if not isinstance(answer, str | FormulaCall):
        raise ValueError(f"a formula, or arithmetic over formulas and quantities is wanted, not {answer!r}")
    right, letters = exercise._value(part, answer), exercise.alphabet(part)
    if not right.known:
        raise ValueError(f"{right.expr} has no values at random points")
    if not equivalence.equals(readings(plain(symbols.written(right.expr, letters)), letters), letters, right):
        raise ValueError(f"{right.expr} can't be written in the letters {', '.join(letters)}")
    if answer != part.answer and equivalence.same(right, exercise.expected(part)):
        raise ValueError(f"{right.expr} is the right answer")


WELL_FORMED = {"verdict": _is_bool, "choice": _is_options, "number": _is_amount, "expression": _is_expression, "reason": _is_text}
