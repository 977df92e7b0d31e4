"""What Transformer blocks save for the backward pass, term by term, and what a step holds at most, with and without recomputation.

    torchrun --nproc-per-node 1 labs/jobs/peak_memory.py [NAME=VALUE …]

On two or more processes also the most that a rank holds under FSDP2. Prints one line of JSON.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from labs import paper
from labs.conditions import PEAK_MEMORY
from labs.jobs import ranks, textbook, tiny_llama
from labs.memory_watch import Mountain, Saved, allocator_peak

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
# the variants of what blocks save: kind of attention, type
SAVING = {
    "standard": ("standard", "bf16"),
    "fused": ("fused", "bf16"),
    "fp32": ("standard", "fp32"),
    "fused_fp32": ("fused", "fp32"),
}
# the variants of a step: how its blocks are recomputed
STEPS = {"stored": "none", "selective": "selective", "full": "full"}
# module of a block: what it saves, unless the size says something else
TERMS = {
    "attention_norm": "attention norm input",
    "query": "attention input",
    "key": "attention input",
    "value": "attention input",
    "attend": "queries, keys, values",
    "attend.dropout": "queries, keys, values",
    "out": "output projection input",
    "attention_dropout": "attention dropout mask",
    "mlp_norm": "MLP norm input",
    "up": "MLP input",
    "gelu": "MLP pre-activation",
    "down": "MLP activation",
    "mlp_dropout": "MLP dropout mask",
}
SCORES, ROWS, STATISTICS, OTHER = "attention scores", "attention statistics", "norm statistics", "anything else"
FEW = 256  # points of a curve that is kept
LEARNING_RATE = 1e-3
BF16_SINCE = (8, 0)  # compute capability
PRECISION = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}


def stack(conditions, device, dtype, **options):
    """The blocks, and what goes in: (batch, tokens, hidden)."""
    torch.manual_seed(0)
    sizes = (conditions[name] for name in ("num_layers", "hidden_size", "num_heads"))
    shape = [conditions[name] for name in ("micro_batch", "seq_length", "hidden_size")]
    return textbook.Stack(*sizes, **options).to(device, dtype), torch.randn(shape, device=device, dtype=dtype)


def saved(variant, conditions, device):
    """Bytes that blocks keep for the backward pass, by term."""
    attention, precision = SAVING[variant]
    model, x = stack(conditions, device, DTYPES[precision], attention=attention)
    with Saved(model, _namer(conditions)) as kept:
        output = model(x)
    found = kept.bytes
    del output
    return {term: found[term] for term in (*dict.fromkeys(TERMS.values()), SCORES, ROWS, STATISTICS, OTHER)}


def _namer(conditions):
    """What to call a tensor that is saved in a module: by its shape where that says it, else by the module."""
    length = conditions["seq_length"]
    tokens = conditions["micro_batch"] * length

    def name(place, tensor):
        module = place.partition(".")[2].partition(".")[2]
        if "attend" in module and tensor.shape[-2:] == (length, length):
            return SCORES
        if "attend" in module and tensor.numel() == tokens * conditions["num_heads"]:
            return ROWS
        if "norm" in module and tensor.numel() == tokens:
            return STATISTICS
        return TERMS.get(module, OTHER) if tensor.numel() >= tokens else OTHER

    return name


def mountain(variant, conditions, device):
    """The Mountain of a step of blocks that are recomputed as the variant says, and the allocator's peak of another one."""
    model, data = stack(conditions, device, DTYPES[conditions["precision"]], recompute=STEPS[variant])
    direction = torch.ones_like(data)

    def step():
        (model(data.clone().requires_grad_()) * direction).mean().backward()

    step()  # in which libraries take what they keep
    model.zero_grad()
    allocated = allocator_peak(step, device)
    model.zero_grad()
    with Mountain(device, [data, direction, *model.parameters()]) as found:
        step()
    return found, allocated


def thinned(heights):
    """A curve of few points that keeps every summit: of each stretch the most."""
    stretch = -(-len(heights) // FEW)
    return [max(heights[start : start + stretch]) for start in range(0, len(heights), stretch)]


def flop(conditions, device):
    """FLOP of a step whose blocks are recomputed over one whose are not, where rebuilding stops early and where it does not."""

    def step(recompute):
        model, data = stack(conditions, device, torch.float32, recompute=recompute, dropped=0.0)
        with FlopCounterMode(display=False) as counter:
            model(data.requires_grad_()).mean().backward()
        return counter.get_total_flops()

    plain, early = step("none"), step("full")
    with set_checkpoint_early_stop(False):
        late = step("full")
    return {"to the last tensor needed": early / plain, "to the end": late / plain}


def fsdp(conditions, device):
    """The most that this rank holds in a step under fully_shard, all blocks recomputed; and its Mountain."""
    torch.manual_seed(0)
    width, heads = conditions["hidden_size"], conditions["num_heads"]
    sizes = {"hidden_size": width, "ffn_size": 4 * width, "num_layers": conditions["num_layers"], "vocab_size": conditions["vocab_size"]}
    model = tiny_llama.TinyLlama(**sizes, num_heads=heads, num_kv_heads=heads, head_dim=width // heads).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in [*model.blocks, model]:
        fully_shard(block, mesh=mesh, mp_policy=MixedPrecisionPolicy(**PRECISION))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    shape = (conditions["micro_batch"], conditions["seq_length"])
    ids, targets = (torch.randint(conditions["vocab_size"], shape, device=device) for _ in range(2))

    def step():
        optimizer.zero_grad()
        tiny_llama.next_token_loss(model, ids, targets.flatten()).backward()
        optimizer.step()

    step()  # which makes the optimizer state
    optimizer.zero_grad()
    states = [tensor for state in optimizer.state.values() for tensor in state.values()]
    before = [ids, targets, *map(ranks.local, [*model.parameters(), *states])]
    with Mountain(device, before) as found:
        step()
    return paper.storage_bytes(before) + found.peak, found


def measure(conditions, device):
    """Numbers by name, of rank 0."""
    numbers, parts = {}, conditions["parts"].split(",")
    for variant in SAVING if "saved" in parts else ():
        ranks.say(f"{variant}: what blocks save")
        numbers |= {f"{variant}/0/{term}": nbytes for term, nbytes in saved(variant, conditions, device).items()}
    for variant in STEPS if "steps" in parts else ():
        ranks.say(f"{variant}: a step")
        found, allocated = mountain(variant, conditions, device)
        numbers |= {f"{variant}/peak": found.peak, f"{variant}/peak of the allocator": allocated}
        numbers[f"{variant}/mountain"] = thinned(found.heights)
    if "flop" in parts:
        ranks.say("counting FLOP")
        numbers |= {f"flop/{part}": ratio for part, ratio in flop(conditions, device).items()}
    if "fsdp" in parts and dist.get_world_size() > 1:
        ranks.say("fsdp: two steps")
        peak, found = fsdp(conditions, device)
        numbers |= {"fsdp/peak": peak, "fsdp/mountain": thinned(found.heights)}
    return numbers


def check(conditions, device):
    """Raise SystemExit where a GPU cannot do what is asked: older ones emulate bf16, but have no fused attention for it."""
    if "saved" in conditions["parts"] and device.type == "cuda" and torch.cuda.get_device_capability(device) < BF16_SINCE:
        raise SystemExit(f"{torch.cuda.get_device_name(device)} has no fused attention in bf16; try parts=steps,flop precision=fp32")


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(PEAK_MEMORY, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        check(conditions, device)
        ranks.print_measurement("peak_memory", conditions, measure(conditions, device), started)


if __name__ == "__main__":
    main()
