"""Lab: what one rank of a whole cluster holds under FSDP2, at rest and at its peak, in one process without the bytes."""

from collections.abc import Mapping
from dataclasses import dataclass

from formulary import InputError, formula, nearest
from formulary.amounts import write
from formulary.fully_shard import block_tensors, full_shard, model_tensors, root_tensors
from formulary.memory import RECIPE, ZERO_LEDGER
from formulary.shapes import FAMILIES, MODELS
from formulary.units import BYTE

from .conditions import PAPER_CLUSTER
from .lab import Difference, Lab, Prediction, Predictions, estimate
from .model_states import ROWS, STEP_COUNTERS
from .table import pipes

REST, PEAK = "at rest", "at peak"
ROOT = "the root's reduction"
FP32 = RECIPE["fp32_adam"].values
KNOWN = tuple(name for name, bundle in MODELS.items() if FAMILIES["llama"].items() <= dict(bundle).items())

PRECISION = Difference(
    "fp32 shards",
    "The paper keeps 16-bit weights and gradients and an fp32 master copy. With MixedPrecisionPolicy, fully_shard keeps the weights in "
    "fp32, which are their own master, and stores reduced gradients in that precision too; 16-bit copies live only while they are used.",
)
UNREDUCED = Difference(
    "not reduced yet",
    "The paper's figure has the gradients of all layers. At this moment a rank has its shard only of blocks that are done.",
)
GATHERED = Difference(
    "gathered to compute", "The paper counts what is stored. To compute, the weights of a block, and of the root, are whole."
)
AHEAD = Difference(
    "gathered ahead", "While one block computes, the weights of the next are already being gathered, into a buffer of their own."
)
REDUCING = Difference(
    "being reduced",
    "The fp32 gradients of the block before are kept whole until the next block is ready to be reduced, so that traffic hides.",
)
SAVED = Difference(
    "saved for backward", "The paper counts model states. The inputs of the blocks, and all that one block saves, lie beside them."
)
WORKING = Difference(
    "worked with",
    "Gradients on their way: of activations, of this block's weights in 16 bits, and of the head, which wait for the root's turn.",
)


@dataclass(frozen=True)
class Moment:
    """A moment of a step: elements gathered, gathered ahead and being reduced (one rank's share), blocks `done`, and its formulas' name."""

    name: str
    at: str
    done: int
    gathered: int
    ahead: int = 0
    reducing: int = 0


def shape(conditions):
    """Sizes of the model, with as many layers as the conditions say. Raises InputError for what the formulas do not cover."""
    title = conditions["model"]
    if title not in KNOWN:
        raise InputError(f"model is {title!r}{nearest(title, KNOWN)}; there are {', '.join(KNOWN)}")
    sizes = {**MODELS[title], "num_layers": conditions["num_layers"]}
    for value, least, words in (
        (conditions["num_layers"], 3, "num_layers is {}; the peak's formulas want a block under way between two others, so at least {}"),
        (conditions["ranks"], 2, "ranks is {}; a cluster has at least {}"),
    ):
        if value < least:
            raise InputError(words.format(value, least))
    return sizes


def shards(sizes, num_ranks):
    """Elements of rank 0's shards: of a block, of the root."""
    return full_shard(block_tensors(**sizes), num_ranks), full_shard(root_tensors(**sizes), num_ranks)


def moments(conditions):
    """{moment: its Predictions} for every moment at which a rank may hold most."""
    return moments_of(shape(conditions), conditions)


def moments_of(sizes, conditions):
    """The same for a model of these sizes; of `conditions` only ranks, micro_batch and seq_length count.

    What a rank holds grows or falls evenly from block to block, so of the blocks the second and the last but one are enough:
    the first has none before it that is being reduced, the last has none after it to be gathered.
    """
    block, root = shards(sizes, conditions["ranks"])
    layers = sizes["num_layers"]
    at_work = {"gathered": root + block, "ahead": block, "reducing": block}
    candidates = (
        Moment("the loss", "loss", 0, root),
        Moment("the second block of the backward pass", "block", 1, **at_work),
        Moment("the last block but one", "block", layers - 2, **at_work),
        Moment(ROOT, "root", layers, 0),
    )
    return {moment.name: Predictions(_at(moment, conditions, sizes)) for moment in candidates}


