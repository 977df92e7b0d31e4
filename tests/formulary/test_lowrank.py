"""Adapters and quantised weights: ledgers, limits, what grows with what, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary.lowrank import LORA_LEDGER, TARGETS
from formulary.shapes import MODELS

NF4 = {"bytes_per_code": 0.5, "bytes_per_group_scale": 4, "scale_group": 256}
RANKS = st.integers(1, 256)
LLAMA = MODELS["Llama 3 8B"].only(LORA_LEDGER)


@given(RANKS, st.sampled_from([a.values for a in TARGETS.alternatives]))
def test_parts_add_up_and_grow_with_the_rank(rank, targets):
    count = formula("lora_params")(lora_rank=rank, **LLAMA, **targets)
    assert sum(LORA_LEDGER(lora_rank=rank, **LLAMA, **targets).values()) == count
    assert formula("lora_params")(lora_rank=2 * rank, **LLAMA, **targets) == 2 * count


def test_fewer_key_value_heads_narrow_the_values_adapter():
    whole, shared = (LORA_LEDGER(lora_rank=8, **{**LLAMA, "num_kv_heads": n})["values"] for n in (32, 8))
    assert shared < whole


@given(st.integers(1, 10**4), st.integers(1, 10**4))
def test_at_the_break_even_rank_nothing_is_saved(inputs, outputs):
    rank = formula("break_even_rank")(in_features=inputs, out_features=outputs)
    assert rank <= min(inputs, outputs)
    assert rank * (inputs + outputs) == pytest.approx(inputs * outputs)


@given(st.integers(1, 10**9), st.integers(1, 10**12))
def test_share_of_the_base_is_the_larger(adapters, params):
    counts = {"lora_params": adapters, "num_params": params}
    share = formula("lora_share")(**counts)
    assert 0 < share < 1 and share < adapters / params
    assert adapters > params or share < formula("lora_share_of_base")(**counts)


def test_no_adapters_leave_the_frozen_model():
    assert formula("lora_memory_bytes").limit("lora_params", 0).by_convention()(num_params=1000) == 2000
    assert formula("lora_flop_per_token").limit("lora_params", 0)(num_params=1000) == 4000


@given(RANKS, st.floats(0.1, 1000))
def test_scales_agree_at_rank_one_only(rank, alpha):
    rslora, lora = (formula(name)(lora_rank=rank, lora_alpha=alpha) for name in ("rslora_scale", "lora_scale"))
    assert rslora == pytest.approx(lora * rank**0.5)


@given(st.integers(1, 10**6))
def test_larger_blocks_cost_less_and_never_less_than_their_codes(block):
    cost = lambda size: formula("quantized_weight_bytes")(quantizer_block=size, **{**NF4, "bytes_per_scale": 4})
    assert NF4["bytes_per_code"] < cost(2 * block) < cost(block)


def test_endless_blocks_leave_the_codes_alone():
    limit = formula("quantized_weight_bytes").limit("quantizer_block", sp.oo)
    assert limit(bytes_per_code=0.5) == 0.5


@given(st.integers(1, 10**11), st.integers(0, 10**10), st.integers(1, 10**9))
def test_a_quantised_model_is_smaller_than_a_16_bit_one(quantized, rest, adapters):
    counts = {"quantized_params": quantized, "unquantized_params": rest}
    base = formula("qlora_base_bytes")(**counts)
    assert quantized / 2 < base < 2 * quantized + 2 * rest + 1
    assert formula("qlora_memory_bytes")(lora_params=adapters, **counts) == pytest.approx(base + 16 * adapters)


@pytest.mark.parametrize("bad", [{"lora_rank": 0}, {"adapts_query": 2}, {"num_layers": "many"}, {"hidden_size": -8}])
def test_impossible_adapters(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        formula("lora_params")(**{**LLAMA, "lora_rank": 8, **bad})
