"""Bytes that each rank keeps between steps under DDP, ZeRO-1 and FSDP2.

    torchrun --nproc-per-node 2 labs/jobs/model_states.py [NAME=VALUE …]

Trains a small GPT for a few steps, counts what stays, prints one line of JSON.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from labs.conditions import MODEL_STATES
from labs.jobs import ranks, tiny_gpt

LEARNING_RATE = 1e-3


def ddp(model):
    """Every rank keeps everything. Gradients live inside DDP's buckets, else it would keep them twice."""
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def zero1(model):
    """The optimizer state of each tensor on one rank only."""
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=LEARNING_RATE)


def fsdp2(model):
    """Weights, gradients and optimizer state cut by rows; each block and the rest are gathered when needed."""
    device = next(model.parameters()).device.type  # without a mesh, fully_shard would take a GPU wherever there is one
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


VARIANTS = {"ddp": ddp, "zero1": zero1, "fsdp2": fsdp2}


def train(variant, conditions, device):
    """A few steps; returns the loss of each and what the rank then holds."""
    model, optimizer = VARIANTS[variant](tiny_gpt.build(conditions, device))
    ids, losses = tiny_gpt.random_batch(conditions, device), []
    for step in range(conditions["steps"]):
        ranks.say(f"{variant}: step {step + 1} of {conditions['steps']}")
        optimizer.zero_grad()
        loss = tiny_gpt.next_token_loss(model, ids)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, holds(list(model.parameters()), getattr(optimizer, "optim", optimizer).state.values())


def holds(weights, states):
    """Bytes by category: the values of local shards, and what their storages have beyond those."""
    kinds = {
        "weights": [ranks.local(w) for w in weights],
        "gradients": [ranks.local(w.grad) for w in weights],
        "master weights": [],
        "first moments": [ranks.local(state["exp_avg"]) for state in states],
        "second moments": [ranks.local(state["exp_avg_sq"]) for state in states],
        "step counters": [ranks.local(state["step"]) for state in states],
    }
    values = {name: sum(t.nbytes for t in tensors) for name, tensors in kinds.items()}
    return values | {"padding": storage_bytes(t for tensors in kinds.values() for t in tensors) - sum(values.values())}


def storage_bytes(tensors):
    """Bytes of the distinct storages behind `tensors`, so that views into one buffer count once and padding counts."""
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(MODEL_STATES, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        numbers = {"parameters": sum(p.numel() for p in tiny_gpt.build(conditions, "cpu").parameters())}
        for variant in conditions["variants"].split(","):
            losses, held = train(variant, conditions, device)
            numbers[f"{variant}/last loss"] = losses[-1]
            for rank, parts in enumerate(ranks.gather(held)):
                numbers |= {f"{variant}/{rank}/{part}": nbytes for part, nbytes in parts.items()}
        ranks.print_measurement("model_states", conditions, numbers, started)


if __name__ == "__main__":
    main()
