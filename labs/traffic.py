"""Lab: what a rank sends in a training step, in PyTorch as it is and on paper; a ring of one's own; the bytes on the wire."""

import inspect
import math
import tempfile
import textwrap
from pathlib import Path

from formulary import InputError, formula, nearest

from .conditions import TRAFFIC
from .lab import Difference, Lab, Prediction, Sure, estimate
from .picture import bars_by_variant
from .tensor_parallel import BLOCKS, KEPT, NORMS, ROW_CUTS

FP32 = {"bytes_per_gathered_weight": 4, "bytes_per_reduced_grad": 4, "bytes_per_activation": 4}
BF16 = {**FP32, "bytes_per_gathered_weight": 2}
ALONE = {"world_size": 1}
HEADERS = 0.001  # of the bytes on the wire: what gloo says beside the message, and packets whose headers are of another size

PRECISION = Difference("precision", "On paper everything travels in 16 bits. What this job sends in fp32 weighs twice as much.")
EVERY_PASS = Difference(
    "every backward pass",
    "On paper gradients are averaged once, when all micro-batches are done. DDP averages them after every backward pass unless no_sync "
    "tells it to wait.",
)
LAST_PASS = Difference(
    "the last pass only",
    "On paper stage 3 has no room for whole gradients, so every micro-batch reduces its own. With set_requires_gradient_sync(False) "
    "fully_shard keeps them whole until the last one: less traffic, for a copy of all gradients on every rank.",
)
ALL_REDUCED = Difference(
    "all-reduced, not scattered",
    "A rank needs only the sums of the gradients whose optimizer state it has. ZeroRedundancyOptimizer leaves the gradients to DDP, "
    "which gives every rank all of them: three passes in a step, where the paper has two.",
)
ROOT = Difference(
    "the root stays whole",
    "On paper every weight is gathered twice. fully_shard leaves the root (embeddings, last norm, head) whole between forward and "
    "backward pass, since the backward pass begins with it.",
)
ROWS = Difference(
    "rows rounded up",
    "fully_shard cuts tensors by rows, rounded up. Where the rows do not divide by the ranks, the pieces that travel are padded.",
)
BUCKETS = Difference(
    "hidden buckets",
    "DDP copies gradients into buckets to send them, and keeps both. No Python tensor holds a bucket, so that counting parameters and "
    "gradients misses it; gradient_as_bucket_view=True makes the gradients views into the buckets.",
)
GLOO = Difference(
    "a reduce-scatter sent as an all-reduce",
    "gloo has no reduce-scatter of its own: it all-reduces the whole tensor, and each rank keeps its piece. The result is right and the "
    "traffic double. NCCL sends a reduce-scatter as one.",
)


def predict(conditions):
    """Every variant's bytes, rank by rank, then the ring, the buckets and the wire."""
    sizes = _sizes(conditions)
    yield Prediction("parameters", estimate(formula("gpt_params"), **sizes))
    for name in filter(None, conditions["variants"].split(",")):
        if name not in VARIANTS:
            raise InputError(f"variants has {name!r}{nearest(name, VARIANTS)}; there are {', '.join(VARIANTS)}")
        for rank in range(conditions["world_size"]):
            yield from (Prediction(part, at, name, rank, ways) for part, at, ways in VARIANTS[name](sizes))
    yield from _ring(sizes)
    yield from _buckets(sizes)
    yield from _wire(sizes)


def _sizes(conditions):
    """The conditions with what follows from them. Raises InputError for a message that the ranks cannot share."""
    ranks = _shared(conditions, "message_elements")
    node = math.gcd(conditions["ranks_per_node"], ranks)
    num_params = formula("gpt_params")(**{name: conditions[name] for name in formula("gpt_params").inputs})
    return {**conditions, "num_params": num_params, "ranks_per_node": node, "num_nodes": divmod(ranks, node)[0]}


def _shared(conditions, *names):
    """The number of ranks. Raises InputError if they cannot share what the conditions `names` count."""
    ranks = conditions["world_size"]
    for name in names:
        if conditions[name] % ranks:
            raise InputError(f"{name} is {conditions[name]}, which {ranks} ranks cannot share; take a multiple of {ranks}")
    return ranks


