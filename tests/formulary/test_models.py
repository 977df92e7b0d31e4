"""Parameter counts, shapes, cards and links: the ledger, what a choice adds, and facts with their sources."""

import re

import pytest

from formulary import InputError, formula
from formulary.hardware import FORMATS, GPUS, NETWORKS, PCIE
from formulary.models import FAMILY, MODEL_LEDGER
from formulary.shapes import MODELS

COUNT = formula("model_params")


def shape(title):
    return dict(MODELS[title].only(COUNT))


@pytest.mark.parametrize("title", MODELS)
def test_parts_add_up_to_the_total(title):
    assert sum(MODEL_LEDGER(**shape(title)).values()) == COUNT(**shape(title))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"tied_embeddings": 0}, "output head"),
        ({"num_positions": 1025}, "position embedding"),
        ({"mlp_matrices": 3}, "MLP"),
        ({"extra_norms": 1}, "norms"),
        ({"num_experts": 2}, "router"),
    ],
)
def test_each_choice_adds_to_its_own_part(change, part):
    before, after = MODEL_LEDGER(**shape("GPT-2")), MODEL_LEDGER(**{**shape("GPT-2"), **change})
    assert after[part] > before[part]
    assert all(after[name] >= before[name] for name in before)


@pytest.mark.parametrize("change", [{"num_kv_heads": 6}, {"qkv_bias": 0}, {"output_bias": 0}, {"mlp_bias": 0}, {"norm_vectors": 1}])
def test_each_choice_that_saves(change):
    assert COUNT(**{**shape("GPT-2"), **change}) < COUNT(**shape("GPT-2"))


def test_a_family_fills_in_what_a_shape_leaves_open():
    widths = {k: v for k, v in shape("Llama 3 8B").items() if k not in FAMILY["llama"].values}
    assert COUNT(**widths) == COUNT(**shape("Llama 3 8B"))


def test_one_expert_is_a_plain_model():
    dense = shape("Mistral 7B")
    assert formula("active_params")(active_experts=1, **dense) == COUNT(**dense)


@pytest.mark.parametrize("bad", [{"mlp_matrices": 4}, {"num_heads": 0}, {"tied_embeddings": 0.5}, {"vocab_size": -1}])
def test_impossible_shapes(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        COUNT(**{**shape("GPT-2"), **bad})


@pytest.mark.parametrize("bundle", [*MODELS.values(), *GPUS.values(), *NETWORKS.values(), *PCIE.values(), *FORMATS.values()])
def test_every_fact_says_where_and_when(bundle):
    for fact in bundle.facts.values():
        assert fact.source and re.fullmatch(r"\d{4}-\d\d-\d\d", fact.seen)


@pytest.mark.parametrize("card", GPUS.values(), ids=GPUS)
def test_figures_of_a_card_agree_with_each_other(card):
    assert card["link_bandwidth"] < card["memory_bandwidth"]
    assert card.get("sparse_flop_per_s", 2 * card["peak_flop_per_s"]) == pytest.approx(2 * card["peak_flop_per_s"], rel=1e-3)
    assert card.get("fp8_flop_per_s", 2 * card["peak_flop_per_s"]) == pytest.approx(2 * card["peak_flop_per_s"], rel=1e-3)
    assert card["fp32_flop_per_s"] < card["peak_flop_per_s"]
