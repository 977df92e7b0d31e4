"""Adapters as torch modules, their work counted, their first step simulated; quantised weights in real bytes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from formulary import formula
from formulary.lowrank import LORA_LEDGER, TARGETS

WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS, RANK = 48, 6, 2, 8, 80, 3, 4
SHAPE = {"hidden_size": WIDTH, "num_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim": HEAD_DIM, "ffn_size": FFN, "num_layers": LAYERS}
GIVEN = {**SHAPE, "lora_rank": RANK}
MATRICES = {
    "adapts_query": [(WIDTH, HEADS * HEAD_DIM)],
    "adapts_key": [(WIDTH, KV_HEADS * HEAD_DIM)],
    "adapts_value": [(WIDTH, KV_HEADS * HEAD_DIM)],
    "adapts_output": [(HEADS * HEAD_DIM, WIDTH)],
    "adapts_mlp": [(WIDTH, FFN), (WIDTH, FFN), (FFN, WIDTH)],
}


class Adapted(nn.Module):
    """A frozen linear layer with a trainable product of rank r beside it."""

    def __init__(self, inputs, outputs, rank, adapted=True):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False).requires_grad_(False)
        self.down = nn.Linear(inputs, rank, bias=False) if adapted else None
        self.up = nn.Linear(rank, outputs, bias=False) if adapted else None

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) if self.up else self.base(x)


def model(switches, rank=RANK):
    """All matrices of all layers, with adapters where `switches` says."""
    return nn.ModuleList(
        Adapted(*sizes, rank, adapted=bool(switches[name])) for _ in range(LAYERS) for name, shapes in MATRICES.items() for sizes in shapes
    )


def numel(module, trainable):
    return sum(p.numel() for p in module.parameters() if p.requires_grad == trainable)


@pytest.mark.witness("lora_params", "lora_share", "lora_share_of_base")
@pytest.mark.parametrize("targets", [a.name for a in TARGETS.alternatives])
def test_adapters_of_a_model(targets):
    switches = TARGETS[targets].values
    adapted = model(switches)
    trainable, frozen = numel(adapted, True), numel(adapted, False)
    assert formula("lora_params")(**GIVEN, **switches) == trainable
    assert sum(LORA_LEDGER(**GIVEN, **switches).values()) == trainable
    assert formula("lora_share")(lora_params=trainable, num_params=frozen) == trainable / (trainable + frozen)
    assert formula("lora_share_of_base")(lora_params=trainable, num_params=frozen) == trainable / frozen


@pytest.mark.witness("adapted_share", "adapted_memory_bytes")
@pytest.mark.parametrize("targets", [a.name for a in TARGETS.alternatives])
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.int8])
def test_adapters_beside_a_model_that_is_stored_in_few_bits(targets, stored):
    switches = TARGETS[targets].values
    adapted = model(switches)
    trainable, frozen = numel(adapted, True), numel(adapted, False)
    assert formula("adapted_share")(**GIVEN, **switches, num_params=frozen) == pytest.approx(trainable / (trainable + frozen))
    kept = torch.empty(frozen, dtype=stored).nbytes
    trained = [torch.empty(trainable, dtype=kind).nbytes for kind in (torch.bfloat16, torch.bfloat16, *3 * (torch.float32,))]
    given = {**GIVEN, **switches, "num_params": frozen, "bytes_per_frozen": stored.itemsize}
    assert formula("adapted_memory_bytes")(**given) == kept + sum(trained)


@pytest.mark.witness("lora_projection_params")
@pytest.mark.parametrize("name, switch", list(zip(LORA_LEDGER.parts, MATRICES, strict=True)))
def test_adapters_of_one_projection(name, switch):
    only = {other: int(other == switch) for other in MATRICES}
    assert LORA_LEDGER(**GIVEN, **only)[name] == numel(model(only), True)


@pytest.mark.witness("lora_matrix_params", "dora_matrix_params")
@pytest.mark.parametrize("inputs, outputs, rank", [(4096, 4096, 8), (4096, 11008, 16), (3, 5, 1)])
def test_one_adapter(inputs, outputs, rank):
    with torch.device("meta"):
        adapted = Adapted(inputs, outputs, rank)
    magnitudes = torch.linalg.vector_norm(adapted.base.weight, dim=1).numel()
    sizes = {"in_features": inputs, "out_features": outputs, "lora_rank": rank}
    assert formula("lora_matrix_params")(**sizes) == numel(adapted, True)
    assert formula("dora_matrix_params")(**sizes) == numel(adapted, True) + magnitudes


@pytest.mark.witness("break_even_rank")
@pytest.mark.parametrize("inputs, outputs", [(64, 64), (30, 60)])
def test_rank_as_large_as_the_matrix(inputs, outputs):
    rank = formula("break_even_rank")(in_features=inputs, out_features=outputs)
    adapted = Adapted(inputs, outputs, int(rank))
    assert rank == int(rank) and numel(adapted, True) == numel(adapted, False)


@pytest.mark.witness("lora_state_bytes", "lora_memory_bytes")
def test_states_of_adapters():
    adapted = model(TARGETS["all_linear"].values)
    for parameter in adapted.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    adam = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad])
    adam.step()
    trainable = [p for p in adapted.parameters() if p.requires_grad]
    moments = [state[name] for state in adam.state.values() for name in ("exp_avg", "exp_avg_sq")]
    states = sum(t.nbytes for t in [*trainable, *(p.grad for p in trainable), *moments])
    frozen = [p for p in adapted.parameters() if not p.requires_grad]
    counts = {"lora_params": numel(adapted, True)}
    assert formula("lora_state_bytes").under("fp32_adam")(**counts) == states
    everything = formula("lora_memory_bytes").under("fp32_adam", "fp32_base")(num_params=numel(adapted, False), **counts)
    assert everything == states + sum(p.nbytes for p in frozen)


@pytest.mark.witness("lora_flop_per_token")
def test_work_of_adapted_layers():
    layers, tokens = nn.Sequential(Adapted(24, 40, 3), Adapted(40, 24, 3)), 5
    x = torch.randn(tokens, 24, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        layers(x).sum().backward()
    counts = {"num_params": numel(layers, False), "lora_params": numel(layers, True)}
    assert formula("lora_flop_per_token")(**counts) == counter.get_total_flops() / tokens


def first_step(rank, scale, width=512, samples=60):
    """How far one gradient step from B = 0 moves an adapter's output, on average over random A and x."""
    stream = np.random.default_rng(11)
    moved = []
    for _ in range(samples):
        a, x = stream.standard_normal((rank, width)) / np.sqrt(width), stream.standard_normal(width)
        gradient_of_b = scale * np.outer(1.0, a @ x)  # one output whose gradient is 1
        moved.append(scale * (gradient_of_b @ (a @ x)).item())
    return np.mean(moved)


