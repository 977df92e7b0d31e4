"""What rank 0 of a cluster holds between steps and at its peak under FSDP2, counted in one process without the bytes.

    torchrun --nproc-per-node 1 labs/jobs/paper_cluster.py [NAME=VALUE …]

Takes two steps with tensors that have shapes and no storage, counts what stays and what the peak is made of, prints
one line of JSON.
"""

import resource
import sys
import time

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from formulary.shapes import MODELS
from labs import paper
from labs.conditions import PAPER_CLUSTER
from labs.jobs import ranks, tiny_llama

PRECISION = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
LEARNING_RATE = 1e-3
WIDTHS = ("hidden_size", "ffn_size", "vocab_size", "num_heads", "num_kv_heads", "head_dim")
# our word for it: the tracker's
PEAK = {
    "weights": ("Sharded Param",),
    "optimizer state": ("OptState",),
    "gradients": ("Sharded Grad",),
    "gathered weights": ("Unsharded Param",),
    "gather buffer": ("All Gather",),
    "reduce buffer": ("Reduce Scatter",),
    "saved activations": ("Activation", "Inputs", "Buffer"),
    "working tensors": ("Temp", "Unsharded Grad"),
}


def build(conditions, mesh):
    """The model cut up over the mesh, each block and the rest gathered when needed; and its optimizer."""
    shape = {name: MODELS[conditions["model"]][name] for name in WIDTHS}
    model = tiny_llama.TinyLlama(num_layers=conditions["num_layers"], **shape)
    policy = MixedPrecisionPolicy(**PRECISION)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model, torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def random_batch(conditions):
    """Token ids (micro_batch, seq_length) and as many targets in a row."""
    shape, most = (conditions["micro_batch"], conditions["seq_length"]), MODELS[conditions["model"]]["vocab_size"]
    return torch.randint(most, shape), torch.randint(most, shape).flatten()


def measure(conditions, mesh):
    """Numbers by name: parameters, and bytes by category at rest and at the peak of the second step."""
    ranks.say("building the model")
    model, optimizer = build(conditions, mesh)

    def step(ids, targets):
        optimizer.zero_grad()
        tiny_llama.next_token_loss(model, ids, targets).backward()
        optimizer.step()

    batch = random_batch(conditions)
    ranks.say("step 1 of 2, which makes the optimizer state")
    step(*batch)
    ranks.say("step 2 of 2, with every tensor counted")
    peak = sorted_out(paper.peak(model, optimizer, batch, step))
    rest = at_rest(list(model.parameters()), optimizer.state.values())
    held = {f"{moment}/0/{part}": nbytes for moment, parts in (("at rest", rest), ("at peak", peak)) for part, nbytes in parts.items()}
    return {"parameters": sum(p.numel() for p in model.parameters())} | held


def sorted_out(held):
    """The tracker's categories under our words. Raises KeyError for one that has none."""
    words = {theirs: ours for ours, several in PEAK.items() for theirs in several}
    parts = dict.fromkeys(PEAK, 0)
    for theirs, nbytes in held.items():
        parts[words[theirs]] += nbytes
    return parts


def at_rest(weights, states):
    """Bytes of rank 0's shards after a step, by category."""
    kinds = {
        "weights": weights,
        "gradients": [weight.grad for weight in weights],
        "optimizer state": [tensor for state in states for tensor in state.values()],
    }
    return {name: paper.storage_bytes(map(ranks.local, tensors)) for name, tensors in kinds.items()}


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(PAPER_CLUSTER, sys.argv[1:])
    torch.set_num_threads(1)
    with paper.cluster(conditions["ranks"]) as mesh:
        numbers = measure(conditions, mesh)
        numbers["real memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * ranks.MAXRSS_UNIT
        ranks.print_measurement("paper_cluster", conditions, numbers, started)


if __name__ == "__main__":
    main()
