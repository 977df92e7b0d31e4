"""Lab: what low precision loses and what keeps it, in PyTorch's own roundings and on paper."""

from dataclasses import dataclass, field

from formulary import InputError, formula, nearest
from formulary.hardware import FORMATS
from formulary.memory import RECIPE

from .conditions import NUMERICS
from .lab import Difference, Lab, Prediction, Sure, estimate
from .picture import bars_by_variant

FP32, PAPER = RECIPE["fp32_adam"].values, RECIPE["mixed_adam"].values
CHANCE = 0.01  # for what is right on the average, or to half a spacing at the end
LIKE_FP32, ROUGHLY_LIKE_FP32 = 0.02, 0.2  # how near the loss falls as in fp32: with every update kept, with moments of one byte
ALIKE = "as much as with everything in fp32"

ROUNDED = Difference(
    "rounded at every update",
    "Each sum is rounded to the nearest bf16 number and what rounding took is forgotten. Updates of less than half a spacing are all "
    "lost; larger ones all count as a whole number of spacings.",
)
NO_MASTER = Difference("no master", "The paper's recipe has an fp32 master copy of every weight. These weights are all there is.")
OWN_MASTER = Difference("its own master", "In fp32 a weight is its own master: it is twice as large, and there is no copy of it.")
COMPENSATION = Difference("compensation", "A second bf16 number beside each weight has what rounding took; the paper's recipe has none.")
ONE_BYTE = Difference("one byte a moment", "The paper's moments have four bytes each, these have one: a code within its block.")
SCALES = Difference("scales", "A code is a share of the largest number in its block, and that number is kept in fp32, for each moment.")


@dataclass(frozen=True)
class Variant:
    """How weights and moments are kept: the bytes of each, why they are not the paper's, and how the loss falls beside fp32."""

    values: dict
    why: Difference | None = None
    rounds: bool = False
    within: float | None = LIKE_FP32
    more: dict = field(default_factory=dict)


VARIANTS = {
    "fp32": Variant(FP32, OWN_MASTER, within=None),
    "bf16": Variant(RECIPE["no_master_adam"].values, NO_MASTER, rounds=True, within=None),
    "master": Variant(PAPER),
    "stochastic": Variant(RECIPE["no_master_adam"].values, NO_MASTER),
    "kahan": Variant(RECIPE["no_master_adam"].values, NO_MASTER, more={"compensation": ("weight_bytes", COMPENSATION)}),
    "adam8": Variant(
        {**FP32, "bytes_per_momentum": 1, "bytes_per_variance": 1},
        OWN_MASTER,
        within=ROUGHLY_LIKE_FP32,
        more={"scales": ("moment_scale_bytes", SCALES)},
    ),
}
PARTS = {
    "weights": "weight_bytes",
    "master weights": "master_bytes",
    "first moments": "momentum_bytes",
    "second moments": "variance_bytes",
}


def predict(conditions):
    """Parameters, thresholds, how far updates move a weight, and what every rank holds."""
    yield Prediction("parameters", estimate(formula("gpt_params"), **conditions))
    yield from _thresholds()
    yield from _gradients(conditions)
    num_params = estimate(formula("gpt_params"), **conditions)()
    for name in conditions["variants"].split(","):
        if name not in VARIANTS:
            raise InputError(f"variants has {name!r}{nearest(name, VARIANTS)}; there are {', '.join(VARIANTS)}")
        yield from _moved(name, conditions)
        for rank in range(conditions["world_size"]):
            yield from _held(name, rank, num_params, conditions)


def _thresholds():
    """Updates of 1 that bf16 and fp16 swallow."""
    made = formula("swallow_threshold")
    directions = {"largest update swallowed": "either_way", "largest update swallowed downwards": "toward_zero_from_a_power_of_two"}
    for name in ("bf16", "fp16"):
        for part, direction in directions.items():
            yield Prediction(part, estimate(made.under(direction), **FORMATS[name].only(made), binade=0), name)


def _gradients(conditions):
    """Gradients that fp16 can hold, with and without loss scaling, and how often a scaler oversteps."""
    for name, scale in (("unscaled", 1), ("scaled", conditions["loss_scale"])):
        for part, which in (("smallest gradient", "rescued_gradient"), ("largest gradient", "overflow_gradient")):
            made = formula(which)
            yield Prediction(part, estimate(made, **FORMATS["fp16"].only(made), loss_scale=scale), name)
    yield Prediction("share of steps skipped", estimate(formula("skipped_share"), **conditions), within=CHANCE)


def _moved(name, conditions):
    """How far many small updates, and many larger ones, move a weight of 1."""
    spacing = formula("float_spacing")
    spacing = spacing(**FORMATS["bf16"].only(spacing), binade=0)
    for size in ("small", "large"):
        values = {**conditions, "update_size": conditions[f"{size}_update"] * spacing, "float_spacing": spacing}
        kept, rounded = (estimate(formula(drift), **values) for drift in ("kept_drift", "rounded_drift"))
        part = f"moved by {size} updates"
        if VARIANTS[name].rounds:
            yield Prediction(part, rounded, name, differences=(ROUNDED.at(kept),))
        else:
            yield Prediction(part, kept, name, within=CHANCE)


def _held(name, rank, num_params, conditions):
    variant, size = VARIANTS[name], {"num_params": num_params}
    for part, which in PARTS.items():
        moment = part.endswith("moments")
        why = ONE_BYTE if moment else variant.why
        ways = (why.at(estimate(formula(which), **PAPER, **size)),) if why else ()
        yield Prediction(part, estimate(formula(which), **variant.values, **size), name, rank, ways)
    for part, (which, why) in variant.more.items():
        held = estimate(formula(which), **variant.values, **size, quantizer_block=conditions["quantizer_block"])
        yield Prediction(part, held, name, rank, (why,))


def falls(conditions, numbers):
    """How far the loss falls, given how far it fell in fp32. Without anything that keeps small updates it is only shown."""
    part = "fall of the loss"
    reference = numbers.get(f"fp32/{part}")
    for name in conditions["variants"].split(",") if reference else ():
        if name == "fp32":
            continue
        within = VARIANTS[name].within
        yield Prediction(part, Sure(reference, ALIKE), name, within=within or 0, judged=within is not None)


LAB = Lab(
    "numerics",
    "Numerics: what low precision loses, and what keeps it",
    "numerics.py",
    NUMERICS,
    predict,
    nproc=1,
    bars="kept by a rank",
    picture=bars_by_variant,
    later=falls,
)
