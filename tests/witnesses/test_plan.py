"""What a plan costs, counted rank by rank, micro-batch by micro-batch and message by message, with no formula of the book."""

from fractions import Fraction

import pytest

from formulary import formula

# every tensor that a layer keeps for its backward pass, in bytes a token and unit of width (Korthikanti et al., section 4.1);
# with sequence parallelism all of them are cut
LAYER_TENSORS = {
    "attention norm input": 2, "queries, keys, values input": 2, "queries": 2, "keys": 2, "values": 2, "output projection input": 2,
    "attention dropout mask": 1, "MLP norm input": 2, "first matrix input": 2, "GELU input": 8, "second matrix input": 8,
    "MLP dropout mask": 1,
}  # fmt: skip
SIZES = {"seq_length": 512, "micro_batch": 2, "hidden_size": 256, "num_heads": 8, "num_layers": 8}
CUTS = [(1, 1, 4), (2, 2, 2), (4, 4, 1), (2, 4, 3)]


def of(name, **values):
    it = formula(name)
    return it(**{key: value for key, value in values.items() if key in it.inputs})


def alive(stages, micro_batches):
    """The most micro-batches whose activations the first stage holds at once under 1F1B: forwards until the first gradient is back."""
    held = most = done = started = 0
    while done < micro_batches:
        if started < micro_batches and held < stages:
            started, held = started + 1, held + 1
        else:
            done, held = done + 1, held - 1
        most = max(most, held)
    return most


