"""Pipelines: limits, what grows with what, exact whole numbers, and bad input."""

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula

STAGES, MICROS, CHUNKS = st.integers(1, 128), st.integers(1, 2048), st.integers(1, 16)


def test_limits_of_the_bubble():
    bubble = formula("pipeline_bubble")
    assert bubble.limit("num_micro_batches", sp.oo).expr == 0
    assert bubble.limit("num_stages", sp.oo).expr == 1
    assert bubble(num_stages=1, num_micro_batches=8) == 0
    assert bubble(num_stages=8, num_micro_batches=1) == 7 / 8


@given(STAGES)
def test_four_micro_batches_per_stage_idle_less_than_a_fifth(stages):
    """Where GPipe's authors call the bubble negligible."""
    assert formula("pipeline_bubble")(num_stages=stages, num_micro_batches=4 * stages) < 1 / 5


@given(STAGES, MICROS, CHUNKS)
def test_share_and_ratio_say_the_same(stages, micros, chunks):
    values = {"num_stages": stages, "num_micro_batches": micros}
    for name, more in {"pipeline_bubble": {}, "interleaved_bubble": {"chunks_per_stage": chunks}}.items():
        share, ratio = formula(name)(**values, **more), formula(name).under("work")(**values, **more)
        assert share == pytest.approx(ratio / (1 + ratio), rel=1e-12)
        assert 0 <= share < 1 and share <= ratio


@given(STAGES, MICROS, CHUNKS)
def test_more_chunks_or_micro_batches_idle_less_and_more_stages_more(stages, micros, chunks):
    bubble = lambda p, m, v: formula("interleaved_bubble")(num_stages=p, num_micro_batches=m, chunks_per_stage=v)
    here = bubble(stages, micros, chunks)
    assert bubble(stages, micros + 1, chunks) <= here
    assert bubble(stages, micros, chunks + 1) <= here <= bubble(stages + 1, micros, chunks)
    assert bubble(stages, micros, 1) == formula("pipeline_bubble")(num_stages=stages, num_micro_batches=micros)


@given(st.integers(2, 256), st.integers(1, 99))
def test_enough_micro_batches_and_not_one_too_many(stages, percent):
    """Compared in exact arithmetic, since 0.7 is no binary fraction."""
    enough = formula("needed_micro_batches")(num_stages=stages, pipeline_bubble=percent / 100)
    bubble = lambda micros: Fraction(stages - 1, micros + stages - 1)
    assert isinstance(enough, int)
    assert bubble(enough) <= Fraction(percent, 100) < bubble(enough - 1)


@given(STAGES, MICROS, st.integers(2, 8), st.data())
def test_what_is_alive_falls_from_stage_to_stage(stages, micros, chunks, data):
    stage = data.draw(st.integers(1, stages))
    values = {"num_layers": 2 * stages, "num_stages": stages, "num_micro_batches": micros}
    alive = lambda name, **more: formula(name)(stage_index=stage, **values, **more)
    plain, filled, interleaved = alive("in_flight"), alive("zb_h2_in_flight"), alive("interleaved_in_flight", chunks_per_stage=chunks)
    assert 0 < plain <= filled <= formula("gpipe_in_flight")(**values)
    assert plain <= interleaved * (1 + 1e-12) <= formula("gpipe_in_flight")(**values) * (1 + 1e-9)
    if stage < stages:
        assert formula("in_flight")(stage_index=stage + 1, **values) <= plain


def test_the_last_stage_holds_one_micro_batch_and_the_first_as_much_as_no_pipeline():
    values = {"num_layers": 32, "num_stages": 8, "num_micro_batches": 64}
    assert formula("in_flight")(stage_index=8, **values) == 4
    assert formula("in_flight")(stage_index=1, **values) == 32


def test_micro_batches_without_end_pile_up_under_gpipe_only():
    layers = {"num_layers": 16, "num_stages": 8, "stage_index": 1}
    assert formula("gpipe_in_flight").limit("num_micro_batches", sp.oo).expr == sp.oo
    assert formula("in_flight").limit("num_micro_batches", sp.oo)(**layers) == 16
    assert formula("interleaved_in_flight").limit("num_micro_batches", sp.oo)(chunks_per_stage=2, **layers) == 23


@given(STAGES, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.01, 1))
def test_zero_bubble_idles_less_than_1f1b(stages, forward, inputs, weights):
    values = {
        "num_stages": stages,
        "stage_forward_time": forward,
        "input_grad_time": inputs,
        "weight_grad_time": min(weights, forward, inputs),
    }
    plain = (stages - 1) * (forward + inputs + values["weight_grad_time"])
    h1, h2 = (formula(name)(**values) for name in ("zb_h1_bubble_time", "zb_h2_bubble_time"))
    assert 0 <= h2 <= h1 * (1 + 1e-12) + 1e-12 and h1 <= plain + 1e-12


def test_a_third_of_the_bubble_is_left():
    ratio = sp.simplify(formula("zb_h1_bubble").expr / (1 - formula("zb_h1_bubble").expr))
    assert ratio.equals(formula("bubble_ratio").expr / 3)


def test_traffic_does_not_depend_on_layers_and_grows_with_chunks():
    p2p = formula("pipeline_p2p_bytes")
    values = {"num_micro_batches": 8, "micro_batch": 4, "seq_length": 2048, "hidden_size": 4096}
    assert "num_layers" not in p2p.inputs
    assert p2p(chunks_per_stage=3, **values) == 3 * p2p(chunks_per_stage=1, **values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"num_stages": 8, "pipeline_bubble": 0}, "no finite value"),
        ({"num_stages": 8, "pipeline_bubble": 1.5}, "pipeline_bubble"),
        ({"num_stages": 8, "pipeline_bubble": -0.1}, "pipeline_bubble"),
        ({"num_stages": 0, "pipeline_bubble": 0.1}, "num_stages"),
    ],
)
def test_bad_input_is_named(values, named):
    with pytest.raises(InputError, match=named):
        formula("needed_micro_batches")(**values)
