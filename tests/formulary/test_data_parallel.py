"""Data parallelism: limits, what grows with what, and bad input."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from formulary import InputError, formula
from formulary import glossary as g

TIMES = st.floats(0, 100)
BUCKETS = st.integers(1, 1000)
COUNTS = st.integers(1, 10**6)
GRADS = st.floats(-100, 100)


@given(st.integers(1, 10**5), st.integers(1, 64), st.integers(1, 1024))
def test_accumulation_reaches_the_batch_and_one_step_less_does_not(wanted, micro_batch, ranks):
    steps = formula("needed_accumulation_steps")(global_batch=wanted, micro_batch=micro_batch, world_size=ranks)
    reached = formula("sequences_per_step")(accumulation_steps=steps, micro_batch=micro_batch, world_size=ranks)
    assert reached - micro_batch * ranks < wanted <= reached


@given(TIMES, TIMES, TIMES, BUCKETS)
def test_a_step_lies_between_full_and_no_overlap(forward, backward, comm, buckets):
    values = {"backward_time": backward, "comm_time": comm, "num_buckets": buckets}
    step = formula("overlapped_step_time")(forward_time=forward, **values)
    assert forward + max(backward, comm) <= step * (1 + 1e-9) + 1e-12
    assert step <= (forward + backward + comm) * (1 + 1e-9) + 1e-12
    exposed = formula("exposed_comm_time")(**values)
    assert step == pytest.approx(forward + backward + exposed, rel=1e-9, abs=1e-9)
    assert exposed >= comm / buckets * (1 - 1e-9)


def test_many_buckets_expose_only_what_backward_cannot_hide():
    exposed = formula("exposed_comm_time").limit("num_buckets", sp.oo)
    assert exposed(backward_time=1, comm_time=3) == 2
    assert exposed(backward_time=3, comm_time=1) == 0


@given(st.integers(1, 10**13), st.integers(1, 4096))
def test_a_server_for_every_worker_sends_what_a_worker_sends(size, workers):
    server = formula("server_bytes")(message_bytes=size, num_workers=workers, num_servers=workers)
    assert server == pytest.approx(formula("worker_bytes")(message_bytes=size))
    ring = formula("ring_all_reduce_bytes")(message_bytes=size, world_size=workers)
    assert ring <= 2 * server * (1 + 1e-12)


@given(GRADS, GRADS, COUNTS, COUNTS)
def test_the_bias_is_what_the_mean_of_means_is_off_by(first, second, tokens_first, tokens_second):
    means = {"mean_grad_first": first, "mean_grad_second": second}
    values = {**means, "tokens_first": tokens_first, "tokens_second": tokens_second}
    weighted, bias = formula("accumulated_grad")(**values), formula("accumulation_bias")(**values)
    assert formula("accumulated_grad").under("mean_of_means")(**means) == pytest.approx(weighted + bias, abs=1e-9)
    assert min(first, second) - 1e-9 <= weighted <= max(first, second) + 1e-9


@given(GRADS, GRADS, COUNTS)
def test_equal_micro_batches_have_no_bias(first, second, tokens):
    values = {"mean_grad_first": first, "mean_grad_second": second, "tokens_first": tokens, "tokens_second": tokens}
    assert formula("accumulation_bias")(**values) == 0


def test_gradients_of_one_rank_need_no_time():
    assert formula("ddp_gradient_time")(num_params="7B", world_size=1, bandwidth="50 GB/s") == 0
    assert formula("ddp_gradient_bytes").limit("world_size", sp.oo).expr == 2 * g.num_params * g.bytes_per_reduced_grad


@pytest.mark.parametrize(
    ("name", "values", "named"),
    [
        ("overlapped_step_time", {"forward_time": 1, "backward_time": -1, "comm_time": 1, "num_buckets": 1}, "backward_time"),
        ("overlapped_step_time", {"forward_time": 1, "backward_time": 1, "comm_time": 1, "num_buckets": 0}, "num_buckets"),
        (
            "accumulated_grad",
            {"mean_grad_first": float("inf"), "mean_grad_second": 0, "tokens_first": 1, "tokens_second": 1},
            "mean_grad_first",
        ),
        ("needed_buckets", {"num_params": "7B", "bucket_bytes": 0}, "no finite value"),
        ("server_bytes", {"message_bytes": 1, "num_workers": True, "num_servers": 1}, "num_workers"),
    ],
)
def test_bad_input_is_named(name, values, named):
    with pytest.raises(InputError, match=named):
        formula(name)(**values)
