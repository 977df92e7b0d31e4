"""A 4-bit model with adapters, made by bitsandbytes and peft: every byte is as predicted, and it trains."""

import pytest

from formulary import InputError, Outcome, formula
from formulary.hardware import GPUS
from formulary.lowrank import scale_groups
from labs import load
from labs.qlora import QUANTIZERS, matrices

LAB = load("qlora")
PARTS = {"codes", "scales", "scales of scales", "tables", "the rest", "adapters", "gradients", "optimizer state"}


@pytest.fixture(scope="module")
def report():
    found = LAB.run(2, launcher="fork", timeout=300)
    assert found.measurement, found.failure
    return found


def measured(report, variant, part):
    (value,) = {x.measured for x in report.lines if (x.variant, x.part) == (variant, part)}
    return value


@pytest.mark.parametrize("variant", QUANTIZERS)
def test_every_byte_is_as_predicted(report, variant):
    lines = [x for x in report.lines if x.variant == variant]
    assert {x.part for x in lines} == PARTS and {x.rank for x in lines} == {0, 1}
    assert [x.measured for x in lines] == [x.predicted for x in lines]
    assert report.outcome is Outcome.PASSED, report.reason


@pytest.mark.parametrize("variant", QUANTIZERS)
def test_the_loss_falls(report, variant):
    numbers = report.measurement.numbers
    assert numbers[f"{variant}/last loss"] < numbers[f"{variant}/first loss"] - 0.5


def test_four_bits_and_their_scales(report):
    num_params = 2 * measured(report, "nf4", "codes")
    assert num_params == 2 * measured(report, "nf4_double_quant", "codes")
    assert measured(report, "nf4", "scales") == num_params / 64 * 4
    assert measured(report, "nf4_double_quant", "scales") == num_params / 64
    saved = sum(measured(report, "nf4", part) - measured(report, "nf4_double_quant", part) for part in ("scales", "scales of scales"))
    assert saved == pytest.approx(num_params * formula("double_quant_saving").by_convention()(), rel=1e-3)


def test_paper_and_library_differ_by_what_is_named(report):
    for x in report.totals:
        assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)
    assert set(report.differences) == {"whole groups", "tables", "the rest in fp32", "precision", "step counters"}


def test_the_measurement_says_whose_quantiser_it_was(report):
    assert {"bitsandbytes", "peft"} <= set(report.measurement.versions)


def test_its_picture_has_a_pair_of_bars_for_each_rank(report):
    axes = report.figure().axes[0]
    assert len(axes.patches) == 2 * len(PARTS) * len(report.totals)


def test_a_large_model_fits_a_card_of_a_gamer():
    """By prediction: the states of 7B in 4 bits, and what the peak is held against on a GPU."""
    conditions = {"model": "Llama 2 7B", "device": "cuda", "quantizers": "nf4_double_quant"}
    *states, peak = LAB.predictions(1, card="RTX 4090", **conditions)
    assert peak.key == "nf4_double_quant/peak" and not peak.judged
    assert sum(p.estimate() for p in states) == pytest.approx(peak.estimate(), rel=2e-4)
    assert peak.estimate() < GPUS["RTX 4090"]["memory_capacity"] / 4


@pytest.mark.parametrize(
    ("shapes", "groups"),
    [([(128, 128)], 1), ([(128, 129)], 2), ([(1, 1)], 1), ([(1, 1)] * 3, 3), ([(4096, 11008)], 4096 * 11008 // (64 * 256))],
)
def test_groups_end_with_their_matrix(shapes, groups):
    assert scale_groups(shapes, quantizer_block=64, scale_group=256) == groups


def test_seven_matrices_a_layer():
    shape = {"hidden_size": 64, "ffn_size": 96, "num_heads": 4, "num_kv_heads": 2, "head_dim": 16, "num_layers": 3}
    found = matrices(shape)
    assert len(found) == 7 * 3
    assert found[:7] == [(64, 64), (32, 64), (32, 64), (64, 64), (96, 64), (96, 64), (64, 96)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "Llama 2 7C"}, "did you mean Llama 2 7B"),
        ({"quantizers": "nf3"}, "did you mean nf4"),
        ({"card": "RTX 4091", "device": "cuda"}, "did you mean RTX 4090"),
        ({"card": "RTX 4090"}, "only on cuda"),
    ],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        LAB.predictions(**given)
