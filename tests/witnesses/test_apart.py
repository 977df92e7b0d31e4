"""Counts at inputs that all differ, so that no part of a formula can be taken for another and no factor hides as one."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from formulary import formula
from formulary.models import MODEL_LEDGER
from formulary.zero import FSDP_LEDGER
from tests.witnesses.simulators import sharded
from tests.witnesses.test_attention import BATCH, BF16, HEADS, LENGTH, WIDTH, SavedTensors, forward, rebuilt_peak
from tests.witnesses.test_compute import SCORES, TOKENS, counted, gpt
from tests.witnesses.test_compute import batch as tokens_of_a_batch
from tests.witnesses.test_lowrank import GIVEN as ADAPTERS
from tests.witnesses.test_lowrank import LORA_LEDGER, MATRICES
from tests.witnesses.test_lowrank import model as adapted_model
from tests.witnesses.test_lowrank import numel as adapter_numel
from tests.witnesses.test_models import build, numel
from tests.witnesses.test_zero import start

# --- states whose five kinds differ in size ------------------------------------------------------------------------------

KINDS = {
    "bytes_per_weight": torch.int8,
    "bytes_per_grad": torch.float16,
    "bytes_per_master": torch.float32,
    "bytes_per_momentum": torch.float64,
    "bytes_per_variance": torch.complex128,
}
SIZES = {name: kind.itemsize for name, kind in KINDS.items()}


def held(count, *names):
    """Bytes of so many parameters' weights, gradients, … (all of them, if none is named)."""
    return sum(torch.empty(count, dtype=KINDS[name]).nbytes for name in names or KINDS)


@pytest.mark.witness("hsdp_state_bytes", "hpz_state_bytes")
def test_states_within_a_node():
    one_of_four, one_of_eight = torch.empty(48).chunk(4)[0].numel(), torch.empty(48).chunk(8)[0].numel()
    assert formula("hsdp_state_bytes")(num_params=48, ranks_per_node=4, **SIZES) == held(one_of_four)
    second = torch.empty(one_of_four, dtype=torch.complex64).nbytes
    given = {"num_params": 48, "ranks_per_node": 4, "num_nodes": 2, "bytes_per_gathered_weight": torch.complex64.itemsize}
    assert formula("hpz_state_bytes")(**given, **SIZES) == held(one_of_eight) + second


@pytest.mark.witness("fsdp_peak_bytes", "zero_state_bytes")
@pytest.mark.parametrize("ranks", [2, 8])
def test_states_that_stay_in_an_fsdp_step(ranks):
    units = [sharded.Unit(weights=3 * 50, grads=5 * 50, saved=70, working=30)] * 4
    given = {"num_params": 240, "world_size": ranks, "unit_params": 50, "root_params": 40, "activation_bytes": 280, "working_bytes": 30}
    given |= {"bytes_per_gathered_weight": 3, "bytes_per_reduced_grad": 5, "gather_buffers": 2, "reduce_buffers": 1, **SIZES}
    resident = held(torch.empty(240).chunk(ranks)[0].numel())
    peak = sharded.fsdp_peak(resident, 3 * 40, units, prefetch=True, reduce_lingers=False)
    assert formula("fsdp_peak_bytes")(**given) == sum(FSDP_LEDGER(**given).values()) == peak
    assert resident in FSDP_LEDGER(**given).values()


@pytest.mark.witness("lora_memory_bytes", "lora_state_bytes")
def test_adapters_on_a_frozen_model():
    frozen = torch.empty(70, dtype=torch.complex64).nbytes
    given = {"lora_params": 9, **SIZES}
    assert formula("lora_state_bytes")(**given) == held(9)
    assert formula("lora_memory_bytes")(num_params=70, bytes_per_frozen=torch.complex64.itemsize, **given) == frozen + held(9)


@pytest.mark.witness("qlora_memory_bytes", "qlora_base_bytes")
def test_blocks_of_codes_and_groups_of_scales():
    """Codes of one byte, blocks of 4 with a 2-byte scale, groups of 3 scales with an 8-byte scale of their own."""
    codes = torch.empty(24, dtype=torch.int8)
    scales = torch.empty(len(codes.split(4)), dtype=torch.float16)
    groups = torch.empty(len(scales.split(3)), dtype=torch.float64)
    rest = torch.empty(5, dtype=torch.float32)
    base = codes.nbytes + scales.nbytes + groups.nbytes + rest.nbytes
    given = {"quantized_params": 24, "unquantized_params": 5, "quantizer_block": 4, "scale_group": 3}
    given |= {"bytes_per_code": 1, "bytes_per_scale": 2, "bytes_per_group_scale": 8, "bytes_per_unquantized": 4}
    assert formula("qlora_base_bytes")(**given) == base
    assert formula("qlora_memory_bytes")(lora_params=9, **given, **SIZES) == base + held(9)


