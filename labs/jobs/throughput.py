"""How fast a small GPT trains on this machine: tokens a second, against the machine's own products, on one process and on more.

    torchrun --nproc-per-node 4 labs/jobs/throughput.py [NAME=VALUE …]

Counts the FLOP of a step, times products, steps and all-reduces, prints one line of JSON.
"""

import contextlib
import itertools
import math
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel
from torch.utils.flop_counter import FlopCounterMode

from formulary.hardware import GPUS
from labs.conditions import THROUGHPUT
from labs.jobs import ranks, tiny_gpt

LEARNING_RATE = 1e-3
MEBIBYTE = 2**20
TRIES = 20


class Bench:
    """A model that trains on `batch` sequences on each rank; its gradients travel in `group` if there is one."""

    def __init__(self, conditions, device, batch, group=None):
        self.model = tiny_gpt.build(conditions, device).to(getattr(torch, conditions["dtype"]))
        if group:
            cap = conditions["bucket_mebibytes"]
            self.model = DistributedDataParallel(self.model, process_group=group, bucket_cap_mb=cap, gradient_as_bucket_view=True)
        self.ids = tiny_gpt.random_batch({**conditions, "micro_batch": batch}, device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)

    def forward(self):
        """All of a step but its backward pass: what communication cannot hide behind."""
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.loss = tiny_gpt.next_token_loss(self.model, self.ids)

    def backward(self):
        self.loss.backward()

    def step(self):
        self.forward()
        self.backward()


def counted(conditions, device):
    """FLOP of one step by PyTorch's own counter, which sees only products; attention is made of two for the count."""
    bench = Bench(conditions, device, conditions["micro_batch"])
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        bench.step()
    return counter.get_total_flops()


# --- times --------------------------------------------------------------------------------------------------------------


