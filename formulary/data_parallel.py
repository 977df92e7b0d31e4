"""Replicas that share the batch: how the batch divides, what averaging the gradients costs and how much of it shows.

Also gradient accumulation as arithmetic (who weights what) and the parameter server, which data parallelism replaced.
"""

import sympy as sp

from . import glossary as g
from .communication import ALL_REDUCE, BUCKETED_TIME
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define

DDP_PAPER = "Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, 2020"
PARAMETER_SERVER = "Li et al., Scaling Distributed Machine Learning with the Parameter Server, 2014"
TOKEN_BLOG = "Hugging Face blog, Fixing Gradient Accumulation, 2024"

GRAD_DTYPE = Convention(
    "grad_dtype",
    "In which precision do gradients travel?",
    (
        Alternative("grads_16bit", "16 bits: 2 bytes", "ZeRO paper; DDP of a 16-bit model", {"bytes_per_reduced_grad": 2}),
        Alternative(
            "grads_32bit",
            "32 bits: 4 bytes",
            "DDP under autocast, whose weights and gradients are fp32; FSDP with reduce_dtype=float32; Megatron-LM with bf16",
            {"bytes_per_reduced_grad": 4},
        ),
    ),
)

# --- the batch -----------------------------------------------------------------------------------------------------------

_b, _K, _k = g.micro_batch, g.accumulation_steps, g.world_size

_BATCH = {
    "source": "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section 3",
    "covers": ("F10",),
    "chapter": 6,
    "assumptions": ("ranks of one replica (tensor, pipeline, context parallel) see the same sequences", "every rank does equally much"),
}

DATA_PARALLEL_RANKS = define(
    g.world_size,
    name="data_parallel_ranks",
    derivation=Derivation("All GPUs", g.num_gpus)
    .multiply("of which one in t holds another slice of the same layers", 1 / g.tensor_parallel, g.num_gpus / g.tensor_parallel)
    .multiply("one in P other layers", 1 / g.num_stages, g.num_gpus / (g.tensor_parallel * g.num_stages))
    .multiply(
        "and one in c another piece of the same sequences",
        1 / g.context_parallel,
        g.num_gpus / (g.tensor_parallel * g.num_stages * g.context_parallel),
    ),
    valid=((sp.Eq(sp.Mod(g.num_gpus, g.tensor_parallel * g.num_stages * g.context_parallel), 0), "the GPUs must make whole replicas"),),
    **_BATCH,
)

GLOBAL_BATCH = define(
    g.global_batch,
    name="sequences_per_step",
    derivation=Derivation("A replica computes a micro-batch", _b)
    .multiply("K times before it updates", _K, _b * _K)
    .multiply("and so does every data-parallel rank", _k, _b * _K * _k),
    **_BATCH,
)

ACCUMULATION_STEPS = define(
    g.accumulation_steps,
    name="needed_accumulation_steps",
    derivation=Derivation("The batch with K micro-batches on each rank", GLOBAL_BATCH.expr)
    .solve("reaches the wanted size", _K, g.global_batch, g.global_batch / (_b * _k))
    .round_up("and there are no broken micro-batches", sp.ceiling(g.global_batch / (_b * _k))),
    **_BATCH,
)

CLUSTER_BATCH = define(
    g.global_batch,
    name="cluster_sequences_per_step",
    derivation=Derivation("Every data-parallel rank computes its sequences", GLOBAL_BATCH.expr).substitute(
        "and there are as many of them as replicas",
        {_k: DATA_PARALLEL_RANKS.expr},
        _b * _K * g.num_gpus / (g.tensor_parallel * g.num_stages * g.context_parallel),
    ),
    valid=DATA_PARALLEL_RANKS.valid,
    **_BATCH,
)

# --- averaging the gradients ---------------------------------------------------------------------------------------------

_MESSAGE = g.bytes_per_reduced_grad * g.num_params

_DDP = {
    "source": DDP_PAPER,
    "conventions": (GRAD_DTYPE,),
    "covers": ("F11",),
    "chapter": 6,
    "assumptions": ("ring all-reduce once per optimizer step (no_sync while accumulating)", "every parameter is trained"),
}

DDP_BYTES = define(
    g.ddp_gradient_bytes,
    derivation=Derivation("An all-reduce of the whole gradient", ALL_REDUCE.expr).substitute(
        "which has one element for every parameter", {g.message_bytes: _MESSAGE}, 2 * _MESSAGE * (_k - 1) / _k
    ),
    **_DDP,
)