@pytest.mark.witness("padding_bytes")
def test_padding_of_weights_and_gradients():
    padding = held(20, "bytes_per_weight", "bytes_per_grad") - held(13, "bytes_per_weight", "bytes_per_grad")
    wider = {"bytes_per_weight": 1, "bytes_per_grad": 2, "gpt_buffer_params": 20, "gpt_shard_params": 13}
    assert formula("padding_bytes")(**wider) == padding


@pytest.mark.witness("fewest_gpus")
@pytest.mark.parametrize("params", [99, 100, 101, 103, 750])
def test_cards_added_one_by_one(params):
    card = {"memory_capacity": 400, "activation_bytes": 50, "reserve_bytes": 30, "transient_bytes": 10}
    room = 400 - 50 - 30 - 10  # ten parameters of 31 bytes each
    cards = next(n for n in itertools.count(1) if held(params) <= n * room)
    assert formula("fewest_gpus")(num_params=params, **card, **SIZES) == cards


# --- counts beside a whole number ----------------------------------------------------------------------------------------


@pytest.mark.witness("moment_scale_bytes", "needed_buckets")
@pytest.mark.parametrize("count", [999, 1000, 1001])
def test_pieces_just_beside_a_whole_number(count):
    scales = [torch.empty(len(torch.empty(count).split(250))) for _moment in range(2)]
    assert formula("moment_scale_bytes")(num_params=count, quantizer_block=250) == sum(s.nbytes for s in scales)
    buckets = torch.empty(count, dtype=torch.float16).view(torch.uint8).split(500)
    assert formula("needed_buckets")(num_params=count, bytes_per_reduced_grad=2, bucket_bytes=500) == len(buckets)


@pytest.mark.witness("gpt_shard_params", "gpt_buffer_params", "shard_rows")
def test_a_rank_that_is_left_with_nothing():
    """Five rows in shards of two leave the fourth rank none; no tensor has more rows, so it holds nothing at all."""
    shape = {"vocab_size": 5, "hidden_size": 5, "ffn_size": 5, "num_layers": 2, "num_positions": 5, "world_size": 4}
    assert len(torch.empty(5).chunk(4)) == 3
    assert formula("gpt_shard_params")(rank_index=3, **shape) == 0 == formula("shard_rows")(num_rows=5, world_size=4, rank_index=3)


# --- models with everything ----------------------------------------------------------------------------------------------

EVERYTHING = {
    **{"num_layers": 3, "hidden_size": 24, "num_heads": 6, "num_kv_heads": 2, "head_dim": 5, "ffn_size": 40, "vocab_size": 101},
    **{"mlp_matrices": 3, "mlp_bias": 1, "qkv_bias": 1, "output_bias": 1, "norm_vectors": 2, "extra_norms": 4, "tied_embeddings": 0},
    **{"num_positions": 17, "num_experts": 2},
}


@pytest.mark.witness("model_params", "active_params", "part_params")
@pytest.mark.parametrize("experts", [1, 2, 5])
def test_gated_experts_with_biases(experts):
    shape = {**EVERYTHING, "num_experts": experts}
    model = build(shape)
    layers = model["layers"]
    assert formula("model_params")(**shape) == numel(model.parameters())
    idle = sum(numel(layer.experts[1:].parameters()) for layer in layers)
    assert formula("active_params")(active_experts=1, **shape) == numel(model.parameters()) - idle
    parts = MODEL_LEDGER(**shape)
    assert parts["MLP biases"] == sum(linear.bias.numel() for layer in layers for expert in layer.experts for linear in expert)
    assert parts["router"] == sum(numel(layer.router.parameters()) for layer in layers if layer.router is not None)
    assert parts["norms"] == sum(numel(norm.parameters()) for norm in [*model["norms"], *(n for layer in layers for n in layer.norms)])


@pytest.mark.witness("lora_params", "lora_projection_params")
@pytest.mark.parametrize("switches", [s for s in itertools.product((0, 1), repeat=len(MATRICES)) if any(s)], ids=str)
def test_adapters_wherever_they_are_switched_on(switches):
    chosen = dict(zip(MATRICES, switches, strict=True))
    assert formula("lora_params")(**ADAPTERS, **chosen) == adapter_numel(adapted_model(chosen), True)
    alone = [adapter_numel(adapted_model({other: chosen[name] * (other == name) for other in MATRICES}), True) for name in MATRICES]
    assert list(LORA_LEDGER(**ADAPTERS, **chosen).values()) == alone


