"""The ledgers of model states: parts, totals, limits, and what the conventions add up to."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulary import GLOSSARY, Ledger, UnitError, formula
from formulary.memory import RECIPE, STATE_LEDGER, ZERO_LEDGER, ZERO_STATE

PARAMS = st.integers(1, 10**13)
RANKS = st.integers(1, 10**5)
RECIPES = st.sampled_from([a.name for a in RECIPE.alternatives])


@pytest.mark.parametrize("alternative", RECIPE.alternatives, ids=lambda a: a.name)
def test_a_recipe_costs_the_bytes_its_description_says(alternative):
    said = int(alternative.meaning.rpartition(": ")[2].removesuffix(" bytes"))
    assert formula("param_state_bytes")(**alternative.values) == said


@given(PARAMS, RANKS, st.integers(0, 3), RECIPES)
def test_parts_add_up_to_the_total(num_params, world_size, stage, recipe):
    values = {"num_params": num_params, "world_size": world_size, "stage": stage, **RECIPE[recipe].values}
    assert sum(ZERO_LEDGER(**values).values()) == pytest.approx(ZERO_STATE(**values), rel=1e-12)


@given(PARAMS, RANKS, RECIPES)
def test_each_stage_holds_no_more_than_the_one_before_and_never_less_than_a_fair_share(num_params, world_size, recipe):
    values = {"num_params": num_params, "world_size": world_size, **RECIPE[recipe].values}
    held = [ZERO_STATE(stage=stage, **values) for stage in range(4)]
    whole = sum(STATE_LEDGER(num_params=num_params, **RECIPE[recipe].values).values())
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(held))
    assert held[0] == pytest.approx(whole)
    assert held[3] * world_size == pytest.approx(whole)


@given(PARAMS, st.integers(0, 3))
def test_one_rank_shares_with_nobody(num_params, stage):
    assert ZERO_STATE(num_params=num_params, world_size=1, stage=stage) == pytest.approx(16 * num_params)


def test_a_ledger_whose_parts_do_not_add_up_raises():
    with pytest.raises(ValueError, match="differ by"):
        Ledger("half a ledger", {"weights": formula("weight_bytes")}, formula("state_bytes"))


def test_a_ledger_of_two_units_raises():
    with pytest.raises(UnitError, match="share is in a pure number"):
        Ledger("mixed", {"share": formula("optimizer_share")}, formula("state_bytes"))


def test_balance_shows_amounts_and_shares():
    balance = STATE_LEDGER.at(num_params="7B")
    assert balance.lines()[-1] == ("total", "112 GB", "100%")
    assert balance.share("weights") == 0.125
    assert "master weights" in str(balance)


def test_no_letter_is_used_twice():
    letters = [q.tex for q in GLOSSARY.values()]
    assert sorted({letter for letter in letters if letters.count(letter) > 1}) == []
