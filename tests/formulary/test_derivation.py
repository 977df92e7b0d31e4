"""Each step of a derivation is checked when it is written down."""

import pytest
import sympy as sp

from formulary import Derivation, DerivationError, UnitError, load_all
from formulary import glossary as g
from formulary.derivation import limit, same
from formulary.memory import ZERO_STATE
from formulary.units import BYTE, without_units

S, k, N = g.message_bytes, g.world_size, g.num_params


def start():
    return Derivation("one block in each round", S / k)


def test_right_steps_lead_to_the_end():
    volume = start().multiply("k-1 rounds to reduce, k-1 to gather", 2 * (k - 1), 2 * S * (k - 1) / k)
    assert volume.expr == 2 * S * (k - 1) / k
    assert volume.limit("many ranks", k, sp.oo, 2 * S).expr == 2 * S


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: start().multiply("k rounds, but k-1 written", k, S * (k - 1) / k),
        lambda: start().rewrite("not the same", S * k),
        lambda: start().add("a header", S, S / k),
        lambda: start().substitute("two ranks", {k: 2}, S),
        lambda: start().limit("many ranks", k, sp.oo, S),
        lambda: start().differentiate("per rank", k, S / k**2),
        lambda: start().solve("as large as the message", k, S, sp.Integer(2)),
        lambda: Derivation("cost", S / k + S * k).stationary("cheapest", k, sp.Integer(2)),
        lambda: start().sum("k rounds, but k-1 written", g.num_layers, 1, k, S * (k - 1) / k),
        lambda: start().at_most("never more than all of it", S, sp.Max(S / k, S)),
        lambda: start().at_least("never less than all of it", S, sp.Min(S / k, S)),
        lambda: Derivation("shards", N / k).round_up("whole ones", N / k),
        lambda: Derivation("shards", N * k).largest_at_an_end("between 1 and 9", k, 1, 9, N),
        lambda: Derivation("not linear", N / k).largest_at_an_end("between 1 and 9", k, 1, 9, N),
    ],
)
def test_a_wrong_step_raises(wrong):
    with pytest.raises(DerivationError):
        wrong()


def test_a_step_whose_units_do_not_balance_raises():
    with pytest.raises(UnitError):
        Derivation("bytes plus a count", S + N)


def test_extrema_and_solutions():
    a, b = g.latency, g.message_bytes
    assert Derivation("cost", a / k + a * k).stationary("cheapest", k, sp.Integer(1)).expr == 1
    assert Derivation("volume", 2 * BYTE * N).solve("fills the message", N, b, b / (2 * BYTE)).expr == b / (2 * BYTE)


def test_sums_bounds_and_whole_numbers():
    layer = g.num_layers
    assert Derivation("one each", S / k).sum("k-1 times", layer, 1, k - 1, S * (k - 1) / k).expr == S * (k - 1) / k
    assert Derivation("its own number", S * layer).sum("of k", layer, 1, k, S * k * (k + 1) / 2).expr == S * k * (k + 1) / 2
    assert Derivation("so many", k).at_most("of all", N, sp.Min(k, N)).at_least("or layers", layer, sp.Max(layer, sp.Min(k, N)))
    assert Derivation("shards", N / k).round_up("whole ones", sp.ceiling(N / k)).expr == sp.ceiling(N / k)
    ends = Derivation("shards", N * (8 - k)).largest_at_an_end("between 1 and 9", k, 1, 9, sp.Max(7 * N, -N))
    assert ends.expr == sp.Max(7 * N, -N)


def test_limits_go_inside_max_and_min():
    assert limit(3 * sp.Min(k, N) + S / k, k, sp.oo) == 3 * N
    assert limit(sp.Max(S / k, BYTE * N), k, sp.oo) == BYTE * N
    with pytest.raises(NotImplementedError):
        limit(sp.Max(k, N) * sp.Min(1 / k, N), k, sp.oo)


def test_same_tells_close_expressions_apart():
    x = sp.Symbol("x", positive=True)
    assert same(sp.Max(x, 2 * x), 2 * x)
    assert not same((x + 1) ** 2, x**2 + 2 * x + sp.Rational(10001, 10000))


def test_every_derivation_ends_in_its_formula():
    derived = [f for f in load_all().values() if f.derivation]
    assert len(derived) >= 10
    for formula in derived:
        assert same(formula.derivation.expr, formula.expr), formula.name


BRANCHING = (sp.Piecewise, sp.Max, sp.Min, sp.ceiling, sp.floor, sp.Abs, sp.Mod)


def smooth_steps():
    steps = [(f.name, step) for f in load_all().values() if f.derivation for step in f.derivation.steps if step.follows is not None]
    return [(name, step) for name, step in steps if not step.expr.has(*BRANCHING) and not step.follows.has(*BRANCHING)]


def test_every_smooth_step_is_proved_by_simplification():
    """At definition a step is checked at exact points; here sympy proves it for all values of its symbols."""
    steps = smooth_steps()
    assert len(steps) > 200
    unproved = [(name, step.because) for name, step in steps if sp.simplify(without_units(step.expr - step.follows)) != 0]
    assert unproved == []


def test_every_formula_is_derived_or_says_why_not():
    assert [f.name for f in load_all().values() if not f.derivation and not f.empirical] == []


def test_powers_and_stated_roots():
    assert Derivation("an area", N**2).power("its root", sp.Rational(1, 2), N).expr == N
    with pytest.raises(DerivationError, match="does not follow"):
        Derivation("an area", N**2).power("its root", sp.Rational(1, 3), N)
    with pytest.raises(DerivationError, match="no root"):
        Derivation("an area", N**2).solve("as large as nine", N, 9, sp.Integer(4))


def test_a_step_says_what_was_done():
    steps = Derivation("one side", N).multiply("and the other", N, N**2).steps
    assert [step.operation for step in steps] == ["", r"times $\Psi$"]


def test_steps_with_numbers_in_them_are_the_steps_of_the_formula_with_them():
    steps = ZERO_STATE.derivation.given(stage=3, **ZERO_STATE.defaults)
    assert [step.because for step in steps.steps] == [step.because for step in ZERO_STATE.derivation.steps]
    by_stage = [ZERO_STATE.by_convention().given(stage=stage).expr for stage in range(4)]
    assert all(same(step.expr, expr) for step, expr in zip(steps.steps, by_stage, strict=True))


def test_the_letters_of_a_derivation_are_named_below_it():
    letters = {quantity.name: f"${quantity.tex}$ {quantity.meaning}" for quantity in (*ZERO_STATE.inputs.values(), ZERO_STATE.quantity)}
    named = ZERO_STATE.derivation._repr_markdown_().splitlines()[-1]
    assert {name for name, text in letters.items() if text in named} == set(ZERO_STATE.inputs)
    assert letters["stage"] not in ZERO_STATE.derivation.given(stage=3)._repr_markdown_()