DDP_TIME = define(
    g.ddp_gradient_time,
    derivation=Derivation("A rank sends", DDP_BYTES.expr).multiply("at its bandwidth", 1 / g.bandwidth, DDP_BYTES.expr / g.bandwidth),
    **{**_DDP, "assumptions": (*_DDP["assumptions"], "no latency, nothing overlapped", "one rank has the bandwidth to itself")},
)

NUM_BUCKETS = define(
    g.num_buckets,
    name="needed_buckets",
    derivation=Derivation("The whole gradient weighs", _MESSAGE)
    .multiply("and a bucket holds", 1 / g.bucket_bytes, _MESSAGE / g.bucket_bytes)
    .round_up("The last bucket may be short", sp.ceiling(_MESSAGE / g.bucket_bytes)),
    **{**_DDP, "assumptions": ("tensors fill the buckets without gaps, so this is the least; DDP's first bucket is smaller",)},
)

# --- overlap with the backward pass --------------------------------------------------------------------------------------

_n, _i = g.num_buckets, g.bucket
_READY = _i * g.backward_time / _n
_PATH = (_i * g.backward_time + (_n - _i + 1) * g.comm_time) / _n
_AFTER_FORWARD = sp.Max(g.backward_time / _n + g.comm_time, g.backward_time + g.comm_time / _n)

_OVERLAP = {
    "source": DDP_PAPER,
    "covers": ("F12",),
    "chapter": 6,
    "assumptions": (
        "buckets of equal size, filled at equal intervals of the backward pass",
        "the network sends one bucket at a time and takes nothing from the computation",
        "several hundred buckets would add their latencies to comm_time: see bucketed_all_reduce_time",
    ),
}

BUCKET_BACKWARD = define(
    g.bucket_backward_time,
    derivation=Derivation("The backward pass", g.backward_time).multiply(
        "fills the buckets one after the other", 1 / _n, g.backward_time / _n
    ),
    **_OVERLAP,
)

_STEP_STEPS = (
    Derivation("Backward has filled bucket i after i of n parts of its time", _READY)
    .add("If the network had to wait for it, it now sends this bucket and all later ones", (_n - _i + 1) * g.comm_time / _n, _PATH)
    .largest_at_an_end("The step waits for the longest of these paths", _i, 1, _n, _AFTER_FORWARD)
    .add("and starts with the forward pass", g.forward_time, g.forward_time + _AFTER_FORWARD)
)

EARLY_NETWORK_STEP = Formula(
    g.overlapped_step_time,
    name="overlapped_step_time if the network starts with backward",
    derivation=Derivation("All buckets but the last", g.comm_time * (_n - 1) / _n)
    .at_least("are sent while backward runs", g.backward_time, sp.Max(g.backward_time, g.comm_time * (_n - 1) / _n))
    .add("the last one after it", g.comm_time / _n, sp.Max(g.backward_time + g.comm_time / _n, g.comm_time))
    .add("and the forward pass before it", g.forward_time, g.forward_time + sp.Max(g.backward_time + g.comm_time / _n, g.comm_time)),
    **_OVERLAP,
)

FIRST_BUCKET = Convention(
    "first_bucket",
    "When does the network start?",
    (
        Alternative("when_filled", "when backward has filled the first bucket", "what DDP does"),
        Alternative(
            "at_once",
            "with the backward pass: a lower bound",
            "estimates that only keep the last bucket exposed",
            formula=EARLY_NETWORK_STEP,
        ),
    ),
)

OVERLAPPED_STEP = define(g.overlapped_step_time, derivation=_STEP_STEPS, conventions=(FIRST_BUCKET,), **_OVERLAP)

_HIDDEN = (_n - 1) / _n * g.backward_time

EXPOSED_COMM = define(
    g.exposed_comm_time,
    derivation=Derivation("The step", OVERLAPPED_STEP.expr).add(
        "less its computation: at least the last bucket shows, and what does not fit behind the backward pass",
        -g.forward_time - g.backward_time,
        sp.Max(g.comm_time / _n, g.comm_time - _HIDDEN),
    ),
    **_OVERLAP,
)

