"""What holds for every formula of the catalogue: bad input, arrays, rounding, ledgers, shards, growth and limits."""

import importlib
import json
import math
import random
import subprocess
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from formulary import SUBJECTS, InputError, Ledger, formula, load_all
from formulary.derivation import draw_value

CATALOGUE = load_all()
NAMES = sorted(CATALOGUE)


def drawn(made, draw):
    """Values that the inputs may have: small ones, where they fit together most easily, or some of their spans."""
    return {name: _small(q, draw) if draw.random() < 0.4 else _within(q, draw) for name, q in made.inputs.items()}


def _small(quantity, draw):
    value = draw_value(quantity.symbol, draw)
    return min(int(value), draw.randint(1, 8)) if quantity.symbol.is_integer and not quantity.choices else _plain(quantity, float(value))


def _within(quantity, draw):
    low, high = (min(max(float(end), quantity.least), quantity.most) for end in quantity.span)
    if quantity.choices:
        return draw.choice(quantity.choices)
    return _plain(quantity, math.exp(draw.uniform(math.log(low), math.log(high))) if low > 0 else draw.uniform(low, high))


def _plain(quantity, value):
    return round(value) if quantity.symbol.is_integer else float(value)


@cache
def sensible(name, count=3, tries=4000):
    """Values that the inputs may have together, and at which the formula has a value."""
    draw, found = random.Random(name), []
    for _ in range(tries):
        values = drawn(CATALOGUE[name], draw)
        try:
            CATALOGUE[name](**values)
        except InputError:
            continue
        found.append(values)
        if len(found) == count:
            return found
    raise AssertionError(f"{name}: {len(found)} of {tries} drawn inputs make sense")


# --- bad input -----------------------------------------------------------------------------------------------------------

REFUSED = {
    "None": None,
    "bool": True,
    "numpy bool": np.True_,
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "numpy nan": np.float16("nan"),
    "too large for a double": 10**400,
    "its fraction": Fraction(10**400, 3),
    "complex": 1 + 2j,
    "numpy complex": np.complex64(1 + 2j),
    "decimal": Decimal(7),
    "duration": timedelta(1),
    "numpy duration": np.timedelta64(7),
    "date": np.datetime64("2026-01-01"),
    "bytes": b"7",
    "set": {7},
    "dict": {"7": 7},
    "object": object(),
    "sympy symbol": sp.Symbol("x"),
    "sympy infinity": sp.oo,
    "sympy nan": sp.nan,
    "sympy i": sp.I,
    "words": "nonsense",
    "no words": "",
    "unknown unit": "7 parsecs",
    "text too large": "1e999",
    "text nan": "nan",
    "mixed list": [1, "2"],
    "list with None": [1, None],
    "ragged list": [[1, 2], [3]],
    "objects": np.array([1, 2], object),
    "texts": np.array(["7B"]),
    "bools": np.array([True]),
    "complex array": np.array([1j]),
    "array with nan": [1.0, math.nan],
    "array with infinity": np.array([1.0, np.inf]),
    "masked array": np.ma.masked_array([1, 2], [0, 1]),
}


@pytest.mark.parametrize("bad", REFUSED, ids=str)
def test_no_input_of_any_formula_takes_it(bad):
    for name in NAMES:
        (values,) = sensible(name, count=1)
        for given_name in values:
            with pytest.raises(InputError, match=given_name):
                CATALOGUE[name](**{**values, given_name: REFUSED[bad]})


EDGES = {
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "a fraction": Fraction(7, 2),
    "huge": 10**200,
    "tiny": 1e-300,
    "text": "7",
    "numpy integer": np.int32(2**31 - 1),
    "numpy unsigned": np.uint8(255),
    "numpy float": np.float32(3.0),
    "sympy integer": sp.Integer(3),
    "sympy fraction": sp.Rational(1, 3),
    "empty": [],
    "one row": np.array([1, 2]),
    "table": [[1, 2], [3, 4]],
    "range": range(1, 4),
    "numbers of two kinds": [1, 2.5],
    "small integers": np.array([1, 127], np.int8),
    "no dimension": np.array(3),
}


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_an_edge_gives_a_finite_value_or_a_clear_error(edge):
    for name in NAMES:
        (values,) = sensible(name, count=1)
        for given_name in values:
            try:
                value = CATALOGUE[name](**{**values, given_name: EDGES[edge]})
            except InputError as error:
                assert name in str(error) or given_name in str(error)
                continue
            assert isinstance(value, int) or np.isfinite(value).all(), (name, given_name, value)


