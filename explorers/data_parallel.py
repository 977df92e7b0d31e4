"""Explorers of data parallelism: communication behind the backward pass, and what makes a batch."""

import sympy as sp

from formulary import glossary as g
from formulary.communication import BUCKET_TIME, BUCKETED_TIME
from formulary.data_parallel import BUCKET_BACKWARD, BUCKETED_EXPOSED, CLUSTER_BATCH, DATA_PARALLEL_RANKS
from formulary.hardware import NETWORKS

from .collectives import LINKS
from .control import Slider
from .curve import Curve
from .explorer import Explorer
from .plan import Blocks, counter
from .timeline import Timeline

HDR = NETWORKS["InfiniBand HDR"]["bandwidth"]
MOST_BUCKETS = 100

_n, bucket, once = g.num_buckets, counter("nth"), counter("once")

# Backward fills one bucket after the other; the network sends them in that order, each when it is full and the network free.
OVERLAP = (
    Blocks("forward", {"once": sp.Integer(1)}, row=0, turn=once, length=g.forward_time),
    Blocks("backward", {"nth": _n}, row=0, turn=1 + bucket, length=BUCKET_BACKWARD.expr, mark=bucket + 1),
    Blocks(
        "all-reduce",
        {"nth": _n},
        row=1,
        turn=bucket,
        length=BUCKET_TIME.expr,
        after=[("backward", {"nth": bucket})],
        mark=bucket + 1,
    ),
)


def overlap_explorer(
    forward_time=0.3,
    backward_time=0.6,
    num_buckets=10,
    message_bytes=None,
    world_size=64,
    latency=None,
    bandwidth=HDR,
    presets=LINKS,
):
    """A data-parallel step: backward fills buckets, the network sends them behind its back; what shows at the end is exposed."""
    controls = [
        Slider("num_buckets", num_buckets, "buckets", span=(1, MOST_BUCKETS)),
        Slider("backward_time", backward_time, "backward pass"),
        Slider("forward_time", forward_time, "forward pass"),
        Slider("message_bytes", message_bytes, "gradients"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("latency", latency, "latency of a message"),
        Slider("bandwidth", bandwidth, "bandwidth of a rank"),
    ]
    view = Timeline(
        OVERLAP,
        ["computation", "network"],
        "exposed",
        "of communication shows, counted in the picture",
        beside=(("the formula", BUCKETED_EXPOSED, {}),),
    )
    subject = [BUCKETED_EXPOSED, BUCKETED_TIME]
    return Explorer(subject, controls, view, title="Behind the backward pass", presets=presets, made_by="explorers.overlap_explorer")


def exposed_explorer(backward_time=0.6, num_buckets=10, message_bytes=None, world_size=64, latency=None, bandwidth=HDR, presets=LINKS):
    """Communication that shows, by the number of buckets: too few wait for the last one, too many wait for messages to start."""
    buckets = Slider("num_buckets", num_buckets, "buckets")
    controls = [
        buckets,
        Slider("backward_time", backward_time, "backward pass"),
        Slider("message_bytes", message_bytes, "gradients"),
        Slider("world_size", world_size, "ranks", scale="doubling"),
        Slider("latency", latency, "latency of a message"),
        Slider("bandwidth", bandwidth, "bandwidth of a rank"),
    ]
    view = Curve({"exposed": BUCKETED_EXPOSED, "all of it": BUCKETED_TIME}, buckets, "communication per step", log=(True, True))
    subject = [BUCKETED_EXPOSED, BUCKETED_TIME]
    return Explorer(subject, controls, view, title="How many buckets?", presets=presets, made_by="explorers.exposed_explorer")


def batch_explorer(micro_batch=1, accumulation_steps=16, num_gpus=64, tensor_parallel=1, num_stages=1, global_batch=256):
    """Sequences of an optimizer step as GPUs are added: only data-parallel ranks count. No value where the GPUs make no whole replicas."""
    gpus = Slider("num_gpus", num_gpus, "GPUs", scale="doubling")
    controls = [
        Slider("micro_batch", micro_batch, "sequences per micro-batch"),
        Slider("accumulation_steps", accumulation_steps, "micro-batches per step", scale="doubling"),
        gpus,
        Slider("tensor_parallel", tensor_parallel, "tensor-parallel ranks", scale="doubling"),
        Slider("num_stages", num_stages, "pipeline stages", scale="doubling"),
        Slider("global_batch", global_batch, "batch wanted", scale="doubling"),
    ]
    view = Curve(
        {"sequences": CLUSTER_BATCH}, gpus, "sequences per step", limit="global_batch", limit_label="sequences wanted", log=(True, True)
    )
    subject = [CLUSTER_BATCH, DATA_PARALLEL_RANKS]
    fixed = {"context_parallel": 1}
    return Explorer(subject, controls, view, title="What makes a batch", fixed=fixed, made_by="explorers.batch_explorer")