# --- data parallelism --------------------------------------------------------------------------------------------------


def _ways(last, *steps):
    """The estimate of the last step, and the differences that lead to it: steps are (estimate before, difference)."""
    return last, tuple(difference.at(before) for before, difference in steps)


def _gradients(stage, name="zero_reduce_bytes", alternatives=(), why=None, accumulates=False, **sizes):
    """Bytes of the gradients, in a step of several micro-batches or of one: the library's, led to from the paper's `stage`."""
    sizes = _step(sizes, accumulates) | {"stage": stage}
    paper, library = formula("zero_reduce_bytes"), formula(name).under(*alternatives)
    steps = [(estimate(paper, **sizes), PRECISION)] + ([(estimate(paper, **sizes | FP32), why)] if why else [])
    return _ways(estimate(library, **sizes | FP32), *steps)


def _step(sizes, accumulates):
    return sizes if accumulates else sizes | {"accumulation_steps": 1}


def ddp(sizes, **how):
    """Gradients all-reduced."""
    yield ("gradients", *_gradients(0, **how, **sizes))
    yield ("weights", *_ways(estimate(formula("zero_gather_bytes"), **sizes | {"stage": 0})))


def ddp_every_pass(sizes):
    """Gradients all-reduced after every micro-batch."""
    return ddp(sizes, name="zero_traffic_bytes", alternatives=("torch",), why=EVERY_PASS, accumulates=True)


def ddp_no_sync(sizes):
    """Gradients all-reduced after the last micro-batch."""
    return ddp(sizes, accumulates=True)


def zero1(sizes):
    """Gradients all-reduced, weights broadcast by who updates them."""
    yield ("gradients", *_gradients(1, "ddp_gradient_bytes", why=ALL_REDUCED, **sizes))
    once = estimate(formula("zero_gather_bytes"), **sizes | {"stage": 1}), PRECISION
    yield ("weights", *_ways(estimate(formula("zero_gather_bytes"), **sizes | FP32 | {"stage": 1}), once))


def fsdp(sizes, stage=3, kept=False, travels=FP32, accumulates=False, last_pass=False):
    """Weights gathered by blocks, in both passes or kept whole from one to the other; gradients reduced to shards."""
    sizes = _step(sizes, accumulates) | {"stage": stage}
    padded = sizes | {"num_params": _count("gpt_padded_params", sizes)}
    paper, reduced = formula("zero_gather_bytes"), formula("zero_reduce_bytes")
    library = [
        estimate(formula("fsdp_gather_bytes"), **counted | travels, kept_params=counted["num_params"] if kept else root)
        for counted, root in ((sizes, _count("gpt_padded_root_params", sizes | ALONE)), (padded, _count("gpt_padded_root_params", sizes)))
    ]
    steps = (estimate(paper, **sizes), PRECISION), (estimate(paper, **sizes | travels), ROOT), (library[0], ROWS)
    yield ("weights", *_ways(library[1], *steps))
    steps = (estimate(reduced, **sizes), PRECISION), (estimate(reduced, **sizes | travels), ROWS)
    every = estimate(reduced, **padded | travels)
    if not last_pass:
        yield ("gradients", *_ways(every, *steps))
        return
    yield ("gradients", *_ways(estimate(reduced, **_step(padded, False) | travels), *steps, (every, LAST_PASS)))


def _count(name, sizes):
    return estimate(formula(name), **sizes)()


def hsdp(sizes):
    """The same within a node, and the gradients' shards all-reduced across nodes."""
    within = sizes | {"world_size": sizes["ranks_per_node"]}
    yield from fsdp(within)
    across = formula("hsdp_inter_bytes")
    once, padded = _step(sizes, False), _step(sizes, False) | {"num_params": _count("gpt_padded_params", within)}
    steps = (estimate(across, **once), PRECISION), (estimate(across, **once | FP32), ROWS)
    yield ("gradients across nodes", *_ways(estimate(across, **padded | FP32), *steps))


