"""A pipeline of stages whose passes take a fixed time: when each rank works, in which order, and what it keeps alive meanwhile.

    torchrun --nproc-per-node 4 labs/jobs/pipeline.py [NAME=VALUE …]

Runs torch.distributed.pipelining's schedules, one rank a stage or several chunks a rank. Prints one line of JSON.
"""

import sys
import time
import weakref
from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

from labs import schedules
from labs.conditions import PIPELINE
from labs.jobs import ranks
from labs.replay import BACKWARD, FORWARD, INPUT, TIMES, WEIGHT, Operation, Slot, Timeline, replay

WIDTH = 16
MILLISECOND = 1e-3


class _Pass(torch.autograd.Function):
    """Forward, and the half of backward that gives the input's gradient, in one slot each."""

    @staticmethod
    def forward(ctx, x, slot):
        ctx.slot = slot
        _work(x, slot)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        _work(grad, ctx.slot)
        return grad.clone(), None


class _Weigh(torch.autograd.Function):
    """The weights; the half of backward that gives their gradient takes a slot."""

    @staticmethod
    def forward(ctx, weight, slot):
        ctx.slot = slot
        return weight.clone()

    @staticmethod
    def backward(ctx, grad):
        _work(grad, ctx.slot)
        return grad.clone(), None


def _work(tensor, slot):
    """Take a slot's time, once what is worked on is there: on a GPU only its stream knows when that is."""
    if tensor.is_cuda:
        torch.cuda.current_stream().synchronize()
    time.sleep(slot.seconds)


class Slotted(nn.Module):
    """A stage; `seconds` is how long a slot takes."""

    def __init__(self, seconds=0.0):
        super().__init__()
        self.seconds = seconds
        self.weight = nn.Parameter(torch.ones(WIDTH))
        # The data need no gradient, so that without this the first stage would skip that half of its backward pass.
        self.shift = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return _Pass.apply(x + self.shift, self) * _Weigh.apply(self.weight, self)


class Watched(PipelineStage):
    """A stage that writes down when it does what, and which micro-batches autograd holds tensors of."""

    def watch(self, log, alive):
        self.log, self.alive = log, alive
        return self

    def forward_one_chunk(self, fwd_chunk_id, *args, **kwargs):
        with self.alive.saving((self.stage_index, fwd_chunk_id)):
            return self._timed(FORWARD, fwd_chunk_id, super().forward_one_chunk, *args, **kwargs)

    def backward_one_chunk(self, bwd_chunk_id, *args, full_backward=True, **kwargs):
        kind = BACKWARD if full_backward else INPUT
        return self._timed(kind, bwd_chunk_id, super().backward_one_chunk, *args, full_backward=full_backward, **kwargs)

    def backward_weight_one_chunk(self, bwd_chunk_id, *args, **kwargs):
        return self._timed(WEIGHT, bwd_chunk_id, super().backward_weight_one_chunk, *args, **kwargs)

    def _timed(self, kind, micro_batch, run, *args, **kwargs):
        start = time.time()  # and not a clock of this process alone: ranks are compared
        result = run(micro_batch, *args, **kwargs)
        self.log.append(Slot(Operation(kind, micro_batch, self.stage_index), start, time.time()))
        return result


class Alive:
    """Which micro-batches have tensors that autograd holds for their backward pass, and the `most` there were at once."""

    def __init__(self):
        self.held, self.most = Counter(), 0

    def saving(self, owner):
        """A context manager: what is saved in it is kept for `owner`."""
        return torch.autograd.graph.saved_tensors_hooks(lambda tensor: self._pack(owner, tensor), lambda held: held.tensor)

    def _pack(self, owner, tensor):
        held = _Held(tensor)
        self.held[owner] += 1
        self.most = max(self.most, len(self.held))
        weakref.finalize(held, self._release, owner)
        return held

    def _release(self, owner):
        self.held[owner] -= 1
        if not self.held[owner]:
            del self.held[owner]


class _Held:
    def __init__(self, tensor):
        self.tensor = tensor


def chunks(name, conditions):
    """How many chunks of the model a rank has under the schedule `name`."""
    return conditions["chunks_per_stage"] if schedules.SCHEDULES[name].chunked else 1


def step(name, conditions, device, seconds):
    """One step under a schedule; returns this rank's Slots and the most micro-batches that it kept alive."""
    rank, num_ranks, each = dist.get_rank(), dist.get_world_size(), chunks(name, conditions)
    log, alive = [], Alive()
    places = range(rank, each * num_ranks, num_ranks)
    stages = [Watched(Slotted(seconds).to(device), place, each * num_ranks, device).watch(log, alive) for place in places]
    micro_batches = conditions["num_micro_batches"]
    schedule = get_schedule_class(schedules.SCHEDULES[name].torch_name)(
        stages if schedules.SCHEDULES[name].chunked else stages[0], micro_batches, loss_fn=nn.functional.mse_loss
    )
    batch = torch.ones(micro_batches, WIDTH, device=device)
    dist.barrier()
    given = {"target": batch} if rank == num_ranks - 1 else {}
    schedule.step(*([batch] if rank == 0 else []), **given)
    return log, alive.most


def measure(name, conditions, device):
    """Numbers of one schedule, by name."""
    table = schedules.table(name, dist.get_world_size(), conditions["num_micro_batches"], chunks(name, conditions))
    step(name, conditions, device, 0)  # in which connections are made
    seconds = conditions["slot_ms"] * MILLISECOND
    taken = []
    for turn in range(conditions["steps"]):
        ranks.say(f"{name}: step {turn + 1} of {conditions['steps']}")
        taken.append(ranks.gather(step(name, conditions, device, seconds)))
    timelines = [Timeline([log for log, _ in each]) for each in taken]
    quickest = min(timelines, key=lambda timeline: timeline.span)
    numbers = {f"{name}/bubble of the table": replay(table, TIMES).bubble}
    numbers |= {f"{name}/bubble on the clock": quickest.bubble, f"{name}/timeline": quickest.as_numbers()}
    for rank, ((_, most), done, planned) in enumerate(zip(taken[-1], timelines[-1].table, table, strict=True)):
        numbers[f"{name}/{rank}/operations in order"] = in_order(done, planned)
        numbers[f"{name}/{rank}/alive at most"] = most
    return numbers


def in_order(done, planned):
    """How many operations were done as planned, until the first that was not."""
    agrees = [did == plan for did, plan in zip(done, planned, strict=False)]
    return agrees.index(False) if False in agrees else len(agrees)


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(PIPELINE, sys.argv[1:])
    with ranks.together(conditions["device"]) as device:
        numbers = {}
        for name in conditions["schedules"].split(","):
            numbers |= measure(name, conditions, device)
        ranks.print_measurement("pipeline", conditions, numbers, started)


if __name__ == "__main__":
    main()
