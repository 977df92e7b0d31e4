"""Data parallelism played through, on real arrays and with torch: nothing here is made from the formulas."""

import numpy as np
import pytest
import torch
from torch.distributed import _compute_bucket_assignment_by_size as ddp_buckets

from formulary import formula
from tests.witnesses.simulators import collectives, overlap

TIMES = [(0.5, 1.0, 0.49, 25), (0.3, 1.0, 3.0, 4), (0.5, 2.0, 2.0, 10), (0.0, 1.0, 0.2, 1), (1.0, 0.1, 5.0, 3), (0.2, 1.0, 1.1, 7)]


@pytest.mark.witness("sequences_per_step")
@pytest.mark.parametrize(("micro_batch", "steps", "ranks"), [(1, 1, 1), (4, 8, 8), (2, 3, 5)])
def test_sequences_of_one_step(micro_batch, steps, ranks):
    used = overlap.sequences_of_a_step(micro_batch, steps, ranks)
    assert formula("sequences_per_step")(micro_batch=micro_batch, accumulation_steps=steps, world_size=ranks) == len(set(used))


@pytest.mark.witness("needed_accumulation_steps")
@pytest.mark.parametrize(("wanted", "micro_batch", "ranks"), [(256, 4, 8), (1, 1, 1), (100, 3, 8), (97, 4, 8), (96, 4, 8)])
def test_the_first_number_of_micro_batches_that_reaches_a_batch(wanted, micro_batch, ranks):
    first = next(steps for steps in range(1, 200) if len(overlap.sequences_of_a_step(micro_batch, steps, ranks)) >= wanted)
    assert formula("needed_accumulation_steps")(global_batch=wanted, micro_batch=micro_batch, world_size=ranks) == first


@pytest.mark.witness("data_parallel_ranks")
@pytest.mark.parametrize(("gpus", "tensor", "stages", "context"), [(128, 8, 4, 1), (16, 2, 2, 2), (8, 1, 1, 1)])
def test_replicas_among_gpus(gpus, tensor, stages, context):
    counted = formula("data_parallel_ranks")(num_gpus=gpus, tensor_parallel=tensor, num_stages=stages, context_parallel=context)
    assert counted == len(overlap.replicas(gpus, tensor, stages, context))


@pytest.mark.witness("cluster_sequences_per_step")
@pytest.mark.parametrize(("gpus", "tensor", "stages", "context"), [(128, 8, 4, 1), (24, 2, 3, 2), (8, 1, 1, 1)])
def test_sequences_of_a_cluster(gpus, tensor, stages, context):
    used = overlap.sequences_of_a_step(2, 3, len(overlap.replicas(gpus, tensor, stages, context)))
    groups = {"tensor_parallel": tensor, "num_stages": stages, "context_parallel": context}
    assert formula("cluster_sequences_per_step")(micro_batch=2, accumulation_steps=3, num_gpus=gpus, **groups) == len(used)


@pytest.mark.witness("ddp_gradient_bytes", "ddp_gradient_time")
@pytest.mark.parametrize(("dtype", "convention"), [(np.float16, "grads_16bit"), (np.float32, "grads_32bit")])
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_gradients_round_a_ring(dtype, convention, ranks):
    grads = [np.full(ranks * 100, rank, dtype) for rank in range(ranks)]
    net = collectives.Network(ranks, latency=0, bandwidth=5e9)
    collectives.ring_all_reduce(net, grads)
    values = {"num_params": grads[0].size, "world_size": ranks}
    assert set(net.sent) == {formula("ddp_gradient_bytes").under(convention)(**values)}
    assert formula("ddp_gradient_time").under(convention)(bandwidth=5e9, **values) == pytest.approx(net.time, rel=1e-12)


@pytest.mark.witness("needed_buckets")
@pytest.mark.parametrize(("tensors", "capacity"), [(20, 16_000), (21, 16_000), (7, 4_000), (100, 25_000 * 4)])
def test_buckets_as_ddp_assigns_them(tensors, capacity):
    """Tensors that divide the bucket leave no gaps, so torch needs exactly as many buckets."""
    params = [torch.zeros(1000) for _ in range(tensors)]
    assigned, _ = ddp_buckets(params, [capacity])
    counted = formula("needed_buckets").under("grads_32bit")(num_params=sum(p.numel() for p in params), bucket_bytes=capacity)
    assert counted == len(assigned)


@pytest.mark.witness("overlapped_step_time", "exposed_comm_time")
@pytest.mark.parametrize(("forward", "backward", "comm", "buckets"), TIMES)
def test_the_step_bucket_by_bucket(forward, backward, comm, buckets):
    ends = overlap.ddp_step(forward, backward, comm, buckets)
    values = {"backward_time": backward, "comm_time": comm, "num_buckets": buckets}
    assert formula("overlapped_step_time")(forward_time=forward, **values) == pytest.approx(ends, rel=1e-12)
    assert formula("exposed_comm_time")(**values) == pytest.approx(ends - forward - backward, rel=1e-9)


