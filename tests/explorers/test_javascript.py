"""Python and the JavaScript generated from the same expressions give the same numbers and write them alike."""

import math
import random

import pytest
import sympy as sp

from explorers import EXPLORERS, Choice, frontend, memory_explorer
from formulary import InputError, amounts, load_all
from formulary.javascript import JavaScriptError, javascript
from formulary.units import BYTE, PURE

POINTS, SCENES = 40, 12
AGREE = 1e-12
EVERY_UNIT = frontend.module({}, "stacked_bar", [*amounts.SCALES, PURE])
x, y, z = sp.symbols("x y z", positive=True)
n = sp.Symbol("n", integer=True)


def draw(quantity, rng):
    """A value the quantity may have: a choice, an end of its span or something between, spread by ratio where it is wide."""
    if quantity.choices:
        return rng.choice(quantity.choices)
    low, high = (min(max(float(end), quantity.least), quantity.most) for end in quantity.span)
    value = rng.choice([low, high, rng.uniform(low, high), math.exp(rng.uniform(math.log(low), math.log(high))) if low > 0 else low])
    return quantity.accept(round(value) if quantity.symbol.is_integer else value)


def python_value(formula, values):
    try:
        return float(formula(**values))
    except InputError:
        return None


@pytest.fixture(scope="module")
def cases():
    rng = random.Random(16)
    return {name: [{k: draw(q, rng) for k, q in formula.inputs.items()} for _ in range(POINTS)] for name, formula in load_all().items()}


def test_every_formula_is_equal_in_python_and_javascript(in_node, cases):
    formulas = load_all()
    body = """(widget, cases) => Object.fromEntries(Object.entries(cases).map(
        ([name, points]) => [name, points.map((point) => widget.FORMULAS[name](point))]))"""
    found = in_node(frontend.module(formulas, "stacked_bar", []), body, cases)  # NaN and Infinity come back as null
    assert set(found) == set(formulas)
    wrong = []
    for name, formula in formulas.items():
        expected = [python_value(formula, values) for values in cases[name]]
        assert any(value is not None for value in expected), f"{name} has no finite value at any of {POINTS} points in its spans"
        for values, want, got in zip(cases[name], expected, found[name], strict=True):
            if want != got and (None in (want, got) or not math.isclose(want, got, rel_tol=AGREE)):
                wrong.append(f"{name} at {values}: Python {want}, JavaScript {got}")
    assert not wrong, "\n".join(wrong[:20])


