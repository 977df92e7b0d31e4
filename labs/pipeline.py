"""Lab: pipelines of real processes under four schedules: how long they idle and what they keep alive."""

from formulary import InputError, formula, nearest

from .conditions import PIPELINE
from .gantt import both_timelines
from .lab import Difference, Lab, Prediction, estimate
from .schedules import SCHEDULES

POINTS = 0.05  # percentage points that a clock may be off
TABLE, CLOCK = "bubble of the table", "bubble on the clock"

# schedule: the formulas of its bubble and of the activations that a stage keeps alive
FORMULAS = {
    "gpipe": ("pipeline_bubble", "gpipe_in_flight"),
    "1f1b": ("pipeline_bubble", "in_flight"),
    "interleaved": ("interleaved_bubble", "interleaved_in_flight"),
    "zero_bubble": ("interleaved_zero_bubble", "interleaved_zero_in_flight"),
}

ALL_AT_ONCE = Difference(
    "backward early",
    "GPipe runs all forward passes before the first backward pass, so that a stage keeps every micro-batch. Where backward passes start "
    "as early as they can, a stage keeps only what is on its way to the last stage and back.",
)
SMALLER = Difference(
    "chunks",
    "A rank with several chunks passes P micro-batches through all chunks but its last before a gradient comes back. There are more "
    "pieces, and each is of a chunk, not of a whole stage.",
)
FILLED = Difference(
    "filled with weight gradients",
    "Only the input's gradient is waited for. The weights' can be made later, and fill the time in which a rank would otherwise wait.",
)
INTERLEAVED = Difference(
    "shorter fill",
    "The pipeline is full when the first micro-batch has passed one chunk of every rank. A chunk is a V-th of a stage.",
)


def predict(conditions):
    """Of each schedule the bubble, by its table and by the clock; of each rank its passes and what it keeps alive."""
    _check(conditions)
    for name in conditions["schedules"].split(","):
        if name not in SCHEDULES:
            raise InputError(f"schedules has {name!r}{nearest(name, SCHEDULES)}; there are {', '.join(SCHEDULES)}")
        yield from _schedule(name, _values(name, conditions))


def _check(conditions):
    ranks, micro_batches = conditions["world_size"], conditions["num_micro_batches"]
    if ranks < 2:
        raise InputError(f"a pipeline has at least 2 stages, one for each process, and nproc is {ranks}")
    if micro_batches % ranks or micro_batches < ranks:
        raise InputError(f"num_micro_batches is {micro_batches}; interleaved schedules want a multiple of the {ranks} processes")
    if conditions["chunks_per_stage"] < 2:
        raise InputError(f"chunks_per_stage is {conditions['chunks_per_stage']}; interleaved schedules have at least 2")


def _values(name, conditions):
    """What the formulas take: one layer a chunk, so that what is alive counts micro-batches, and so many layers as there are chunks."""
    schedule, ranks = SCHEDULES[name], conditions["world_size"]
    each = conditions["chunks_per_stage"] if schedule.chunked else 1
    return {
        "num_stages": ranks,
        "num_micro_batches": conditions["num_micro_batches"],
        "chunks_per_stage": each,
        "num_layers": formula("chunk_boundaries")(num_stages=ranks, chunks_per_stage=each) + 1,
        "backward_parts": 2 if schedule.split else 1,
    }


def _schedule(name, values):
    bubble, alive = (formula(title) for title in FORMULAS[name])
    share = estimate(bubble, **values)
    ways = _to_the_bubble(name, values)
    yield Prediction(TABLE, share, name, differences=ways)
    yield Prediction(CLOCK, share, name, differences=ways, within=POINTS / share())
    for rank in range(values["num_stages"]):
        yield Prediction("operations in order", estimate(formula("stage_operations"), **values), name, rank)
        kept = estimate(alive, **values, stage_index=rank + 1)
        yield Prediction("alive at most", kept, name, rank, differences=_to_what_is_alive(name, values, rank))


def _to_the_bubble(name, values):
    """From GPipe's bubble, which 1F1B's is too, to this schedule's."""
    paper = estimate(formula("pipeline_bubble"), **values)
    chunked = estimate(formula("interleaved_bubble"), **values)
    ways = {"interleaved": (INTERLEAVED.at(paper),), "zero_bubble": (INTERLEAVED.at(paper), FILLED.at(chunked))}
    return ways.get(name, ())


def _to_what_is_alive(name, values, rank):
    """From the micro-batches that GPipe keeps to what this schedule does."""
    stages = {**values, "num_layers": values["num_stages"], "stage_index": rank + 1}
    gpipe, early = (estimate(formula(title), **stages) for title in ("gpipe_in_flight", "in_flight"))
    ways = (ALL_AT_ONCE.at(gpipe), SMALLER.at(early))
    return () if name == "gpipe" else ways[: 1 + SCHEDULES[name].chunked]


LAB = Lab(
    "pipeline",
    "Pipeline: what stages idle and what they keep alive under four schedules",
    "pipeline.py",
    PIPELINE,
    predict,
    nproc=4,
    picture=both_timelines,
)
