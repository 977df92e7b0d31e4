"""A formula and its views agree, and what makes no sense raises when it is defined or called."""

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import Claim, Derivation, DerivationError, Formula, InputError, UnitError, define, formula
from formulary import glossary as g
from formulary.units import BYTE, FLOP

ZERO = formula("zero_state_bytes")


def test_seconds_against_bytes_in_a_maximum_raise_at_definition():
    with pytest.raises(UnitError, match="Max needs both alike"):
        Formula(g.latency, sp.Max(g.latency, g.message_bytes), source="test")


def test_a_result_in_another_unit_raises_at_definition():
    with pytest.raises(UnitError, match="state_bytes is in byte, but its expression is in a pure number"):
        Formula(g.state_bytes, 16 * g.num_params, source="test")


def test_a_derivation_that_ends_elsewhere_raises_at_definition():
    steps = Derivation("two bytes each", 2 * BYTE * g.num_params)
    with pytest.raises(DerivationError, match="ends in"):
        Formula(g.weight_bytes, 4 * BYTE * g.num_params, derivation=steps, source="test")


def test_a_name_is_defined_once_and_with_a_source():
    with pytest.raises(ValueError, match="already defined"):
        define(g.state_bytes, 16 * BYTE * g.num_params, source="test")
    with pytest.raises(ValueError, match="no source"):
        define(g.state_bytes, 16 * BYTE * g.num_params, name="sourceless")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stage": 4}, "one of 0, 1, 2, 3"),
        ({"world_size": 0}, "world_size .* is 0; it must be a whole number, at least 1"),
        ({"world_size": 1.5}, "whole number"),
        ({"world_size": True}, "must be a number"),
        ({"num_params": float("nan")}, "is nan"),
        ({"num_params": float("inf")}, "is inf"),
        ({"num_params": -7}, "is -7"),
        ({"num_params": "7 s"}, "is in second"),
        ({"num_params": "many"}, "not an amount"),
        ({"num_params": "1e400B"}, "larger than anything"),
        ({"num_params": "1e300B"}, "larger than anything"),
        ({"num_params": None}, "must be a number"),
        ({"num_params": ["7B", "8B"]}, "array of numbers"),
        ({"num_params": np.array([7e9, np.nan])}, "is nan"),
        ({"num_params": 10**400}, "must be a whole number"),
        ({"num_parms": 7}, "takes no 'num_parms'; did you mean num_params"),
        ({"bytes_per_weight": 1000}, "at most 64"),
    ],
    ids=lambda case: str(case)[:40],
)
def test_bad_input_is_named(change, says):
    with pytest.raises(InputError, match=says):
        ZERO(**{"num_params": 7e9, "world_size": 8, "stage": 1} | change)


def test_missing_inputs_are_named():
    with pytest.raises(InputError, match="lacks num_params, stage, world_size; it takes"):
        ZERO()


def test_whole_numbers_stay_exact_beyond_int64_and_numpy_integers_do_not_overflow():
    assert formula("state_bytes")(num_params=10**30) == 16 * 10**30
    assert formula("state_bytes")(num_params=np.int32(2**31 - 1)) == 16 * (2**31 - 1)


@given(st.lists(st.integers(1, 10**4), min_size=1, max_size=20), st.integers(0, 3))
def test_arrays_give_what_numbers_give(ranks, stage):
    together = ZERO(num_params=7e9, stage=stage, world_size=np.array(ranks))
    assert together.tolist() == pytest.approx([ZERO(num_params=7e9, stage=stage, world_size=k) for k in ranks])


@pytest.mark.parametrize("stage", range(4))
def test_an_array_input_gives_an_array_even_where_the_value_does_not_depend_on_it(stage):
    assert ZERO(num_params=7e9, stage=stage, world_size=np.arange(1, 5)).shape == (4,)


def test_solved_for_goes_back():
    ranks = ZERO.by_convention().given(stage=1).solve_for("world_size")
    assert ranks(num_params=7e9, zero_state_bytes=38.5e9) == pytest.approx(8)
    assert ranks.unit == 1


def test_limits_of_the_stages():
    sharded = [ZERO.by_convention().given(stage=z).limit("world_size", sp.oo) for z in (1, 2, 3)]
    assert [str(formula.expr) for formula in sharded] == ["4*byte*num_params", "2*byte*num_params", "0"]


def test_derivative_has_the_unit_of_the_slope():
    slope = ZERO.by_convention().given(stage=1).derivative("world_size")
    step = ZERO(num_params=7e9, stage=1, world_size=101) - ZERO(num_params=7e9, stage=1, world_size=99)
    assert slope(num_params=7e9, world_size=100) == pytest.approx(step / 2, rel=1e-3)
    assert slope.unit == BYTE


def test_given_keeps_units_with_the_numbers():
    assert str(ZERO.by_convention().given(stage=3).expr) == "16*byte*num_params/world_size"


def test_worked_line_shows_symbols_numbers_and_value():
    line = ZERO.worked(num_params=7e9, world_size=8, stage=1)
    assert all(part in line for part in (r"\Psi", r"\mathbf{7e9}", r"38.5\,\mathrm{GB}"))


def test_unknown_convention_names_the_nearest():
    with pytest.raises(InputError, match="did you mean fp32_adam"):
        ZERO.under("fp32_adm")


def test_no_finite_value_is_said():
    hours = Formula(g.bandwidth, FLOP / FLOP * g.message_bytes / g.latency, source="test")
    with pytest.raises(InputError, match="no finite value"):
        hours(message_bytes=1, latency=0)


def test_claims_fill_their_own_numbers():
    claim = Claim("{world_size} ranks hold {zero_state_bytes} ({zero_state_bytes:GiB}) each, {whole} in all", whole=formula("state_bytes"))
    assert claim(world_size=8, num_params="7B", stage=3) == "8 ranks hold 14 GB (13.04 GiB) each, 112 GB in all"


def test_a_blank_that_nothing_fills_is_named():
    with pytest.raises(InputError, match=r"nothing fills \{zero_state_byte\}"):
        Claim("{zero_state_byte}")(world_size=8)


def test_a_given_value_is_said_and_not_computed_anew():
    assert Claim("{pipeline_bubble:%}")(pipeline_bubble=0.25, num_stages=4, num_micro_batches=8) == "25%"


def test_a_claim_finds_formulas_of_every_subject():
    """In a fresh process, where nothing but the core is imported."""
    program = "from formulary import Claim; print(Claim('{prefix_ratio}')(prefix_power=3))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "1.074\n"
