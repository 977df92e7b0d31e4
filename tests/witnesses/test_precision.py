"""Number formats enumerated bit by bit, updates lost by torch, quantisers and scalers that really run."""

import math

import numpy as np
import pytest
import torch

from formulary import formula
from formulary.hardware import FORMATS

# every format with its torch type and the integers whose bits are its codes
TYPES = {
    "E4M3": (torch.float8_e4m3fn, torch.uint8),
    "E5M2": (torch.float8_e5m2, torch.uint8),
    "fp16": (torch.float16, torch.int16),
    "bf16": (torch.bfloat16, torch.int16),
}


def every_number(name):
    """All positive finite numbers of a format in order, from all of its bit patterns."""
    dtype, codes = TYPES[name]
    bits = torch.iinfo(codes).bits
    patterns = torch.arange(2**bits, dtype=torch.int32).to(codes) if bits == 8 else torch.arange(-(2**15), 2**15).to(codes)
    numbers = patterns.view(dtype).double()
    return numbers[torch.isfinite(numbers) & (numbers > 0)].unique().numpy()


def value(name, number_format, **more):
    made = formula(name)
    return made(**FORMATS[number_format].only(made), **more)


@pytest.mark.witness("largest_float", "smallest_subnormal", "machine_epsilon", "smallest_normal")
@pytest.mark.parametrize("name", TYPES)
def test_every_bit_pattern(name):
    numbers = every_number(name)
    assert value("largest_float", name) == numbers[-1]
    assert value("smallest_subnormal", name) == numbers[0]
    assert value("machine_epsilon", name) == numbers[np.searchsorted(numbers, 1) + 1] - 1
    steps = np.diff(numbers)
    assert value("smallest_normal", name) == numbers[np.flatnonzero(steps > steps[0])[0]] / 2  # above its binade steps first grow


@pytest.mark.witness("largest_float", "smallest_subnormal", "smallest_normal", "machine_epsilon")
@pytest.mark.parametrize("name, dtype", [("fp32", np.float32), ("fp64", np.float64)])
def test_wide_formats(name, dtype):
    info = np.finfo(dtype)
    found = [value(n, name) for n in ("largest_float", "smallest_subnormal", "smallest_normal", "machine_epsilon")]
    assert found == [float(x) for x in (info.max, info.smallest_subnormal, info.tiny, info.eps)]


@pytest.mark.witness("exponent_bias")
@pytest.mark.parametrize("name", TYPES)
def test_stored_exponent_of_one(name):
    dtype, codes = TYPES[name]
    pattern = torch.ones(1, dtype=dtype).view(codes).item()
    assert value("exponent_bias", name) == pattern >> FORMATS[name]["mantissa_bits"]


@pytest.mark.witness("float_spacing")
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("exponent", [-3, 0, 5])
def test_spacing_within_a_binade(name, exponent):
    numbers = every_number(name)
    inside = numbers[(numbers >= 2.0**exponent) & (numbers <= 2.0 ** (exponent + 1))]
    assert set(np.diff(inside)) == {value("float_spacing", name, binade=exponent)}


@pytest.mark.witness("unit_roundoff")
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_largest_rounding_error(name):
    exact = torch.linspace(1, 2, 100_001, dtype=torch.float32)
    error = ((exact.to(TYPES[name][0]).double() - exact.double()) / exact.double()).abs().max().item()
    assert 0.98 * value("unit_roundoff", name) < error <= value("unit_roundoff", name)


@pytest.mark.witness("swallow_threshold")
@pytest.mark.parametrize("name", ["fp16", "bf16"])
@pytest.mark.parametrize("weight, exponent", [(1.0, 0), (1.5, 0), (0.25, -2), (6.0, 2)])
@pytest.mark.parametrize("sign", [1, -1])
def test_updates_that_leave_the_weight_alone(name, weight, exponent, sign):
    toward_zero = sign < 0 and weight == 2.0**exponent
    threshold = value("swallow_threshold", name, binade=exponent, spacing_halvings=int(toward_zero))
    start = torch.tensor(weight, dtype=TYPES[name][0])
    move = lambda size: (start.double() + sign * size).to(start.dtype)
    assert move(0.999 * threshold) == start
    assert move(1.001 * threshold) != start


@pytest.mark.witness("swallow_threshold")
@pytest.mark.parametrize("name, dtype, stalls", [("bf16", torch.bfloat16, True), ("fp32", torch.float32, False)])
def test_a_thousand_small_steps(name, dtype, stalls):
    step, weight = 1e-4, torch.ones((), dtype=dtype)
    for _ in range(1000):
        weight = weight - torch.tensor(step, dtype=dtype)
    assert stalls == (step < value("swallow_threshold", name, binade=0, spacing_halvings=1))
    assert (weight.item() == 1) == stalls


@pytest.mark.witness("rounded_drift", "format_drift", "kept_drift")
@pytest.mark.parametrize("steps", [0.25, 0.4375, 0.75, 1.25, 1.75])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_many_updates_added_one_by_one(name, steps):
    """From 1 upwards, each update so many steps of the format; a double beside it keeps what rounding takes."""
    spacing = every_number(name)[every_number(name) > 1][0] - 1
    rounded, kept = torch.ones(1, dtype=TYPES[name][0]), 1.0
    for _ in range(48):
        rounded = (rounded.double() + steps * spacing).to(rounded.dtype)
        kept += steps * spacing
    values = {"update_size": steps * spacing, "num_updates": 48}
    assert value("rounded_drift", name, float_spacing=spacing, **values) == rounded.item() - 1
    assert value("format_drift", name, binade=0, **values) == rounded.item() - 1
    assert formula("kept_drift")(**values) == pytest.approx(kept - 1, rel=1e-12)