@pytest.mark.witness("plan_activation_bytes")
@pytest.mark.parametrize(("tensor", "stages", "micro_batches"), [(1, 1, 4), (2, 2, 1), (2, 4, 8), (4, 8, 3)])
@pytest.mark.parametrize("recomputed", [0, 1])
@pytest.mark.parametrize("score", [0, 5])
def test_activations_of_the_first_stage(tensor, stages, micro_batches, recomputed, score):
    tokens, width = SIZES["seq_length"] * SIZES["micro_batch"], SIZES["hidden_size"]
    scores = score * SIZES["num_heads"] * SIZES["seq_length"] * tokens
    layer = Fraction(sum(LAYER_TENSORS.values()) * tokens * width + scores, tensor)
    kept = Fraction(2 * tokens * width, tensor) if recomputed else layer
    held = sum(kept for _ in range(SIZES["num_layers"] // stages) for _ in range(alive(stages, micro_batches)))
    values = {"tensor_parallel": tensor, "num_stages": stages, "num_micro_batches": micro_batches, "recomputed": recomputed}
    assert of("plan_activation_bytes", **SIZES, **values, bytes_per_score=score) == held + (layer if recomputed else 0)


ITEMS = {"weight": 2, "gradient": 2, "master": 4, "mean": 4, "square": 4}
SHARDED_FROM = {"weight": 3, "gradient": 2, "master": 1, "mean": 1, "square": 1}


@pytest.mark.witness("plan_state_bytes", "plan_gathered_bytes", "plan_logits_bytes", "plan_memory_bytes")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("tensor", "stages", "replicas"), CUTS)
def test_memory_of_a_card(stage, tensor, stages, replicas):
    params = 8 * 96 * 4
    own = Fraction(params, tensor * stages)
    states = sum(size * own / (replicas if stage >= SHARDED_FROM[item] else 1) for item, size in ITEMS.items())
    one_layer = Fraction(params, SIZES["num_layers"] * tensor)
    # this layer's weights, the next one's, and this layer's gradients, two bytes each
    gathered = sum(2 * one_layer for _ in ("weights", "next weights", "gradients")) if stage == 3 else 0
    logits = Fraction(4 * SIZES["seq_length"] * SIZES["micro_batch"] * 1000, tensor)
    values = {
        **SIZES, "num_params": params, "tensor_parallel": tensor, "num_stages": stages, "world_size": replicas, "stage": stage,
        "vocab_size": 1000, "num_micro_batches": 4, "recomputed": 0, "bytes_per_score": 0,
    }  # fmt: skip
    assert of("plan_state_bytes", **values) == pytest.approx(float(states))
    assert of("plan_gathered_bytes", **values) == pytest.approx(float(gathered))
    assert of("plan_logits_bytes", **values) == pytest.approx(float(logits))
    tokens = SIZES["seq_length"] * SIZES["micro_batch"] * SIZES["hidden_size"]
    activations = sum(LAYER_TENSORS.values()) * tokens * SIZES["num_layers"] // stages * alive(stages, 4) / tensor
    assert of("plan_memory_bytes", **values) == pytest.approx(float(states + gathered + logits) + activations)


def timetable(stages, micro_batches, forward, backward):
    """When the last stage of a chain is done: every stage does its forwards in order, then each gradient comes back."""
    ends = {}
    for kind, order, length in (("F", range(stages), forward), ("B", reversed(range(stages)), backward)):
        before = None
        for stage in order:
            for batch in range(micro_batches):
                ready = max(
                    ends.get((kind, before, batch), 0), ends.get((kind, stage, batch - 1), 0), ends.get(("F", stage, micro_batches - 1), 0)
                )
                ends[kind, stage, batch] = ready + length
            before = stage
    return max(ends.values())


@pytest.mark.witness("plan_compute_time")
@pytest.mark.parametrize("recomputed", [0, 1])
@pytest.mark.parametrize(("tensor", "stages", "micro_batches"), [(1, 1, 4), (2, 4, 6), (4, 2, 3)])
def test_computation_with_a_pipeline_that_fills_and_drains(tensor, stages, micro_batches, recomputed):
    params, batch, replicas, speed = 10**6, 2, 3, 1e9
    tokens = batch * SIZES["seq_length"]
    # a multiply-add is two: over every parameter, and over every score twice (queries by keys, weights by values)
    forward = 2 * tokens * (params + 2 * SIZES["num_layers"] * SIZES["hidden_size"] * SIZES["seq_length"]) / (tensor * stages * speed)
    expected = timetable(stages, micro_batches, forward, (2 + recomputed) * forward)
    values = {
        "num_params": params, "num_layers": SIZES["num_layers"], "num_heads": 8, "head_dim": 32, "seq_length": SIZES["seq_length"],
        "global_batch": batch * replicas * micro_batches, "num_gpus": tensor * stages * replicas, "peak_flop_per_s": 2 * speed,
        "kernel_efficiency": 0.5, "num_stages": stages, "num_micro_batches": micro_batches, "recomputed": recomputed,
    }  # fmt: skip
    assert of("plan_compute_time", **values) == pytest.approx(expected)


def ring(elements, ranks):
    """What one rank sends in one pass around a ring: a chunk in each of k-1 rounds."""
    return sum(Fraction(elements, ranks) for _ in range(ranks - 1))


@pytest.mark.witness("plan_tp_time")
@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_collectives_of_the_layers_of_a_stage(tensor):
    stages, micro_batches, speed = 2, 5, 1e9
    boundary = 2 * SIZES["seq_length"] * SIZES["micro_batch"] * SIZES["hidden_size"]
    sent = 0
    for _ in range(micro_batches * SIZES["num_layers"] // stages):
        for _ in ("attention forward", "MLP forward", "MLP backward", "attention backward"):
            sent += 2 * ring(boundary, tensor)  # an all-reduce: reduce-scatter, then all-gather
    values = {"tensor_parallel": tensor, "num_stages": stages, "num_micro_batches": micro_batches, "link_bandwidth": speed}
    assert of("plan_tp_time", **SIZES, **values) == pytest.approx(float(sent) / speed)


@pytest.mark.witness("plan_dp_time")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("tensor", "stages", "replicas"), CUTS)
def test_traffic_between_replicas(stage, tensor, stages, replicas):
    params, micro_batches, speed = 9600, 3, 1e9
    one = ring(2 * Fraction(params, tensor * stages), replicas)
    if stage <= 1:  # gradients reduced, then gradients or new weights gathered, once
        sent = one + one
    elif stage == 2:  # gradients reduced after every micro-batch
        sent = sum(one for _ in range(micro_batches)) + one
    else:  # weights gathered twice and gradients reduced, every micro-batch
        sent = sum(one for _ in range(micro_batches) for _ in ("forward", "backward", "gradients"))
    values = {"num_params": params, "tensor_parallel": tensor, "num_stages": stages, "world_size": replicas, "stage": stage}
    assert of("plan_dp_time", **values, num_micro_batches=micro_batches, bandwidth=speed) == pytest.approx(float(sent) / speed)


BACKWARD, BOTH = ["B1", "B2", "B3", "B4"], [f"{kind}{number}" for number in "1234" for kind in "FB"]


@pytest.mark.witness("plan_hidden_time")
@pytest.mark.parametrize(("stage", "passes"), [(0, ["B4"]), (1, ["B4"]), (2, BACKWARD), (3, BOTH)])
def test_computation_that_traffic_may_hide_behind(stage, passes):
    values = {
        "num_params": 10**6, "num_layers": 4, "num_heads": 8, "head_dim": 32, "seq_length": 512, "global_batch": 8, "num_gpus": 2,
        "peak_flop_per_s": 1e10, "kernel_efficiency": 0.5,
    }  # fmt: skip
    forward = 2 * 8 * 512 * (10**6 + 2 * 4 * 256 * 512) / (2 * 0.5 * 1e10) / 4  # of one micro-batch
    lengths = {"F": forward, "B": 2 * forward}
    hidden = sum(lengths[name[0]] for name in passes)
    assert of("plan_hidden_time", **values, stage=stage, num_micro_batches=4) == pytest.approx(hidden)


@pytest.mark.witness("plan_step_time")
@pytest.mark.parametrize(("computation", "layers", "replicas", "hidden", "step"), [(10, 1, 3, 5, 11), (10, 1, 8, 5, 14), (10, 0, 0, 0, 10)])
def test_a_step_is_what_cannot_be_hidden(computation, layers, replicas, hidden, step):
    values = {"plan_compute_time": computation, "plan_tp_time": layers, "plan_dp_time": replicas, "plan_hidden_time": hidden}
    assert of("plan_step_time", **values) == step
