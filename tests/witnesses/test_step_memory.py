"""A step of real blocks, every storage followed from the operation that makes it to its end: nothing here is made from the formulas."""

import itertools

import pytest
import torch
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from formulary import formula
from formulary.step_memory import MOMENTS, SAVED_LEDGER
from labs.jobs.textbook import Stack
from labs.memory_watch import Mountain
from tests.witnesses.blocks import Block
from tests.witnesses.saved import SavedTensors

CPU = torch.device("cpu")
RECOMPUTE = {"stored": "none", "selective": "selective", "full": "full"}


class _Wide(torch.autograd.Function):
    """LayerNorm that keeps its statistics in fp32, as a GPU's kernel does."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        normed, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], weight, bias, 1e-5)
        ctx.save_for_backward(x, weight, bias, mean.float(), inverse.float())
        return normed

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias, *statistics = ctx.saved_tensors
        mean, inverse = (kept.to(x.dtype) for kept in statistics)
        return torch.ops.aten.native_layer_norm_backward(grad, x, x.shape[-1:], mean, inverse, weight, bias, [True, True, True])


class WideNorm(torch.nn.LayerNorm):
    def forward(self, x):
        return _Wide.apply(x, self.weight, self.bias)


def widened(model, dtype, statistics):
    """The model in this type, the statistics of its norms in theirs."""
    for norm in model.modules():
        if isinstance(norm, torch.nn.LayerNorm) and statistics != dtype:
            norm.__class__ = WideNorm
    return model.to(dtype)


# how blocks are recomputed, the moment that holds most, and (batch, length, width, heads, layers, type, type of the
# norms' statistics)
MLP, ATTENTION = MOMENTS
BF16, FP32 = torch.bfloat16, torch.float32
STEPS = [
    ("stored", MLP, (4, 64, 32, 2, 3, BF16, FP32)),
    ("stored", MLP, (1, 16, 16, 1, 3, FP32, FP32)),
    ("stored", ATTENTION, (2, 96, 16, 4, 3, BF16, FP32)),
    ("stored", ATTENTION, (1, 80, 16, 4, 4, FP32, FP32)),
    ("selective", MLP, (8, 32, 32, 2, 3, BF16, FP32)),
    ("selective", MLP, (2, 16, 32, 1, 3, FP32, FP32)),
    ("selective", ATTENTION, (2, 96, 16, 4, 3, BF16, FP32)),
    ("selective", ATTENTION, (4, 64, 32, 4, 4, FP32, FP32)),
    ("selective", ATTENTION, (1, 96, 16, 4, 3, FP32, FP32)),
    ("full", MLP, (8, 64, 32, 2, 3, BF16, FP32)),
    ("full", MLP, (2, 32, 32, 2, 4, FP32, FP32)),
    ("full", ATTENTION, (4, 128, 16, 8, 3, BF16, FP32)),
    ("full", ATTENTION, (1, 64, 16, 4, 4, FP32, FP32)),
]


def values(batch, length, width, heads, layers, dtype, statistics):
    size = {"micro_batch": batch, "seq_length": length, "hidden_size": width, "num_heads": heads, "num_layers": layers}
    return size | {"bytes_per_saved": dtype.itemsize, "bytes_per_statistic": statistics.itemsize}


def evaluated(name, known):
    return formula(name)(**{given: known[given] for given in formula(name).inputs})


def held_at_most(mode, batch, length, width, heads, layers, dtype, statistics):
    """The most held in the backward pass of each block, the last block first."""
    stack = widened(Stack(layers, width, heads, recompute=RECOMPUTE[mode]), dtype, statistics)
    data, direction = (torch.randn(batch, length, width, dtype=dtype) for _ in range(2))
    ends = []
    with Mountain(CPU, [data, direction, *stack.parameters()]) as mountain:
        for block in stack.blocks:
            block.register_forward_pre_hook(_note_the_end(ends, mountain))
        (stack(data.clone().requires_grad_()) * direction).mean().backward()
    return [max(mountain.heights[start:end]) for start, end in itertools.pairwise([0, *sorted(ends)])]


def _note_the_end(ends, mountain):
    """A hook: when the gradient of a block's input is there, its backward pass is done."""
    inputs = []

    def hook(block, given):
        if not inputs:  # and not again when the block is rebuilt
            inputs.append(True)
            given[0].register_hook(lambda gradient: ends.append(len(mountain.heights)))

    return hook


