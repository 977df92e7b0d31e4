"""Cards filled tensor by tensor, meshes of ranks counted, and an allocator that hands out blocks."""

import itertools
import re

import numpy as np
import pytest
import torch

from formulary import formula

KINDS = (torch.bfloat16, torch.bfloat16, torch.float32, torch.float32, torch.float32)


def states(params):
    """Weights, gradients, master copy and moments of so many parameters, without memory."""
    return [torch.empty(int(params), dtype=kind, device="meta") for kind in KINDS]


def held(params, cards):
    return sum(t.nbytes for t in states(params / cards))


CARD = {"memory_capacity": 10**9, "activation_bytes": 10**8, "reserve_bytes": 5 * 10**7}


def largest(cards, transient):
    """The most parameters whose states still fit, found by halving."""
    room = CARD["memory_capacity"] - CARD["activation_bytes"] - CARD["reserve_bytes"] - transient
    low, high = 0, 10**12
    while high - low > cards:
        middle = (low + high) // 2
        low, high = (middle, high) if held(middle, cards) <= room else (low, middle)
    return low


@pytest.mark.witness("largest_params", "unsharded_largest_params")
@pytest.mark.parametrize("cards, transient", [(1, 0), (8, 0), (8, 10**8)])
def test_largest_model_by_halving(cards, transient):
    found = largest(cards, transient)
    assert formula("largest_params")(world_size=cards, transient_bytes=transient, **CARD) == pytest.approx(found, rel=1e-6)
    assert formula("unsharded_largest_params")(**CARD) == pytest.approx(largest(1, 0), rel=1e-6)


@pytest.mark.witness("fewest_gpus")
@pytest.mark.parametrize("params", [10**7, 10**8, 10**9])
def test_cards_added_until_it_fits(params):
    room = CARD["memory_capacity"] - CARD["activation_bytes"] - CARD["reserve_bytes"]
    cards = next(n for n in itertools.count(1) if held(params, n) <= room)
    assert formula("fewest_gpus")(num_params=params, transient_bytes=0, **CARD) == cards


@pytest.mark.witness("prefix_ratio")
@pytest.mark.parametrize("power, binary, decimal", [(1, "KiB", "kB"), (2, "MiB", "MB"), (3, "GiB", "GB"), (4, "TiB", "TB")])
def test_binary_and_decimal_prefixes(power, binary, decimal):
    shifted, zeros = 1 << 10 * power, int("1" + "000" * power)
    assert formula("prefix_ratio")(prefix_power=power) == pytest.approx(shifted / zeros, rel=1e-12)
    assert re.match(binary[0], decimal, re.IGNORECASE)


@pytest.mark.witness("decimal_bytes", "binary_bytes", "decimal_bit_bytes")
@pytest.mark.parametrize("figure", [1, 3])
@pytest.mark.parametrize("power", [1, 2])
def test_bytes_of_a_figure_counted_in_arrays(figure, power):
    thousands, powers_of_two = (np.ones((figure, *[side] * power), np.uint8) for side in (1000, 1024))
    bits = np.packbits(thousands)  # eight ones and zeros to a byte
    given = {"stated_figure": figure, "prefix_power": power}
    assert formula("decimal_bytes")(**given) == thousands.nbytes
    assert formula("binary_bytes")(**given) == powers_of_two.nbytes
    assert formula("decimal_bit_bytes")(**given) == bits.nbytes


@pytest.mark.witness("free_share", "safety_factor")
@pytest.mark.parametrize("used, card", [(10, 11), (10, 13), (85, 100)])
def test_blocks_left_on_a_card(used, card):
    blocks = [index < used for index in range(card)]
    free = blocks.count(False) / len(blocks)
    assert formula("free_share")(safety_factor=card / used) == pytest.approx(free)
    assert formula("safety_factor")(free_share=free) == pytest.approx(card / used)


@pytest.mark.witness("num_gpus", "parallel_state_bytes", "data_parallel_only_state_bytes")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_mesh_of_cards(stage):
    data, context, tensor, stages, params = 4, 2, 2, 3, 4 * 2 * 2 * 3 * 10
    mesh = list(itertools.product(range(data), range(context), range(tensor), range(stages)))
    sizes = {"world_size": data, "context_parallel": context, "tensor_parallel": tensor, "num_stages": stages}
    assert formula("num_gpus")(**sizes) == len(mesh)

    def card_bytes(sharing):
        """What the first card holds when `sharing` ranks divide what ZeRO divides."""
        mine = [p for p in range(params) if (p % tensor, p * stages // params) == (0, 0)]
        slice_ = [p for i, p in enumerate(mine) if i % sharing == 0]
        divided_from = (3, 2, 1, 1, 1)
        return sum(kind.itemsize * len(slice_ if stage >= first else mine) for kind, first in zip(KINDS, divided_from, strict=True))

    assert formula("parallel_state_bytes")(num_params=params, stage=stage, **sizes) == card_bytes(data * context)
    only = {k: v for k, v in sizes.items() if k != "context_parallel"}
    assert formula("data_parallel_only_state_bytes")(num_params=params, stage=stage, **only) == card_bytes(data)


class CachingAllocator:
    """Hands out blocks of whole units, keeps what is freed, and asks the driver only when no free block fits."""

    def __init__(self, unit):
        self.unit, self.free, self.live, self.reserved = unit, [], {}, 0

    def allocate(self, name, size):
        block = self.unit
        while block < size:
            block += self.unit
        fitting = sorted(b for b in self.free if b >= block)
        if fitting:
            self.free.remove(fitting[0])
            self.free += [fitting[0] - block] if fitting[0] > block else []
        else:
            self.reserved += block
        self.live[name] = block
        return block

    def release(self, name):
        self.free.append(self.live.pop(name))


@pytest.mark.witness("block_bytes")
@pytest.mark.parametrize("unit", [512, 64])
@pytest.mark.parametrize("size", [1, 511, 512, 513, 10_000])
def test_blocks_of_whole_units(unit, size):
    assert formula("block_bytes")(tensor_bytes=size, allocation_unit=unit) == CachingAllocator(unit).allocate("x", size)


@pytest.mark.witness("fragmentation")
def test_free_blocks_too_small_for_the_next_request():
    allocator = CachingAllocator(512)
    for index in range(8):
        allocator.allocate(index, 512)
    for index in range(0, 8, 2):
        allocator.release(index)
    allocator.allocate("large", 2048)  # 2048 bytes are free, but in no single block
    allocated = sum(allocator.live.values())
    unused = sum(allocator.free) / allocator.reserved
    assert unused > 0
    assert formula("fragmentation")(reserved_bytes=allocator.reserved, allocated_bytes=allocated) == unused
