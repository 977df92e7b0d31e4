"""Fresh numbers: every draw of every exercise with ranges makes sense, obeys the law of the bank, and is drawn again by its seed."""

import math
import re
from functools import cache

import pytest

from autograder import variants
from autograder.assignment import as_written, solution
from autograder.bank import Bank
from autograder.exercise import LANGUAGES, FormulaCall, texts
from autograder.rubric import check, mark
from formulary import InputError, judge, look_up
from formulary.units import without_units

BANK = Bank()
DRAWN = [name for name in BANK if BANK[name].ranges]
DRAWS = 200
SOME = 6  # variants that are worked out twice


@cache
def drawn(name):
    """The different variants among 200 draws, by their given values; what was drawn before is not made again."""
    template, seen, found = BANK[name]._template, set(), {}
    for seed in range(DRAWS):
        first = str(variants._drawn(template, f"{seed}:0"))
        if first not in seen:
            seen.add(first)
            exercise = BANK[name].variant(seed)
            found[str(exercise.given)] = exercise
    return found


def test_every_calculation_has_ranges():
    assert [name for name in BANK if BANK[name].kind == "calculation" and name not in DRAWN] == []


@pytest.mark.parametrize("name", DRAWN)
def test_every_draw_obeys_the_law(name):
    found = drawn(name)
    choices = 1
    for values in BANK[name].ranges.values():
        choices *= len(values)
    assert len(found) > choices / 4
    for exercise in found.values():
        right = {name: said for name, said in solution(exercise, "en").items() if exercise.part(name).type != "reason"}
        results = mark(exercise, right)  # reasons do not change with the numbers
        assert all(r.points == r.line.points and not r.needs_human for r in results if r.line.marked_by == "key")
        assert not any(r.points for r in mark(exercise, {}))
        for part in exercise.parts:
            for mistake in part.mistakes:
                met = check(exercise, part, as_written(exercise, part, exercise.mistaken(part, mistake), "en"))
                assert (met.share == mistake.credit or exercise.several(part)) and met.hint, (exercise.given, mistake.name)


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_finite_and_differ_from_every_mistake(name):
    for exercise in drawn(name).values():
        for part in (part for part in exercise.parts if part.type == "number"):
            right = exercise.expected(part).value
            assert right and abs(right) < float("inf")
            wrong = [exercise.mistaken(part, mistake).value for mistake in part.mistakes]
            assert not [value for value in wrong if judge(value, right, within=part.within).passed]


PYTHON = {"ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt, "max": max, "min": min}


def worked_out(exercise):
    """Every amount worked out another way: formulas as sympy expressions with numbers put in, arithmetic by Python itself."""
    found = {name: look_up(name).accept(value) for name, value in exercise.given.items()}
    for name, value in exercise.values.items():
        if isinstance(value, FormulaCall):
            expr = without_units(value.chosen().by_convention().expr)
            stated = {key: found.get(said, said) for key, said in value.values.items()}
            stated = {key: look_up(key).accept(said) for key, said in stated.items()}
            found[name] = float(expr.subs({symbol: (found | stated)[symbol.name] for symbol in expr.free_symbols}))
        else:
            found[name] = eval(value, PYTHON, found)
    for part in exercise.parts:
        if part.type == "number":
            found.setdefault(part.name, eval(part.answer, PYTHON, found))
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_keys_are_what_another_way_of_working_them_out_gives(name):
    for exercise in list(drawn(name).values())[:SOME]:
        other = worked_out(exercise)
        for part in (part for part in exercise.parts if part.type == "number"):
            assert eval(part.answer, PYTHON, other) == pytest.approx(exercise.expected(part).value, rel=1e-9), (exercise.given, part.name)


@pytest.mark.parametrize("name", DRAWN)
def test_each_range_changes_a_key(name):
    """A convention that fixes a quantity would make what is drawn for it a lie."""
    template = BANK[name]._template
    for drawn_name, choices in template.ranges.items():
        given = [template.given | variants._values(template, drawn_name, choices[end]) for end in (0, -1)]
        one, other = (template.asked_of(values).filled() for values in given)
        assert one.parts != other.parts or [one.expected(part) for part in one.parts] != [other.expected(part) for part in other.parts]


@pytest.mark.parametrize("name", DRAWN)
def test_options_stay_different(name):
    for exercise in drawn(name).values():
        for part in (part for part in exercise.parts if part.type == "choice"):
            for language in LANGUAGES:
                options = [getattr(option.text, language) for option in part.options]
                assert len(set(options)) == len(options), exercise.given


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_values_lie_where_their_quantities_live(name):
    for values in variants.every_value(BANK[name]._template):
        for quantity, value in ((look_up(key), value) for key, value in values.items()):
            low, high = quantity.span
            assert low <= quantity.accept(value) <= high, (name, quantity.name)


def test_what_a_verdict_rests_on_is_checked():
    template = BANK["E002-Q38"]._template
    assert [what for where, what in template.asked_of(template.given | {"num_params": "1B"}).faults() if where == ("holds", 0)]
    assert not [where for where, _ in template.faults() if where[0] == "holds"]


@pytest.mark.parametrize("name", DRAWN)
def test_texts_say_the_drawn_numbers_and_have_no_blank_left(name):
    for exercise in drawn(name).values():
        for _, text in texts(exercise):
            assert not any(re.search(r"\{[a-z_]+(:|\})", getattr(text, language)) for language in LANGUAGES)
    first, other = list(drawn(name).values())[:2]
    assert first.question != other.question and first.solution != other.solution


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_draws_the_same_again(name):
    assert BANK[name].variant(0).given == next(iter(drawn(name).values())).given


def test_a_variant_of_a_variant_is_one_of_the_exercise():
    assert BANK["E002-Q07"].variant("seed").variant("other").given == BANK["E002-Q07"].variant("other").given


def test_an_exercise_without_ranges_stays_itself():
    assert BANK["E004-Q02"].variant(1) is BANK["E004-Q02"]


def planted(ranges):
    template = BANK["E002-Q07"]._template
    return type(template)(**{field: getattr(template, field) for field in type(template).model_fields} | {"ranges": ranges})


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"num_param": ("1B", "2B")}, "num_param"),
        ({"model": ("Llama 2 7B", "Lama 2 7B")}, "did you mean"),
        ({"stage": (1, 2)}, "drawn but not given"),
    ],
)
def test_ranges_that_cannot_be_drawn_are_faults(ranges, message):
    assert any(message in what and where == ("ranges",) for where, what in planted(ranges).faults())


def test_draws_without_sense_are_drawn_again_and_in_the_end_refused(monkeypatch):
    """With one card ZeRO saves nothing: the answers are zero, or equal to a mistake."""
    made = planted({"world_size": (1, 8)})
    assert {variants.variant(made, seed).given["world_size"] for seed in range(6)} == {8}
    monkeypatch.setattr(variants, "TRIES", 5)
    with pytest.raises(InputError, match="make no sense"):
        variants.variant(planted({"world_size": (1, 1)}), 0)


def test_presets_give_what_the_exercise_asks_for():
    made = BANK["E002-Q10"]._template
    ranges = {"model": ("Llama 2 70B", "LLaMA 65B"), "card": ("A100 80GB", "A100 40GB")}
    made = type(made)(**{field: getattr(made, field) for field in type(made).model_fields} | {"ranges": ranges})
    assert {values["hidden_size"] for values in variants.every_value(made)[:2]} == {8192}
    assert {values["memory_capacity"] for values in variants.every_value(made)[2:]} == {80e9, 40e9}