EXPRESSIONS = [
    sp.Piecewise((x / z, z >= 2), (x, True)),
    sp.Piecewise((x, sp.And(x > 1, y < 50)), (y, sp.Or(x > 30, sp.Not(sp.Eq(y, 2)))), (z, True)),
    sp.ceiling(x / z) * sp.floor(y),
    sp.Max(x, y, z) - sp.Min(x, y),
    sp.log(x, 2) + sp.exp(-y),
    sp.sqrt(x) * y ** sp.Rational(1, 3) / z**2,
    x**-y,
    sp.Mod(n, 8) + sp.Mod(-n, 3) + sp.Mod(x, y),
    n / 3 - sp.Rational(7, 3) * x,
    sp.Integer(10) ** 20 * x + 2**60,
    sp.Abs(x - y) * sp.pi + sp.E + sp.Float("0.1"),
    -x / (y * z),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_every_rule_is_equal_in_python_and_javascript(in_node, expr):
    rng, names = random.Random(7), sorted(map(str, expr.free_symbols))
    points = [{name: rng.randint(-50, 50) if name == "n" else rng.uniform(0.1, 99) for name in names} for _ in range(POINTS)]
    python = sp.lambdify(names, expr, modules="math")
    body = f"(_, points) => points.map(({{ {', '.join(names)} }}) => {javascript(expr)})"
    found = in_node("export const nothing = 0;", body, points)
    assert found == [pytest.approx(python(**point), rel=AGREE) for point in points]


@pytest.mark.parametrize("expr", [1 / (1 + x / n), 1 / sp.log(n), 1 / (1 + x / sp.sqrt(n))], ids=str)
def test_where_python_divides_by_zero_javascript_has_no_number(in_node, expr):
    with pytest.raises((ZeroDivisionError, ValueError)):
        sp.lambdify([x, n], expr, modules="math")(1, 0)
    assert in_node("export const nothing = 0;", f"(_, {{ x, n }}) => {javascript(expr)}", {"x": 1, "n": 0}) is None


@pytest.mark.parametrize("expr", [sp.Sum(n, (n, 1, 9)), sp.sign(n), sp.gamma(x), sp.Heaviside(n), sp.tanh(x)], ids=str)
def test_a_node_without_a_rule_is_an_error(expr):
    with pytest.raises(JavaScriptError, match="no JavaScript rule for"):
        javascript(expr)


def test_a_reserved_word_is_no_variable():
    with pytest.raises(JavaScriptError, match="'class' cannot name a variable"):
        javascript(2 * sp.Symbol("class"))


def sizes(rng, count):
    """Figures of every size, whole ones, exact ties and both sides of round ones among them."""
    spread = [rng.uniform(1, 10) * 10 ** rng.randint(-12, 20) for _ in range(count)]
    whole = [rng.randint(0, 10 ** rng.randint(1, 16)) for _ in range(count)]
    ties = [rng.randint(0, 10**6) * 0.125 * 10 ** rng.randint(0, 9) for _ in range(count)]
    edges = [sign * 10**power * (1 + nudge) for power in range(-4, 16) for nudge in (-1e-15, 0, 1e-15) for sign in (1, -1)]
    return [0, *spread, *whole, *ties, *edges]


def test_amounts_are_written_alike(in_node):
    rng, units = random.Random(3), {str(unit): unit for unit in (*amounts.SCALES, PURE)}
    rows = [(value, rng.choice(list(units)), rng.randint(2, 6)) for value in sizes(rng, 1500)]
    body = "(widget, rows) => rows.map(([value, unit, digits]) => [widget.write(value, unit, digits), widget.count(value, digits)])"
    found = in_node(EVERY_UNIT, body, rows)
    expected = [[amounts.write(value, units[unit], digits), amounts.count(value, digits)] for value, unit, digits in rows]
    assert [(row, *pair) for row, *pair in zip(rows, expected, found, strict=True) if pair[0] != pair[1]] == []


def test_columns_are_written_alike(in_node):
    rng, units = random.Random(9), {str(unit): unit for unit in (*amounts.SCALES, PURE)}
    rows = [(rng.sample(sizes(rng, 20), 4), rng.choice(list(units))) for _ in range(200)]
    found = in_node(EVERY_UNIT, "(widget, rows) => rows.map(([values, unit]) => widget.inOneUnit(values, unit))", rows)
    assert found == [amounts.in_one_unit(values, units[unit]) for values, unit in rows]


def test_binary_units_are_written_alike(in_node):
    values = sizes(random.Random(5), 200)
    found = in_node(memory_explorer()._esm, "(widget, values) => values.map((v) => widget.write(v, 'byte', 4, 'GiB'))", values)
    assert found == [amounts.write(value, BYTE, scale="GiB") for value in values]


def test_amounts_are_read_alike(in_node):
    rng, rows = random.Random(11), []
    for unit in (*amounts.SCALES, PURE):
        names = ["", *amounts.names_of(unit)]
        rows += [(f"{rng.choice(['7', '1.5', '.25', '1_000', '12,345.5', '2e3'])}{rng.choice(['', ' '])}{n}", str(unit)) for n in names]
    found = in_node(EVERY_UNIT, "(widget, rows) => rows.map(([text, unit]) => widget.read(text, unit))", rows)
    units = {str(unit): unit for unit in (*amounts.SCALES, PURE)}
    assert found == [pytest.approx(amounts.read(text, units[unit]), rel=AGREE) for text, unit in rows]


@pytest.mark.parametrize("text", ["", "seven", "7 GB", "7 B B", "1.2.3", "--7", "7 constructor"])
def test_what_is_no_count_is_not_read(in_node, text):
    assert in_node(memory_explorer()._esm, "(widget, text) => widget.read(text, '1')", text) is None
    with pytest.raises((ValueError, TypeError)):
        amounts.read(text, PURE)


def settings(control, rng, drawn_one_by_one):
    """A value a control may stand at; small, where it counts what is drawn one by one."""
    if isinstance(control, Choice):
        return rng.choice(control.options)[0]
    stops = control.stops
    return rng.choice(stops[: max(6, len(stops) // 12)] if drawn_one_by_one and isinstance(stops[0], int) else stops)


@pytest.mark.parametrize("name", EXPLORERS)
def test_python_and_javascript_see_the_same_scene(in_node, name):
    explorer, rng = EXPLORERS[name](), random.Random(2)
    body = """(widget, [view, states]) => states.map((state) =>
        widget.scene(view, state, (name, given) => widget.FORMULAS[name]({ ...state, ...given })))"""
    states, expected = [], []
    for _ in range(SCENES):
        few = explorer.view.kind in ("timeline", "grid")
        explorer.set(**{name: settings(control, rng, few) for name, control in explorer.controls.items()})
        states.append(explorer.state)
        expected.append(explorer.scene())
    seen, expected = (flat(tree) for tree in (in_node(explorer._esm, body, [explorer.spec["view"], states]), expected))
    labels, numbers = ({k: v for k, v in expected.items() if isinstance(v, kinds)} for kinds in ((str, bool, type(None)), float | int))
    assert {k: seen[k] for k in labels} == labels
    assert {k: seen[k] for k in numbers} == pytest.approx(numbers, rel=AGREE)
    assert seen.keys() == expected.keys()


def flat(tree, place=""):
    """A tree of dicts and lists as one dict from place to leaf; no number is None, as JSON has it."""
    if not isinstance(tree, dict | list):
        return {place: None if isinstance(tree, float) and not math.isfinite(tree) else tree}
    rows = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {path: leaf for key, branch in rows for path, leaf in flat(branch, f"{place}/{key}").items()}
