"""Tensors dealt out to ranks, counted on real tensors: nothing here is made from the formulas."""

import itertools

import pytest
import torch

from formulary import formula
from formulary.sharding import gpt_tensor_sizes, whole_tensor_partition
from labs.jobs.tiny_gpt import TinyGPT

SHAPES = [
    {"vocab_size": 502, "hidden_size": 128, "ffn_size": 512, "num_layers": 4, "num_positions": 64},
    {"vocab_size": 37, "hidden_size": 20, "ffn_size": 33, "num_layers": 3, "num_positions": 11},
]
RANKS = (1, 2, 3, 4, 7)


def tensors(shape):
    return list(TinyGPT(num_heads=4, **shape).parameters())


def rows_of(name, shape, **values):
    made = formula(name)
    return made(**{k: v for k, v in (shape | values).items() if k in made.inputs})


@pytest.mark.witness("gpt_params", "gpt_tensors")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_real_model_has_as_many_parameters(shape):
    real = tensors(shape)
    assert rows_of("gpt_params", shape) == sum(p.numel() for p in real)
    assert rows_of("gpt_tensors", shape) == len(real)
    assert sorted(gpt_tensor_sizes(**shape)) == sorted(p.numel() for p in real)


@pytest.mark.witness("shard_rows")
@pytest.mark.parametrize("num_rows", [1, 2, 5, 8, 502])
@pytest.mark.parametrize("ranks", RANKS)
def test_shards_are_those_of_torch_chunk(num_rows, ranks):
    pieces = [len(piece) for piece in torch.empty(num_rows).chunk(ranks)]
    pieces += [0] * (ranks - len(pieces))
    assert [formula("shard_rows")(num_rows=num_rows, world_size=ranks, rank_index=i) for i in range(ranks)] == pieces


@pytest.mark.witness("gpt_shard_params", "gpt_buffer_params", "padding_bytes")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ranks", RANKS)
def test_shards_of_a_whole_model(shape, ranks):
    pieces = [p.chunk(ranks) for p in tensors(shape)]
    held = [sum(piece[i].numel() for piece in pieces if i < len(piece)) for i in range(ranks)]
    buffers = sum(piece[0].numel() for piece in pieces)
    assert [rows_of("gpt_shard_params", shape, world_size=ranks, rank_index=i) for i in range(ranks)] == held
    assert rows_of("gpt_buffer_params", shape, world_size=ranks) == buffers
    fp32 = {"bytes_per_weight": 4, "bytes_per_grad": 4, "gpt_buffer_params": buffers, "gpt_shard_params": held[-1]}
    bytes_held, bytes_reserved = (2 * torch.empty(n, dtype=torch.float32).nbytes for n in (held[-1], buffers))
    assert formula("padding_bytes")(**fp32) == bytes_reserved - bytes_held


@pytest.mark.witness("gpt_padded_params", "gpt_padded_root_params")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ranks", RANKS)
def test_what_collectives_move(shape, ranks):
    model = TinyGPT(num_heads=4, **shape)
    moved = lambda parameters: sum(ranks * p.chunk(ranks)[0].numel() for p in parameters)
    assert rows_of("gpt_padded_params", shape, world_size=ranks) == moved(model.parameters())
    root = [p for name, p in model.named_parameters() if not name.startswith("blocks.")]
    assert rows_of("gpt_padded_root_params", shape, world_size=ranks) == moved(root)


@pytest.mark.witness("step_bytes")
def test_adam_counts_the_steps_of_each_tensor():
    net = torch.nn.Linear(3, 2)
    net(torch.ones(1, 3)).sum().backward()
    adam = torch.optim.Adam(net.parameters())
    adam.step()
    assert formula("step_bytes")(num_tensors=2) == sum(state["step"].nbytes for state in adam.state.values())


def test_the_greedy_partition_by_hand():
    assert whole_tensor_partition([3, 7, 2, 2], 2) == [[7], [3, 2, 2]]
    assert whole_tensor_partition([5, 5, 4, 3, 3], 3) == [[5, 3], [5], [4, 3]]


@pytest.mark.parametrize("sizes", [[9, 7, 6, 5, 5, 4], [8, 8, 1, 1, 1], [6, 5, 4, 3, 2, 1], [10, 1, 1]])
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_greedy_partition_loses_nothing_and_keeps_grahams_bound(sizes, ranks):
    parts = whole_tensor_partition(sizes, ranks)
    best = min(
        max(sum(s for s, owner in zip(sizes, owners, strict=True) if owner == r) for r in range(ranks))
        for owners in itertools.product(range(ranks), repeat=len(sizes))
    )
    assert sorted(itertools.chain(*parts)) == sorted(sizes)
    assert best <= max(map(sum, parts)) <= best * (4 / 3 - 1 / (3 * ranks))
