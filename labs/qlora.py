"""Lab: what a 4-bit model with LoRA adapters holds while it is trained, in bitsandbytes and peft and on paper."""

from formulary import InputError, formula, nearest
from formulary.fully_shard import block_tensors
from formulary.hardware import GPUS
from formulary.lowrank import QUANTIZER, TARGETS, scale_groups
from formulary.memory import RECIPE, STATE_LEDGER

from .conditions import QLORA
from .lab import Difference, Lab, Prediction, estimate
from .llamas import sizes
from .model_states import PRECISION, STEP_COUNTERS

FP32 = RECIPE["fp32_adam"].values
QUANTIZERS = ("nf4", "nf4_double_quant")
# the values of each table that bitsandbytes keeps beside a matrix: what 4 bits mean, what 8 bits of a scale mean, the scales' mean
TABLES = {"nf4": (16,), "nf4_double_quant": (16, 256, 1)}

GROUPS = Difference(
    "whole groups",
    "The paper shares one scale of scales among so many scales on average. Each matrix has groups of its own, and the last may be short.",
)
TABLE = Difference(
    "tables",
    "What the codes stand for is kept beside every matrix, in fp32; with double quantisation also what the scales' codes stand for, and "
    "their mean. The paper counts what grows with the parameters.",
)
PREPARED = Difference(
    "the rest in fp32",
    "The paper's ledger stores embeddings, head and norms in 16 bits. prepare_model_for_kbit_training turns all that is not quantised "
    "to fp32.",
)


def predict(conditions):
    """Each quantiser's bytes, rank by rank and part by part; on a GPU the least that the peak can be."""
    shape = _checked(conditions)
    for name in conditions["quantizers"].split(","):
        if name not in QUANTIZERS:
            raise InputError(f"quantizers has {name!r}{nearest(name, QUANTIZERS)}; there are {', '.join(QUANTIZERS)}")
        for rank in range(conditions["world_size"]):
            yield from _frozen(name, rank, shape)
            yield from _trained(name, rank, shape, conditions)
        if conditions["device"] == "cuda":
            yield _peak(name, shape, conditions)


def _checked(conditions):
    """The model's shape. Raises InputError for conditions that make no sense."""
    card = conditions["card"]
    if card and card not in GPUS:
        raise InputError(f"card is {card!r}{nearest(card, GPUS)}; there are {', '.join(GPUS)}")
    if card and conditions["device"] != "cuda":
        raise InputError(f"card is {card!r} and device {conditions['device']!r}; only on cuda can memory be held to that of a card")
    return sizes(conditions)


def matrices(shape):
    """(rows, columns) of every matrix that is quantised and adapted."""
    return [(rows, columns) for _ in range(shape["num_layers"]) for rows, columns in block_tensors(**shape) if columns > 1]


def _counts(shape):
    """How many parameters are quantised, and how many are not."""
    quantised = sum(rows * columns for rows, columns in matrices(shape))
    return {"quantized_params": quantised, "unquantized_params": estimate(formula("model_params"), **shape)() - quantised}


def _frozen(name, rank, shape):
    """The frozen model: codes, scales, scales of scales, tables, and what is not quantised."""
    place, values, counts = {"variant": name, "rank": rank}, QUANTIZER[name].values, _counts(shape)
    nothing = dict.fromkeys(("bytes_per_code", "bytes_per_scale", "bytes_per_group_scale", "unquantized_params"), 0)
    alone = lambda key: estimate(formula("qlora_base_bytes"), **{**values, **counts, **nothing, key: {**values, **counts}[key]})
    yield Prediction("codes", alone("bytes_per_code"), **place)
    yield Prediction("scales", alone("bytes_per_scale"), **place)
    on_paper = alone("bytes_per_group_scale")
    groups = scale_groups(matrices(shape), values["quantizer_block"], values["scale_group"]) if on_paper() else 0
    yield Prediction("scales of scales", _fp32(groups), differences=(GROUPS.at(on_paper),), **place)
    entries = sum(entries for _ in matrices(shape) for entries in TABLES[name])
    yield Prediction("tables", _fp32(entries), differences=(TABLE,), **place)
    rest = counts["unquantized_params"]
    half = estimate(formula("weight_bytes"), num_params=rest)
    yield Prediction("the rest", _fp32(rest), differences=(PREPARED.at(half),), **place)


def _fp32(elements):
    return estimate(formula("fp32_shard_bytes"), shard_params=elements)


def _adapters(shape, conditions):
    return estimate(formula("lora_params"), **shape, **TARGETS["all_linear"].values, lora_rank=conditions["lora_rank"])()


def _trained(name, rank, shape, conditions):
    """The adapters with their gradients and moments: two tensors beside each matrix."""
    place, adapters, tensors = {"variant": name, "rank": rank}, _adapters(shape, conditions), len(matrices(shape) * 2)
    for part, of in (("adapters", "weights"), ("gradients", "gradients")):
        whole = STATE_LEDGER.parts[of]
        paper = PRECISION.at(estimate(whole, num_params=adapters))
        yield Prediction(part, estimate(whole, num_params=adapters, **FP32), differences=(paper,), **place)
    paper = estimate(formula("lora_state_bytes"), lora_params=adapters, bytes_per_weight=0, bytes_per_grad=0)
    ways = (PRECISION.at(paper), STEP_COUNTERS.at(_fp32(adapters * 2)))
    adam = estimate(formula("fsdp_adam_bytes"), shard_params=adapters, num_tensors=tensors)
    yield Prediction("optimizer state", adam, differences=ways, **place)


def _peak(name, shape, conditions):
    """The states alone: activations come on top."""
    values = {**QUANTIZER[name].values, **_counts(shape), "bytes_per_unquantized": FP32["bytes_per_weight"], **FP32}
    least = estimate(formula("qlora_memory_bytes"), **values, lora_params=_adapters(shape, conditions))
    return Prediction("peak", least, name, judged=False)


LAB = Lab("qlora", "QLoRA: a 4-bit model and its adapters", "qlora.py", QLORA, predict, nproc=1, bars="held while training")
