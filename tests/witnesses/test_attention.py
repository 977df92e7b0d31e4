"""Activations counted as saved tensors of real blocks; attention's reads and writes counted access by access."""

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from formulary import formula
from formulary.attention import ACTIVATION_GROUPS, ACTIVATION_LEDGER
from tests.witnesses.blocks import Block
from tests.witnesses.saved import SavedTensors

BF16 = torch.bfloat16
WIDTH, HEADS, BATCH, LENGTH = 64, 4, 2, 48
SHAPE = {"seq_length": LENGTH, "micro_batch": BATCH, "hidden_size": WIDTH, "num_heads": HEADS}


def forward(layers=1, length=LENGTH, width=WIDTH, heads=HEADS, ffn=None, **block):
    """(saved, output) of a stack of blocks in bf16."""
    stack = torch.nn.Sequential(*(Block(width, heads, ffn or 4 * width, **block) for _ in range(layers))).to(BF16)
    x = torch.randn(BATCH, length, width, dtype=BF16, requires_grad=True)
    with SavedTensors(stack, BATCH * length) as saved:
        output = stack(x)
    return saved, output


def score_bytes(**options):
    """What explicit attention keeps beyond a kernel that keeps no scores."""
    explicit, _one = forward(**options)
    fused, _other = forward(kernel="fused", **options)
    return explicit.live - fused.live, fused.live


@pytest.mark.witness(
    "activation_bytes",
    "activation_headroom_bytes",
    "layer_activation_bytes",
    "linear_activation_bytes",
    "score_activation_bytes",
    "saved_tensor_bytes",
)
@pytest.mark.parametrize("layers", [1, 3])
def test_saved_tensors_of_blocks(layers):
    scores, rest = score_bytes(layers=layers)
    assert rest == formula("linear_activation_bytes")(seq_length=LENGTH, micro_batch=BATCH, hidden_size=WIDTH, num_layers=layers)
    assert scores == formula("score_activation_bytes")(seq_length=LENGTH, micro_batch=BATCH, num_heads=HEADS, num_layers=layers)
    assert scores + rest == formula("activation_bytes")(num_layers=layers, **SHAPE)
    assert (scores + rest) / layers == formula("layer_activation_bytes")(**SHAPE)
    assert rest == formula("activation_bytes")(num_layers=layers, bytes_per_score=0, **SHAPE)
    room = bytearray(2**22)
    left = len(room) - scores - rest
    assert left == formula("activation_headroom_bytes")(zero_headroom_bytes=len(room), num_layers=layers, **SHAPE)


def kept_by(run, *shapes):
    """Bytes that `run`, given fresh tensors of those shapes, keeps for its backward pass."""
    inputs = [torch.randn(BATCH, *shape, dtype=BF16, requires_grad=True) for shape in shapes]
    module = run if isinstance(run, torch.nn.Module) else torch.nn.ModuleList()
    with SavedTensors(module, BATCH * LENGTH) as saved:
        result = run(*inputs)
    assert result is not None
    return saved.live