_COMM = BUCKETED_TIME.expr
_LATENCIES = {
    "source": DDP_PAPER,
    "covers": ("F12",),
    "chapter": 6,
    "assumptions": (*_OVERLAP["assumptions"][:2], *BUCKETED_TIME.assumptions),
}

BUCKETED_EXPOSED = define(
    g.exposed_comm_time,
    name="bucketed_exposed_time",
    derivation=Derivation("Communication that no computation hides", EXPOSED_COMM.expr).substitute(
        "where all buckets together take, latency and bandwidth",
        {g.comm_time: _COMM},
        sp.Max(_COMM / _n, _COMM - _HIDDEN),
    ),
    **_LATENCIES,
)

# --- parameter server ----------------------------------------------------------------------------------------------------

_S, _w, _q = g.message_bytes, g.num_workers, g.num_servers

_SERVER = {
    "source": PARAMETER_SERVER,
    "covers": ("F40",),
    "chapter": 6,
    "assumptions": ("every worker pushes its gradients and pulls the weights once a step", "both weigh the same", "servers share evenly"),
}


def _server_traffic(result, because, peers, sent):
    """The bytes sent, with the convention that counts received bytes too; either end receives as much as it sends."""
    steps = Derivation("A worker and a server exchange the server's share of the parameters", _S / _q).multiply(because, peers, sent)
    twice = steps.multiply("and as much comes back", 2, 2 * sent)
    both = Formula(result, derivation=twice, name=f"{result.name} of both directions", **_SERVER)
    return define(result, derivation=steps, conventions=(_directions(both),), **_SERVER)


def _directions(both):
    return Convention(
        "server_traffic",
        "Which bytes count?",
        (
            Alternative("sent", "what is sent, as for a ring", "nccl-tests; this book"),
            Alternative("sent_and_received", "push and pull both", "comparisons that load one link with both", formula=both),
        ),
    )


SERVER_BYTES = _server_traffic(g.server_bytes, "to each of w workers", _w, _w * _S / _q)
WORKER_BYTES = _server_traffic(g.worker_bytes, "with each of q servers", _q, _S)

# --- accumulating gradients of unequal micro-batches ---------------------------------------------------------------------

_n1, _n2, _g1, _g2 = g.tokens_first, g.tokens_second, g.mean_grad_first, g.mean_grad_second
_WEIGHTED = (_n1 * _g1 + _n2 * _g2) / (_n1 + _n2)

_ACCUMULATION = {
    "source": TOKEN_BLOG,
    "covers": ("F43",),
    "chapter": 6,
    "assumptions": ("the loss is a mean over tokens", "two micro-batches; more are weighted likewise, as are ranks"),
}

MEAN_OF_MEANS = Formula(
    g.accumulated_grad,
    name="accumulated_grad as a mean of means",
    derivation=Derivation("Every micro-batch's mean counts alike", _g1 + _g2).multiply(
        "over their number", sp.Rational(1, 2), (_g1 + _g2) / 2
    ),
    **_ACCUMULATION,
)

WEIGHTING = Convention(
    "weighting",
    "How are micro-batches weighted?",
    (
        Alternative("by_tokens", "by the tokens that count in the loss", "the gradient of the whole batch; transformers since 4.46"),
        Alternative(
            "mean_of_means",
            "all alike, whatever their tokens",
            "training loops that divide the loss by the number of micro-batches",
            formula=MEAN_OF_MEANS,
        ),
    ),
)

ACCUMULATED_GRAD = define(
    g.accumulated_grad,
    derivation=Derivation(
        "The whole batch's mean: the gradients of all tokens over their number", (g.grad_sum_first + g.grad_sum_second) / (_n1 + _n2)
    ).substitute("A sum is the mean times the tokens", {g.grad_sum_first: _n1 * _g1, g.grad_sum_second: _n2 * _g2}, _WEIGHTED),
    conventions=(WEIGHTING,),
    **_ACCUMULATION,
)

ACCUMULATION_BIAS = define(
    g.accumulation_bias,
    derivation=Derivation("The mean of means", MEAN_OF_MEANS.expr)
    .add("less the gradient of the whole batch", -ACCUMULATED_GRAD.expr, (_g1 + _g2) / 2 - _WEIGHTED)
    .rewrite("vanishes where tokens or gradients are equal", (_g1 - _g2) * (_n2 - _n1) / (2 * (_n1 + _n2))),
    **_ACCUMULATION,
)