# --- tensor parallelism ------------------------------------------------------------------------------------------------


def tp(sizes, paper="tensor_parallel", why=()):
    """Activations of the blocks, forward and backward."""
    made, sizes = formula("tp_model_bytes"), _layers(sizes)
    passes = {"passes_per_layer": formula("plan_passes")(row_cuts=ROW_CUTS, column_inputs=BLOCKS)}
    steps = [(estimate(made.under(paper), **sizes), PRECISION), *((estimate(made.under(paper), **sizes | FP32), each) for each in why)]
    yield ("activations", *_ways(estimate(made, **sizes | passes | FP32), *steps))


def sp(sizes):
    """The same with every rank's own tokens between the cut matrices, and the norms' gradients."""
    yield from tp(sizes, "sequence_parallel", (KEPT,))
    made, sizes = formula("norm_grad_bytes"), _layers(sizes)
    steps = (estimate(made, **sizes), PRECISION), (estimate(made, **sizes | FP32), NORMS)
    yield ("gradients", *_ways(estimate(made.under("summed_in_adam"), **sizes | FP32), *steps))


def _layers(sizes):
    ranks = _shared(sizes, "num_heads", "ffn_size", "num_positions")
    return sizes | {"tensor_parallel": ranks, "seq_length": sizes["num_positions"], "norm_vectors": 2}


VARIANTS = {
    "ddp": ddp,
    "ddp_every_pass": ddp_every_pass,
    "ddp_no_sync": ddp_no_sync,
    "zero1": zero1,
    "fsdp": fsdp,
    "fsdp_kept": lambda sizes: fsdp(sizes, stage=2, kept=True),
    "fsdp_bf16": lambda sizes: fsdp(sizes, travels=BF16),
    "fsdp_every_pass": lambda sizes: fsdp(sizes, accumulates=True),
    "fsdp_no_sync": lambda sizes: fsdp(sizes, accumulates=True, last_pass=True),
    "hsdp": hsdp,
    "tp": tp,
    "sp": sp,
}


# --- a message ---------------------------------------------------------------------------------------------------------


def _message(name, sizes, **more):
    """The formula `name` for a message of fp32 numbers, one for every gradient or weight."""
    return estimate(formula(name), **sizes | FP32 | {"num_params": sizes["message_elements"], "accumulation_steps": 1} | more)


def _ring(sizes):
    for rank in range(sizes["world_size"]):
        yield Prediction("sent", _message("ddp_gradient_bytes", sizes), "ring", rank)
        yield Prediction("elements that are no sum", Sure(0, "every element is a sum of whole numbers"), "ring", rank)


def _buckets(sizes):
    copies = estimate(formula("grad_bytes"), num_params=sizes["num_params"], bytes_per_grad=4)
    yield Prediction("gradients of their own", copies, "buckets", differences=(BUCKETS,))
    yield Prediction("gradients as views", Sure(0, "a view has no memory of its own", copies.unit), "buckets")


def _wire(sizes):
    all_reduced = _message("ddp_gradient_bytes", sizes)
    scattered = GLOO.at(_message("zero_reduce_bytes", sizes, stage=1))
    yield Prediction("all-reduce", all_reduced, "wire", within=HEADERS)
    yield Prediction("all-gather", _message("zero_gather_bytes", sizes, stage=1), "wire", within=HEADERS)
    yield Prediction("reduce-scatter", all_reduced, "wire", differences=(scattered,), within=HEADERS)


def written(function):
    """A file with the source of `function`, for the condition `ring`."""
    path = Path(tempfile.mkdtemp(prefix="psi-lab-"), f"{function.__name__}.py")
    path.write_text(textwrap.dedent(inspect.getsource(function)))
    return str(path)


LAB = Lab(
    "traffic",
    "Traffic: bytes each rank sends in a step",
    "traffic.py",
    TRAFFIC,
    predict,
    bars="sent by a rank in a step",
    picture=bars_by_variant,
)