@pytest.mark.witness("rslora_scale", "lora_scale")
def test_first_step_at_two_ranks():
    small, large = 4, 64
    rslora, lora = (lambda r, n=name: formula(n)(lora_alpha=16, lora_rank=r) for name in ("rslora_scale", "lora_scale"))
    assert first_step(large, rslora(large)) == pytest.approx(first_step(small, rslora(small)), rel=0.15)
    assert first_step(large, lora(large)) == pytest.approx(first_step(small, lora(small)) * small / large, rel=0.15)
    assert first_step(1, lora(1), samples=2000) == pytest.approx(16**2, rel=0.1)
    assert first_step(1, rslora(1), samples=2000) == pytest.approx(16**2, rel=0.1)


def codes_and_scales(weights, block):
    """4-bit absmax codes, two to a byte, and an fp32 scale a block."""
    blocks = weights.reshape(-1, block)
    scales = np.abs(blocks).max(1).astype(np.float32)
    codes = (np.round(blocks / scales[:, None] * 7) + 8).astype(np.uint8).ravel()
    return codes[::2] << 4 | codes[1::2], scales


def quantized_scales(scales, group):
    """The scales in one byte each, and an fp32 scale a group of them."""
    groups = scales.reshape(-1, group)
    largest = groups.max(1).astype(np.float32)
    return np.round(groups / largest[:, None] * 255).astype(np.uint8), largest


@pytest.fixture(scope="module")
def base():
    """(number of weights, bytes with fp32 scales, bytes with quantised scales)."""
    weights = np.random.default_rng(4).standard_normal(64 * 256 * 6).astype(np.float32)
    codes, scales = codes_and_scales(weights, 64)
    small, largest = quantized_scales(scales, 256)
    return weights.size, codes.nbytes + scales.nbytes, codes.nbytes + small.nbytes + largest.nbytes


@pytest.mark.witness("quantized_weight_bytes", "double_quant_saving")
def test_blocks_of_four_bits(base):
    count, single, double = base
    assert formula("quantized_weight_bytes").under("nf4")() == single / count
    assert formula("quantized_weight_bytes").under("nf4_double_quant")() == double / count
    assert formula("double_quant_saving")() == (single - double) / count


@pytest.mark.witness("qlora_base_bytes", "qlora_memory_bytes")
@pytest.mark.parametrize("rest, dtype", [("bf16_rest", torch.bfloat16), ("fp32_rest", torch.float32)])
def test_quantized_model(base, rest, dtype):
    count, _, double = base
    embedding = torch.zeros(100, 32, dtype=dtype)
    adapter = [torch.zeros(500, dtype=kind) for kind in (torch.bfloat16, torch.bfloat16, torch.float32, torch.float32, torch.float32)]
    counts = {"quantized_params": count, "unquantized_params": embedding.numel()}
    assert formula("qlora_base_bytes").under(rest)(**counts) == double + embedding.nbytes
    memory = formula("qlora_memory_bytes").under(rest)(lora_params=500, **counts)
    assert memory == double + embedding.nbytes + sum(t.nbytes for t in adapter)


@pytest.mark.witness("dequantized_bytes")
def test_one_matrix_in_sixteen_bits():
    matrix = torch.empty(11008, 4096, dtype=torch.bfloat16, device="meta")
    assert formula("dequantized_bytes")(in_features=4096, out_features=11008) == matrix.nbytes
