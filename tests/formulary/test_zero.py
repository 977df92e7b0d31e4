"""ZeRO and FSDP: ledgers, limits, what a stage or a buffer adds, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary.zero import FSDP_LEDGER, TRAVEL, ZERO_TRAFFIC_LEDGER

PARAMS, RANKS, STEPS, STAGES = st.integers(1, 10**13), st.integers(1, 10**4), st.integers(1, 64), st.integers(0, 3)
IMPLEMENTATIONS = ["deepspeed", "torch", "torch_no_sync"]
FSDP = {"num_params": "7B", "unit_params": "200M", "root_params": "260M", "activation_bytes": "5GB", "working_bytes": "1GB"}


@given(PARAMS, RANKS, STEPS, STAGES)
def test_weights_and_gradients_make_up_the_traffic(num_params, world_size, accumulation_steps, stage):
    values = {"num_params": num_params, "world_size": world_size, "accumulation_steps": accumulation_steps, "stage": stage}
    for alternative in TRAVEL.alternatives:
        parts = ZERO_TRAFFIC_LEDGER(**values, **alternative.values)
        assert sum(parts.values()) == pytest.approx(formula("zero_traffic_bytes")(**values, **alternative.values), rel=1e-12)


@given(PARAMS, RANKS, STEPS)
def test_a_later_stage_sends_no_less(num_params, world_size, accumulation_steps):
    values = {"num_params": num_params, "world_size": world_size, "accumulation_steps": accumulation_steps}
    sent = [formula("zero_traffic_bytes")(stage=stage, **values) for stage in range(4)]
    assert sent == sorted(sent)
    ratios = [formula("zero_traffic_ratio")(stage=stage, accumulation_steps=accumulation_steps) for stage in range(4)]
    assert [s / sent[0] for s in sent] == pytest.approx(ratios) if world_size > 1 else sent == [0] * 4


@given(STEPS, STAGES)
def test_accumulation_never_adds_communication_per_micro_batch(accumulation_steps, stage):
    for made in (formula("accumulation_comm_ratio"), *(formula("accumulation_comm_ratio").under(name) for name in IMPLEMENTATIONS)):
        ratio = made(stage=stage, accumulation_steps=accumulation_steps)
        assert 1 / accumulation_steps <= ratio * (1 + 1e-12) and ratio <= 1


@pytest.mark.parametrize(("stage", "limit"), [(0, 0), (1, 0), (2, sp.Rational(1, 2))])
def test_what_endless_accumulation_leaves(stage, limit):
    assert formula("accumulation_comm_ratio").given(stage=stage).limit("accumulation_steps", sp.oo).expr == limit


def test_accumulation_leaves_all_of_zero_3s_communication():
    assert formula("accumulation_comm_ratio").given(stage=3).expr == 1


def test_the_papers_zero2_is_the_ledgers():
    for ranks in (1, 2, 8, 64):
        assert formula("zero2_state_bytes")(num_params="7B", world_size=ranks) == formula("zero_state_bytes")(
            num_params="7B", world_size=ranks, stage=2
        )


@given(PARAMS, RANKS)
def test_flat_shards_hold_everything_with_less_padding_than_ranks(num_params, world_size):
    shard = formula("flat_shard_params")(num_params=num_params, world_size=world_size)
    assert num_params <= shard * world_size < num_params + world_size


@given(st.integers(1, 1024))
def test_fsdp_parts_add_up(world_size):
    values = {**FSDP, "world_size": world_size}
    assert sum(FSDP_LEDGER(**values).values()) == pytest.approx(formula("fsdp_peak_bytes")(**values), rel=1e-12)


def test_the_whole_model_as_one_unit_gains_nothing_over_zero_1():
    values = {"num_params": "7B", "world_size": 8}
    peak = formula("fsdp_peak_bytes").under("one_unit")(unit_params="7B", root_params=0, activation_bytes=0, working_bytes=0, **values)
    assert peak >= formula("zero_state_bytes")(stage=1, **values)


def test_many_ranks_leave_only_what_is_whole():
    values = {k: v for k, v in FSDP.items() if k != "num_params"}
    left = formula("fsdp_peak_bytes").by_convention().limit("world_size", sp.oo)
    parts = ("fsdp_gathered_bytes", "fsdp_root_bytes", "fsdp_grad_bytes", "fsdp_activation_bytes")
    given = [{k: v for k, v in values.items() if k in formula(name).inputs} for name in parts]
    assert left(**values) == sum(formula(name)(**v) for name, v in zip(parts, given, strict=True))


@given(st.integers(1, 10**12), st.integers(1, 16), st.integers(1, 256), st.integers(1, 8))
def test_sharding_within_nodes_costs_memory_and_spares_the_links_between_them(num_params, per_node, nodes, steps):
    place = {"num_params": num_params, "ranks_per_node": per_node, "num_nodes": nodes}
    everywhere = formula("zero_state_bytes")(num_params=num_params, world_size=per_node * nodes, stage=3)
    within = formula("hsdp_state_bytes")(num_params=num_params, ranks_per_node=per_node)
    second = formula("hpz_state_bytes")(**place)
    assert everywhere <= within * (1 + 1e-12) and everywhere <= second
    hybrid = formula("hsdp_egress_bytes")(num_params=num_params, num_nodes=nodes, accumulation_steps=steps)
    one_ring, hpz = (formula(name)(**place, accumulation_steps=steps) for name in ("full_shard_egress_bytes", "hpz_egress_bytes"))
    assert hybrid <= hpz * (1 + 1e-12) and hpz <= one_ring
    if nodes > 1:
        assert hpz / one_ring == pytest.approx(2 / 3)


def test_one_node_is_plain_full_sharding():
    inter = formula("hsdp_inter_bytes")(num_params="7B", ranks_per_node=8, num_nodes=1, accumulation_steps=1)
    assert inter == formula("hsdp_egress_bytes")(num_params="7B", num_nodes=1, accumulation_steps=1) == 0
    intra = formula("hsdp_intra_bytes")(num_params="7B", ranks_per_node=8, accumulation_steps=1)
    assert intra == formula("zero_traffic_bytes")(num_params="7B", world_size=8, accumulation_steps=1, stage=3)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"num_params": "7B", "world_size": 8, "accumulation_steps": 1, "stage": 4}, "stage"),
        ({"num_params": "7B", "world_size": 8, "accumulation_steps": 0, "stage": 3}, "accumulation_steps"),
        ({"num_params": "7B", "world_size": 8, "stage": 3}, "accumulation_steps"),
        ({"num_params": "7 GB", "world_size": 8, "accumulation_steps": 1, "stage": 3}, "num_params"),
    ],
)
def test_bad_input_is_named(values, named):
    with pytest.raises(InputError, match=named):
        formula("zero_traffic_bytes")(**values)


def test_an_unknown_implementation_is_told_the_known_ones():
    with pytest.raises(InputError, match="deepspeed"):
        formula("zero_traffic_bytes").under("deepsped")
