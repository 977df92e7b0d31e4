"""Layers cut across ranks: limits, whole against parts, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula

SIZE = {"micro_batch": 4, "seq_length": 2048, "hidden_size": 4096}
POWERS = st.integers(0, 6).map(lambda power: 2**power)


def test_one_rank_talks_to_nobody():
    heads = {"micro_batch": 1, "seq_length": 4096, "num_kv_heads": 8, "head_dim": 128}
    assert formula("tp_layer_bytes")(tensor_parallel=1, **SIZE) == 0
    assert formula("cp_layer_bytes")(context_parallel=1, **heads) == 0
    assert formula("ulysses_layer_bytes")(context_parallel=1, num_heads=32, **heads) == 0
    assert formula("ep_layer_bytes")(expert_parallel=1, experts_per_token=2, **SIZE) == 0


def test_many_ranks_send_all_of_the_boundary_in_each_pass():
    boundary = formula("boundary_bytes")
    for passes, convention in ((8, "tensor_parallel"), (10, "sequence_parallel"), (12, "tensor_parallel_recomputed")):
        sent = formula("tp_layer_bytes").under(convention).limit("tensor_parallel", sp.oo)
        assert sent.expr == passes * boundary.expr


def test_what_tensor_parallelism_leaves_on_every_rank():
    copied, everything = (formula(name).under("flash_attention") for name in ("tp_activation_bytes", "sp_activation_bytes"))
    element = {"seq_length": 1, "micro_batch": 1, "hidden_size": 1}
    assert copied(tensor_parallel=1, **element) == everything(tensor_parallel=1, **element) == 34
    assert copied.limit("tensor_parallel", sp.oo)(**element) == 10
    assert everything.limit("tensor_parallel", sp.oo).expr == 0


@given(st.integers(1, 64), st.integers(1, 10**5), st.integers(1, 20480), POWERS, st.integers(1, 160))
def test_ranks_hold_at_least_the_layer_between_them(micro_batch, seq_length, hidden_size, ranks, num_heads):
    values = {"micro_batch": micro_batch, "seq_length": seq_length, "hidden_size": hidden_size, "num_heads": num_heads}
    whole = formula("tp_activation_bytes")(tensor_parallel=1, **values)
    cut, shared = (formula(name)(tensor_parallel=ranks, **values) for name in ("tp_activation_bytes", "sp_activation_bytes"))
    assert cut * ranks >= whole * (1 - 1e-12)
    assert shared * ranks == pytest.approx(whole)
    assert shared <= cut * (1 + 1e-12)


@given(POWERS, POWERS, POWERS, st.integers(1, 20480), st.integers(1, 256))
def test_heads_are_cut_and_too_few_of_them_copied(ranks, kv_heads, group, hidden_size, head_dim):
    values = {"hidden_size": hidden_size, "head_dim": head_dim, "num_kv_heads": kv_heads, "num_heads": kv_heads * group * ranks}
    whole = formula("tp_attention_params")(tensor_parallel=1, **values)
    rank = formula("tp_attention_params")(tensor_parallel=ranks, **values)
    assert rank * ranks == pytest.approx(whole) if kv_heads >= ranks else rank * ranks > whole


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 6))
def test_ulysses_sends_less_with_more_ranks_and_a_ring_more(micro_batch, groups, doublings):
    values = {"micro_batch": micro_batch, "seq_length": 8192, "num_kv_heads": 128 * groups, "head_dim": 128}
    ranks = (2**doublings, 2 ** (doublings + 1))
    ulysses = [formula("ulysses_layer_bytes")(context_parallel=c, num_heads=1024 * groups, **values) for c in ranks]
    gathered = [formula("cp_layer_bytes")(context_parallel=c, **values) for c in ranks]
    assert ulysses[0] >= ulysses[1] and gathered[0] <= gathered[1]


def test_swiglu_has_half_as_many_parameters_again():
    values = {"hidden_size": 4096, "ffn_size": 11008, "tensor_parallel": 8}
    assert formula("tp_mlp_params").under("swiglu_mlp")(**values) * 2 == formula("tp_mlp_params")(**values) * 3


@pytest.mark.parametrize(
    ("name", "values", "named"),
    [
        ("tp_layer_bytes", {**SIZE, "tensor_parallel": 0}, "tensor_parallel"),
        ("tp_layer_bytes", {**SIZE, "seq_length": "2048 s", "tensor_parallel": 2}, "seq_length"),
        ("tp_mlp_params", {"hidden_size": 8, "ffn_size": 32, "tensor_parallel": 2, "mlp_matrices": 4}, "mlp_matrices"),
        ("boundary_bytes", {**SIZE, "bytes_per_activation": 1000}, "bytes_per_activation"),
    ],
)
def test_bad_input_is_named(name, values, named):
    with pytest.raises(InputError, match=named):
        formula(name)(**values)