@pytest.mark.witness("stored_at_mlp_bytes", "stored_at_attention_bytes", "selective_at_mlp_bytes", "selective_at_attention_bytes")
@pytest.mark.witness("full_at_mlp_bytes", "full_at_attention_bytes")
@pytest.mark.parametrize(("mode", "moment", "sizes"), STEPS)
def test_the_most_that_a_step_holds(mode, moment, sizes):
    known = values(*sizes)
    for done, held in enumerate(held_at_most(mode, *sizes)):
        predicted = {name: evaluated(f"{mode}_at_{name}_bytes", {**known, "blocks_done": done}) for name in MOMENTS}
        assert max(predicted, key=predicted.get) == moment
        assert held == predicted[moment]


def kept(layers, dtype, statistics):
    """(tensors, statistics) in bytes that blocks of the witnesses' own keep, whatever their width."""
    stack = widened(torch.nn.Sequential(*(Block(32, 2, 128) for _ in range(layers))), dtype, statistics)
    x, held = torch.randn(3, 48, 32, dtype=dtype, requires_grad=True), {}
    weights = {p.untyped_storage().data_ptr() for p in stack.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: held.setdefault(t.untyped_storage().data_ptr(), t), lambda t: t):
        y = stack(x)
    assert y is not None
    sizes = [tensor.untyped_storage().nbytes() for place, tensor in held.items() if place not in weights]
    one_number = 3 * 48 * statistics.itemsize
    return sum(size for size in sizes if size != one_number), sum(size for size in sizes if size == one_number)


@pytest.mark.witness("block_saved_bytes", "norm_statistics_bytes", "saved_tensor_bytes")
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("types", [(BF16, BF16), (BF16, FP32), (FP32, FP32)])
def test_what_blocks_save_at_either_width(layers, types):
    tensors, statistics = kept(layers, *types)
    known = values(3, 48, 32, 2, layers, *types)
    assert evaluated("norm_statistics_bytes", known) == statistics
    assert evaluated("block_saved_bytes", known) == tensors + statistics


@pytest.mark.witness("saved_tensor_bytes")
def test_in_sixteen_bits_it_is_the_textbooks_ledger():
    known = values(2, 40, 32, 4, 3, BF16, BF16)
    parts = SAVED_LEDGER(**known)
    stack = torch.nn.Sequential(*(Block(32, 4, 128) for _ in range(3))).to(BF16)
    x = torch.randn(2, 40, 32, dtype=BF16, requires_grad=True)
    with SavedTensors(stack, 80) as saved:
        y = stack(x)
    assert y is not None and sum(parts.values()) - parts["norm statistics"] == saved.live
    assert parts["norm statistics"] == saved.statistics


@pytest.mark.witness("early_stop_share")
@pytest.mark.parametrize(("length", "width"), [(64, 32), (16, 64)])
def test_rebuilding_stops_before_the_last_matrix(length, width):
    def flop(recompute):
        stack, x = Stack(2, width, 2, recompute=recompute, dropped=0.0), torch.randn(2, length, width)
        with FlopCounterMode(display=False) as counter:
            stack(x).sum().backward()
        return counter.get_total_flops()

    plain, stopped = flop("none"), flop("full")
    with set_checkpoint_early_stop(False):
        whole = flop("full")
    share = formula("early_stop_share")(seq_length=length, hidden_size=width)
    assert (stopped - plain) / (whole - plain) == pytest.approx(share, rel=1e-12)
    assert stopped / plain == pytest.approx(formula("recompute_growth")(recomputed_share=share), rel=1e-12)
