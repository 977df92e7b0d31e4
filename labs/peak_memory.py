"""Lab: what blocks save for the backward pass, term by term, and what a step holds at most, with and without recomputation."""

import sys
from itertools import product

from formulary import InputError, formula, nearest
from formulary.attention import ACTIVATION_LEDGER
from formulary.shapes import FAMILIES
from formulary.step_memory import PEAKS, SAVED_LEDGER
from formulary.units import BYTE

from .conditions import PEAK_MEMORY
from .curves import mountains
from .lab import Difference, Lab, Prediction, Sure, estimate
from .paper_cluster import ROOT, moments_of, shards

PARTS = ("saved", "steps", "flop", "fsdp")
WIDTHS = {"bf16": 2, "fp32": 4}
# of a mean or a deviation: a CPU keeps them as wide as the activations, a GPU in fp32
STATISTICS = {"cpu": WIDTHS, "cuda": dict.fromkeys(WIDTHS, 4)}
# a GPU's allocator rounds up, and counts what kernels take for themselves; on a CPU tensors are all there is
ALLOWANCE = {"cpu": 0.0, "cuda": 0.1}
INSIDE_OPERATIONS = 0.1  # what an operation takes for itself and gives back before it returns, on a CPU too
ROUNDING = 4 * sys.float_info.epsilon
SAVING = {"standard": (True, "bf16"), "fused": (False, "bf16"), "fp32": (True, "fp32"), "fused_fp32": (False, "fp32")}
ON_PAPER = {"stored": "activation_bytes", "selective": "linear_activation_bytes", "full": "full_recompute_peak_bytes"}

FP32 = Difference("fp32", "The paper counts 16-bit activations. In fp32 each takes twice as much, but for the masks, which take a byte.")
NORMS = Difference(
    "norm statistics",
    "A LayerNorm keeps a mean and an inverse deviation for each token: 8 bytes beside the paper's 34 of each element, over h.",
)
NO_SCORES = Difference("fused attention", "One kernel computes attention and stores no scores: the backward pass rebuilds them.")
ROWS = Difference("row statistics", "To rebuild a row of scores the fused kernel keeps one fp32 number of it, its log-sum-exp.")
RANDOM = Difference(
    "random state", "A GPU's fused kernel also keeps the state of its random numbers: a few bytes, whether it drops or not."
)
WORKING = Difference(
    "worked with",
    "The paper counts what is saved. At the peak there are also gradients of activations on their way through a block, and of weights that "
    "are done; and what has been used is free already.",
)
EARLY = Difference(
    "early stop",
    "Rebuilding a block is for the tensors it saves. The last of them is the last matrix's input, so PyTorch stops there and "
    "never computes that product again.",
)
TRANSIENT = Difference(
    "not at rest",
    "The paper counts what a rank keeps between steps, sixteen bytes a parameter over the ranks. At the peak there are gathered weights, "
    "gradients being reduced, activations and what is worked with, while most gradients are not there yet.",
)

COPIED = Difference(
    "gloo's copy",
    "On CPUs gloo makes a reduce-scatter of an all-reduce, on a copy of all that is to be reduced. Of the root, which is reduced last and "
    "when much else is there, the peak shows it.",
)


def predict(conditions):
    """What blocks save, the most that steps hold, the price of recomputing and, on several processes, the peak of FSDP2."""
    for part in conditions["parts"].split(","):
        if part not in PARTS:
            raise InputError(f"parts has {part!r}{nearest(part, PARTS)}; there are {', '.join(PARTS)}")
    if conditions["precision"] not in WIDTHS:
        raise InputError(f"precision is {conditions['precision']!r}; there are {', '.join(WIDTHS)}")
    if conditions["hidden_size"] % conditions["num_heads"]:
        raise InputError(f"{conditions['num_heads']} heads cannot share a width of {conditions['hidden_size']}")
    for part in conditions["parts"].split(","):
        yield from PREDICT[part](conditions)


def _widths(conditions, precision):
    return {"bytes_per_saved": WIDTHS[precision], "bytes_per_statistic": STATISTICS[conditions["device"]][precision]}


def _saved(conditions):
    if (width := _sizes(conditions)["head_dim"]) == conditions["seq_length"]:
        raise InputError(f"heads are {width} wide and sequences as long, so that scores and queries look alike; take another seq_length")
    for variant, (stored, precision) in SAVING.items():
        for term, saved in SAVED_LEDGER.parts.items():
            known = {**conditions, **_widths(conditions, precision)}
            yield _term(variant, term, estimate(saved, **known), conditions, stored)
        yield from _beside(variant, conditions, stored)


