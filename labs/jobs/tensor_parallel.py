"""What each rank holds and sends when the blocks of a GPT are cut across ranks, under three plans of the same cuts.

    torchrun --nproc-per-node 2 labs/jobs/tensor_parallel.py [NAME=VALUE …]

Runs a stack of blocks forward, backward and through one step of Adam, counts parameters and collectives, compares with the
same stack uncut, prints one line of JSON.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from labs.collectives import KINDS, Collectives, plain
from labs.conditions import TENSOR_PARALLEL
from labs.jobs import ranks, tiny_gpt

LEARNING_RATE = 1e-3
CLOSE = 1e-4  # relative; fp32 sums in another order differ by far less, a wrong plan by far more
TOKENS = 1  # the dimension along which sequence parallelism cuts

CUTS = {
    "attention.query": ColwiseParallel,
    "attention.key": ColwiseParallel,
    "attention.value": ColwiseParallel,
    "attention.out": RowwiseParallel,
    "up": ColwiseParallel,
    "down": RowwiseParallel,
}
WHOLE_TO_ALL = {"input_layouts": Replicate(), "desired_input_layouts": Replicate()}
GATHERED_FOR_ALL = {"input_layouts": Shard(TOKENS), "desired_input_layouts": Replicate()}


def naive():
    """Every matrix cut on its own: each column-cut one takes in the activations for itself."""
    return {name: cut() for name, cut in CUTS.items()}


def prepared():
    """The attention takes in the activations once, for queries, keys and values together."""
    return {**naive(), "attention": PrepareModuleInput(**WHOLE_TO_ALL)}


def sequence():
    """Between the cut matrices every rank has its own tokens only."""
    return {
        **naive(),
        "attention_norm": SequenceParallel(),
        "ffn_norm": SequenceParallel(),
        "attention": PrepareModuleInput(**GATHERED_FOR_ALL),
        "attention.out": RowwiseParallel(output_layouts=Shard(TOKENS)),
        "up": ColwiseParallel(input_layouts=Shard(TOKENS)),
        "down": RowwiseParallel(output_layouts=Shard(TOKENS)),
    }


PLANS = {"naive": naive, "prepared": prepared, "sequence": sequence}
OWN_TOKENS = ("sequence",)  # plans whose ranks have their own tokens only, before and after a block


class Stack(nn.Module):
    """Blocks, one after the other. Shapes: (batch, tokens, hidden) to the same."""

    def __init__(self, num_layers, **widths):
        super().__init__()
        self.blocks = nn.ModuleList(tiny_gpt.Block(**widths) for _ in range(num_layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def build(conditions, device):
    """The stack that `conditions` describe, uncut, alike on every rank."""
    torch.manual_seed(0)
    widths = {name: conditions[name] for name in ("hidden_size", "ffn_size", "num_heads")}
    with torch.device(device):
        return Stack(conditions["num_layers"], **widths)


def random_input(conditions, device):
    """Activations (batch, tokens, hidden), alike on every rank."""
    torch.manual_seed(1)
    return torch.randn(conditions["micro_batch"], conditions["seq_length"], conditions["hidden_size"]).to(device)


def cut(stack, plan, mesh):
    """Cut every block of the stack over the mesh, in place."""
    for block in stack.blocks:
        parallelize_module(block, mesh, PLANS[plan]())
        block.attention.num_heads //= mesh.size()
    return stack


def own(x, plan, mesh):
    """What of the activations a rank has before a block and after it."""
    return x.chunk(mesh.size(), TOKENS)[mesh.get_local_rank()] if plan in OWN_TOKENS else x


def run(stack, x, of=1.0):
    """Forward, backward, a step of Adam: output, and the collectives of each. The loss is a share `of` the mean square."""
    # tensor by tensor: on a GPU Adam would take all of them in one call, which cannot mix cut ones with whole ones
    x, adam = x.clone().requires_grad_(), torch.optim.Adam(stack.parameters(), lr=LEARNING_RATE, foreach=False)
    with Collectives() as forward:
        out = stack(x)
    loss = out.square().mean() * of
    with Collectives() as backward:
        loss.backward()
    grads = [whole(parameter.grad).clone() for parameter in stack.parameters()]
    with Collectives() as step:
        adam.step()
    return out.detach(), grads, {"forward": forward, "backward": backward, "optimizer step": step}


def whole(tensor):
    """All of a tensor that is cut, or not added up yet."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distance(found, expected):
    """The norm of the difference over the norm, of all tensors together."""
    norm = lambda tensors: torch.stack([tensor.norm() for tensor in tensors]).norm()
    return float(norm([a - b for a, b in zip(found, expected, strict=True)]) / norm(expected))


def measure(plan, conditions, mesh, device):
    """Numbers by name of one plan on this rank."""
    dense, x = build(conditions, device), random_input(conditions, device)
    expected_out, expected_grads, _ = run(dense, x)
    mine = own(x, plan, mesh)
    stack = cut(build(conditions, device), plan, mesh)
    out, grads, phases = run(stack, mine, mine.numel() / x.numel())
    apart = max(distance([out], [own(expected_out, plan, mesh)]), distance(grads, expected_grads))
    if apart > CLOSE:
        raise SystemExit(f"plan {plan} is {apart:.2g} away from the stack uncut; no rounding explains more than {CLOSE}")
    return {"sent": {phase: plain(moved.sent().values()) for phase, moved in phases.items()}, "calls": calls(phases), "apart": apart} | {
        "params": params(stack.blocks[0])
    }


def calls(phases):
    """How often each collective is called in the forward and in the backward pass."""
    return {f"{kind} {phase}": phases[phase].count(kind) for phase in ("forward", "backward") for kind in KINDS}


def params(block):
    """Parameters of one layer on this rank: matrices of attention and MLP, and the vectors."""
    counted = dict.fromkeys(("attention matrices", "MLP matrices", "biases and norms"), 0)
    for name, parameter in block.named_parameters():
        vector, attention = parameter.dim() == 1, name.startswith("attention.")
        part = "biases and norms" if vector else "attention matrices" if attention else "MLP matrices"
        counted[part] += ranks.local(parameter).numel()
    return counted


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(TENSOR_PARALLEL, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        mesh, numbers = init_device_mesh(device.type, (dist.get_world_size(),)), {}
        for plan in conditions["plans"].split(","):
            ranks.say(f"plan {plan}")
            everyone = ranks.gather(measure(plan, conditions, mesh, device))
            numbers[f"{plan}/difference from uncut"] = max(mine["apart"] for mine in everyone)
            numbers |= {f"{plan}/{call}": times for call, times in ranks.alike([mine["calls"] for mine in everyone]).items()}
            for rank, mine in enumerate(everyone):
                numbers |= {f"{plan}/{rank}/{phase}": nbytes for phase, nbytes in mine["sent"].items()}
            numbers |= ranks.alike([mine["params"] for mine in everyone])
        ranks.print_measurement("tensor_parallel", conditions, numbers, started)


if __name__ == "__main__":
    main()
