"""Failures and checkpoints: how often a big job stops, and how often it should save."""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define

YOUNG = "Young, A first order approximation to the optimum checkpoint interval, 1974"
DALY = "Daly, A higher order estimate of the optimum checkpoint interval, 2006"

_FAILURES = {
    "source": YOUNG,
    "chapter": 15,
    "covers": ("F33",),
    "assumptions": ("failures independent, at a constant rate", "any failure of a GPU stops the job"),
}

MTBF = define(
    g.mtbf,
    derivation=Derivation("Failures of one GPU", g.gpu_failure_rate)
    .multiply("of all of them", g.num_gpus, g.num_gpus * g.gpu_failure_rate)
    .power("Time from one to the next, on average", -1, 1 / (g.num_gpus * g.gpu_failure_rate)),
    **_FAILURES,
)

EXPECTED_STOPS = define(
    g.expected_stops,
    derivation=Derivation("Failures of all GPUs", g.num_gpus * g.gpu_failure_rate).multiply(
        "while training runs", g.training_time, g.num_gpus * g.gpu_failure_rate * g.training_time
    ),
    **_FAILURES,
)

_SHORT = {
    **_FAILURES,
    "assumptions": (*_FAILURES["assumptions"], "interval, checkpoint and restart far shorter than the MTBF", "saving blocks training"),
}

_PLAIN_OVERHEAD = g.checkpoint_time / g.checkpoint_interval + g.failure_rate * g.checkpoint_interval / 2
_TOO_OFTEN = "failures come too often for a first-order estimate, which would lose more than all the time; take the exact one"
_FIRST_ORDER = (
    g.checkpoint_time + g.failure_rate * g.checkpoint_interval * (g.checkpoint_interval / 2 + g.restart_time) <= g.checkpoint_interval,
    _TOO_OFTEN,
)
_SHORT_SAVES = (g.checkpoint_time * g.failure_rate < 2, "a checkpoint must take less than twice the mean time between failures")
_EXACT = {
    "source": DALY,
    "chapter": 15,
    "covers": ("F33",),
    "assumptions": (*_FAILURES["assumptions"], "saving blocks training and can be interrupted", "a restart can fail too"),
}

_THROUGH = sp.exp(-g.failure_rate * (g.checkpoint_interval + g.checkpoint_time))
_STRETCH = g.checkpoint_interval + g.checkpoint_time
_LOST = 1 / g.failure_rate - _STRETCH * _THROUGH / (1 - _THROUGH)
_RESTARTED = (sp.exp(g.failure_rate * g.restart_time) - 1) / g.failure_rate
_SEGMENT = sp.exp(g.failure_rate * g.restart_time) * (sp.exp(g.failure_rate * _STRETCH) - 1) / g.failure_rate

SEGMENT_TIME = define(
    g.segment_time,
    derivation=Derivation(
        "A stretch of training and its checkpoint runs through with this probability, and then takes", _THROUGH * _STRETCH
    )
    .add(
        "Else it has lost the time to the failure, restarts (again and again, should that fail) and begins anew",
        (1 - _THROUGH) * (_LOST + _RESTARTED + g.segment_time),
        _THROUGH * _STRETCH + (1 - _THROUGH) * (_LOST + _RESTARTED + g.segment_time),
    )
    .solve("The expected time is the same on both sides", g.segment_time, g.segment_time, _SEGMENT),
    **_EXACT,
)

SAFE_RESTART_GOODPUT = define(
    g.goodput,
    name="safe_restart_goodput",
    derivation=Derivation(
        "Training kept, over the time it took, were restarts instant",
        g.checkpoint_interval * g.failure_rate / (sp.exp(g.failure_rate * _STRETCH) - 1),
    ).multiply(
        "Each failure adds one restart to the mean time between them",
        1 / (1 + g.failure_rate * g.restart_time),
        g.checkpoint_interval * g.failure_rate / ((sp.exp(g.failure_rate * _STRETCH) - 1) * (1 + g.failure_rate * g.restart_time)),
    ),
    **{**_EXACT, "assumptions": (*_EXACT["assumptions"][:3], "no failure during a restart")},
)

