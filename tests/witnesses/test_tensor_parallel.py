"""Transformer blocks cut across ranks, forward and backward: nothing here is made from the formulas."""

from functools import partial

import numpy as np
import pytest
import torch

from formulary import formula
from tests.witnesses.simulators import collectives as c
from tests.witnesses.simulators import tensor_parallel as tp

BATCH, SEQUENCE, WIDTH, HEADS, HEAD_DIM, FFN = 2, 8, 32, 8, 4, 64
SIZE = {"micro_batch": BATCH, "seq_length": SEQUENCE, "hidden_size": WIDTH}
RANKS = [1, 2, 4, 8]


@pytest.fixture(autouse=True)
def doubles():
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def weights(kv_heads=HEADS):
    inner, kv = HEADS * HEAD_DIM, kv_heads * HEAD_DIM
    shapes = [(WIDTH, inner), (WIDTH, kv), (WIDTH, kv), (inner, WIDTH), (WIDTH, FFN), (FFN, WIDTH)]
    return [torch.randn(shape) / 5 for shape in shapes]


def blocks(ranks, kv_heads=HEADS):
    *projections, up, down = weights(kv_heads)
    whole = [tp.attention_parts(*projections, HEADS, kv_heads, BATCH, 1), tp.mlp_parts(up, down, 1)]
    cut = [tp.attention_parts(*projections, HEADS, kv_heads, BATCH, ranks), tp.mlp_parts(up, down, ranks)]
    return whole, cut


def tokens():
    return torch.randn(SEQUENCE * BATCH, WIDTH), torch.randn(SEQUENCE * BATCH, WIDTH)


