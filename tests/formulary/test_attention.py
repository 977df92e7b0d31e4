"""Activations: the ledger, what grows with what, limits, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary.attention import ACTIVATION_LEDGER, SCORES

SHAPE = st.fixed_dictionaries(
    {
        "seq_length": st.integers(1, 10**6),
        "micro_batch": st.integers(1, 512),
        "hidden_size": st.integers(1, 10**5),
        "num_heads": st.integers(1, 256),
        "num_layers": st.integers(1, 256),
    }
)
KERNELS = st.sampled_from([a.values for a in SCORES.alternatives])
GPT3 = {"seq_length": 2048, "micro_batch": 1, "hidden_size": 12288, "num_heads": 96, "num_layers": 96}


@given(SHAPE, KERNELS)
def test_parts_add_up_to_the_total(shape, kernel):
    assert sum(ACTIVATION_LEDGER(**shape, **kernel).values()) == formula("activation_bytes")(**shape, **kernel)


@given(SHAPE, KERNELS)
def test_layers_and_batch_are_factors(shape, kernel):
    activations = formula("activation_bytes")
    here = activations(**shape, **kernel)
    for name in ("num_layers", "micro_batch"):
        assert activations(**{**shape, name: 2 * shape[name]}, **kernel) == 2 * here


@given(SHAPE)
def test_doubling_the_sequence_does_what_the_share_says(shape):
    share = formula("score_share")(**{k: shape[k] for k in ("seq_length", "hidden_size", "num_heads")})
    longer = {**shape, "seq_length": 2 * shape["seq_length"]}
    growth = formula("activation_bytes")(**longer) / formula("activation_bytes")(**shape)
    assert growth == pytest.approx(formula("doubling_growth")(score_share=share))
    assert 0 <= share <= formula("doubled_score_share")(score_share=share) <= 1


@pytest.mark.parametrize(("share", "growth", "after"), [(0, 2, 0), (1, 4, 1)])
def test_growth_at_both_ends(share, growth, after):
    assert formula("doubling_growth")(score_share=share) == growth
    assert formula("doubled_score_share")(score_share=share) == after


@given(st.integers(1, 256), st.integers(1, 1000))
def test_at_the_crossover_scores_are_half(heads, factor):
    sizes = {"hidden_size": 5 * heads * factor, "num_heads": heads}
    length = formula("crossover_length")(**sizes)
    assert length == 34 * factor
    assert formula("score_share")(seq_length=length, **sizes) == 0.5


def test_there_is_no_crossover_without_scores():
    with pytest.raises(InputError, match="no finite value"):
        formula("crossover_length")(hidden_size=4096, num_heads=32, bytes_per_score=0)


@given(SHAPE)
def test_keeping_less_costs_less(shape):
    no_heads = {k: v for k, v in shape.items() if k != "num_heads"}
    kept, rebuilt = formula("kept_input_bytes")(**no_heads), formula("full_recompute_peak_bytes")(**shape)
    assert kept < rebuilt
    assert rebuilt <= formula("activation_bytes")(**shape) or shape["num_layers"] == 1


@given(st.integers(1, 1000), st.integers(1, 10**9))
def test_no_number_of_segments_beats_the_best(layers, layer_bytes):
    sizes = {"seq_length": 128, "micro_batch": 2, "hidden_size": 64}
    peak = lambda n: formula("checkpoint_peak_bytes")(num_layers=layers, num_segments=n, layer_activation_bytes=layer_bytes, **sizes)
    ideal = 2 * (layers * layer_bytes * 2 * 128 * 2 * 64) ** 0.5
    assert all(peak(n) >= ideal * (1 - 1e-9) for n in {1, (layers + 1) // 2, layers})


def test_the_best_number_of_segments_is_far_from_the_unit_cost_one():
    best = formula("best_segments")(num_layers=96, num_heads=96, hidden_size=12288, seq_length=2048, bytes_per_score=0)
    assert best / formula("unit_cost_segments")(num_layers=96) == pytest.approx(17**0.5)


def test_recomputation_at_both_ends():
    growth = formula("recompute_growth")
    assert (growth(recomputed_share=0), growth(recomputed_share=1)) == (1, 4 / 3)
    assert formula("selective_overhead").limit("seq_length", sp.oo).expr == sp.Rational(1, 3)


@given(st.integers(64, 10**5), st.sampled_from([32, 64, 128]))
def test_tiling_beats_stored_scores_while_the_chip_is_large_enough(length, width):
    sizes = {"seq_length": max(length, 16 * width), "head_dim": width}
    assert formula("access_saving")(sram_elements=16 * width**2, **sizes) > 1
    flash = lambda sram: formula("flash_accesses")(sram_elements=sram, **sizes)
    assert flash(2 * width**2) > flash(4 * width**2) > 2 * sizes["seq_length"] * width


@given(st.integers(1, 10**5), st.sampled_from([32, 64, 128]))
def test_a_chip_that_holds_everything_leaves_one_pass(length, width):
    assert formula("flash_accesses_order")(seq_length=length, head_dim=width, sram_elements=length * width) == length * width


@pytest.mark.parametrize(
    "bad", [{"seq_length": 0}, {"micro_batch": -1}, {"hidden_size": 1.5}, {"num_heads": float("nan")}, {"bytes_per_score": 3}]
)
def test_impossible_shapes(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        formula("activation_bytes")(**{**GPT3, **bad})


def test_arrays_of_lengths():
    lengths = [1024, 2048, 4096]
    together = formula("activation_bytes")(**{**GPT3, "seq_length": lengths})
    assert together.tolist() == [formula("activation_bytes")(**{**GPT3, "seq_length": n}) for n in lengths]