@pytest.mark.witness("saved_tensor_bytes")
def test_what_each_operation_keeps():
    block, wide, narrow = Block(WIDTH, HEADS, 4 * WIDTH).to(BF16), (LENGTH, 4 * WIDTH), (LENGTH, WIDTH)
    heads, weights = (HEADS, LENGTH, WIDTH // HEADS), (HEADS, LENGTH, LENGTH)
    projections = torch.nn.ModuleList([block.query, block.key, block.value])
    with SavedTensors(projections, BATCH * LENGTH) as shared:
        x = torch.randn(BATCH, *narrow, dtype=BF16, requires_grad=True)
        projected = [projection(x) for projection in projections]
    assert len(projected) == 3
    dropped = lambda x: torch.native_dropout(x, 0.1, True)[0]
    counted = {
        "attention norm input": kept_by(block.norm_attention, narrow),
        "attention input": shared.live,
        "queries, keys, values": kept_by(lambda q, k: q @ k.transpose(-1, -2), heads, heads)
        + kept_by(lambda w, v: w @ v.detach(), weights, heads),
        "output projection input": kept_by(block.out, narrow),
        "attention dropout mask": kept_by(dropped, narrow),
        "MLP norm input": kept_by(block.norm_mlp, narrow),
        "MLP input": kept_by(block.up, narrow),
        "MLP pre-activation": kept_by(torch.nn.functional.gelu, wide),
        "MLP activation": kept_by(block.down, wide),
        "MLP dropout mask": kept_by(dropped, narrow),
    }
    parts = ACTIVATION_LEDGER(num_layers=1, **SHAPE)
    assert {name: parts[name] for name in counted} == counted
    assert {name: 3 * size for name, size in counted.items()} == {n: ACTIVATION_LEDGER(num_layers=3, **SHAPE)[n] for n in counted}


def test_attention_without_dropout_keeps_one_copy():
    (scores, _), (explicit, _out) = score_bytes(dropout=False), forward(dropout=False)
    assert scores == formula("score_activation_bytes")(
        seq_length=LENGTH, micro_batch=BATCH, num_heads=HEADS, num_layers=1, bytes_per_score=2
    )
    masks = ACTIVATION_LEDGER(num_layers=1, **SHAPE)
    no_masks = formula("activation_bytes")(num_layers=1, bytes_per_score=2, **SHAPE) - sum(v for n, v in masks.items() if "mask" in n)
    assert explicit.live == no_masks


@pytest.mark.witness("attention_statistics_bytes")
def test_row_statistics_of_the_fused_kernel():
    kinds = [forward(layers=3, kernel=kernel, dropout=False) for kernel in ("fused", "explicit")]
    (fused, _), (explicit, _) = kinds
    expected = formula("attention_statistics_bytes")(seq_length=LENGTH, micro_batch=BATCH, num_heads=HEADS, num_layers=3)
    assert fused.statistics - explicit.statistics == expected


@pytest.mark.witness("swiglu_activation_bytes")
def test_swiglu_block():
    saved, _output = forward(layers=2, ffn=172, kernel="fused", mlp="swiglu", dropout=False)
    assert saved.live == formula("swiglu_activation_bytes")(
        seq_length=LENGTH, micro_batch=BATCH, hidden_size=WIDTH, ffn_size=172, num_layers=2
    )


@pytest.mark.witness("logits_bytes")
@pytest.mark.parametrize("dtype, also, bytes_each", [(torch.float32, 0, 4), (BF16, 2, 6)])
def test_cross_entropy_keeps_fp32_logits(dtype, also, bytes_each):
    vocab, held = 101, {}
    logits = torch.randn(BATCH * LENGTH, vocab, dtype=dtype, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: held.setdefault(t.data_ptr(), t), lambda t: t):
        torch.nn.functional.cross_entropy(logits.float(), torch.zeros(BATCH * LENGTH, dtype=torch.int64))
    kept = sum(t.numel() * t.element_size() for t in held.values() if t.numel() == logits.numel())
    beside = also * logits.numel()  # 16-bit logits stay alive beside their fp32 copy
    expected = formula("logits_bytes")(seq_length=LENGTH, micro_batch=BATCH, vocab_size=vocab, bytes_per_logit=bytes_each)
    assert kept + beside == expected


@pytest.mark.witness("score_share", "doubling_growth", "doubled_score_share")
def test_doubling_the_sequence():
    scores, rest = score_bytes()
    longer_scores, longer_rest = score_bytes(length=2 * LENGTH)
    share = scores / (scores + rest)
    assert formula("score_share")(seq_length=LENGTH, hidden_size=WIDTH, num_heads=HEADS) == pytest.approx(share, rel=1e-12)
    assert formula("doubling_growth")(score_share=share) == pytest.approx((longer_scores + longer_rest) / (scores + rest), rel=1e-12)
    assert formula("doubled_score_share")(score_share=share) == pytest.approx(longer_scores / (longer_scores + longer_rest), rel=1e-12)


@pytest.mark.witness("crossover_length")
def test_scores_weigh_as_much_as_the_rest():
    length = formula("crossover_length")(hidden_size=40, num_heads=8)
    scores, rest = score_bytes(length=round(length), width=40, heads=8)
    assert (length, scores) == (round(length), rest)


@pytest.mark.witness("kept_input_bytes", "full_recompute_peak_bytes")
def test_layers_rebuilt_one_at_a_time():
    layers = 5
    stack = torch.nn.ModuleList(Block(WIDTH, HEADS, 4 * WIDTH) for _ in range(layers)).to(BF16)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=BF16, requires_grad=True)
    with SavedTensors(stack, BATCH * LENGTH) as saved:
        y = x
        for block in stack:
            y = checkpoint(block, y, use_reentrant=True)
        after_forward = saved.live
        y.sum().backward()
    shape = {k: v for k, v in SHAPE.items() if k != "num_heads"}
    assert after_forward == formula("kept_input_bytes")(num_layers=layers, **shape)
    one_input = formula("kept_input_bytes")(num_layers=1, **shape)
    assert saved.peak == formula("full_recompute_peak_bytes")(num_layers=layers, **SHAPE) - one_input