def layer_traffic(ranks, run_block):
    """Run both blocks of a layer, cut and whole, compare results and gradients, and return the counting network."""
    net = c.Network(ranks)
    for whole, cut in zip(*blocks(ranks), strict=True):
        x, grad = tokens()
        expected = tp.with_gradient(whole[0][1], x, grad)
        for found, wanted in zip(run_block(net, cut, x, grad), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    return net


@pytest.mark.witness("tp_layer_bytes", "tp_model_bytes", "boundary_bytes")
@pytest.mark.parametrize("ranks", RANKS)
def test_tensor_parallel_layer(ranks):
    net = layer_traffic(ranks, tp.tensor_parallel_block)
    values = {**SIZE, "tensor_parallel": ranks, "bytes_per_activation": 8}
    assert set(net.sent) == {formula("tp_layer_bytes")(**values)}
    assert formula("tp_model_bytes")(num_layers=3, **values) == 3 * net.sent[0]
    assert formula("boundary_bytes")(**SIZE, bytes_per_activation=8) == tokens()[0].numpy().nbytes


@pytest.mark.witness("tp_layer_bytes")
@pytest.mark.parametrize("ranks", RANKS)
def test_full_recomputation_repeats_the_forward_sums(ranks):
    net = layer_traffic(ranks, partial(tp.tensor_parallel_block, recompute=True))
    counted = formula("tp_layer_bytes").under("tensor_parallel_recomputed")
    assert set(net.sent) == {counted(**SIZE, tensor_parallel=ranks, bytes_per_activation=8)}


@pytest.mark.witness("tp_layer_bytes")
@pytest.mark.parametrize("ranks", RANKS)
def test_sequence_parallel_layer(ranks):
    net = layer_traffic(ranks, tp.sequence_parallel_block)
    counted = formula("tp_layer_bytes").under("sequence_parallel")
    assert set(net.sent) == {counted(**SIZE, tensor_parallel=ranks, bytes_per_activation=8)}


@pytest.mark.witness("tp_layer_bytes")
def test_one_block_is_half_a_layer():
    net = c.Network(4)
    x, grad = tokens()
    tp.tensor_parallel_block(net, blocks(4)[1][1], x, grad)
    counted = formula("tp_layer_bytes").under("one_block")
    assert set(net.sent) == {counted(**SIZE, tensor_parallel=4, bytes_per_activation=8)}


@pytest.mark.witness("tp_attention_params", "tp_mlp_params")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_parameters_of_a_rank(ranks, kv_heads):
    whole, (attention, mlp) = blocks(ranks, kv_heads)
    x, grad = tokens()
    y, dx = tp.tensor_parallel_block(c.Network(ranks), attention, x, grad)
    torch.testing.assert_close((y, dx), tp.with_gradient(whole[0][0][1], x, grad), rtol=1e-10, atol=1e-10)
    shape = {"hidden_size": WIDTH, "tensor_parallel": ranks}
    heads = {"num_heads": HEADS, "num_kv_heads": kv_heads, "head_dim": HEAD_DIM}
    assert {sum(w.numel() for w in rank) for rank, _ in attention} == {formula("tp_attention_params")(**shape, **heads)}
    assert {sum(w.numel() for w in rank) for rank, _ in mlp} == {formula("tp_mlp_params")(**shape, ffn_size=FFN)}


def saved_by_a_rank(ranks, *, sequence_parallel, scores):
    """Every tensor of a layer that backward needs, as a rank holds it: norms, projections, attention, MLP, dropout masks."""
    tokens = SEQUENCE * BATCH
    alike = tokens // ranks if sequence_parallel else tokens
    inner, wide = WIDTH // ranks, 4 * WIDTH // ranks
    cut = [np.empty((tokens, inner), np.float16)] * 4 + [np.empty((tokens, wide), np.float16)] * 2
    copied = [np.empty((alike, WIDTH), np.float16)] * 4 + [np.empty((alike, WIDTH), np.uint8)] * 2
    score = (BATCH, HEADS // ranks, SEQUENCE, SEQUENCE)
    kept = [np.empty(score, np.float16), np.empty(score, np.uint8), np.empty(score, np.float16)] if scores else []
    return sum(array.nbytes for array in cut + copied + kept)


@pytest.mark.witness("tp_activation_bytes", "sp_activation_bytes")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("convention", "scores"), [("standard_attention", True), ("flash_attention", False)])
def test_activations_of_a_rank(ranks, convention, scores):
    values = {**SIZE, "num_heads": HEADS, "tensor_parallel": ranks}
    for name, sequence_parallel in {"tp_activation_bytes": False, "sp_activation_bytes": True}.items():
        made = formula(name).under(convention)
        expected = saved_by_a_rank(ranks, sequence_parallel=sequence_parallel, scores=scores)
        assert made(**{k: v for k, v in values.items() if k in made.inputs}) == expected


@pytest.mark.witness("cp_layer_bytes")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kv_heads", [2, 8])
def test_keys_and_values_gathered_by_context_parallel_ranks(ranks, kv_heads):
    query, keys_values, grad = torch.randn(16, 32), torch.randn(2, 16, kv_heads * HEAD_DIM), torch.randn(16, 32)
    net, alone = c.Network(ranks), c.Network(1)
    expected = tp.gathered_attention(alone, query, keys_values, BATCH, HEADS, grad)
    torch.testing.assert_close(tp.gathered_attention(net, query, keys_values, BATCH, HEADS, grad), expected, rtol=1e-10, atol=1e-10)
    values = {"micro_batch": BATCH, "seq_length": SEQUENCE, "num_kv_heads": kv_heads, "head_dim": HEAD_DIM, "context_parallel": ranks}
    assert set(net.sent) == {formula("cp_layer_bytes")(**values, bytes_per_activation=8)}
    kept = formula("cp_layer_bytes").under("kv_kept")(**values, bytes_per_activation=8)
    assert kept == net.sent[0] * 2 / 3  # all but the second of the three passes


@pytest.mark.witness("ulysses_layer_bytes")
@pytest.mark.parametrize(("ranks", "kv_heads"), [(1, 2), (2, 4), (4, 4), (8, 8)])
def test_tokens_swapped_for_heads(ranks, kv_heads):
    net = c.Network(ranks)
    for heads in [HEADS, kv_heads, kv_heads, HEADS] * 2:  # queries, keys, values and outputs, then their gradients
        tensor = np.arange(SEQUENCE * BATCH * heads * HEAD_DIM, dtype=np.float16)
        tp.swap_tokens_for_heads(net, tensor.reshape(-1, heads, HEAD_DIM))
    values = {"micro_batch": BATCH, "seq_length": SEQUENCE, "num_heads": HEADS, "num_kv_heads": kv_heads, "head_dim": HEAD_DIM}
    assert set(net.sent) == {formula("ulysses_layer_bytes")(**values, context_parallel=ranks)}


@pytest.mark.witness("ep_layer_bytes")
@pytest.mark.parametrize(("ranks", "experts_per_token"), [(2, 1), (4, 2), (4, 3), (8, 2)])
def test_tokens_sent_to_their_experts(ranks, experts_per_token):
    net = c.Network(ranks)
    mine = np.zeros((SEQUENCE * BATCH, WIDTH), np.float16)
    for _ in ("forward", "backward"):
        tp.route(net, [mine] * ranks, experts_per_token)
    assert set(net.sent) == {formula("ep_layer_bytes")(**SIZE, expert_parallel=ranks, experts_per_token=experts_per_token)}