def finish(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(device, times, *parts):
    """The shortest time of each of `parts`, called in turn so many `times` after a first that does not count: disturbances only add."""
    taken = []
    for _ in range(times + 1):
        marks = [clock(device)]
        for part in parts:
            part()
            marks.append(clock(device))
        taken.append([after - before for before, after in itertools.pairwise(marks)])
    return [min(column) for column in zip(*taken[1:], strict=True)]


def clock(device):
    finish(device)
    return time.perf_counter()


def product_speed(conditions, device, rows, inner, columns):
    """FLOP a second of one product (rows, inner) by (inner, columns): the best of many."""
    kind = {"device": device, "dtype": getattr(torch, conditions["dtype"])}
    left, right = torch.randn(rows, inner, **kind), torch.randn(inner, columns, **kind)
    return 2 * rows * inner * columns / seconds(device, TRIES, lambda: left @ right)[0]


def slowest(value, group):
    """The largest of every rank's `value`."""
    everyone = [None] * group.size()
    dist.all_gather_object(everyone, value, group=group)
    return max(everyone)


def computing(conditions, device, batch, group):
    """Times of a step's two parts without communication, on all ranks of the group at once; the slowest rank's."""
    bench = Bench(conditions, device, batch)
    bench.step()  # so that there are gradients to update with
    dist.barrier(group)
    return [slowest(part, group) for part in seconds(device, conditions["steps"], bench.forward, bench.backward)]


def training(conditions, device, batch, group):
    """Time of a step whose gradients are averaged over the group."""
    bench = Bench(conditions, device, batch, group)
    bench.step()
    return slowest(seconds(device, conditions["steps"], bench.step)[0], group)


def communicating(conditions, device, group):
    """Time to average that many numbers, in buckets, with nothing else to do."""
    whole = torch.cat([p.detach().flatten() for p in tiny_gpt.build(conditions, device).parameters()])
    whole = whole.to(getattr(torch, conditions["dtype"]))
    buckets = whole.chunk(math.ceil(whole.nbytes / (conditions["bucket_mebibytes"] * MEBIBYTE)))
    average = lambda: [dist.all_reduce(bucket, group=group) for bucket in buckets]
    return slowest(seconds(device, conditions["steps"], average)[0], group)


def datasheet(conditions, device):
    """The dense peak that the GPU's maker states, where it is a card of the book."""
    card = card_named(torch.cuda.get_device_name()) if device.type == "cuda" else {}
    peak = card.get({"float32": "fp32_flop_per_s", "bfloat16": "peak_flop_per_s"}[conditions["dtype"]])
    return {"peak of the datasheet": peak} if peak else {}


def card_named(name):
    """The card of the book that a driver calls `name`, such as NVIDIA A100-SXM4-40GB; empty if it has none."""
    said = set(name.replace("-", " ").split())
    words = {title: {word for word in title.split() if word != "SXM" and not word.endswith("GB")} for title in GPUS}
    fitting = [title for title in GPUS if words[title] <= said]
    return GPUS[max(fitting, key=lambda title: len(words[title]))] if fitting else {}


# --- the machine, and more and more of its ranks --------------------------------------------------------------------------


def machine_numbers(conditions, device):
    """What one rank does alone: its FLOP, its products, its tokens."""
    tokens = conditions["micro_batch"] * conditions["num_positions"]
    flop, size = counted(conditions, device), conditions["product_size"]
    large = product_speed(conditions, device, size, size, size)
    own = product_speed(conditions, device, tokens, conditions["hidden_size"], conditions["ffn_size"])
    speeds = {"matmul peak": max(large, own), "product of the model": own}
    bench = Bench(conditions, device, conditions["micro_batch"])
    bench.step()
    step = seconds(device, conditions["steps"], bench.step)[0]
    reached = {"tokens per second": tokens / step, "MFU": flop / step / speeds["matmul peak"]}
    work = {"FLOP per token": flop / tokens, "kernel efficiency": own / speeds["matmul peak"]}
    return datasheet(conditions, device) | work | speeds | reached


def scaling(conditions, device):
    """Numbers of weak and strong scaling over every number of ranks that divides the ranks there are."""
    world_size, batch, numbers = dist.get_world_size(), conditions["micro_batch"], {}
    for num_ranks in (k for k in range(1, world_size + 1) if world_size % k == 0):
        group = dist.new_group(list(range(num_ranks)))
        with taking_part(num_ranks) as mine:
            if mine:
                ranks.say(f"{num_ranks} of {world_size} processes")
                shares = {"weak": batch, "strong": batch * world_size // num_ranks}
                times = {share: steps(conditions, device, share, group) for share in set(shares.values())}
                for kind, share in shares.items():
                    numbers |= {f"{kind} {num_ranks}/{part}": value for part, value in times[share].items()}
                numbers[f"{num_ranks} processes/all-reduce"] = communicating(conditions, device, group)
    return numbers


@contextlib.contextmanager
def taking_part(num_ranks):
    """Whether this rank is one of the first so many; the others wait for them at the end."""
    yield dist.get_rank() < num_ranks
    dist.barrier()


def steps(conditions, device, batch, group):
    forward, backward = computing(conditions, device, batch, group)
    return {"forward": forward, "backward": backward, "step time": training(conditions, device, batch, group)}


def efficiencies(numbers):
    """How much of one rank's speed every rank keeps, for each step time among the `numbers`."""
    found = {}
    for key in (key for key in numbers if key.endswith("/step time")):
        kind, num_ranks = key.partition("/")[0].split()
        ideal = numbers[f"{kind} 1/step time"] / (int(num_ranks) if kind == "strong" else 1)
        found[f"{kind} {num_ranks}/efficiency"] = ideal / numbers[key]
    return found


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(THROUGHPUT, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        parameters = sum(p.numel() for p in tiny_gpt.build(conditions, "cpu").parameters())
        numbers = {"parameters": parameters}
        with taking_part(1) as mine:
            if mine:
                numbers |= machine_numbers(conditions, device)
        numbers |= scaling(conditions, device)
        if dist.get_rank() == 0:
            numbers |= efficiencies(numbers)
        ranks.print_measurement("throughput", conditions, numbers, started)


if __name__ == "__main__":
    main()