GOODPUT = define(
    g.goodput,
    derivation=Derivation("Training kept of one stretch", g.checkpoint_interval)
    .multiply("over the time it is expected to take", 1 / g.segment_time, g.checkpoint_interval / g.segment_time)
    .substitute("which is known", [SEGMENT_TIME], g.checkpoint_interval / _SEGMENT),
    **_EXACT,
    conventions=(
        Convention(
            "restart",
            "Can a restart fail?",
            (
                Alternative("restart_can_fail", "yes, like any other time", "Daly"),
                Alternative("restart_is_safe", "no", "simple simulations", formula=SAFE_RESTART_GOODPUT),
            ),
        ),
    ),
)

EXACT_OVERHEAD = define(
    g.checkpoint_overhead,
    name="exact_checkpoint_overhead",
    derivation=Derivation("What is kept", GOODPUT.expr).multiply("is not lost", -1, -GOODPUT.expr).add("the rest is", 1, 1 - GOODPUT.expr),
    **_EXACT,
)

CHECKPOINT_OVERHEAD = define(
    g.checkpoint_overhead,
    derivation=Derivation("Each interval pays for one checkpoint", g.checkpoint_time / g.checkpoint_interval)
    .add("A failure loses half an interval on average", g.failure_rate * g.checkpoint_interval / 2, _PLAIN_OVERHEAD)
    .add("and a restart", g.failure_rate * g.restart_time, _PLAIN_OVERHEAD + g.failure_rate * g.restart_time),
    valid=(_FIRST_ORDER,),
    conventions=(
        Convention(
            "overhead",
            "How exactly is the loss counted?",
            (
                Alternative("first_order", "to first order in the failure rate", "Young"),
                Alternative("exponential", "exactly, for failures at a constant rate", "Daly", formula=EXACT_OVERHEAD),
            ),
        ),
    ),
    **_SHORT,
)

FIRST_ORDER_GOODPUT = define(
    g.goodput,
    name="first_order_goodput",
    derivation=Derivation("What is lost", CHECKPOINT_OVERHEAD.expr)
    .multiply("is not kept", -1, -CHECKPOINT_OVERHEAD.expr)
    .add("the rest is", 1, 1 - CHECKPOINT_OVERHEAD.expr),
    valid=(_FIRST_ORDER,),
    **_SHORT,
)

_YOUNG = sp.sqrt(2 * g.checkpoint_time / g.failure_rate)

DALY_INTERVAL = define(
    g.checkpoint_interval,
    name="daly_interval",
    derivation=Derivation("From one checkpoint's end to the next: training and saving", g.checkpoint_interval + g.checkpoint_time).solve(
        "as long as Young's optimum", g.checkpoint_interval, _YOUNG, _YOUNG - g.checkpoint_time
    ),
    valid=(_SHORT_SAVES,),
    **{**_SHORT, "source": DALY, "assumptions": (*_SHORT["assumptions"], "the optimum counts the checkpoint's own time")},
)

_RATIO = g.checkpoint_time * g.failure_rate / 2
DALY_HIGHER_ORDER_INTERVAL = define(
    g.checkpoint_interval,
    _YOUNG * (1 + sp.sqrt(_RATIO) / 3 + _RATIO / 9) - g.checkpoint_time,
    name="daly_higher_order_interval",
    empirical="the first terms of a series for the exact optimum, which has no closed form in elementary functions",
    valid=(_SHORT_SAVES,),
    **{**_EXACT, "assumptions": (*_EXACT["assumptions"], "checkpoints shorter than twice the MTBF")},
)

CHECKPOINT_INTERVAL = define(
    g.checkpoint_interval,
    derivation=Derivation("Share of time lost", CHECKPOINT_OVERHEAD.expr).stationary(
        "least where it stops falling", g.checkpoint_interval, _YOUNG
    ),
    conventions=(
        Convention(
            "interval",
            "Whose optimum?",
            (
                Alternative("young", "the root of 2δ/λ", "Young; most calculators"),
                Alternative("daly", "less the checkpoint's own time", "Daly's first-order result, often quoted", formula=DALY_INTERVAL),
                Alternative(
                    "daly_higher_order", "two more terms", "Daly; within a percent of the exact optimum", formula=DALY_HIGHER_ORDER_INTERVAL
                ),
            ),
        ),
    ),
    **_SHORT,
)