@pytest.mark.parametrize("name", NAMES)
def test_kinds_of_numbers_give_the_same(name):
    """numpy's and sympy's numbers and fractions are the numbers they stand for; whole ones do not overflow."""
    for values in sensible(name):
        expected = CATALOGUE[name](**values)
        for kind in (np.float64, lambda v: Fraction(repr(v)), lambda v: sp.nsimplify(v, rational=True), lambda v: f"{v:.17g}"):
            assert CATALOGUE[name](**{k: kind(v) for k, v in values.items()}) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_give_what_numbers_give(name):
    points = sensible(name)
    if not CATALOGUE[name].inputs:
        return
    together = CATALOGUE[name](**{key: np.array([point[key] for point in points]) for key in points[0]})
    assert together.shape == (len(points),)
    assert together.tolist() == pytest.approx([CATALOGUE[name](**point) for point in points], rel=1e-9, abs=1e-300)


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="one shape"):
        formula("state_bytes")(num_params=[1, 2], bytes_per_weight=[1, 2, 3])


def test_a_value_that_is_nowhere_finite_is_named_with_its_inputs():
    with pytest.raises(InputError, match=r"no finite value at .*pipeline_bubble=0"):
        formula("needed_micro_batches")(num_stages=8, pipeline_bubble=[0.1, 0.0])


# Speed-ups beyond linear are measured now and then, and a card may lack memory.
BEYOND = {"scaling_efficiency", "weak_scaling_efficiency"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - BEYOND))
def test_a_value_is_one_that_its_quantity_may_have(name):
    made, draw = CATALOGUE[name], random.Random(f"{name} again")
    for values in (drawn(made, draw) for _ in range(25)):
        try:
            value = made(**values)
        except InputError:
            continue
        q = made.quantity
        assert q.least <= value <= q.most, (values, value)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("in_flight", {"num_layers": 32, "num_stages": 4, "num_micro_batches": 8, "stage_index": 5}, "the last num_stages"),
        ("shard_rows", {"num_rows": 10, "world_size": 4, "rank_index": 4}, "the last world_size - 1"),
        ("data_parallel_ranks", {"num_gpus": 10, "tensor_parallel": 4, "num_stages": 1, "context_parallel": 1}, "whole replicas"),
        ("fragmentation", {"reserved_bytes": "4GB", "allocated_bytes": "5GB"}, "memory that is held"),
        (
            "mfu",
            {"flop_per_token": "42 GFLOP/token", "tokens_per_s": "1e6 tokens/s", "num_gpus": 1, "peak_flop_per_s": 989e12},
            "more work",
        ),
        ("moment_saving_share.fp32_sgd", {}, "moments"),
    ],
)
def test_nonsense_together_is_named(name, values, words):
    name, _, convention = name.partition(".")
    with pytest.raises(InputError, match=words):
        made = formula(name)
        (made.under(convention) if convention else made)(**values)


def test_nonsense_is_noticed_as_soon_as_it_is_filled_in():
    staged = formula("in_flight").given(num_stages=4)
    assert staged.given(stage_index=2)(num_layers=32, num_micro_batches=8) == 24
    with pytest.raises(InputError, match="the last num_stages"):
        staged.given(stage_index=5)


# --- whole numbers -------------------------------------------------------------------------------------------------------

ROUNDED = [name for name in NAMES if CATALOGUE[name].expr.has(sp.ceiling, sp.floor)]


def ties():
    """Points at which rounding is at stake: decimals whose quotient is whole, and the counts just beside one."""
    draw = random.Random(16)
    points = [("needed_micro_batches", {"num_stages": p, "pipeline_bubble": b / 100}) for p in (2, 5, 8, 20, 96) for b in range(1, 100)]
    for k in [*range(1, 60), 96, 1000, 1023]:
        whole = k * draw.randint(1, 10**9)
        points += [("flat_shard_params", {"num_params": whole + off, "world_size": k}) for off in (0, 1) if whole]
        points += [("moment_scale_bytes", {"num_params": whole + off, "quantizer_block": k}) for off in (0, 1)]
        points += [("needed_accumulation_steps", {"global_batch": whole + off, "micro_batch": k, "world_size": 1}) for off in (0, 1)]
        points += [("needed_buckets", {"num_params": whole, "bytes_per_reduced_grad": 2, "bucket_bytes": 0.1 * k})]
        points += [("shard_rows", {"num_rows": 7 * k + off, "world_size": k, "rank_index": k - 1}) for off in (0, 1)]
        points += [("block_bytes", {"tensor_bytes": 512 * k + off, "allocation_unit": 512}) for off in (0, 1)]
        points += [("tree_order_gap", {"num_terms": k + 1, "mantissa_bits": 23})]
    return points


