"""Lab: what a rank holds and sends when layers are cut across ranks, under three plans that cut alike."""

from dataclasses import dataclass

from formulary import InputError, formula, nearest

from .conditions import TENSOR_PARALLEL
from .lab import Difference, Lab, Prediction, estimate

ROW_CUTS = 2  # of a layer: the attention's output matrix and the MLP's second one
BLOCKS = 2  # of a layer: attention and MLP, each of which needs the activations once
MATRICES = 4  # of a layer, cut by columns: queries, keys, values and the MLP's first one
FP32 = {"bytes_per_activation": 4, "bytes_per_reduced_grad": 4}

PRECISION = Difference("precision", "The paper's activations travel in 16 bits, those of this job in 32: twice as many bytes.")
COPIES = Difference(
    "a copy for each matrix",
    "The paper's attention takes in the activations once. Cut one by one, queries, keys and values each take in a copy of their own, "
    "and each copy has a gradient that is added up over the ranks by itself.",
)
KEPT = Difference(
    "gathered inputs kept",
    "Megatron's sequence parallelism keeps only a rank's own tokens for the backward pass and gathers the inputs of both blocks once "
    "more. PyTorch keeps the gathered inputs: two passes fewer for each layer, for more memory.",
)
NORMS = Difference(
    "added up in Adam",
    "With its own tokens only, a rank has a part of the norms' gradients. Megatron adds the parts up once. SequenceParallel leaves them "
    "as partial sums, and Adam adds them up whenever it uses one: once for the mean, and twice for the square.",
)


@dataclass(frozen=True)
class Plan:
    """How often a layer's column cuts take in activations, the paper's plan in the words of `passes`, and how they differ.

    calls: {collective and pass: formula of how often it is called}.
    """

    inputs: int
    paper: str
    calls: dict
    differs: Difference | None = None
    norms: bool = False


REDUCED = {"all-reduce forward": "row_cut_calls", "all-reduce backward": "column_input_calls"}
SCATTERED = {
    "all-gather forward": "column_input_calls",
    "reduce-scatter forward": "row_cut_calls",
    "all-gather backward": "row_cut_calls",
    "reduce-scatter backward": "column_input_calls",
}
PLANS = {
    "naive": Plan(MATRICES, "tensor_parallel", REDUCED, COPIES),
    "prepared": Plan(BLOCKS, "tensor_parallel", REDUCED),
    "sequence": Plan(BLOCKS, "sequence_parallel", SCATTERED, KEPT, norms=True),
}


def predict(conditions):
    """Parameters of a layer on one rank, then each plan's collectives and the bytes that every rank sends."""
    sizes = {**conditions, "tensor_parallel": conditions["world_size"]}
    yield from _params(sizes)
    for name in conditions["plans"].split(","):
        if name not in PLANS:
            raise InputError(f"plans has {name!r}{nearest(name, PLANS)}; there are {', '.join(PLANS)}")
        yield from _calls(name, sizes)
        for rank in range(conditions["world_size"]):
            yield from _sent(name, rank, sizes)


def _params(sizes):
    """Raises InputError where the ranks cannot share the heads, the widths or the tokens."""
    ranks = sizes["tensor_parallel"]
    for name in ("num_heads", "hidden_size", "ffn_size", "seq_length"):
        if sizes[name] % ranks:
            raise InputError(f"{name} is {sizes[name]}, which {ranks} ranks cannot share; take a multiple of {ranks}")
    head_dim, left = divmod(sizes["hidden_size"], sizes["num_heads"])
    if left:
        raise InputError(f"hidden_size is {sizes['hidden_size']}, which {sizes['num_heads']} heads cannot share; take a multiple of them")
    heads = {"num_kv_heads": sizes["num_heads"], "head_dim": head_dim, "mlp_matrices": 2}
    parts = {"attention matrices": "tp_attention_params", "MLP matrices": "tp_mlp_params", "biases and norms": "tp_vector_params"}
    for part, name in parts.items():
        yield Prediction(part, estimate(formula(name), **sizes, **heads))


def _cut(plan, sizes):
    """What a plan makes of a layer; a single rank has nothing to cut."""
    alone = sizes["tensor_parallel"] == 1
    return {"row_cuts": 0 if alone else ROW_CUTS, "column_inputs": 0 if alone else plan.inputs}


def _calls(name, sizes):
    plan = PLANS[name]
    cut = _cut(plan, sizes)
    for call, counts in plan.calls.items():
        ways = _call_ways(plan, call, counts, cut, sizes)
        yield Prediction(call, estimate(formula(counts), **sizes, **cut), name, differences=ways)


def _call_ways(plan, call, counts, cut, sizes):
    """The way from the paper's number of calls, where it is another one."""
    if plan.differs is COPIES and call == "all-reduce backward":
        once = {**cut, "column_inputs": min(BLOCKS, cut["column_inputs"])}
        return (COPIES.at(estimate(formula(counts), **sizes, **once)),)
    if plan.differs is KEPT and call == "all-gather backward":
        again = {"row_cuts": cut["row_cuts"] + cut["column_inputs"]}
        return (KEPT.at(estimate(formula(counts), **sizes, **again)),)
    return ()


def _sent(name, rank, sizes):
    """Bytes in the forward and the backward pass, and in the optimizer step where norms are added up there."""
    plan = PLANS[name]
    passes = lambda **cut: formula("plan_passes")(**cut)
    forward = passes(row_cuts=ROW_CUTS, column_inputs=0)
    on_paper = formula("tp_model_bytes").alternative(plan.paper).values["passes_per_layer"] - forward
    yield _phase("forward", name, rank, sizes, forward, forward)
    yield _phase("backward", name, rank, sizes, passes(row_cuts=0, column_inputs=plan.inputs), on_paper, plan.differs)
    if plan.norms:
        yield _norm_sums(name, rank, sizes)


def _phase(phase, name, rank, sizes, passes, on_paper, differs=None):
    sent = lambda passes, **width: estimate(formula("tp_model_bytes"), **{**sizes, **width, "passes_per_layer": passes})
    ways = [PRECISION.at(sent(on_paper))] + ([differs.at(sent(on_paper, **FP32))] if differs else [])
    return Prediction(phase, sent(passes, **FP32), name, rank, tuple(ways))


def _norm_sums(name, rank, sizes):
    made, vectors = formula("norm_grad_bytes"), {**sizes, "norm_vectors": 2}
    ways = PRECISION.at(estimate(made, **vectors)), NORMS.at(estimate(made, **vectors, **FP32))
    return Prediction("optimizer step", estimate(made.under("summed_in_adam"), **vectors, **FP32), name, rank, ways)


LAB = Lab(
    "tensor_parallel",
    "Tensor and sequence parallelism: what a rank holds and sends when layers are cut",
    "tensor_parallel.py",
    TENSOR_PARALLEL,
    predict,
    bars="sent by a rank in a step",
)
