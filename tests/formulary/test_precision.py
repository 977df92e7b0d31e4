"""Number formats: what one format can that another cannot, clipping, orders of adding, and bad input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary.hardware import FORMATS

NAMES = sorted(FORMATS)


def value(name, number_format, **more):
    made = formula(name)
    return made(**FORMATS[number_format].only(made), **more)


@pytest.mark.parametrize("name", NAMES)
def test_order_within_a_format(name):
    sub, normal, epsilon = (value(n, name) for n in ("smallest_subnormal", "smallest_normal", "machine_epsilon"))
    assert 0 < sub < normal < epsilon < 1 < value("largest_float", name)
    assert sub == normal * epsilon
    assert value("unit_roundoff", name) == epsilon / 2


def test_range_and_precision_are_two_matters():
    assert value("largest_float", "bf16") > value("largest_float", "fp16")
    assert value("machine_epsilon", "bf16") == 8 * value("machine_epsilon", "fp16")
    assert value("smallest_normal", "bf16") == value("smallest_normal", "fp32")


def test_a_reserved_code_costs_one_step():
    with_nan, without = (formula("largest_float")(mantissa_bits=3, max_exponent=8, reserved_codes=n) for n in (1, 0))
    assert without - with_nan == formula("float_spacing")(mantissa_bits=3, binade=8)


@given(st.integers(-30, 30), st.integers(1, 52))
def test_updates_are_swallowed_below_half_a_step(exponent, bits):
    sizes = {"mantissa_bits": bits, "binade": exponent}
    either = formula("swallow_threshold")(**sizes)
    assert either == formula("float_spacing")(**sizes) / 2
    assert formula("swallow_threshold").under("toward_zero_from_a_power_of_two")(**sizes) == either / 2


@given(st.floats(1, 1e6), st.sampled_from([n for n in NAMES if n != "fp64"]))
def test_scaling_moves_the_window_and_keeps_its_width(scale, name):
    least, most = (value(n, name, loss_scale=scale) for n in ("rescued_gradient", "overflow_gradient"))
    assert most / least == pytest.approx(value("overflow_gradient", name, loss_scale=1) / value("rescued_gradient", name, loss_scale=1))


@given(st.floats(0, 1e6), st.floats(1e-6, 1e6))
def test_clipped_gradients_are_never_longer_than_allowed(norm, limit):
    factor = formula("clip_factor")(grad_norm=norm, max_norm=limit)
    assert factor <= 1
    assert factor * norm <= limit * (1 + 1e-12)
    assert factor == 1 or norm > limit


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_one_rank_holds_the_whole_norm(sharded, replicated):
    norm = formula("global_grad_norm")(tensor_parallel=1, sharded_square_sum=sharded, replicated_square_sum=replicated)
    assert norm**2 == pytest.approx(sharded + replicated)


@given(st.integers(2, 200))
def test_a_tree_bounds_the_gap_better(count):
    deep, shallow = (formula(name)(mantissa_bits=10, num_terms=count) for name in ("order_gap", "tree_order_gap"))
    assert 0 < shallow <= deep * (1 + 1e-12)


@given(st.integers(1, 10**12), st.integers(1, 4096))
def test_scales_cost_less_than_they_save_from_blocks_of_two_on(params, block):
    scales = formula("moment_scale_bytes")(num_params=params, quantizer_block=block)
    assert scales * block >= 8 * params
    assert scales <= formula("moment_saving_bytes")(num_params=params) + 8 or block == 1


def test_one_byte_moments_have_nothing_left_to_save():
    assert formula("moment_saving_bytes")(num_params=1000, bytes_per_momentum=1, bytes_per_variance=1) == 0


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("largest_float", {"mantissa_bits": -1, "max_exponent": 15, "reserved_codes": 0}),
        ("largest_float", {"mantissa_bits": 10, "max_exponent": 15, "reserved_codes": 2}),
        ("smallest_normal", {"exponent_bits": 12}),
        ("clip_factor", {"grad_norm": float("inf"), "max_norm": 1}),
        ("skipped_share", {"growth_interval": 0}),
        ("order_gap", {"num_terms": 1, "mantissa_bits": 7}),
    ],
)
def test_impossible_input(name, bad):
    with pytest.raises(InputError):
        formula(name)(**bad)
