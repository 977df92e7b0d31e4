"""Bytes that each rank sends in a training step under data, sharded and tensor parallelism, counted at the collectives.

    torchrun --nproc-per-node 2 labs/jobs/traffic.py [NAME=VALUE …]

Trains a small GPT for a few steps in each way and counts the last one; sends a message round a ring; looks for copies of the
gradients; and, where it may, counts bytes on a network of its own. Prints one line of JSON.
"""

import contextlib
import math
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from labs.collectives import Collectives, all_gather, plain, reduce_scatter
from labs.conditions import TRAFFIC
from labs.jobs import private_network, ranks, tensor_parallel, tiny_gpt

LEARNING_RATE = 1e-3
STEPS = 3  # the first ones make the optimizer state and settle the order of DDP's buckets; the last is counted
BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
FP32 = MixedPrecisionPolicy()


# --- ways to train -----------------------------------------------------------------------------------------------------


def ddp(model, conditions):
    """Every rank keeps everything, and gradients are averaged."""
    model = DistributedDataParallel(model)
    return model, torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def zero1(model, conditions):
    """Each tensor is updated by one rank, which then tells the others."""
    model = DistributedDataParallel(model)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=LEARNING_RATE)


def fsdp(model, conditions, policy=FP32, hybrid=False, **options):
    """Everything cut by rows over all ranks, or over those of one node; each block and the rest gathered when needed."""
    device, world_size = next(model.parameters()).device.type, dist.get_world_size()
    node = math.gcd(conditions["ranks_per_node"], world_size)
    shape = {"nodes": world_size // node, "ranks": node} if hybrid else {"ranks": world_size}
    mesh = init_device_mesh(device, tuple(shape.values()), mesh_dim_names=tuple(shape))
    for unit in (*model.blocks, model):
        fully_shard(unit, mesh=mesh, mp_policy=policy, **options)
    return model, torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def every_pass(model, last):
    """Synchronise after each backward pass."""
    return contextlib.nullcontext()


def ddp_last_pass(model, last):
    """Synchronise after the last micro-batch only."""
    return contextlib.nullcontext() if last else model.no_sync()


def fsdp_last_pass(model, last):
    """The same for fully_shard, which has a switch."""
    model.set_requires_gradient_sync(last)
    return contextlib.nullcontext()


FOR = {"all-reduce": "gradients", "reduce-scatter": "gradients", "all-gather": "weights", "broadcast": "weights"}


@dataclass(frozen=True)
class Variant:
    """How a model is wrapped, whether a step has several micro-batches and when they synchronise, and what collectives are for."""

    wrap: Callable
    accumulates: bool = False
    synchronised: Callable = every_pass
    purposes: dict = None

    def measure(self, conditions, device):
        """{what for: bytes} that this rank sends in the last of a few steps."""
        model, optimizer = self.wrap(tiny_gpt.build(conditions, device), conditions)
        ids = tiny_gpt.random_batch(conditions, device)
        for _ in range(STEPS):
            with Collectives() as moved:
                self._step(model, optimizer, ids, conditions["accumulation_steps"] if self.accumulates else 1)
        return by_purpose(moved, self.purposes or FOR)

    def _step(self, model, optimizer, ids, micro_batches):
        optimizer.zero_grad()
        for left in reversed(range(micro_batches)):
            with self.synchronised(model, left == 0):
                tiny_gpt.next_token_loss(model, ids).backward()
        optimizer.step()


def by_purpose(moved, purposes):
    """Bytes sent, under the name of what each collective is for."""
    sent = moved.sent()
    return {purpose: plain(sent.get(kind, 0) for kind in purposes if purposes[kind] == purpose) for purpose in purposes.values()}


@dataclass(frozen=True)
class Layers:
    """The blocks alone, cut across the ranks under a plan of lab `tensor_parallel`."""

    plan: str

    def measure(self, conditions, device):
        """{what for: bytes} that this rank sends in one step."""
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        sizes = {**conditions, "seq_length": conditions["num_positions"]}
        stack = tensor_parallel.cut(tensor_parallel.build(sizes, device), self.plan, mesh)
        x = tensor_parallel.own(tensor_parallel.random_input(sizes, device), self.plan, mesh)
        _, _, phases = tensor_parallel.run(stack, x)
        sent = lambda *names: plain(nbytes for name in names for nbytes in phases[name].sent().values())
        return {"activations": sent("forward", "backward"), "gradients": sent("optimizer step")}


VARIANTS = {
    "ddp": Variant(ddp),
    "ddp_every_pass": Variant(ddp, True),
    "ddp_no_sync": Variant(ddp, True, ddp_last_pass),
    "zero1": Variant(zero1),
    "fsdp": Variant(fsdp),
    "fsdp_kept": Variant(partial(fsdp, reshard_after_forward=False)),
    "fsdp_bf16": Variant(partial(fsdp, policy=BF16)),
    "fsdp_every_pass": Variant(fsdp, True),
    "fsdp_no_sync": Variant(fsdp, True, fsdp_last_pass),
    "hsdp": Variant(partial(fsdp, hybrid=True), purposes=FOR | {"all-reduce": "gradients across nodes"}),
    "tp": Layers("prepared"),
    "sp": Layers("sequence"),
}


# --- a ring of one's own -----------------------------------------------------------------------------------------------


class Neighbours:
    """exchange(tensor) of a ring, which counts what it sends."""

    def __init__(self):
        self.sent = self.rounds = 0
        self.rank, self.num_ranks = dist.get_rank(), dist.get_world_size()

    def exchange(self, tensor):
        """Send a tensor to the next rank; returns what the one before has sent."""
        tensor, received = tensor.contiguous(), torch.empty_like(tensor)
        both = [(dist.isend, tensor, self.rank + 1), (dist.irecv, received, self.rank - 1)]
        for work in dist.batch_isend_irecv([dist.P2POp(what, part, peer % self.num_ranks) for what, part, peer in both]):
            work.wait()
        self.sent, self.rounds = self.sent + tensor.nbytes, self.rounds + 1
        return received


def ring(conditions, device):
    """Numbers of an all-reduce by the function in the file `ring`, whose sums must be those of torch."""
    file = conditions["ring"] or str(Path(__file__).with_name("ring.py"))
    all_reduce = runpy.run_path(file)["all_reduce"]
    neighbours = Neighbours()
    message = torch.arange(conditions["message_elements"], device=device).remainder(7).float() + neighbours.rank  # sums are exact
    expected = message.clone()
    dist.all_reduce(expected)
    all_reduce(message, neighbours.rank, neighbours.num_ranks, neighbours.exchange)
    wrong = int((message != expected).sum())
    return {"sent": neighbours.sent, "rounds": neighbours.rounds, "elements that are no sum": wrong}


# --- what DDP keeps beside -----------------------------------------------------------------------------------------------


def hidden(conditions, device, view):
    """Bytes of DDP's buckets that no gradient lies in."""
    model, seen = DistributedDataParallel(tiny_gpt.build(conditions, device), gradient_as_bucket_view=view), {}

    def look(state, bucket):
        storage = bucket.buffer().untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return allreduce_hook(state, bucket)

    model.register_comm_hook(dist.group.WORLD, look)
    for _ in range(STEPS):
        seen.clear()
        model.zero_grad()
        tiny_gpt.next_token_loss(model, tiny_gpt.random_batch(conditions, device)).backward()
    lived_in = {parameter.grad.untyped_storage().data_ptr() for parameter in model.parameters()}
    return sum(nbytes for place, nbytes in seen.items() if place not in lived_in)


# --- on the wire ---------------------------------------------------------------------------------------------------------


def wire(conditions):
    """Bytes that a rank sends on the average over gloo's sockets, of three collectives; or why they cannot be counted."""
    names = ("all-reduce", "all-gather", "reduce-scatter")
    try:
        group = private_network.enter()
    except private_network.NoPrivateNetwork as refused:
        return dict.fromkeys(names, str(refused))
    whole = torch.ones(conditions["message_elements"])
    part = whole.chunk(dist.get_world_size())[0].clone()
    actions = (
        lambda: dist.all_reduce(whole, group=group),
        lambda: all_gather(whole, part, group=group),
        lambda: reduce_scatter(part, whole, group=group),
    )
    return {name: private_network.sent_by_each(action, group) for name, action in zip(names, actions, strict=True)}


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(TRAFFIC, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        numbers = {"parameters": sum(p.numel() for p in tiny_gpt.build(conditions, "cpu").parameters())}
        for name in filter(None, conditions["variants"].split(",")):
            ranks.say(f"{name}: {STEPS} steps")
            for rank, sent in enumerate(ranks.gather(VARIANTS[name].measure(conditions, device))):
                numbers |= {f"{name}/{rank}/{purpose}": nbytes for purpose, nbytes in sent.items()}
        ranks.say("a ring")
        for rank, told in enumerate(ranks.gather(ring(conditions, device))):
            numbers |= {f"ring/{rank}/{what}": number for what, number in told.items()}
        ranks.say("DDP's buckets")
        for name, view in (("gradients of their own", False), ("gradients as views", True)):
            numbers[f"buckets/{name}"] = ranks.alike(ranks.gather(hidden(conditions, device, view)))
        ranks.say("the wire")
        numbers |= {f"wire/{name}": nbytes for name, nbytes in wire(conditions).items()}  # the last, since it leaves this network
        ranks.print_measurement("traffic", conditions, numbers, started)


if __name__ == "__main__":
    main()
