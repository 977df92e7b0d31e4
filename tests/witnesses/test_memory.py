"""Model states counted on real tensors: nothing here is made from the formulas."""

import pytest
import torch

from formulary import formula
from formulary.memory import STATE_LEDGER, ZERO_LEDGER


def model():
    return torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.GELU(), torch.nn.Linear(96, 48))


def numel(tensors):
    return sum(t.numel() for t in tensors)


def nbytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def one_step(net, optimizer_class, **options):
    net(torch.ones(4, 48, dtype=next(net.parameters()).dtype)).sum().backward()
    optimizer = optimizer_class(net.parameters(), **options)
    optimizer.step()
    return optimizer


def moments(optimizer, name):
    return [state[name] for state in optimizer.state.values()]


@pytest.mark.witness("state_bytes", "weight_bytes", "grad_bytes", "master_bytes", "momentum_bytes", "variance_bytes", "param_state_bytes")
def test_fp32_adam_of_torch():
    net = model()
    adam = one_step(net, torch.optim.AdamW)
    held = {
        "weights": nbytes(net.parameters()),
        "gradients": nbytes(p.grad for p in net.parameters()),
        "master weights": 0,
        "first moments": nbytes(moments(adam, "exp_avg")),
        "second moments": nbytes(moments(adam, "exp_avg_sq")),
    }
    assert STATE_LEDGER.under("fp32_adam")(num_params=numel(net.parameters())) == held
    assert formula("param_state_bytes").under("fp32_adam")() == sum(held.values()) / numel(net.parameters())


@pytest.mark.witness("state_bytes", "master_bytes", "optimizer_share")
def test_mixed_precision_with_a_master_copy():
    """bf16 weights and gradients, and an fp32 copy that AdamW updates."""
    net = model().to(torch.bfloat16)
    net(torch.ones(4, 48, dtype=torch.bfloat16)).sum().backward()
    master = [p.detach().float().requires_grad_() for p in net.parameters()]
    for copy, weight in zip(master, net.parameters(), strict=True):
        copy.grad = weight.grad.float()
    adam = torch.optim.AdamW(master)
    adam.step()
    optimizer_state = nbytes(master) + nbytes(moments(adam, "exp_avg")) + nbytes(moments(adam, "exp_avg_sq"))
    total = nbytes(net.parameters()) + nbytes(p.grad for p in net.parameters()) + optimizer_state
    assert formula("state_bytes")(num_params=numel(net.parameters())) == total
    assert formula("optimizer_share")() == optimizer_state / total


@pytest.mark.witness("state_bytes")
@pytest.mark.parametrize(("recipe", "options"), [("fp32_sgd", {"lr": 0.1}), ("fp32_momentum", {"lr": 0.1, "momentum": 0.9})])
def test_sgd_of_torch(recipe, options):
    net = model()
    sgd = one_step(net, torch.optim.SGD, **options)
    buffers = [t for state in sgd.state.values() for t in state.values() if torch.is_tensor(t)]
    held = nbytes(net.parameters()) + nbytes(p.grad for p in net.parameters()) + nbytes(buffers)
    assert formula("state_bytes").under(recipe)(num_params=numel(net.parameters())) == held


ITEMS = {  # a different size for each, so that none can be taken for another; first stage that cuts it
    "weights": ("bytes_per_weight", torch.int8, 3),
    "gradients": ("bytes_per_grad", torch.float16, 2),
    "master weights": ("bytes_per_master", torch.float32, 1),
    "first moments": ("bytes_per_momentum", torch.float64, 1),
    "second moments": ("bytes_per_variance", torch.complex128, 1),
}
SIZES = {size: torch.empty(0, dtype=dtype).element_size() for size, dtype, _ in ITEMS.values()}


def held_by(rank, ranks, stage, length):
    """Bytes of each item's piece, after really cutting a flat tensor."""
    pieces = {
        name: torch.zeros(length, dtype=dtype).chunk(ranks)[rank] if stage >= first else torch.zeros(length, dtype=dtype)
        for name, (_, dtype, first) in ITEMS.items()
    }
    return {name: nbytes([piece]) for name, piece in pieces.items()}


@pytest.mark.witness("zero_state_bytes", "zero_headroom_bytes")
@pytest.mark.witness("zero_weight_bytes", "zero_grad_bytes", "zero_master_bytes", "zero_momentum_bytes", "zero_variance_bytes")
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("stage", range(4))
def test_tensors_cut_among_ranks(stage, ranks):
    given = {"num_params": 960, "world_size": ranks, "stage": stage, **SIZES}
    for rank in range(ranks):
        held = held_by(rank, ranks, stage, 960)
        assert ZERO_LEDGER(**given) == held
        assert formula("zero_state_bytes")(**given) == sum(held.values())
        assert formula("zero_headroom_bytes")(memory_capacity=2**20, **given) == 2**20 - sum(held.values())


@pytest.mark.witness("param_state_bytes", "state_bytes", "optimizer_share")
@pytest.mark.witness("weight_bytes", "grad_bytes", "master_bytes", "momentum_bytes", "variance_bytes")
def test_tensors_of_one_rank():
    held = held_by(0, 1, 0, 48)
    assert STATE_LEDGER(num_params=48, **SIZES) == held
    assert formula("state_bytes")(num_params=48, **SIZES) == sum(held.values()) == 48 * formula("param_state_bytes")(**SIZES)
    optimizer = held["master weights"] + held["first moments"] + held["second moments"]
    assert formula("optimizer_share")(**SIZES) == optimizer / sum(held.values())