def exactly(name, values):
    """The expression at the fractions that the decimals say, by sympy alone."""
    made = CATALOGUE[name]
    at = {made.inputs[key].symbol: sp.Rational(str(value)) for key, value in values.items()}
    return float(sp.sympify(made.given().expr).xreplace({unit: 1 for unit in made.expr.free_symbols if unit not in at}).xreplace(at))


def test_every_rounded_formula_is_tried_at_ties():
    asked = {name for name, _ in ties()}
    of_rows = {"gpt_shard_params", "gpt_buffer_params", "gpt_padded_params", "gpt_padded_root_params"}  # made of shard_rows
    elsewhere = {"fewest_gpus", "rounded_drift", "format_drift"}  # the last two count spacings, powers of two that are exact
    assert set(ROUNDED) - asked == of_rows | elsewhere


def test_numbers_round_as_their_decimals_say():
    wrong = [(name, values) for name, values in ties()[::3] if CATALOGUE[name](**values) != pytest.approx(exactly(name, values), rel=1e-15)]
    assert wrong == []


def test_arrays_round_as_numbers_do():
    wrong = []
    for name, values in ties():
        (array,) = CATALOGUE[name](**{key: np.array([value]) for key, value in values.items()})
        if array != pytest.approx(CATALOGUE[name](**values), rel=1e-15):
            wrong.append((name, values, array))
    assert wrong == []


def test_javascript_rounds_as_numbers_do(node):
    used = {name: CATALOGUE[name] for name, _ in ties()}
    functions = ", ".join(f"{name}: ({{{', '.join(made.inputs)}}}) => {made.javascript}" for name, made in used.items())
    script = f"const F = {{{functions}}}; console.log(JSON.stringify({json.dumps(ties())}.map(([n, v]) => F[n](v))))"
    found = json.loads(subprocess.run([node, "-"], input=script, capture_output=True, text=True, check=True).stdout)
    wrong = [
        (name, values, got)
        for (name, values), got in zip(ties(), found, strict=True)
        if got != pytest.approx(CATALOGUE[name](**values), rel=1e-15)
    ]
    assert wrong == []


# --- ledgers, shards -----------------------------------------------------------------------------------------------------

LEDGERS = [v for s in SUBJECTS for v in vars(importlib.import_module(f"formulary.{s}")).values() if isinstance(v, Ledger)]


@pytest.mark.parametrize("ledger", {id(ledger): ledger for ledger in LEDGERS}.values(), ids=lambda ledger: ledger.title)
def test_parts_of_every_ledger_add_up(ledger):
    for values in sensible(ledger.total.name, count=8):
        assert sum(ledger(**values).values()) == pytest.approx(ledger.total(**values), rel=1e-12)


def test_there_are_ledgers():
    assert len({ledger.title for ledger in LEDGERS}) >= 8


# (what one of `ranks` holds or sends at least, the whole, the input that counts them)
SHARES = [
    ("zero_state_bytes", "state_bytes", "world_size"),
    ("zero_weight_bytes", "weight_bytes", "world_size"),
    ("zero_grad_bytes", "grad_bytes", "world_size"),
    ("zero_master_bytes", "master_bytes", "world_size"),
    ("zero_momentum_bytes", "momentum_bytes", "world_size"),
    ("zero_variance_bytes", "variance_bytes", "world_size"),
    ("hsdp_state_bytes", "state_bytes", "ranks_per_node"),
    ("fsdp_peak_bytes", "state_bytes", "world_size"),
    ("gpt_buffer_params", "gpt_params", "world_size"),
    ("tp_activation_bytes", "layer_activation_bytes", "tensor_parallel"),
    ("sp_activation_bytes", "layer_activation_bytes", "tensor_parallel"),
]


@pytest.mark.parametrize(("share", "whole", "ranks"), SHARES)
def test_the_shares_together_are_at_least_the_whole(share, whole, ranks):
    for values in sensible(share, count=20):
        undivided = formula(whole)(**{k: v for k, v in values.items() if k in formula(whole).inputs})
        assert values[ranks] * formula(share)(**values) >= undivided * (1 - 1e-12)


@settings(max_examples=60)
@given(st.integers(1, 2000), st.integers(1, 64))
def test_the_rows_of_all_ranks_are_all_rows(num_rows, world_size):
    held = [formula("shard_rows")(num_rows=num_rows, world_size=world_size, rank_index=rank) for rank in range(world_size)]
    assert sum(held) == num_rows and held == sorted(held, reverse=True)


