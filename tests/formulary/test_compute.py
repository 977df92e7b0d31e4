"""Work, utilisation, scaling and walls: ledgers, limits, what grows with what, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary.compute import STEP_LEDGER

SIZES = st.fixed_dictionaries(
    {
        "global_batch": st.integers(1, 4096),
        "num_layers": st.integers(1, 200),
        "hidden_size": st.integers(1, 30_000),
        "seq_length": st.integers(1, 10**6),
        "vocab_size": st.integers(1, 300_000),
    }
)


@given(SIZES)
def test_parts_of_a_step_add_up(sizes):
    assert sum(STEP_LEDGER(**sizes).values()) == pytest.approx(formula("step_flop")(**sizes), rel=1e-12)


@given(SIZES)
def test_recomputation_adds_at_most_a_third(sizes):
    ratio = formula("recomputed_step_flop")(**sizes) / formula("step_flop")(**sizes)
    assert 1 < ratio <= 4 / 3 * (1 + 1e-12)


def test_short_sequences_leave_six_for_a_parameter():
    """Twelve h² a layer and vh for the head: the 72 BLsh² form is 6N once scores vanish."""
    layers, width, vocab = 24, 2048, 32_000
    flop = formula("step_flop")(global_batch=1, num_layers=layers, hidden_size=width, seq_length=1, vocab_size=vocab)
    assert flop == pytest.approx(6 * (12 * layers * width**2 + vocab * width), rel=1e-3)


@given(st.floats(0, 3 / 4), st.floats(0, 1))
def test_hardware_is_busier_than_the_model_needs(mfu, share):
    busy = formula("hfu")(mfu=mfu, recomputed_share=share)
    assert mfu <= busy <= 4 / 3 * mfu + 1e-12


@given(st.floats(0.01, 1), st.floats(0, 1))
def test_efficiency_and_utilisation_are_inverse(efficiency, share):
    mfu = formula("mfu_from_efficiency")(kernel_efficiency=efficiency, recomputed_share=share)
    assert formula("hfu")(mfu=mfu, recomputed_share=share) == pytest.approx(efficiency)


def test_utilisation_and_time_are_two_sides_of_one_rate():
    machine = {"flop_per_token": 4.2e10, "num_gpus": 64, "peak_flop_per_s": "312 TFLOP/s"}
    mfu = formula("mfu")(tokens_per_s=200_000, **machine)
    time = formula("training_time")(num_tokens=10**12, mfu=mfu, **machine)
    assert time == pytest.approx(formula("training_time_at_rate")(num_tokens=10**12, tokens_per_s=200_000))


@given(st.integers(1, 10**5), st.floats(0.001, 100), st.floats(1e-9, 100))
def test_exposed_time_costs_more_on_more_cards(cards, alone, exposed):
    efficiency = lambda n: formula("exposed_scaling_efficiency")(num_gpus=n, one_gpu_step_time=alone, exposed_comm_time=exposed)
    assert 0 < efficiency(2 * cards) < efficiency(cards) < 1


def test_limits_of_strong_scaling():
    efficiency = formula("exposed_scaling_efficiency")
    assert efficiency.limit("exposed_comm_time", 0).expr == 1
    assert efficiency.limit("num_gpus", sp.oo).expr == 0


@given(st.floats(0, 100), st.floats(0, 100))
def test_overlap_at_best_halves_a_step(compute, comm):
    times = {"compute_time": compute, "comm_time": comm}
    overlapped, serial = formula("step_time")(**times), formula("serial_step_time")(**times)
    assert max(compute, comm) == overlapped <= serial <= 2 * overlapped


@given(st.integers(1, 10**4))
def test_beyond_the_critical_number_of_cards_communication_is_longer(cards):
    machine = {"step_flop": 6e17, "peak_flop_per_s": 2e14, "kernel_efficiency": 0.5}
    wire = {"comm_bytes": 2e10, "bandwidth": 4e10}
    computing = formula("compute_time")(num_gpus=cards, **machine)
    sending = formula("comm_time")(**wire)
    critical = formula("critical_gpus")(**machine, **wire)
    assert (computing > sending) == (cards < critical)
    assert formula("hiding_gpus")(**machine, **wire) == pytest.approx(2 / 3 * critical)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("tokens_per_s", {"global_batch": 8, "seq_length": 2048, "step_time": 0}),
        ("mfu", {"flop_per_token": "6 TFLOP", "tokens_per_s": 1, "num_gpus": 1, "peak_flop_per_s": 1}),
        ("hfu", {"mfu": 1.2, "recomputed_share": 0}),
        ("training_energy", {"training_time": 1, "num_gpus": 1, "gpu_power": 1, "power_overhead": 0.5}),
        ("scaling_efficiency", {"num_gpus": 0, "one_gpu_step_time": 1, "step_time": 1}),
    ],
)
def test_impossible_input(name, bad):
    with pytest.raises(InputError):
        formula(name)(**bad)