# --- activations and attention -------------------------------------------------------------------------------------------


@pytest.mark.witness("swiglu_activation_bytes")
def test_swiglu_blocks_in_another_number_than_sequences():
    saved, _output = forward(layers=BATCH + 1, ffn=172, kernel="fused", mlp="swiglu", dropout=False)
    shape = {"seq_length": LENGTH, "micro_batch": BATCH, "hidden_size": WIDTH, "ffn_size": 172, "num_layers": BATCH + 1}
    assert saved.live == formula("swiglu_activation_bytes")(**shape)


@pytest.mark.witness("checkpoint_peak_bytes")
@pytest.mark.parametrize("sequences", [2, 3])
def test_checkpoints_of_several_sequences(sequences):
    one_input = torch.empty(sequences, 64, 128, dtype=BF16).nbytes
    peak = rebuilt_peak(12, 4, one_input, 1000)
    given = {"seq_length": 64, "micro_batch": sequences, "hidden_size": 128, "num_layers": 12, "layer_activation_bytes": 1000}
    assert formula("checkpoint_peak_bytes")(num_segments=4, **given) == peak


def best_split(layers, checkpoint_size, layer_size, pieces=200_000):
    """The number of segments of the smallest peak, found by trying; it need not be whole."""
    tried = np.linspace(0.5, layers, pieces)
    return tried[np.argmin(tried * checkpoint_size + layers / tried * layer_size)]


@pytest.mark.witness("unit_cost_segments", "best_segments")
@pytest.mark.parametrize("layers", [7, 30])
def test_best_split_by_trying(layers):
    assert formula("unit_cost_segments")(num_layers=layers) == pytest.approx(best_split(layers, 1, 1), rel=1e-3)
    block_input = torch.empty(BATCH, LENGTH, WIDTH, dtype=BF16).nbytes
    saved, _output = forward()
    assert isinstance(saved, SavedTensors)
    shape = {"num_layers": 50 * layers, "hidden_size": WIDTH, "num_heads": HEADS, "seq_length": LENGTH}
    found = best_split(50 * layers, block_input, saved.live)
    assert formula("best_segments")(**shape) == pytest.approx(found, rel=1e-3)


@pytest.mark.witness("merged_row_sum", "merged_output")
@pytest.mark.parametrize("first_is_larger", [True, False])
def test_parts_of_a_row_that_are_about_as_large(first_is_larger):
    parts = [np.array([0.3, 1.1, -0.4]), np.array([0.9, 0.2, 0.5, -1.0])]
    one, other = parts if first_is_larger else reversed(parts)
    values_one, values_other = np.arange(1.0, 1 + len(one)), np.arange(9.0, 9 + len(other))
    weights = [np.exp(part - part.max()) for part in (one, other)]
    given = {"row_max": one.max(), "row_sum": weights[0].sum(), "block_max": other.max(), "block_sum": weights[1].sum()}
    outputs = {"row_output": weights[0] @ values_one / weights[0].sum(), "block_output": weights[1] @ values_other}
    row, values = np.concatenate([one, other]), np.concatenate([values_one, values_other])
    assert formula("merged_row_sum")(**given) == pytest.approx(np.exp(row - row.max()).sum(), rel=1e-12)
    softmax = torch.softmax(torch.tensor(row), 0).numpy()
    assert formula("merged_output")(**given, **outputs) == pytest.approx(softmax @ values, rel=1e-12)


# --- work ----------------------------------------------------------------------------------------------------------------


@pytest.mark.witness("flop_per_token_with_attention", "flop_per_token_without_embedding")
@pytest.mark.parametrize("share", [1, 0.5, 0.25])
def test_some_of_the_scores(share):
    model = gpt()
    run = counted(lambda: model(tokens_of_a_batch()).sum().backward())
    work = run["aten.mm"] + share * run["aten.bmm"]
    matrices = [p.numel() for name, p in model.named_parameters() if "embedding" not in name]
    assert formula("flop_per_token_with_attention")(num_params=sum(matrices), causal_share=share, **SCORES) == work / TOKENS
    embedding = model.embedding.weight
    given = {"num_params": sum(matrices) + embedding.numel(), "vocab_size": embedding.shape[0], "hidden_size": embedding.shape[1]}
    assert formula("flop_per_token_without_embedding")(causal_share=share, **given, **SCORES) == work / TOKENS


