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


ITEMS = {  # dtype, first stage that cuts it
    "weights": (torch.float16, 3),
    "gradients": (torch.float16, 2),
    "master weights": (torch.float32, 1),
    "first moments": (torch.float32, 1),
    "second moments": (torch.float32, 1),
}


def held_by(rank, ranks, stage, length):
    """Bytes of each item's piece, after really cutting a flat tensor."""
    pieces = {
        name: torch.zeros(length, dtype=dtype).chunk(ranks)[rank] if stage >= first else torch.zeros(length, dtype=dtype)
        for name, (dtype, first) in ITEMS.items()
    }
    return {name: nbytes([piece]) for name, piece in pieces.items()}


@pytest.mark.witness(
    "zero_state_bytes", "zero_weight_bytes", "zero_grad_bytes", "zero_master_bytes", "zero_momentum_bytes", "zero_variance_bytes"
)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("stage", range(4))
def test_tensors_cut_among_ranks(stage, ranks):
    for rank in range(ranks):
        assert ZERO_LEDGER(num_params=960, world_size=ranks, stage=stage) == held_by(rank, ranks, stage, 960)


PUBLISHED = [  # the paper's figure 1 and table 1: billions of parameters, ranks, GB for stages 1, 2, 3 as printed
    (7.5, 64, (31.4, 16.6, 1.88)),
    (7.5, 4, (52.5, 41.3, 30)),
    (7.5, 16, (35.6, 21.6, 7.5)),
    (7.5, 256, (30.4, 15.4, 0.47)),
    (7.5, 1024, (30.1, 15.1, 0.12)),
]


@pytest.mark.witness("zero_state_bytes")
@pytest.mark.parametrize(("billions", "ranks", "printed"), PUBLISHED)
def test_the_table_of_the_zero_paper(billions, ranks, printed):
    for stage, gigabytes in enumerate(printed, 1):
        exact = formula("zero_state_bytes")(num_params=billions * 1e9, world_size=ranks, stage=stage) / 1e9
        digits = len(str(gigabytes).partition(".")[2])
        assert abs(exact - gigabytes) <= 0.5000001 * 10**-digits