def _term(variant, term, saved, conditions, stored):
    """A term of the ledger and the way there from the paper's; scores that are not stored are zero."""
    if term == "norm statistics":
        return Prediction(term, saved, variant, 0, (NORMS,))
    paper = estimate(ACTIVATION_LEDGER.parts[term], **conditions)
    if term == "attention scores" and not stored:
        return Prediction(term, Sure(0, "no scores are stored", BYTE), variant, 0, (NO_SCORES.at(paper),))
    return Prediction(term, saved, variant, 0, (FP32.at(paper),))


def _beside(variant, conditions, stored):
    """What the fused kernel keeps that has no place in the paper, and whatever else there is."""
    rows = Sure(0, "nothing of the kind", BYTE) if stored else estimate(formula("attention_statistics_bytes"), **conditions)
    yield Prediction("attention statistics", rows, variant, 0, (ROWS,))
    on_gpu = conditions["device"] == "cuda"
    yield Prediction("anything else", Sure(0, "every term has its name", BYTE), variant, 0, (RANDOM,), judged=not on_gpu)


def _steps(conditions):
    known = {**conditions, **_widths(conditions, conditions["precision"])}
    for variant, paper in ON_PAPER.items():
        ways = (WORKING.at(estimate(formula(paper), **conditions)),)
        peak = most_of(variant, known)
        yield Prediction("peak", peak, variant, differences=ways, within=ALLOWANCE[conditions["device"]])
        yield Prediction("peak of the allocator", peak, variant, differences=ways, within=INSIDE_OPERATIONS)


def most_of(variant, known):
    """The Estimate of the moment at which a step holds most: in the first or the last block of the backward pass, in one of two places."""
    ends = (0, known["num_layers"] - 1)
    return max((estimate(peak, **known, blocks_done=done) for peak, done in product(PEAKS[variant], ends)), key=lambda found: found())


def _flop(conditions):
    growth = formula("recompute_growth")
    whole = estimate(growth, recomputed_share=1)
    share = formula("early_stop_share")(seq_length=conditions["seq_length"], hidden_size=conditions["hidden_size"])
    yield Prediction(
        "to the last tensor needed", estimate(growth, recomputed_share=share), "flop", differences=(EARLY.at(whole),), within=ROUNDING
    )
    yield Prediction("to the end", whole, "flop", within=ROUNDING)


def _fsdp(conditions):
    if conditions["world_size"] < 2:
        return  # with nobody to share with there is nothing to gather
    moment, nbytes = peak_of_fsdp(conditions)
    states = estimate(
        formula("zero_state_bytes"), num_params=_of(conditions, "model_params")(), world_size=conditions["world_size"], stage=3
    )
    total, usual = (
        Sure(value, f"the sum of the paper cluster's parts at {moment}", BYTE) for value in (nbytes, max(_on_nccl(conditions).values()))
    )
    yield Prediction("peak", total, "fsdp", differences=(TRANSIENT.at(states), COPIED.at(usual)), within=ALLOWANCE[conditions["device"]])


def peak_of_fsdp(conditions):
    """(name, bytes) of the moment at which a rank holds most under FSDP2."""
    totals = _on_nccl(conditions)
    if conditions["device"] == "cpu":
        totals[ROOT] += _of(conditions, "reduce_input_bytes", shard_params=shards(_sizes(conditions), conditions["world_size"])[1])()
    return max(totals.items(), key=lambda moment: moment[1])


def _on_nccl(conditions):
    found = moments_of(_sizes(conditions), {**conditions, "ranks": conditions["world_size"]})
    return {name: parts.total for name, parts in found.items()}


def _of(conditions, name, **values):
    return estimate(formula(name), **{**conditions, **_sizes(conditions), **values})


def _sizes(conditions):
    """The LLaMA that the job cuts up."""
    own = {name: conditions[name] for name in ("hidden_size", "num_layers", "vocab_size", "num_heads")}
    heads, width = conditions["num_heads"], conditions["hidden_size"]
    return {**FAMILIES["llama"], **own, "num_kv_heads": heads, "head_dim": width // heads, "ffn_size": 4 * width}


PREDICT = {"saved": _saved, "steps": _steps, "flop": _flop, "fsdp": _fsdp}

LAB = Lab(
    "peak_memory",
    "Peak memory: what blocks save and what a step holds at most",
    "peak_memory.py",
    PEAK_MEMORY,
    predict,
    bars="saved for the backward pass",
    picture=mountains,
)
