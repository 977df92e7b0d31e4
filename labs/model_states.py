"""Lab: what a rank keeps between steps under DDP, ZeRO-1 and FSDP2, in PyTorch as it is and on paper."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from formulary import InputError, formula, nearest
from formulary.memory import RECIPE, STATE_LEDGER, ZERO_LEDGER
from formulary.sharding import gpt_tensor_sizes, whole_tensor_partition

from .conditions import MODEL_STATES
from .lab import Difference, Lab, Prediction, estimate

FP32 = RECIPE["fp32_adam"].values

PRECISION = Difference(
    "precision",
    "The paper trains with 16-bit weights and gradients and keeps an fp32 master copy with the optimizer state. "
    "This job trains in fp32, where a weight is its own master: weights and gradients cost twice as much, the master nothing.",
)
WHOLE_TENSORS = Difference(
    "whole tensors",
    "The paper gives each rank one k-th of the optimizer state. ZeroRedundancyOptimizer never cuts a tensor: it deals them out whole, "
    "the largest first, each to the rank that holds least, so that some ranks hold a little more than others.",
)
ROWS = Difference(
    "rows rounded up",
    "The paper cuts the flat list of all parameters into k equal pieces. fully_shard cuts every tensor by rows, rounded up: "
    "where the rows do not divide by the ranks, the last ranks hold less.",
)
STEP_COUNTERS = Difference(
    "step counters",
    "Adam keeps a count of steps, one number for each tensor it updates. The paper counts what grows with the parameters.",
)
PADDING = Difference(
    "padding",
    "Collectives move equal pieces, so fully_shard stores a short shard and its gradient in a buffer of full size. "
    "The paper's pieces are equal.",
)


@dataclass(frozen=True)
class Variant:
    """A way to train: its ZeRO `stage`, what each rank owns of the optimizer state, and how that departs from an even split.

    owned: function of the conditions; gives (parameters, tensors) for every rank.
    """

    stage: int
    owned: Callable
    uneven: Difference | None = None


@cache
def divides(stage, part):
    """Whether this ZeRO stage divides this part of the ledger among the ranks."""
    return "world_size" in ZERO_LEDGER.parts[part].given(stage=stage).inputs


def predict(conditions):
    """The parameters, then each variant's bytes, rank by rank and part by part."""
    yield Prediction("parameters", _model("gpt_params", conditions))
    for name in conditions["variants"].split(","):
        if name not in VARIANTS:
            raise InputError(f"variants has {name!r}{nearest(name, VARIANTS)}; there are {', '.join(VARIANTS)}")
        for rank, (num_owned, num_tensors) in enumerate(VARIANTS[name].owned(conditions)):
            if not num_owned:
                raise InputError(f"{name} leaves rank {rank} without parameters; take fewer processes or a larger model")
            yield from _rank(name, rank, num_owned, num_tensors, conditions)


def _model(name, conditions, **values):
    return estimate(formula(name), **conditions, **values)


def _rank(name, rank, num_owned, num_tensors, conditions):
    """Every part that one rank holds, where it owns the optimizer state of so many parameters in so many tensors."""
    variant, num_params, place = VARIANTS[name], _model("gpt_params", conditions)(), {"variant": name, "rank": rank}
    even = {"num_params": num_params, "world_size": conditions["world_size"], "stage": variant.stage}
    for part, whole in STATE_LEDGER.parts.items():
        held = num_owned if divides(variant.stage, part) else num_params
        paper = ZERO_LEDGER.parts[part]
        differences = [PRECISION.at(estimate(paper, **even))]
        differences += [variant.uneven.at(estimate(paper, **even, **FP32))] if divides(variant.stage, part) else []
        yield Prediction(part, estimate(whole, num_params=held, **FP32), differences=tuple(differences), **place)
    yield Prediction("step counters", estimate(formula("step_bytes"), num_tensors=num_tensors), differences=(STEP_COUNTERS,), **place)
    buffer = _model("gpt_buffer_params", conditions)() if name == "fsdp2" else num_owned
    padding = estimate(formula("padding_bytes"), gpt_shard_params=num_owned, gpt_buffer_params=buffer, **FP32)
    yield Prediction("padding", padding, differences=(PADDING,), **place)


def _everything(conditions):
    return [(_model("gpt_params", conditions)(), _model("gpt_tensors", conditions)())] * conditions["world_size"]


def _whole_tensors(conditions):
    return [(sum(sizes), len(sizes)) for sizes in whole_tensor_partition(gpt_tensor_sizes(**conditions), conditions["world_size"])]


def _rows(conditions):
    num_tensors = _model("gpt_tensors", conditions)()
    return [(_model("gpt_shard_params", conditions, rank_index=rank)(), num_tensors) for rank in range(conditions["world_size"])]


VARIANTS = {"ddp": Variant(0, _everything), "zero1": Variant(1, _whole_tensors, WHOLE_TENSORS), "fsdp2": Variant(3, _rows, ROWS)}

LAB = Lab("model_states", "Model states: bytes each rank keeps between steps", "model_states.py", MODEL_STATES, predict)