# --- growth --------------------------------------------------------------------------------------------------------------

MORE_WITH_MORE = """
state_bytes num_params | zero_state_bytes num_params | activation_bytes seq_length | activation_bytes num_layers | logits_bytes vocab_size
score_share seq_length | doubling_growth score_share | recompute_growth recomputed_share | standard_accesses seq_length
flash_accesses seq_length | ring_all_reduce_bytes world_size | ring_all_reduce_bytes message_bytes | ring_all_reduce_time latency
ring_all_reduce_time message_bytes | bucketed_all_reduce_time num_buckets | equal_cost_bytes world_size | zero_traffic_bytes world_size
zero_traffic_bytes accumulation_steps | fsdp_peak_bytes unit_params | hsdp_inter_bytes num_nodes | tp_layer_bytes tensor_parallel
cp_layer_bytes context_parallel | ep_layer_bytes expert_parallel | pipeline_bubble num_stages | interleaved_bubble num_stages
pipeline_step_time num_micro_batches | gpipe_in_flight num_micro_batches | in_flight num_micro_batches | pipeline_p2p_bytes chunks_per_stage
needed_micro_batches num_stages | lora_params lora_rank | lora_share lora_params | lora_memory_bytes num_params | float_spacing binade
largest_float max_exponent | mfu tokens_per_s | hfu recomputed_share | step_flop seq_length | training_time num_tokens
training_dollars num_gpus | comm_time comm_bytes | step_time comm_time | critical_gpus bandwidth | expected_stops num_gpus
checkpoint_interval checkpoint_time | least_checkpoint_overhead failure_rate | checkpoint_bytes num_params | largest_params world_size
fewest_gpus num_params | fragmentation reserved_bytes | offload_time offload_down_bytes | nvme_time num_params | server_bytes num_workers
order_gap num_terms | global_grad_norm sharded_square_sum | segment_time checkpoint_interval | model_params num_layers
"""
LESS_WITH_MORE = """
zero_state_bytes world_size | zero_state_bytes stage | flat_shard_params world_size | hsdp_state_bytes ranks_per_node
accumulation_comm_ratio accumulation_steps | access_saving head_dim | flash_accesses sram_elements | crossover_length num_heads
pipeline_bubble num_micro_batches | interleaved_bubble chunks_per_stage | zb_h1_bubble num_micro_batches | in_flight stage_index
overlapped_step_time num_buckets | ring_all_reduce_time bandwidth | needed_buckets bucket_bytes | tp_activation_bytes tensor_parallel
sp_activation_bytes tensor_parallel | tp_mlp_params tensor_parallel | machine_epsilon mantissa_bits | smallest_normal exponent_bits
rescued_gradient loss_scale | overflow_gradient loss_scale | skipped_share growth_interval | clip_factor grad_norm
quantized_weight_bytes quantizer_block | moment_scale_bytes quantizer_block | rslora_scale lora_rank | compute_time num_gpus
exposed_scaling_efficiency num_gpus | mtbf num_gpus | checkpoint_interval failure_rate | goodput failure_rate | goodput restart_time
largest_params activation_bytes | parallel_state_bytes world_size | parallel_state_bytes num_stages | training_time mfu
exposed_offload_time host_bandwidth | server_bytes num_servers | mfu_from_efficiency recomputed_share
"""


def pairs(table):
    return [tuple(row.split()) for row in table.replace("\n", "|").split("|") if row.split() and row.split()[0] in CATALOGUE]


