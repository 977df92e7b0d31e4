"""The planner finds every plan, says why each other fails, and agrees with what was published."""

import itertools
from pathlib import Path

import pytest
import yaml

from formulary import InputError, formula
from formulary.hardware import GPUS, NETWORKS
from formulary.planner import MEMORY, RULES, plans
from formulary.shapes import MODELS

RECIPES = yaml.safe_load((Path(__file__).parents[1] / "data" / "recipes.yaml").read_text())
MEGATRON = RECIPES["megatron"]
ROWS = [dict(zip(MEGATRON["columns"], row, strict=True)) for row in MEGATRON["rows"]]
HDR, A100 = NETWORKS["InfiniBand HDR"], GPUS["A100 80GB"]


def small(**given):
    job = {"num_gpus": 16, "global_batch": 24, "seq_length": 2048} | given
    return plans(MODELS["Llama 2 7B"], A100, HDR, **job)


@pytest.fixture(scope="module")
def found():
    return small()


def test_every_division_of_the_cards_is_there_once(found):
    ways = {(t, p, 16 // (t * p)) for t, p in itertools.product((1, 2, 4, 8, 16), repeat=2) if t * p <= 16}
    seen = [tuple(plan.chosen.values()) for plan in found]
    assert {choice[:3] for choice in seen} == ways
    assert len(set(seen)) == len(seen)


def test_plans_that_work_obey_every_rule_and_fit(found):
    shape = MODELS["Llama 2 7B"]
    assert found.good
    for plan in found.good:
        c = plan.chosen
        assert shape["num_heads"] % c["tensor_parallel"] == shape["num_layers"] % c["num_stages"] == 8 % c["tensor_parallel"] == 0
        assert 24 % (c["world_size"] * c["micro_batch"]) == 0
        assert c["stage"] <= 1 or c["num_stages"] == 1
        assert plan.memory_bytes <= A100["memory_capacity"] - 4e9


def test_the_fastest_is_first_and_nothing_else_works(found):
    times = [plan.step_time for plan in found.good]
    assert times == sorted(times)
    assert list(found[: len(times)]) == found.good


def test_every_other_plan_says_why_in_words_with_numbers(found):
    names = {name for name, _, _ in RULES} | {MEMORY}
    failed = [plan for plan in found if plan.fault]
    assert set(found.faults) <= names and len(failed) + len(found.good) == len(found)
    assert all(any(character.isdigit() for character in plan.why) for plan in failed if plan.fault != "replicas")


@pytest.mark.parametrize(
    ("given", "fault", "says"),
    [
        ({"tensor_parallel": 16, "num_stages": 1}, "node", "t = 16 does not fit into nodes of 8"),
        ({"num_stages": 2, "stage": 2, "tensor_parallel": 1, "micro_batch": 1}, "stage", "use stage 1"),
        ({"tensor_parallel": 1, "num_stages": 1}, "batch", "24 sequences do not divide by 16"),
        ({"tensor_parallel": 4, "num_stages": 1, "stage": 0, "micro_batch": 1}, None, ""),
    ],
)
def test_the_reason_is_the_one_that_applies(found, given, fault, says):
    plan = found.find(**given, recomputed=0) if fault != "batch" else found.find(**given)
    assert plan.fault == (fault or "") and says in plan.why


def test_what_does_not_fit_says_what_is_needed_and_what_there_is():
    plan = small(seq_length=32768).find(tensor_parallel=1, num_stages=2, stage=0, micro_batch=1, recomputed=0)
    assert plan.fault == MEMORY and "a card has 76 GB" in plan.why and plan.memory_bytes > 76e9


def test_what_is_not_possible_is_refused(found):
    with pytest.raises(InputError, match="no plan has"):
        found.find(tensor_parallel=3)
    with pytest.raises(InputError, match="num_gpus"):
        small(num_gpus=0)


@pytest.mark.parametrize(("stage", "gigabytes"), [(1, 38.5), (2, 26.25), (3, 14)])
def test_seven_billion_on_eight_cards(stage, gigabytes):
    found = plans(MODELS["Llama 2 7B"], A100, HDR, num_gpus=8, global_batch=64, seq_length=2048, num_params="7B")
    plan = found.find(tensor_parallel=1, num_stages=1, stage=stage, micro_batch=1, recomputed=0)
    assert plan.memory["model states"] == pytest.approx(gigabytes * 1e9)


def test_thirty_billion_on_eight_cards_wants_sharding_and_recomputation():
    found = plans(MODELS["LLaMA 33B"], A100, HDR, num_gpus=8, global_batch=64, seq_length=2048, num_params="30B")
    zero3 = found.find(tensor_parallel=1, num_stages=1, stage=3, micro_batch=1, recomputed=1)
    assert zero3.memory["model states"] == pytest.approx(60e9) and not zero3.fault
    replicated = [plan for plan in found.good if plan.chosen["world_size"] == 8 and plan.chosen["stage"] < 3]
    assert replicated == []


def test_seventy_billion_on_128_cards():
    found = plans(MODELS["Llama 2 70B"], A100, HDR, num_gpus=128, global_batch=32, seq_length=4096, num_params="70B")
    plan = found.find(tensor_parallel=8, num_stages=4, stage=1, micro_batch=1, recomputed=0)
    assert plan.memory["model states"] == pytest.approx(15.3125e9) and not plan.fault
    bubble = formula("pipeline_bubble")
    assert bubble(num_stages=4, num_micro_batches=8) == pytest.approx(0.273, abs=5e-4)
    assert bubble(num_stages=4, num_micro_batches=16) == pytest.approx(0.158, abs=5e-4)


ONE_EFFICIENCY = 0.55  # of the kernels, the only number fitted: one for all ten rows


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['billions']}B")
def test_megatron_rows_are_possible_and_as_fast_as_published_within_a_sixth(row):
    shape = {name: row[name] for name in ("num_heads", "hidden_size", "num_layers")}
    shape |= {"head_dim": row["hidden_size"] // row["num_heads"], "vocab_size": MEGATRON["vocab_size"], "num_params": row["billions"] * 1e9}
    job = {"num_gpus": row["num_gpus"], "global_batch": row["global_batch"], "seq_length": MEGATRON["seq_length"]}
    found = plans(shape, GPUS[MEGATRON["card"]], NETWORKS[MEGATRON["network"]], **job, kernel_efficiency=ONE_EFFICIENCY)
    cut = {name: row[name] for name in ("tensor_parallel", "num_stages")}
    plan = found.find(stage=0, micro_batch=1, recomputed=1, **cut)
    assert not plan.fault, plan.why
    count = formula("recomputed_step_flop")  # what the table divides by its times
    flop = count(**{name: value for name, value in (shape | job).items() if name in count.inputs})
    assert flop / plan.step_time / row["num_gpus"] == pytest.approx(row["tflop_per_s"] * 1e12, rel=1 / 6)
