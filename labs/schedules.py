"""The schedules of torch.distributed.pipelining as tables: which card does what, in which order.

The only module that touches private parts of torch.distributed.pipelining. It needs no process group and no second process.
"""

from dataclasses import dataclass

from .replay import BACKWARD, FORWARD, INPUT, WEIGHT, Operation


@dataclass(frozen=True)
class Schedule:
    """One of torch's: what torch calls it, whether a card has several chunks, whether backward is in two halves."""

    torch_name: str
    chunked: bool = False
    split: bool = False


SCHEDULES = {
    "gpipe": Schedule("GPipe"),
    "1f1b": Schedule("1F1B"),
    "interleaved": Schedule("Interleaved1F1B", chunked=True),
    "zero_bubble": Schedule("InterleavedZeroBubble", chunked=True, split=True),
}
# torch's word for an operation: ours; what else its tables have is traffic and the reduction of gradients
KINDS = {"FORWARD": FORWARD, "FULL_BACKWARD": BACKWARD, "BACKWARD_INPUT": INPUT, "BACKWARD_WEIGHT": WEIGHT}


def table(name, num_ranks, num_micro_batches, num_chunks):
    """The Operations of each rank in its order, as torch's schedule `name` has them, the last rank of 1F1B put right."""
    rows = as_torch_has_it(name, num_ranks, num_micro_batches, num_chunks)
    return [*rows[:-1], counted_from_zero(rows[-1])] if name == "1f1b" else rows


def as_torch_has_it(name, num_ranks, num_micro_batches, num_chunks):
    """The table unchanged."""
    from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

    schedule = SCHEDULES[name]
    rows = get_schedule_ops(schedule.torch_name, num_ranks, num_micro_batches, num_chunks if schedule.chunked else None)
    return [[_operation(action) for action in row if action is not None and _word(action) in KINDS] for row in rows]


def counted_from_zero(row):
    """A row whose forward passes are counted from 1, as torch 2.13 has the last one of 1F1B, counted from 0; any other unchanged.

    What runs is right; only the table is not, and replayed as it is it never ends.
    """
    first = min(operation.micro_batch for operation in row if operation.kind == FORWARD)
    return [operation._replace(micro_batch=operation.micro_batch - first * (operation.kind == FORWARD)) for operation in row]


def _word(action):
    return action.computation_type.name


def _operation(action):
    return Operation(KINDS[_word(action)], action.microbatch_index, action.stage_index)