@pytest.mark.witness("overlapped_step_time")
@pytest.mark.parametrize(("forward", "backward", "comm", "buckets"), TIMES)
def test_a_network_that_starts_with_the_backward_pass(forward, backward, comm, buckets):
    ends = overlap.ddp_step(forward, backward, comm, buckets, wait_for_buckets=False)
    values = {"forward_time": forward, "backward_time": backward, "comm_time": comm, "num_buckets": buckets}
    assert formula("overlapped_step_time").under("at_once")(**values) == pytest.approx(ends, rel=1e-12)
    assert ends <= formula("overlapped_step_time")(**values) * (1 + 1e-12)


@pytest.mark.witness("bucket_backward_time")
@pytest.mark.parametrize(("backward", "buckets"), [(0.6, 1), (0.6, 10), (1.5, 7)])
def test_buckets_fill_in_the_whole_of_the_backward_pass(backward, buckets):
    filled = sum(formula("bucket_backward_time")(backward_time=backward, num_buckets=buckets) for _ in range(buckets))
    assert filled == pytest.approx(backward, rel=1e-12)


@pytest.mark.witness("bucketed_exposed_time", "bucket_all_reduce_time", "ring_round_time")
@pytest.mark.parametrize(("ranks", "buckets", "backward"), [(4, 1, 3e-5), (4, 5, 3e-3), (8, 20, 3e-5), (2, 3, 0.0)])
def test_buckets_sent_one_by_one_behind_the_backward_pass(ranks, buckets, backward):
    """Each bucket goes round a ring of its own; the clock of that network is the time the step's network needs."""
    net = collectives.Network(ranks, latency=1e-5, bandwidth=1e9)
    elements = ranks * 100
    for _ in range(buckets):
        collectives.ring_all_reduce(net, [np.ones(elements, np.float32) for _ in range(ranks)])
    values = {"message_bytes": buckets * elements * 4, "world_size": ranks, "latency": 1e-5, "bandwidth": 1e9}
    assert formula("bucket_all_reduce_time")(num_buckets=buckets, **values) == pytest.approx(net.time / buckets, rel=1e-9)
    one_bucket = {**values, "message_bytes": elements * 4}
    assert formula("ring_round_time")(**one_bucket) == pytest.approx(net.time / net.rounds, rel=1e-9)
    ends = overlap.ddp_step(0, backward, net.time, buckets)
    exposed = formula("bucketed_exposed_time")(num_buckets=buckets, backward_time=backward, **values)
    assert exposed == pytest.approx(ends - backward, rel=1e-9)


@pytest.mark.witness("server_bytes", "worker_bytes")
@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (4, 1), (6, 3), (5, 5)])
def test_pushing_and_pulling(workers, servers):
    """Every worker pushes its gradients; each server adds its share of them and sends the result back."""
    grads = [np.random.default_rng(worker).integers(0, 9, servers * 20).astype(np.float32) for worker in range(workers)]
    net = collectives.Network(workers + servers)
    sums = [0] * servers
    for worker, grad in enumerate(grads):
        shares = collectives.blocks(grad, servers)
        pushed = net.round([(worker, workers + server, share) for server, share in enumerate(shares)])
        sums = [total + pushed[workers + server] for server, total in enumerate(sums)]
    pulled = [[net.round([(workers + s, worker, total)])[worker] for s, total in enumerate(sums)] for worker in range(workers)]
    for shares in pulled:
        np.testing.assert_array_equal(np.concatenate(shares), sum(grads))
    values = {"message_bytes": grads[0].nbytes, "num_workers": workers, "num_servers": servers}
    assert set(net.sent[workers:]) == {formula("server_bytes")(**values)}
    assert set(net.sent[:workers]) == {formula("worker_bytes")(message_bytes=grads[0].nbytes)}
    both = net.sent + net.received
    assert set(both[workers:]) == {formula("server_bytes").under("sent_and_received")(**values)}
    assert set(both[:workers]) == {formula("worker_bytes").under("sent_and_received")(message_bytes=grads[0].nbytes)}


def loss_of(weight, tokens):
    return ((weight * tokens - 1) ** 2).mean()


def gradient(weight, loss):
    return torch.autograd.grad(loss, weight)[0].item()


@pytest.mark.witness("accumulated_grad", "accumulation_bias")
@pytest.mark.parametrize(("first", "second"), [(10, 90), (32, 32), (1, 63)])
def test_unequal_micro_batches_with_autograd(first, second):
    weight = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    tokens = torch.linspace(-1, 2, first + second, dtype=torch.float64)
    whole = gradient(weight, loss_of(weight, tokens))
    means = [gradient(weight, loss_of(weight, part)) for part in (tokens[:first], tokens[first:])]
    by_means = gradient(weight, (loss_of(weight, tokens[:first]) + loss_of(weight, tokens[first:])) / 2)
    values = {"tokens_first": first, "tokens_second": second, "mean_grad_first": means[0], "mean_grad_second": means[1]}
    assert formula("accumulated_grad")(**values) == pytest.approx(whole, rel=1e-12)
    only_means = {"mean_grad_first": means[0], "mean_grad_second": means[1]}
    assert formula("accumulated_grad").under("mean_of_means")(**only_means) == pytest.approx(by_means, rel=1e-12)
    assert formula("accumulation_bias")(**values) == pytest.approx(by_means - whole, abs=1e-12)
