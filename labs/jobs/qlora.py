"""Bytes of a 4-bit model with LoRA adapters, and a few steps of training them.

    torchrun --nproc-per-node 1 labs/jobs/qlora.py [NAME=VALUE …]

The matrices of a model with random weights are quantised by bitsandbytes, block after block; peft puts adapters beside them. Counts what is
there after the last step, prints one line of JSON.
"""

import sys
import time

import bitsandbytes
import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch import nn

from formulary.hardware import GPUS
from labs.conditions import QLORA
from labs.jobs import ranks, tiny_llama
from labs.jobs.model_states import storage_bytes
from labs.llamas import WIDTHS, sizes

LEARNING_RATE = 2e-3
ADAPTED = ["query", "key", "value", "out", "gate", "up", "down"]
COMPUTE = {"cpu": torch.float32, "cuda": torch.bfloat16}
DOUBLE_QUANT = {"nf4": False, "nf4_double_quant": True}


def build(conditions, device, double_quant):
    """The quantised model with adapters. No more than one block of it is ever whole."""
    torch.manual_seed(0)
    shape = sizes(conditions)
    widths = {name: shape[name] for name in WIDTHS}
    with torch.device(device):
        model = tiny_llama.TinyLlama(num_layers=0, **widths)
        widths.pop("vocab_size")
        for number in range(shape["num_layers"]):
            ranks.say(f"quantising block {number + 1} of {shape['num_layers']}")
            model.blocks.append(quantise(tiny_llama.Block(**widths), double_quant, COMPUTE[device.type]))
    model.is_loaded_in_4bit = True  # what peft asks
    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)  # the model does that by itself
    rank = conditions["lora_rank"]
    return get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=ADAPTED))


def quantise(module, double_quant, compute_dtype):
    """`module` with each of its linear layers replaced by one of 4 bits."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, in_four_bits(child, double_quant, compute_dtype))
        else:
            quantise(child, double_quant, compute_dtype)
    return module


def in_four_bits(linear, double_quant, compute_dtype):
    kind = {"compress_statistics": double_quant, "quant_type": "nf4"}
    small = bitsandbytes.nn.Linear4bit(
        linear.in_features, linear.out_features, bias=False, compute_dtype=compute_dtype, device="meta", **kind
    )
    weight = linear.weight.detach().to(compute_dtype)
    small.weight = bitsandbytes.nn.Params4bit(weight, requires_grad=False, module=small, **kind)
    return small.to(weight.device)  # this is when it is quantised


def train(conditions, device, double_quant):
    """A few steps on one batch; returns the loss of each and what the rank then holds."""
    model = build(conditions, device, double_quant)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer, losses = torch.optim.AdamW(trained, lr=LEARNING_RATE), []
    ids, targets = random_batch(conditions, device)
    for step in range(conditions["steps"]):
        ranks.say(f"step {step + 1} of {conditions['steps']}")
        optimizer.zero_grad()
        loss = tiny_llama.next_token_loss(model, ids, targets)
        loss.backward()
        for weight in trained:
            dist.all_reduce(weight.grad)
            weight.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses, holds(model, trained, optimizer)


def random_batch(conditions, device):
    """Token ids (micro_batch, seq_length) and as many targets in a row."""
    torch.manual_seed(1)
    shape, most = (conditions["micro_batch"], conditions["seq_length"]), sizes(conditions)["vocab_size"]
    return torch.randint(most, shape, device=device), torch.randint(most, shape, device=device).flatten()


def holds(model, trained, optimizer):
    """Bytes by category."""
    matrices = [module.weight for module in model.modules() if isinstance(module, bitsandbytes.nn.Linear4bit)]
    states = [matrix.quant_state for matrix in matrices]
    nested = [state for state in states if state.nested]
    rest = [p for p in model.parameters() if not p.requires_grad and not isinstance(p, bitsandbytes.nn.Params4bit)]
    kinds = {
        "codes": matrices,
        "scales": [state.absmax for state in states],
        "scales of scales": [state.state2.absmax for state in nested],
        "tables": [s.code for s in states] + [s.state2.code for s in nested] + [s.offset for s in nested],
        "the rest": rest,
        "adapters": trained,
        "gradients": [weight.grad for weight in trained],
        "optimizer state": [tensor for state in optimizer.state.values() for tensor in state.values()],
    }
    return {name: storage_bytes(tensors) for name, tensors in kinds.items()}


def only_as_large_as(card):
    """Let this process take no more memory of its GPU than that card has."""
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, GPUS[card]["memory_capacity"] / total))


def measure(name, conditions, device):
    """Numbers of one way to quantise: bytes of every rank, losses, and on a GPU the most memory that tensors took."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    losses, held = train(conditions, device, DOUBLE_QUANT[name])
    numbers = {f"{name}/first loss": losses[0], f"{name}/last loss": losses[-1]}
    for rank, parts in enumerate(ranks.gather(held)):
        numbers |= {f"{name}/{rank}/{part}": nbytes for part, nbytes in parts.items()}
    if device.type == "cuda":
        numbers[f"{name}/peak"] = torch.cuda.max_memory_allocated()
    return numbers


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(QLORA, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        if conditions["card"]:
            only_as_large_as(conditions["card"])
        numbers = {}
        for name in conditions["quantizers"].split(","):
            numbers |= measure(name, conditions, device)
        ranks.print_measurement("qlora", conditions, numbers, started, packages=("bitsandbytes", "peft"))


if __name__ == "__main__":
    main()