def rebuilt_peak(layers, segments, checkpoint_size, layer_size):
    """Largest memory while segments are rebuilt from the last to the first, one event at a time."""
    held, peak = segments * checkpoint_size, 0
    for _ in range(segments):
        for _ in range(layers // segments):
            held += layer_size
            peak = max(peak, held)
        held -= checkpoint_size + layers // segments * layer_size
    assert held == 0
    return peak


def divisors(number):
    return [i for i in range(1, number + 1) if number % i == 0]


@pytest.mark.witness("checkpoint_peak_bytes", "segmented_peak_bytes", "best_segments", "unit_cost_segments")
def test_segments_event_by_event():
    layers = 720
    one = {"seq_length": 2048, "micro_batch": 1, "hidden_size": 128}
    checkpoint_size, layer_size = 2 * 2048 * 128, 34 * 2048 * 128
    peaks = {n: rebuilt_peak(layers, n, checkpoint_size, layer_size) for n in divisors(layers)}
    for segments, peak in peaks.items():
        assert peak == formula("checkpoint_peak_bytes")(num_layers=layers, num_segments=segments, layer_activation_bytes=layer_size, **one)
        alike = {"num_layers": layers, "num_segments": segments, "num_heads": 1, "bytes_per_score": 0}
        assert peak == formula("segmented_peak_bytes")(**alike, **one)
    best = formula("best_segments")(num_layers=layers, num_heads=1, bytes_per_score=0, seq_length=2048, hidden_size=128)
    assert min(peaks, key=peaks.get) == min(peaks, key=lambda n: abs(np.log(n / best)))
    units = {n: rebuilt_peak(layers, n, 1, 1) for n in divisors(layers)}
    assert min(units, key=units.get) in sorted(units, key=lambda n: abs(np.log(n / formula("unit_cost_segments")(num_layers=layers))))[:2]


def flop(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter


@pytest.mark.witness("recompute_growth")
@pytest.mark.parametrize("rebuilt", [0, 2, 4])
def test_recomputation_counted(rebuilt):
    layers = [torch.nn.Linear(16, 16, bias=False) for _ in range(4)]
    x = torch.randn(3, 16, requires_grad=True)

    def step(rebuilt):
        y = x
        for index, layer in enumerate(layers):
            y = checkpoint(layer, y, use_reentrant=True) if index < rebuilt else layer(y)
        y.sum().backward()

    growth = flop(lambda: step(rebuilt)).get_total_flops() / flop(lambda: step(0)).get_total_flops()
    assert growth == pytest.approx(formula("recompute_growth")(recomputed_share=rebuilt / 4), rel=1e-12)


@pytest.mark.witness("selective_overhead")
def test_rebuilding_only_the_scores():
    block = Block(WIDTH, HEADS, 4 * WIDTH, dropout=False)
    x = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    forward_only = flop(lambda: block(x)).get_flop_counts()["Global"]
    scores = next(count for operator, count in forward_only.items() if "bmm" in str(operator))
    step = flop(lambda: block(x).sum().backward()).get_total_flops()
    assert scores / step == pytest.approx(formula("selective_overhead")(seq_length=LENGTH, hidden_size=WIDTH), rel=1e-12)


class Memory:
    """An array whose every access from outside the chip is counted."""

    def __init__(self, array, counter):
        self.array, self.counter = array, counter

    def read(self, rows=slice(None)):
        self.counter["elements"] += self.array[rows].size
        return self.array[rows].copy()

    def write(self, rows, values):
        self.counter["elements"] += values.size
        self.array[rows] = values


def inputs(length, width):
    stream = np.random.default_rng(7)
    counter = {"elements": 0}
    return counter, [Memory(stream.standard_normal((length, width)), counter) for _ in range(3)]


def standard_attention(length, width):
    """(output, accesses) with the scores written to memory and read again."""
    counter, (query, key, value) = inputs(length, width)
    scores, weights, output = (Memory(np.empty(shape), counter) for shape in ((length, length), (length, length), (length, width)))
    everything = slice(None)
    scores.write(everything, query.read() @ key.read().T)
    exponentials = np.exp(scores.read() - scores.array.max(1, keepdims=True))
    weights.write(everything, exponentials / exponentials.sum(1, keepdims=True))
    output.write(everything, weights.read() @ value.read())
    return output.array, counter["elements"]


def tiled_attention(length, width, sram):
    """(output, accesses) of FlashAttention 1: blocks of keys outside, blocks of queries inside."""
    counter, (query, key, value) = inputs(length, width)
    output, maximum, total = (
        Memory(np.full(shape, fill), counter) for shape, fill in (((length, width), 0.0), (length, -np.inf), (length, 0.0))
    )
    columns = sram // (4 * width)
    rows = min(columns, width)
    for start in range(0, length, columns):
        keys, values = key.read(slice(start, start + columns)), value.read(slice(start, start + columns))
        for first in range(0, length, rows):
            part = slice(first, first + rows)
            scores = query.read(part) @ keys.T
            old_output, old_maximum, old_total = output.read(part), maximum.read(part), total.read(part)
            new_maximum = np.maximum(old_maximum, scores.max(1))
            weights = np.exp(scores - new_maximum[:, None])
            kept = np.exp(old_maximum - new_maximum) * old_total
            new_total = kept + weights.sum(1)
            output.write(part, (kept[:, None] * old_output + weights @ values) / new_total[:, None])
            maximum.write(part, new_maximum)
            total.write(part, new_total)
    return output.array, counter["elements"]


IO = [(256, 16, 2048), (512, 32, 4096), (384, 8, 1024)]


@pytest.mark.witness("standard_accesses", "flash_accesses", "access_saving", "flash_accesses_order")
@pytest.mark.parametrize("length, width, sram", IO)
def test_accesses_counted(length, width, sram):
    expected, many = standard_attention(length, width)
    output, few = tiled_attention(length, width, sram)
    np.testing.assert_allclose(output, expected, rtol=1e-10)
    shape = {"seq_length": length, "head_dim": width}
    assert many == formula("standard_accesses")(**shape)
    assert few == formula("flash_accesses")(sram_elements=sram, **shape)
    assert many / few == pytest.approx(formula("access_saving")(sram_elements=sram, **shape), rel=1e-12)
    assert 12 < few / formula("flash_accesses_order")(sram_elements=sram, **shape) < 15


@pytest.mark.witness("sram_elements")
def test_elements_that_fit_on_chip():
    memory = np.zeros(2**16, np.uint8)
    assert formula("sram_elements")(multiprocessor_memory=memory.nbytes) == memory.view(np.float16).size


@pytest.mark.witness("least_accesses")
def test_a_chip_that_holds_everything():
    counter, (query, key, value) = inputs(48, 8)
    scores = query.read() @ key.read().T
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    Memory(np.empty((48, 8)), counter).write(slice(None), weights @ value.read())
    assert counter["elements"] == formula("least_accesses")(seq_length=48, head_dim=8)


@pytest.mark.witness("standard_intensity", "flash_intensity")
def test_flop_for_each_byte():
    length, width, sram = IO[0]
    heads = [torch.randn(1, length, width) for _ in range(3)]
    work = flop(lambda: torch.bmm(torch.bmm(heads[0], heads[1].transpose(1, 2)).softmax(-1), heads[2])).get_total_flops()
    shape, each = {"seq_length": length, "head_dim": width}, torch.bfloat16.itemsize
    many, few = standard_attention(length, width)[1], tiled_attention(length, width, sram)[1]
    assert formula("standard_intensity")(**shape) == pytest.approx(work / (many * each), rel=1e-12)
    assert formula("flash_intensity")(sram_elements=sram, **shape) == pytest.approx(work / (few * each), rel=1e-12)


@pytest.mark.witness("flash_accesses_order")
def test_accesses_grow_as_their_order_says():
    order = formula("flash_accesses_order")
    grown = tiled_attention(4096, 16, 4096)[1] / tiled_attention(2048, 16, 4096)[1]
    assert grown == pytest.approx(
        order(seq_length=4096, head_dim=16, sram_elements=4096) / order(seq_length=2048, head_dim=16, sram_elements=4096), rel=0.02
    )
    shrunk = tiled_attention(4096, 16, 2048)[1] / tiled_attention(4096, 16, 4096)[1]
    assert shrunk == pytest.approx(
        order(seq_length=4096, head_dim=16, sram_elements=2048) / order(seq_length=4096, head_dim=16, sram_elements=4096), rel=0.02
    )


@pytest.mark.witness("merged_row_sum", "merged_output")
@pytest.mark.parametrize("split", [1, 5, 11])
def test_merging_two_parts_of_a_row(split):
    stream = np.random.default_rng(3)
    scores, values = 20 * stream.standard_normal(12), stream.standard_normal(12)
    weights = [np.exp(part - part.max()) for part in (scores[:split], scores[split:])]
    so_far = {"row_max": scores[:split].max(), "row_sum": weights[0].sum()}
    block = {"block_max": scores[split:].max(), "block_sum": weights[1].sum()}
    outputs = {"row_output": weights[0] @ values[:split] / weights[0].sum(), "block_output": weights[1] @ values[split:]}
    whole = np.exp(scores - scores.max())
    assert formula("merged_row_sum")(**so_far, **block) == pytest.approx(whole.sum(), rel=1e-12)
    assert formula("merged_output")(**so_far, **block, **outputs) == pytest.approx(whole @ values / whole.sum(), rel=1e-9)


# what a layer keeps, by group: tensors of 16 bits and masks of a byte, each so many times as wide as the model
GROUPS = {
    "norms": [("half", 1)] * 2,
    "attention": [("half", 1)] * 5,
    "MLP": [("half", 1), ("half", 4), ("half", 4)],
    "dropout masks": [("mask", 1)] * 2,
}


@pytest.mark.witness("saved_tensor_bytes")
@pytest.mark.parametrize("layers", [1, 3])
def test_activations_by_group(layers):
    sizes = {"seq_length": 6, "micro_batch": 5, "hidden_size": 7}
    kinds = {"half": torch.bfloat16, "mask": torch.bool}
    kept = lambda kind, wide: torch.empty(5, 6, 7 * wide, dtype=kinds[kind]).nbytes
    for label, tensors in GROUPS.items():
        counted = sum(kept(*tensor) for _ in range(layers) for tensor in tensors)
        assert ACTIVATION_GROUPS.parts[label](**sizes, num_layers=layers) == counted