LEAST_OVERHEAD = define(
    g.checkpoint_overhead,
    name="least_checkpoint_overhead",
    derivation=Derivation("Share of time lost", CHECKPOINT_OVERHEAD.expr)
    .substitute("at the best interval", [CHECKPOINT_INTERVAL], CHECKPOINT_OVERHEAD.expr.subs(g.checkpoint_interval, _YOUNG))
    .rewrite(
        "saving and redoing cost the same",
        sp.sqrt(2 * g.checkpoint_time * g.failure_rate) + g.failure_rate * g.restart_time,
    ),
    valid=(
        (g.failure_rate * g.restart_time <= 1, _TOO_OFTEN),
        (2 * g.checkpoint_time * g.failure_rate <= (1 - g.failure_rate * g.restart_time) ** 2, _TOO_OFTEN),
    ),
    **_SHORT,
)

# --- the same by cards ------------------------------------------------------------------------------------------------------

FAILURE_RATE = define(
    g.failure_rate,
    derivation=Derivation("Failures of one GPU", g.gpu_failure_rate).multiply(
        "of all of them", g.num_gpus, g.num_gpus * g.gpu_failure_rate
    ),
    **_FAILURES,
)


def _of_cards(one, **details):
    """Formula `one`, by how many cards there are and how often one of them fails."""
    rate = one.expr.subs(g.failure_rate, FAILURE_RATE.expr)
    derivation = Derivation("For a job's failure rate", one.expr).substitute("any card stops the job", [FAILURE_RATE], rate)
    most = derivation.at_most("at most everything is lost", 1, sp.Min(1, rate)) if one.valid else derivation
    given = {"source": one.source, "assumptions": one.assumptions, "chapter": 15, "covers": ("F33",)}
    return define(one.result, derivation=most, **given, **details)


CLUSTER_OVERHEAD = _of_cards(CHECKPOINT_OVERHEAD, name="cluster_checkpoint_overhead")
CLUSTER_EXACT_OVERHEAD = _of_cards(EXACT_OVERHEAD, name="cluster_exact_overhead")
CLUSTER_INTERVAL = _of_cards(CHECKPOINT_INTERVAL, name="cluster_checkpoint_interval")

# --- size and time of a checkpoint --------------------------------------------------------------------------------------

_SAVING = {"source": "ZeRO paper's ledger; BLOOM's and Llama's published checkpoints", "chapter": 15, "covers": ("F34",)}
SAVED = Convention(
    "saved",
    "What goes into a checkpoint?",
    (
        Alternative(
            "weights_and_optimizer",
            "16-bit weights, master, two moments: 14 bytes",
            "BLOOM's checkpoints; MLSys-im",
            {"checkpoint_param_bytes": 14},
        ),
        Alternative(
            "optimizer_only",
            "master and two moments, 16-bit weights rebuilt: 12 bytes",
            "FSDP2 with fp32 parameters",
            {"checkpoint_param_bytes": 12},
        ),
        Alternative("everything", "gradients too: 16 bytes", "careless estimates", {"checkpoint_param_bytes": 16}),
    ),
)

CHECKPOINT_BYTES = define(
    g.checkpoint_bytes,
    conventions=(SAVED,),
    derivation=Derivation("What cannot be computed again of one parameter", g.checkpoint_param_bytes).multiply(
        "for every parameter", g.num_params, g.checkpoint_param_bytes * g.num_params
    ),
    **_SAVING,
    assumptions=("gradients are rebuilt, not saved", "data-loader and RNG state are small"),
)

CHECKPOINT_TIME = define(
    g.checkpoint_time,
    conventions=(SAVED,),
    derivation=Derivation("The checkpoint", CHECKPOINT_BYTES.expr).multiply(
        "through the storage all ranks share", 1 / g.storage_bandwidth, CHECKPOINT_BYTES.expr / g.storage_bandwidth
    ),
    **_SAVING,
    assumptions=("training waits until the checkpoint is written", "ranks write their shards at once, the storage is the limit"),
)
