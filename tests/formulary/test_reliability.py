"""Checkpoints, offload and capacity: limits, optima, what grows with what, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, amounts, formula
from formulary.hardware import NETWORKS, PCIE
from formulary.memory import RECIPE
from formulary.units import BYTE, SECOND

JOBS = st.fixed_dictionaries({"checkpoint_time": st.floats(1, 600), "failure_rate": st.floats(1e-8, 1e-5)})


@given(JOBS, st.floats(0.2, 5))
def test_no_interval_beats_youngs(job, factor):
    best = formula("checkpoint_interval")(**job)
    lost = formula("least_checkpoint_overhead")(restart_time=0, **job)
    assert formula("checkpoint_overhead")(checkpoint_interval=factor * best, restart_time=0, **job) >= lost * (1 - 1e-9)


@given(JOBS, st.floats(60, 86400), st.floats(0, 3600))
def test_goodput_is_a_share_and_a_safe_restart_keeps_more(job, interval, restart):
    given = {"checkpoint_interval": interval, "restart_time": restart, **job}
    kept, safe = formula("goodput")(**given), formula("safe_restart_goodput")(**given)
    assert 0 <= kept <= safe * (1 + 1e-12) <= 1
    assert formula("exact_checkpoint_overhead")(**given) == pytest.approx(1 - kept, abs=1e-12)
    assert formula("segment_time")(**given) >= interval + job["checkpoint_time"]


@given(JOBS)
def test_first_order_is_right_for_short_intervals(job):
    given = {"checkpoint_interval": formula("checkpoint_interval")(**job), "restart_time": 0, **job}
    first, exact = formula("checkpoint_overhead")(**given), formula("exact_checkpoint_overhead")(**given)
    assert exact <= first <= exact * (1 + first)


def test_limits_of_the_interval():
    young = formula("checkpoint_interval")
    assert young.limit("checkpoint_time", 0).expr == 0
    assert young.limit("failure_rate", 0).expr == sp.oo
    assert formula("checkpoint_overhead").limit("checkpoint_interval", sp.oo).expr == sp.oo


@given(JOBS)
def test_the_three_optima_are_neighbours(job):
    young, daly, higher = (formula(n)(**job) for n in ("checkpoint_interval", "daly_interval", "daly_higher_order_interval"))
    assert daly < higher < young or job["checkpoint_time"] * job["failure_rate"] > 0.01


@given(st.integers(1, 10**5), st.floats(1e-10, 1e-6), st.floats(1, 1e8))
def test_stops_are_time_over_mtbf(cards, rate, time):
    machine = {"num_gpus": cards, "gpu_failure_rate": rate}
    assert formula("expected_stops")(training_time=time, **machine) == pytest.approx(time / formula("mtbf")(**machine))


# --- offload ------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**12), st.integers(1, 1024), st.integers(1, 64))
def test_a_rank_copies_its_share(params, ranks, steps):
    given = {"num_params": params, "accumulation_steps": steps}
    for name in ("offload_down_bytes", "offload_up_bytes", "offload_down_bytes_widened"):
        assert formula(name)(world_size=ranks, **given) * ranks == pytest.approx(formula(name)(world_size=1, **given))


@given(st.integers(2, 64))
def test_accumulation_does_not_amortise_the_copies(steps):
    given = {"num_params": 1000, "world_size": 1}
    down = lambda k: formula("offload_down_bytes")(accumulation_steps=k, **given)
    assert down(steps) == down(1) * (steps + 1)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.floats(1e9, 1e11))
def test_two_directions_save_half_at_most(down, up, rate):
    given = {"offload_down_bytes": down, "offload_up_bytes": up, "host_bandwidth": rate}
    assert formula("duplex_offload_time")(**given) <= formula("offload_time")(**given) <= 2 * formula("duplex_offload_time")(**given)


@given(st.floats(1, 1e12), st.floats(1e-3, 100))
def test_enough_bandwidth_hides_the_copies(moved, forward):
    given = {"moved_bytes": moved, "forward_time": forward}
    rate = formula("hiding_bandwidth")(**given)
    assert formula("exposed_offload_time")(host_bandwidth=2 * rate, **given) == 0
    assert formula("exposed_offload_time")(host_bandwidth=rate / 2, **given) == pytest.approx(forward)


def test_longer_steps_lose_throughput():
    loss = formula("throughput_loss")
    assert loss(step_time_growth=1) == 0
    assert loss.limit("step_time_growth", sp.oo).expr == 1


@pytest.mark.parametrize(("title", "rate"), [("PCIe 3.0 x16", 15.75e9), ("PCIe 4.0 x16", 31.5e9), ("PCIe 5.0 x16", 63e9)])
def test_generations_of_pcie(title, rate):
    assert formula("pcie_bandwidth")(**PCIE[title]) == pytest.approx(rate, rel=1e-3)


# --- capacity -----------------------------------------------------------------------------------------------------------

CARDS = {"memory_capacity": "80GB", "activation_bytes": "10GB", "reserve_bytes": "2GB"}


@given(st.integers(1, 1024), st.sampled_from([a.values for a in RECIPE.alternatives]))
def test_the_largest_model_needs_just_those_cards(cards, recipe):
    given = {**CARDS, **recipe, "transient_bytes": 0}
    largest = formula("largest_params")(world_size=cards, **given)
    assert formula("fewest_gpus")(num_params=int(largest), **given) == cards
    assert formula("fewest_gpus")(num_params=int(largest * 1.001) + 2, **given) > cards


def test_a_full_card_holds_no_model():
    full = {**CARDS, "activation_bytes": 77_999_999_999}
    assert formula("largest_params")(world_size=8, transient_bytes=0, **full) < 1


@given(st.floats(0, 0.99))
def test_margin_and_free_share_are_inverse(share):
    assert formula("free_share")(safety_factor=formula("safety_factor")(free_share=share)) == pytest.approx(share)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 64), st.integers(1, 8))
def test_fully_sharded_states_do_not_care_how_the_cards_are_cut(tensor, stages, data, context):
    sizes = {"tensor_parallel": tensor, "num_stages": stages, "context_parallel": context, "world_size": data}
    held = formula("parallel_state_bytes")(num_params=10**9, stage=3, **sizes)
    assert held * formula("num_gpus")(**sizes) == pytest.approx(16 * 10**9)


@given(st.floats(1, 1e12), st.floats(0, 1))
def test_fragmentation_is_what_is_not_allocated(reserved, share):
    made = formula("fragmentation")(reserved_bytes=reserved, allocated_bytes=share * reserved)
    assert made == pytest.approx(1 - share, abs=1e-9)


def test_bits_and_bytes_of_networks():
    assert NETWORKS["InfiniBand NDR"]["bandwidth"] == amounts.read("50 GB/s", BYTE / SECOND)
    assert amounts.write(NETWORKS["Ethernet 25G"]["bandwidth"], BYTE / SECOND) == "3.125 GB/s"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("checkpoint_interval", {"checkpoint_time": 56, "failure_rate": 0}),
        ("mtbf", {"num_gpus": 0, "gpu_failure_rate": 1e-9}),
        ("checkpoint_bytes", {"num_params": -1}),
        ("largest_params", {**CARDS, "world_size": 0, "transient_bytes": 0}),
        ("safety_factor", {"free_share": 1}),
        ("prefix_ratio", {"prefix_power": 2.5}),
        ("offload_time", {"offload_down_bytes": "1GB", "offload_up_bytes": "1GB", "host_bandwidth": "32 GB"}),
        ("fragmentation", {"reserved_bytes": 0, "allocated_bytes": 0}),
    ],
)
def test_impossible_input(name, bad):
    with pytest.raises(InputError):
        formula(name)(**bad)
