"""A recipe in which every kind of state has a size of its own, so that none can stand in for another."""

import pytest
import torch

from formulary import formula

KINDS = {
    "bytes_per_weight": torch.uint8,
    "bytes_per_grad": torch.bfloat16,
    "bytes_per_master": torch.float64,
    "bytes_per_momentum": torch.float32,
    "bytes_per_variance": torch.complex128,
}
RECIPE = {name: kind.itemsize for name, kind in KINDS.items()}
OPTIMIZER = ("bytes_per_master", "bytes_per_momentum", "bytes_per_variance")


def held(count, names=tuple(KINDS)):
    """Bytes of one tensor of each of those kinds."""
    return sum(torch.zeros(count, dtype=KINDS[name]).nbytes for name in names)


def taken(name):
    return {k: v for k, v in RECIPE.items() if k in formula(name).inputs}


@pytest.mark.witness("lora_state_bytes", "lora_memory_bytes", "qlora_memory_bytes")
def test_adapters():
    frozen = torch.zeros(900, dtype=torch.bfloat16).nbytes
    assert formula("lora_state_bytes")(lora_params=30, **RECIPE) == held(30)
    assert formula("lora_memory_bytes")(lora_params=30, num_params=900, bytes_per_frozen=2, **RECIPE) == frozen + held(30)
    quantizer = {"bytes_per_code": 0.5, "bytes_per_scale": 4, "bytes_per_group_scale": 8, "quantizer_block": 64, "scale_group": 16}
    blocks = [torch.zeros(1024 // 2, dtype=torch.uint8), torch.zeros(1024 // 64), torch.zeros(1, dtype=torch.float64)]
    rest = torch.zeros(7, dtype=torch.float32)
    counts = {"quantized_params": 1024, "unquantized_params": 7, "bytes_per_unquantized": 4, "lora_params": 30}
    assert formula("qlora_memory_bytes")(**counts, **quantizer, **RECIPE) == sum(t.nbytes for t in [*blocks, rest]) + held(30)


@pytest.mark.witness("host_state_bytes", "nvme_time", "moment_saving_bytes", "moment_saving_share")
def test_optimizer_elsewhere_or_smaller():
    assert formula("host_state_bytes")(num_params=50, **taken("host_state_bytes")) == held(50, ("bytes_per_grad", *OPTIMIZER))
    read_and_written = 2 * held(50, OPTIMIZER) / 5
    assert formula("nvme_time")(num_params=50, storage_bandwidth=5, **taken("nvme_time")) == pytest.approx(read_and_written)
    saved = held(50, ("bytes_per_momentum", "bytes_per_variance")) - 2 * torch.zeros(50, dtype=torch.int8).nbytes
    assert formula("moment_saving_bytes")(num_params=50, **taken("moment_saving_bytes")) == saved
    assert formula("moment_saving_share")(**taken("moment_saving_share")) == pytest.approx(saved / held(50))


@pytest.mark.witness("largest_params", "unsharded_largest_params", "fewest_gpus")
def test_cards_just_filled():
    card = {"memory_capacity": held(600) + 70, "activation_bytes": 40, "reserve_bytes": 30}
    assert formula("unsharded_largest_params")(**card, **RECIPE) == pytest.approx(600)
    roomy = {**card, "memory_capacity": held(600) + 75, "transient_bytes": 5}
    assert formula("largest_params")(world_size=4, **roomy, **RECIPE) == pytest.approx(4 * 600)
    assert [formula("fewest_gpus")(num_params=n, **roomy, **RECIPE) for n in (2400, 2401)] == [4, 5]


@pytest.mark.witness("parallel_state_bytes", "data_parallel_only_state_bytes")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_card_of_a_mesh(stage):
    first = {"bytes_per_weight": 3, "bytes_per_grad": 2} | dict.fromkeys(OPTIMIZER, 1)
    sizes = {"num_params": 480, "tensor_parallel": 2, "num_stages": 4, "world_size": 3, "stage": stage}
    cut = lambda ranks: sum(held(60 // ranks if stage >= since else 60, (name,)) for name, since in first.items())
    assert formula("data_parallel_only_state_bytes")(**sizes, **RECIPE) == cut(3)
    assert formula("parallel_state_bytes")(context_parallel=2, **sizes, **RECIPE) == cut(6)