def peak_moment(conditions):
    """(name, Predictions) of the moment at which a rank holds most."""
    return max(moments(conditions).items(), key=lambda moment: moment[1].total)


@dataclass(frozen=True)
class Outlook:
    """What rank 0 will hold, in bytes, at rest and at each moment of a step that may be the peak; shows itself as a table."""

    totals: Mapping

    def _repr_markdown_(self):
        most = max(self.totals.values())
        texts = {moment: write(total, BYTE, scale="GiB") for moment, total in self.totals.items()}
        rows = [(moment, f"**{text}**" if self.totals[moment] == most else text) for moment, text in texts.items()]
        return "\n".join([pipes(("moment", "a rank holds")), "|---|--:|", *map(pipes, rows)])


def outlook(**given):
    """The Outlook under the conditions `given`."""
    conditions = LAB.under(**given)
    rest = Predictions(_states(REST, conditions, shape(conditions)))
    return Outlook({REST: rest.total} | {name: predictions.total for name, predictions in moments(conditions).items()})


def _at(moment, conditions, sizes):
    """What a rank holds at this moment, part by part."""
    block, _ = shards(sizes, conditions["ranks"])
    weights, gradients, adam = _states(PEAK, conditions, sizes)
    reduced = _shard_bytes(moment.done * block)
    yield weights
    yield adam
    waiting = UNREDUCED.at(gradients.estimate)
    yield Prediction("gradients", reduced, PEAK, 0, (*gradients.differences, waiting))
    cluster = {"world_size": conditions["ranks"]}
    transient = (
        ("gathered weights", "gathered_shards_bytes", {"shard_params": moment.gathered}, GATHERED),
        ("gather buffer", "gathered_shards_bytes", {"shard_params": moment.ahead}, AHEAD),
        ("reduce buffer", "reduce_input_bytes", {"shard_params": moment.reducing}, REDUCING),
        ("saved activations", f"saved_at_{moment.at}_bytes", {"reduced_units": moment.done}, SAVED),
        ("working tensors", f"working_at_{moment.at}_bytes", {"shard_params": shards(sizes, conditions["ranks"])[1]}, WORKING),
    )
    for part, name, values, why in transient:
        yield Prediction(part, estimate(formula(name), **{**conditions, **sizes, **cluster, **values}), PEAK, 0, (why,))


def _shard_bytes(elements):
    return estimate(formula("fp32_shard_bytes"), shard_params=elements)


def _states(when, conditions, sizes):
    """Weights, gradients, optimizer state of rank 0, and the way there from the paper's."""
    tensors = model_tensors(**sizes)
    held = full_shard(tensors, conditions["ranks"])
    even = {"num_params": formula("model_params")(**_counted(sizes)), "world_size": conditions["ranks"], "stage": 3}
    for part in ("weights", "gradients"):
        paper = ZERO_LEDGER.parts[part]
        ways = (PRECISION.at(estimate(paper, **even)), ROWS.at(estimate(paper, **even, **FP32)))
        yield Prediction(part, _shard_bytes(held), when, 0, ways)
    paper, only = formula("zero_state_bytes"), {"bytes_per_weight": 0, "bytes_per_grad": 0}
    ways = (PRECISION.at(estimate(paper, **even, **only)), ROWS.at(estimate(paper, **even, **{**FP32, **only})))
    counters = STEP_COUNTERS.at(_shard_bytes(2 * held))
    adam = estimate(formula("fsdp_adam_bytes"), shard_params=held, num_tensors=len(tensors))
    yield Prediction("optimizer state", adam, when, 0, (*ways, counters))


def _counted(sizes):
    return {name: sizes[name] for name in formula("model_params").inputs}


def predict(conditions):
    """The parameters, then what rank 0 holds at rest and at the moment it holds most."""
    if conditions["world_size"] != 1 or conditions["device"] != "cpu":
        raise InputError("paper_cluster runs as one process on the cpu (--nproc 1); how many ranks it stands for is the condition `ranks`")
    sizes = shape(conditions)
    yield Prediction("parameters", estimate(formula("model_params"), **sizes))
    yield from _states(REST, conditions, sizes)
    yield from peak_moment(conditions)[1]


LAB = Lab(
    "paper_cluster",
    "Paper cluster: what a rank of a whole cluster holds under FSDP2",
    "paper_cluster.py",
    PAPER_CLUSTER,
    predict,
    nproc=1,
    bars="held by a rank",
)
