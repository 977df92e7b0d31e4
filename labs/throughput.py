"""Lab: tokens a second and MFU of a small GPT against the machine's own products; scaling against the overlap formula."""

from formulary import InputError, formula
from formulary.compute import multiplied_params
from formulary.units import FLOP, SECOND

from .conditions import THROUGHPUT
from .lab import Difference, Lab, Prediction, Sure, estimate
from .picture import BAR, COLORS, MEASURED, PAPER, PREDICTED, Picture

BYTES = {"float32": 4, "bfloat16": 2}

SCORES = Difference(
    "scores",
    "Six FLOP a parameter count the products with weights. Attention multiplies activations with activations: no parameter takes part.",
)
NO_PRODUCT = Difference(
    "no product",
    "Embeddings are looked up, biases are added, norms scale: these parameters stand in no matrix product, and six FLOP each are too many.",
)
SMALL = Difference(
    "small products",
    "The peak is that of a large square product. The model's own products are smaller and narrower, and run at another speed.",
)
SHARED = Difference(
    "shared machine",
    "Ranks that compute at the same time share cores, caches and memory, and each takes longer than one alone.",
)


def predict(conditions):
    """The parameters and the work of a token; all else takes measured speeds, see `later`."""
    if conditions["dtype"] not in BYTES:
        raise InputError(f"dtype is {conditions['dtype']!r}; it must be one of {', '.join(BYTES)}")
    yield Prediction("parameters", _all(conditions))
    every = {"num_params": _all(conditions)(), **_heads(conditions)}
    ways = (
        SCORES.at(estimate(formula("flop_per_token"), **every)),
        NO_PRODUCT.at(estimate(formula("flop_per_token_with_attention"), **every)),
    )
    yield Prediction("FLOP per token", _work(conditions), differences=ways)


def _all(conditions):
    return estimate(formula("gpt_params"), **conditions)


def _heads(conditions):
    """What the formula for the scores takes; all heads together are as wide as the model."""
    return {
        "num_layers": conditions["num_layers"],
        "num_heads": 1,
        "head_dim": conditions["hidden_size"],
        "seq_length": conditions["num_positions"],
    }


def _work(conditions):
    """FLOP of a token: what stands in a product, and the scores."""
    return estimate(formula("flop_per_token_with_attention"), num_params=multiplied_params(**conditions), **_heads(conditions))


def later(conditions, numbers):
    """What follows from the measured speed of products, of the two parts of a step, and of an all-reduce. Times are not judged."""
    yield from _alone(conditions, numbers)
    for key in numbers:
        name, _, part = key.partition("/")
        if part == "step time" and name.split()[1] != "1":
            yield from _together(name, conditions, numbers)


def _alone(conditions, numbers):
    """One rank's tokens and MFU, were all its time spent in products."""
    own = {"kernel_efficiency": numbers["kernel efficiency"], "recomputed_share": 0}
    best = {"kernel_efficiency": 1, "recomputed_share": 0}
    mfu = formula("mfu_from_efficiency")
    yield from _peak(numbers)
    work = {"flop_per_token": _work(conditions)(), "peak_flop_per_s": numbers["matmul peak"], "num_gpus": 1, "peak_factor": 1}
    speed = lambda **reached: estimate(formula("mfu").solve_for("tokens_per_s"), mfu=mfu(**reached), **work)
    yield Prediction("tokens per second", speed(**own), differences=(SMALL.at(speed(**best)),), judged=False)
    yield Prediction("MFU", estimate(mfu, **own), differences=(SMALL.at(estimate(mfu, **best)),), judged=False)


def _peak(numbers):
    """The datasheet's peak, where the GPU is one whose datasheet is known."""
    if "peak of the datasheet" in numbers:
        yield Prediction("matmul peak", Sure(numbers["peak of the datasheet"], "dense, by the datasheet", FLOP / SECOND), judged=False)


def _together(name, conditions, numbers):
    """A step on several ranks, from its parts and the all-reduce; and the efficiency that follows."""
    kind, num_ranks = name.split()
    message = {"num_params": _all(conditions)(), "bytes_per_reduced_grad": BYTES[conditions["dtype"]]}
    buckets = formula("needed_buckets")(**message, bucket_bytes=f"{conditions['bucket_mebibytes']}MiB")
    network = {"comm_time": numbers[f"{num_ranks} processes/all-reduce"], "num_buckets": buckets}
    lone = _parts(f"{kind} 1", numbers, int(num_ranks) if kind == "strong" else 1)
    steps = [estimate(formula("overlapped_step_time"), **parts, **network) for parts in (lone, _parts(name, numbers))]
    yield Prediction("step time", steps[1], name, differences=(SHARED.at(steps[0]),), judged=False)
    before, after = (EFFICIENCY[kind](step(), int(num_ranks), conditions, numbers) for step in steps)
    yield Prediction("efficiency", after, name, differences=(SHARED.at(before),), judged=False)


def _parts(name, numbers, shared_by=1):
    """Times of a step's two parts, were the work shared by so many ranks."""
    return {f"{part}_time": numbers[f"{name}/{part}"] / shared_by for part in ("forward", "backward")}


def _weak(step_time, num_ranks, conditions, numbers):
    speeds = (_speed(step_time, num_ranks, conditions), _speed(numbers["weak 1/step time"], 1, conditions))
    values = dict(zip(("tokens_per_s", "one_gpu_tokens_per_s"), speeds, strict=True))
    return estimate(formula("weak_scaling_efficiency"), **values, num_gpus=num_ranks)


def _speed(step_time, num_ranks, conditions):
    """Tokens a second where each of so many ranks takes a micro-batch in that time."""
    batch = formula("sequences_per_step")(micro_batch=conditions["micro_batch"], accumulation_steps=1, world_size=num_ranks)
    return formula("tokens_per_s")(global_batch=batch, seq_length=conditions["num_positions"], step_time=step_time)


def _strong(step_time, num_ranks, conditions, numbers):
    one = numbers["strong 1/step time"]
    return estimate(formula("scaling_efficiency"), one_gpu_step_time=one, step_time=step_time, num_gpus=num_ranks)


EFFICIENCY = {"weak": _weak, "strong": _strong}


# --- the picture --------------------------------------------------------------------------------------------------------


# what the line across a pair of bars says
BEFORE = {"efficiency": "predicted, did nobody share", "MFU": "at the peak"}


def bars(report):
    """A matplotlib Figure: efficiency on several ranks where there are several, else the MFU of one; each predicted and measured."""
    lines = [x for x in report.lines if x.part == "efficiency"] or [x for x in report.lines if x.part == "MFU"]
    places = range(len(lines))
    figure = Picture(figsize=(8, 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for shift, side, style in ((-BAR / 2, "predicted", PREDICTED), (BAR / 2, "measured", MEASURED)):
        heights = [getattr(x, side) for x in lines]
        axes.bar([place + shift for place in places], heights, BAR, color=COLORS[0], label=side, **style)
    for place, line in enumerate(lines):
        axes.plot([place - BAR, place + BAR], [line.paper] * 2, label=None if place else BEFORE[line.part], **PAPER)
    axes.set_xticks(places, [line.variant or "one process" for line in lines])
    axes.set_ylabel(lines[0].part if lines else "nothing was measured")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


LAB = Lab(
    "throughput",
    "Throughput: tokens a second, MFU and scaling",
    "throughput.py",
    THROUGHPUT,
    predict,
    nproc=4,
    picture=bars,
    later=later,
)
