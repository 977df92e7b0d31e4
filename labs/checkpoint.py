"""Lab: what a checkpoint holds, and training that is killed, goes on, and goes on with another number of ranks."""

from matplotlib.lines import Line2D

from formulary import InputError, formula
from formulary.memory import RECIPE, STATE_LEDGER, ZERO_LEDGER

from .conditions import CHECKPOINT
from .interruptions import runs
from .lab import Lab, Prediction, Sure, estimate
from .model_states import PRECISION, ROWS, STEP_COUNTERS
from .picture import COLORS, Picture

FP32 = RECIPE["fp32_adam"].values
KEPT = ("weights", "master weights", "first moments", "second moments")  # gradients are computed again
OF_A_WEIGHT = ("weight", "first moment", "second moment", "step counter")
ORDER_OF_ADDING = 0.00001


def predict(conditions):
    """The parameters, the bytes of a checkpoint rank by rank, and how every run ends."""
    _check(conditions)
    num_params = _model("gpt_params", conditions)
    yield Prediction("parameters", num_params)
    for rank in range(conditions["world_size"]):
        yield from _saved_by(rank, conditions, num_params())
    counters = estimate(formula("step_bytes"), num_tensors=_model("gpt_tensors", conditions)())
    yield Prediction("step counters", counters, differences=(STEP_COUNTERS,))
    whole = estimate(formula("checkpoint_bytes"), num_params=num_params(), checkpoint_param_bytes=_param_bytes())
    yield Prediction("files", whole, judged=False)
    for run in runs(conditions, conditions["world_size"]):
        yield from _ending(run, conditions)


def _check(conditions):
    batch, world_size = conditions["global_batch"], conditions["world_size"]
    if batch % world_size:
        raise InputError(f"global_batch is {batch}; it must divide by the {world_size} ranks, who all get as much of it")
    for name, least in (("steps", 2), ("every", 1), ("kills", 0)):
        if conditions[name] < least:
            raise InputError(f"{name} is {conditions[name]}; it must be at least {least}")


def _model(name, conditions, **values):
    return estimate(formula(name), **conditions, **values)


def _param_bytes():
    """Bytes of one parameter in a checkpoint of a job that trains in fp32."""
    return sum(estimate(STATE_LEDGER.parts[part], num_params=1, **FP32)() for part in KEPT)


def _saved_by(rank, conditions, num_params):
    """What one rank writes: its shards, without gradients."""
    even = {"num_params": num_params, "world_size": conditions["world_size"], "stage": 3}
    held = _model("gpt_shard_params", conditions, rank_index=rank)()
    for part in KEPT:
        paper = ZERO_LEDGER.parts[part]
        ways = (PRECISION.at(estimate(paper, **even)), ROWS.at(estimate(paper, **even, **FP32)))
        yield Prediction(part, estimate(STATE_LEDGER.parts[part], num_params=held, **FP32), "checkpoint", rank, ways)


def _ending(run, conditions):
    """How a run compares with the uninterrupted one."""
    if run.kill:
        rank, step = run.kill
        again = Sure(step % conditions["every"], f"rank {rank} dies in step {step}, counted from 0; all since the last checkpoint is lost")
        yield Prediction("steps done again", again, run.name)
        alike = Sure(conditions["steps"] + again(), "all, also those of steps done again: the same numbers are added in the same order")
        yield Prediction("losses alike to the bit", alike, run.name)
    elif len(run.phases) > 1:
        saved = Sure(_model("gpt_tensors", conditions)() * len(OF_A_WEIGHT), "all: a checkpoint holds values, whoever wrote them")
        yield Prediction("tensors alike to the bit", saved, run.name)


def later(conditions, numbers):
    """Where other ranks add up the same numbers in another order, losses agree but for rounding."""
    for run in runs(conditions, conditions["world_size"]):
        if len(run.phases) > 1:
            whole = Sure(numbers["last loss"], "the last loss of the uninterrupted run")
            yield Prediction("last loss", whole, run.name, within=ORDER_OF_ADDING)


def timeline(report):
    """A matplotlib Figure: each killed run as it went, what it did again, and where it died."""
    taken = [run for run in runs(report.conditions, report.conditions["world_size"]) if run.kill]
    figure = Picture(figsize=(8, 1.2 + 0.5 * len(taken)), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for place, run in enumerate(taken):
        _track(axes, place, run, report)
    axes.set_yticks(range(len(taken)), [f"{run.name}: rank {run.kill[0]}" for run in taken])
    axes.set_xlim(0, report.conditions["steps"])
    axes.set_xlabel("steps")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    _explain(figure)
    return figure


FIRST, SECOND, AGAIN, DEATH = {"color": COLORS[1]}, {"color": COLORS[0]}, {"color": COLORS[4]}, {"color": COLORS[6], "marker": "X"}


def _track(axes, place, run, report):
    """One run: done before the kill, done again, done after it."""
    step = run.kill[1]
    again = report.measurement.numbers[f"{run.name}/steps done again"] if report.measurement else 0
    axes.broken_barh([(0, step - again)], (place - 0.3, 0.6), **FIRST)
    axes.broken_barh([(step - again, again)], (place - 0.3, 0.6), **AGAIN)
    axes.broken_barh([(step, report.conditions["steps"] - step)], (place - 0.3, 0.6), **SECOND)
    axes.plot([step], [place], markersize=10, clip_on=False, **DEATH)


def _explain(figure):
    bars = (("before the kill, kept", FIRST), ("lost and done again", AGAIN), ("after it", SECOND))
    handles = [Line2D([], [], linewidth=8, label=words, **style) for words, style in bars]
    handles.append(Line2D([], [], linestyle="", label="killed", **DEATH))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=8)


LAB = Lab(
    "checkpoint",
    "Checkpoint and failure: ranks die, training goes on",
    "checkpoint.py",
    CHECKPOINT,
    predict,
    nproc=4,
    bars="written by a rank",
    later=later,
    restarts=lambda conditions: conditions["kills"],
)