def grown(made, values, name):
    """Values with one input larger, if that makes sense."""
    quantity, value = made.inputs[name], values[name]
    larger = (
        next((c for c in sorted(quantity.choices) if c > value), None)
        if quantity.choices
        else value + max(1, value // 3)
        if quantity.symbol.is_integer
        else 1.1 * value
    )
    try:
        return {**values, name: larger}, made(**{**values, name: larger})
    except InputError:
        return None


@pytest.mark.parametrize(("name", "by", "sign"), [(*p, 1) for p in pairs(MORE_WITH_MORE)] + [(*p, -1) for p in pairs(LESS_WITH_MORE)])
def test_more_of_one_input_never_turns_the_other_way(name, by, sign):
    made, compared = CATALOGUE[name], 0
    for values in sensible(name, count=30):
        after = grown(made, values, by)
        if after:
            compared += 1
            assert sign * (after[1] - made(**values)) >= -1e-12 * abs(after[1]), (values, after[0])
    assert compared >= 5


# --- limits --------------------------------------------------------------------------------------------------------------

# formula, what is filled in, input, where it goes, what is left there
LIMITS = [
    ("zero_state_bytes", {"stage": 1}, "world_size", sp.oo, "4*byte*num_params"),
    ("zero_state_bytes", {"stage": 2}, "world_size", sp.oo, "2*byte*num_params"),
    ("zero_state_bytes", {"stage": 3}, "world_size", sp.oo, "0"),
    ("zero_state_bytes", {"stage": 3}, "world_size", 1, "16*byte*num_params"),
    ("zero_traffic_bytes", {"stage": 3, "accumulation_steps": 1}, "world_size", sp.oo, "6*byte*num_params"),
    ("zero_traffic_bytes", {"stage": 0, "accumulation_steps": 1}, "world_size", 1, "0"),
    ("ring_all_reduce_bytes", {}, "world_size", sp.oo, "2*message_bytes"),
    ("reduce_scatter_bytes", {}, "world_size", sp.oo, "message_bytes"),
    ("ring_all_reduce_time", {"latency": 0}, "world_size", sp.oo, "2*message_bytes/bandwidth"),
    ("all_reduce_bus_bandwidth", {}, "world_size", sp.oo, "2*message_bytes/collective_time"),
    ("accumulation_comm_ratio", {"stage": 1}, "accumulation_steps", sp.oo, "0"),
    ("accumulation_comm_ratio", {"stage": 2}, "accumulation_steps", sp.oo, "1/2"),
    ("pipeline_bubble", {}, "num_micro_batches", sp.oo, "0"),
    ("pipeline_bubble", {}, "num_stages", sp.oo, "1"),
    ("interleaved_bubble", {}, "chunks_per_stage", sp.oo, "0"),
    ("zb_h1_bubble", {}, "num_micro_batches", sp.oo, "0"),
    ("activation_bytes", {}, "seq_length", 0, "0"),
    ("score_share", {}, "seq_length", 0, "0"),
    ("score_share", {}, "seq_length", sp.oo, "1"),
    ("doubling_growth", {}, "score_share", 0, "2"),
    ("doubling_growth", {}, "score_share", 1, "4"),
    ("selective_overhead", {}, "seq_length", 0, "0"),
    ("tp_layer_bytes", {"seq_length": 1, "micro_batch": 1}, "tensor_parallel", sp.oo, "16*byte*hidden_size"),
    ("sp_activation_bytes", {"bytes_per_score": 0}, "tensor_parallel", sp.oo, "0"),
    ("overlapped_step_time", {"num_buckets": 1}, "comm_time", 0, "backward_time + forward_time"),
    ("skipped_share", {}, "growth_interval", sp.oo, "0"),
    ("exposed_scaling_efficiency", {}, "exposed_comm_time", 0, "1"),
    ("exposed_scaling_efficiency", {}, "num_gpus", sp.oo, "0"),
    ("checkpoint_interval", {}, "checkpoint_time", 0, "0"),
    ("checkpoint_interval", {}, "failure_rate", 0, "oo"),
    ("checkpoint_overhead", {"restart_time": 0}, "checkpoint_interval", sp.oo, "oo"),
    ("goodput", {}, "failure_rate", 0, "checkpoint_interval/(checkpoint_interval + checkpoint_time)"),
    ("server_bytes", {"num_workers": 8, "num_servers": 8}, "message_bytes", 0, "0"),
    ("double_quant_saving", {"quantizer_block": 64}, "scale_group", sp.oo, "3*byte/64"),
    ("lora_share", {}, "lora_params", sp.oo, "1"),
    ("order_gap", {}, "mantissa_bits", sp.oo, "0"),
    ("throughput_loss", {}, "step_time_growth", 1, "0"),
    ("hpz_egress_bytes", {"accumulation_steps": 1, "ranks_per_node": 8}, "num_nodes", sp.oo, "4*byte*num_params"),
]


@pytest.mark.parametrize(("name", "filled", "by", "to", "left"), LIMITS)
def test_limits_as_stated(name, filled, by, to, left):
    made = CATALOGUE[name]
    settled = {k: v for k, v in {**made.defaults, **filled}.items() if k in made.inputs and k != by}
    limited = made.given(**settled).limit(by, to).expr if settled else made.limit(by, to).expr
    names = {str(s): s for s in limited.free_symbols} | {str(s): s for s in made.expr.free_symbols}
    assert sp.simplify(limited - sp.sympify(left, locals=names)) == 0 if left != "oo" else limited == sp.oo