@pytest.mark.witness("training_time")
@pytest.mark.parametrize("factor", [1, 2])
def test_batches_ticked_off_at_a_share_of_the_peak(factor):
    clock = sum(1000 * 7 / (3 * 50 * factor * 0.4) for _batch in range(20))
    given = {"flop_per_token": 7, "num_tokens": 20_000, "num_gpus": 3, "peak_flop_per_s": 50, "mfu": 0.4}
    assert formula("training_time")(peak_factor=factor, **given) == pytest.approx(clock)


@pytest.mark.witness("exposed_growth")
@pytest.mark.parametrize("efficiency", [0.3, 0.8])
def test_exposed_time_grown_until_efficiency_falls(efficiency):
    alone, exposed, cards = 4.0, 0.05, 16
    factors = np.linspace(0, 200, 2_000_001)
    reached = alone / (cards * (alone / cards + factors * exposed))
    grown = factors[np.argmax(reached <= efficiency)]
    given = {"one_gpu_step_time": alone, "exposed_comm_time": exposed, "num_gpus": cards}
    assert formula("exposed_growth")(scaling_efficiency=efficiency, **given) == pytest.approx(grown, rel=1e-3)


# --- number formats ------------------------------------------------------------------------------------------------------

CODED = {  # exponent bits, mantissa bits, largest exponent, codes of it that are no numbers
    torch.float16: (5, 10, 15, 0),
    torch.bfloat16: (8, 7, 127, 0),
    torch.float8_e5m2: (5, 2, 15, 0),
    torch.float8_e4m3fn: (4, 3, 8, 1),
}


@pytest.mark.witness("overflow_gradient", "rescued_gradient")
@pytest.mark.parametrize("dtype", CODED, ids=str)
@pytest.mark.parametrize("scale", [1, 1024])
def test_scaled_gradients_in_every_format(dtype, scale):
    exponent_bits, mantissa_bits, max_exponent, reserved = CODED[dtype]
    least = formula("rescued_gradient")(exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, loss_scale=scale)
    most = formula("overflow_gradient")(mantissa_bits=mantissa_bits, max_exponent=max_exponent, reserved_codes=reserved, loss_scale=scale)
    finfo = torch.finfo(dtype)
    assert most == finfo.max / scale
    assert least == finfo.smallest_normal * finfo.eps / scale


@pytest.mark.witness("clip_factor")
@pytest.mark.parametrize("most", [0.5, 2.0, 3.5])
def test_clipping_to_other_norms(most):
    parameter = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    parameter.grad = torch.tensor([1.8, 2.4], dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_([parameter], most)
    assert parameter.grad.norm().item() / 3 == pytest.approx(formula("clip_factor")(grad_norm=3, max_norm=most), rel=2e-6)


def farthest_apart(roundings, bits):
    """How far two products of so many rounding factors 1 ± u can be from each other, over the exact one."""
    unit = Fraction(1, 2 ** (bits + 1))
    return (1 + unit) ** roundings - (1 - unit) ** roundings


@pytest.mark.witness("order_gap", "tree_order_gap")
@pytest.mark.parametrize("terms", [2, 3, 8, 9, 17])
@pytest.mark.parametrize("bits", [7, 10])
def test_every_rounding_for_the_worst(terms, bits):
    """Of n terms added in turn, one meets n-1 roundings; in a tree, as many as there are levels.

    The bounds lie above the worst case by about as much as the roundings add up to, since they are a geometric series' sum.
    """
    levels = 0
    while 2**levels < terms:
        levels += 1
    for name, roundings in (("order_gap", terms - 1), ("tree_order_gap", levels)):
        worst = float(farthest_apart(roundings, bits))
        bound = formula(name)(num_terms=terms, mantissa_bits=bits)
        assert 0.9 < (bound / worst - 1) * 2 ** (bits + 1) / roundings < 1.2, name


# --- ZeRO ----------------------------------------------------------------------------------------------------------------


@pytest.mark.witness("zero_traffic_elements")
@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("micros", [1, 3, 4])
def test_elements_sent_over_several_micro_batches(stage, micros):
    ranks, params = 8, 48
    run = sharded.Step(sharded.POLICIES["zero_paper"][stage], start(params), ranks, micros, np.float16).run()
    counted_elements = formula("zero_traffic_elements")(num_params=params, accumulation_steps=micros, stage=stage)
    assert counted_elements * (ranks - 1) / ranks == pytest.approx(run.net.sent[0] / 2, rel=1e-12)