@pytest.mark.witness("rescued_gradient", "overflow_gradient")
@pytest.mark.parametrize("scale", [1, 1024, 2**16])
def test_scaled_gradients_in_fp16(scale):
    through = lambda gradient: (torch.tensor(gradient * scale, dtype=torch.float64).half().double() / scale).item()
    least, most = (value(n, "fp16", loss_scale=scale) for n in ("rescued_gradient", "overflow_gradient"))
    assert (through(least), through(0.49 * least)) == (least, 0)
    assert (through(most), through(1.001 * most)) == (most, math.inf)


@pytest.mark.witness("skipped_share")
@pytest.mark.parametrize("interval", [1, 4, 9])
def test_a_loss_scaler_that_skips(interval):
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=interval)
    skipped, steps = 0, 60 * (interval + 1)
    for _ in range(steps):
        optimizer.zero_grad()
        scaler.scale(weight * 2.0**117).sum().backward()  # 2^118 overflows at the next doubling of the scale
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
    assert skipped / steps == pytest.approx(formula("skipped_share")(growth_interval=interval), abs=1 / steps)


@pytest.mark.witness("clip_factor")
@pytest.mark.parametrize("size", [0.1, 1.0, 4.0])
def test_clipping_by_torch(size):
    parameter = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    parameter.grad = torch.tensor([0.6 * size, 0.8 * size], dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_([parameter], 1.0)
    assert parameter.grad.norm().item() / size == pytest.approx(formula("clip_factor")(grad_norm=size, max_norm=1), rel=2e-6)


@pytest.mark.witness("global_grad_norm")
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_norm_over_tensor_parallel_ranks(ranks):
    stream = np.random.default_rng(5)
    matrix, norm_weight = stream.standard_normal((16, 32)), stream.standard_normal(16)
    shards = np.split(matrix, ranks, axis=1)
    squares = {"sharded_square_sum": np.mean([(s**2).sum() for s in shards]), "replicated_square_sum": (norm_weight**2).sum()}
    whole = np.linalg.norm(np.concatenate([matrix.ravel(), norm_weight]))
    assert formula("global_grad_norm")(tensor_parallel=ranks, **squares) == pytest.approx(whole, rel=1e-12)


def one_by_one(terms, dtype):
    total = dtype(0)
    for term in terms.astype(dtype):
        total = dtype(total + term)
    return float(total)


def in_a_tree(terms, dtype):
    level = list(terms.astype(dtype))
    while len(level) > 1:
        pairs = [dtype(a + b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return float(level[0])


@pytest.mark.witness("order_gap")
@pytest.mark.parametrize("count", [3, 64, 200])
def test_two_orders_of_one_sum(count):
    bound = value("order_gap", "fp16", num_terms=count)
    small = np.full(count - 1, 2.0**-11)  # half a step beside 1: lost one by one, kept when they are added first
    one_first, one_last = np.concatenate([[1.0], small]), np.concatenate([small, [1.0]])
    gap = abs(one_by_one(one_first, np.float16) - one_by_one(one_last, np.float16)) / one_first.sum()
    assert bound / 2.6 < gap <= bound


@pytest.mark.witness("tree_order_gap")
@pytest.mark.parametrize("count", [8, 100, 1024])
def test_trees_differ_less(count):
    stream, gaps = np.random.default_rng(2), []
    for _ in range(200):
        terms = stream.uniform(0.5, 1, count)
        gaps.append(abs(in_a_tree(terms, np.float16) - in_a_tree(stream.permutation(terms), np.float16)) / terms.sum())
    bound = value("tree_order_gap", "fp16", num_terms=count)
    assert bound / 30 < max(gaps) <= bound < value("order_gap", "fp16", num_terms=count)


@pytest.mark.witness("float_spacing")
def test_three_tenths_in_double():
    gap = abs(((0.1 + 0.2) + 0.3) - (0.1 + (0.2 + 0.3)))
    assert gap == value("float_spacing", "fp64", binade=-1)


def quantize(moments, block):
    """(one-byte codes, fp32 scales) of an array, block by block."""
    padded = np.pad(moments, (0, -len(moments) % block)).reshape(-1, block)
    scales = np.abs(padded).max(1).astype(np.float32)
    return np.round(padded / scales[:, None] * 127).astype(np.int8).ravel()[: len(moments)], scales


@pytest.mark.witness("moment_saving_bytes", "moment_saving_share", "moment_scale_bytes")
@pytest.mark.parametrize("count, block", [(4096, 256), (5000, 256), (1000, 64)])
def test_moments_in_one_byte(count, block):
    stream = np.random.default_rng(1)
    moments = [stream.standard_normal(count).astype(np.float32) for _ in range(2)]
    quantized = [quantize(m, block) for m in moments]
    for moment, (codes, scales) in zip(moments, quantized, strict=True):
        restored = codes / 127 * np.repeat(scales, block)[:count]
        assert np.abs(restored - moment).max() <= scales.max() / 127
    saved = sum(m.nbytes for m in moments) - sum(codes.nbytes for codes, _ in quantized)
    others = sum(np.zeros(count, dtype).nbytes for dtype in (np.float16, np.float16, np.float32))
    assert formula("moment_saving_bytes")(num_params=count) == saved
    assert formula("moment_saving_share")() == saved / (others + sum(m.nbytes for m in moments))
    assert formula("moment_scale_bytes")(num_params=count, quantizer_block=block) == sum(scales.nbytes for _, scales in quantized)
