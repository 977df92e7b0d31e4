"""A dashboard: shared controls move together, and what all stand at goes out as JSON."""

import json

import pytest

import explorers


@pytest.fixture
def dashboard():
    return explorers.Dashboard({"states": explorers.memory_explorer("7B"), "curve": explorers.sharding_explorer("7B")})


def test_controls_of_one_name_move_together(dashboard):
    dashboard.explorers["states"].num_params = "13B"
    assert dashboard.explorers["curve"].num_params == 13 * 10**9
    dashboard.explorers["curve"].world_size = 32
    assert dashboard.explorers["states"].world_size == 32


def test_a_plan_is_json_that_makes_the_same_explorers_again(dashboard):
    dashboard.explorers["states"].set(num_params="30B", stage=3)
    plan = json.loads(dashboard.export(criteria=["the peak exceeds the ledger"]))
    again = explorers.memory_explorer(**plan["states"]["settings"])
    assert again.values == pytest.approx(plan["states"]["figures"])
    assert plan["states"]["told"]["zero_state_bytes"] == "60 GB"
    assert plan["criteria"] == ["the peak exceeds the ledger"]
