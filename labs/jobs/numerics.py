"""What low precision loses and what keeps it: small updates, small gradients, moments of one byte.

    torchrun --nproc-per-node 1 labs/jobs/numerics.py [NAME=VALUE …]

Adds small updates to weights kept in five ways, trains a small GPT with each, looks for the smallest gradient that survives,
lets a loss scaler skip steps, prints one line of JSON. Ranks average their gradients and hold the same.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from labs.conditions import NUMERICS
from labs.jobs import ranks, tiny_gpt
from labs.jobs.moments import EightBit, Full, adam

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

# --- ways to keep weights ------------------------------------------------------------------------------------------------


class Fp32:
    """Everything in fp32: a weight is its own master."""

    def __init__(self, start, draw):
        self.weights = start.clone()

    def add(self, update):
        self.weights += update

    def held(self):
        return {"weights": self.weights}


class Nearest:
    """Weights in bf16 only, each sum rounded to the nearest."""

    def __init__(self, start, draw):
        self.weights = start.bfloat16()

    def add(self, update):
        self.weights = (self.weights.float() + update).bfloat16()

    def held(self):
        return {"weights": self.weights}


class Master(Nearest):
    """An fp32 copy takes the updates; bf16 weights are made from it."""

    def __init__(self, start, draw):
        self.master, self.weights = start.clone(), start.bfloat16()

    def add(self, update):
        self.master += update
        self.weights = self.master.bfloat16()

    def held(self):
        return {"weights": self.weights, "master weights": self.master}


class Stochastic(Nearest):
    """Rounded up or down by chance, as likely as it is near: right on the average."""

    DROPPED = 16  # bits that fp32 has and bf16 has not

    def __init__(self, start, draw):
        super().__init__(start, draw)
        self.draw = draw

    def add(self, update):
        bits = (self.weights.float() + update).view(torch.int32)
        noise = torch.randint(1 << self.DROPPED, bits.shape, generator=self.draw, device=bits.device, dtype=torch.int32)
        self.weights = ((bits + noise) >> self.DROPPED << self.DROPPED).view(torch.float32).bfloat16()


class Kahan(Nearest):
    """A second bf16 number beside each weight remembers what rounding took."""

    def __init__(self, start, draw):
        super().__init__(start, draw)
        self.lost = torch.zeros_like(self.weights)

    def add(self, update):
        before, wanted = self.weights.float(), update + self.lost.float()
        super().add(wanted)
        self.lost = (wanted - (self.weights.float() - before)).bfloat16()

    def held(self):
        return {"weights": self.weights, "compensation": self.lost}


# name: how weights are kept, how moments are
VARIANTS = {
    "fp32": (Fp32, Full),
    "bf16": (Nearest, Full),
    "master": (Master, Full),
    "stochastic": (Stochastic, Full),
    "kahan": (Kahan, Full),
    "adam8": (Fp32, EightBit),
}


def dice(device, number=0):
    """Random numbers, alike on every rank that gives the same `number`."""
    return torch.Generator(device).manual_seed(number)


# --- small updates -------------------------------------------------------------------------------------------------------


def drift(keeper, spacings, conditions, device, number=0):
    """As many weights as the model has, all 1, after many updates of so many spacings of bf16 each, as fp32."""
    start = torch.ones(sum(p.numel() for p in tiny_gpt.build(conditions, device).parameters()), device=device)
    kept, update = keeper(start, dice(device, number)), spacings * torch.finfo(torch.bfloat16).eps
    for _ in range(conditions["num_updates"]):
        kept.add(torch.full_like(start, update))
    return kept.weights.float()


def largest_swallowed(dtype, sign):
    """The largest update, among multiples of a very small one, that leaves a weight of 1 as it was."""
    updates = torch.arange(1, 1 << 14) * 2.0**-20
    return updates[(1 + sign * updates).to(dtype) == 1].max().item()


# --- small gradients -----------------------------------------------------------------------------------------------------


def surviving(scale, device):
    """(smallest, largest) gradient that is neither zero nor infinite when it passes through fp16 times `scale`, then is divided by it."""
    powers = 2.0 ** torch.arange(-60, 0, device=device)
    numbers = torch.arange((1 << 15) - 1, dtype=torch.int16, device=device).view(torch.float16).float()  # every positive one of fp16
    beyond = torch.tensor([2.0**16], device=device)
    slopes = torch.cat([powers, torch.cat([numbers[numbers.isfinite()], beyond]) / scale])
    weights = torch.ones_like(slopes, dtype=torch.float16, requires_grad=True)
    ((weights.float() * slopes).sum() * scale).backward()
    grads = weights.grad.float() / scale
    there, whole = slopes[:60][grads[:60] > 0], slopes[grads.isfinite()]
    return there.min().item(), whole.max().item()


def skipped(growth_interval, device, rounds=4):
    """Share of steps that a GradScaler skips when twice its scale always overflows."""
    weight = torch.ones(1, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler(device.type, init_scale=2.0**15, growth_interval=growth_interval)
    steps, skips = rounds * (growth_interval + 1), 0
    for _ in range(steps):
        optimizer.zero_grad()
        scale = scaler.get_scale()
        scaler.scale(weight.half().float().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        skips += scaler.get_scale() < scale
    return skips / steps


# --- training ------------------------------------------------------------------------------------------------------------


def train(variant, conditions, device):
    """Loss before the first and after the last step, and what the rank holds: {category: bytes}."""
    keeper, moments = VARIANTS[variant]
    model, ids = tiny_gpt.build(conditions, device), tiny_gpt.random_batch(conditions, device)
    parameters, losses = list(model.parameters()), []
    start = parameters_to_vector(parameters).detach()
    kept, states = keeper(start, dice(device)), moments(start, conditions["quantizer_block"])
    for step in range(1, conditions["steps"] + 2):
        vector_to_parameters(kept.weights.float(), parameters)
        model.zero_grad()
        loss = tiny_gpt.next_token_loss(model, ids)
        losses.append(loss.item())
        loss.backward()
        grad = parameters_to_vector([parameter.grad for parameter in parameters])
        dist.all_reduce(grad)
        kept.add(-conditions["learning_rate"] * adam(states, grad / dist.get_world_size(), step))
    held = {**kept.held(), **states.held()}
    return losses[0], losses[-1], {"master weights": 0} | {name: tensor.nbytes for name, tensor in held.items()}


def measure(variants, conditions, device):
    """Numbers by name, those of this rank under `held`."""
    numbers, held = {}, {}
    for variant in variants:
        ranks.say(f"{variant}: {conditions['num_updates']} updates, {conditions['steps']} steps")
        for size in ("small", "large"):
            moved = drift(VARIANTS[variant][0], conditions[f"{size}_update"], conditions, device)
            numbers[f"{variant}/moved by {size} updates"] = moved.double().mean().item() - 1
        first, last, held[variant] = train(variant, conditions, device)
        numbers |= {f"{variant}/last loss": last, f"{variant}/fall of the loss": first - last}
    for name, dtype in TYPES.items():
        numbers[f"{name}/largest update swallowed"] = largest_swallowed(dtype, 1)
        numbers[f"{name}/largest update swallowed downwards"] = largest_swallowed(dtype, -1)
    for name, scale in (("unscaled", 1), ("scaled", conditions["loss_scale"])):
        numbers[f"{name}/smallest gradient"], numbers[f"{name}/largest gradient"] = surviving(scale, device)
    return numbers | {"share of steps skipped": skipped(conditions["growth_interval"], device)}, held


def apart(conditions, device):
    """Share of weights in which another rank differs from rank 0 after stochastic rounding with random numbers of its own."""
    mine = drift(Stochastic, conditions["small_update"], conditions, device, number=dist.get_rank())
    first = mine.clone()
    dist.broadcast(first, 0)
    return max(ranks.gather((mine != first).double().mean().item()))


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(NUMERICS, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        variants = conditions["variants"].split(",")
        numbers = {"parameters": sum(p.numel() for p in tiny_gpt.build(conditions, "cpu").parameters())}
        everyone = ranks.gather(measure(variants, conditions, device))
        numbers |= ranks.alike([told for told, _ in everyone])
        for rank, (_, held) in enumerate(everyone):
            numbers |= {f"{name}/{rank}/{part}": nbytes for name, parts in held.items() for part, nbytes in parts.items()}
        numbers["weights apart with random numbers of one's own"] = apart(conditions, device)
        ranks.print_measurement("numerics", conditions, numbers, started)


if __name__ == "__main__":
    main()
