"""What more GPUs buy: scaling efficiency, and the three walls of memory, computation and communication."""

import sympy as sp

from . import glossary as g
from .compute import FLOP_PER_TOKEN
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define

AMDAHL = "Amdahl, Validity of the single processor approach, 1967; speed-up per processor"
_STRONG = {"source": AMDAHL, "chapter": 13, "covers": ("F31",), "assumptions": ("the same global batch on one GPU and on many",)}
_STRONG_EXPOSED = 1 / (1 + g.num_gpus * g.exposed_comm_time / g.one_gpu_step_time)

WEAK_EFFICIENCY = define(
    g.scaling_efficiency,
    name="weak_scaling_efficiency",
    derivation=Derivation("Tokens per second of all", g.tokens_per_s).multiply(
        "over as many times one GPU's", 1 / (g.num_gpus * g.one_gpu_tokens_per_s), g.tokens_per_s / (g.num_gpus * g.one_gpu_tokens_per_s)
    ),
    **{**_STRONG, "assumptions": ("the same batch per GPU on one GPU and on many",)},
)

STRONG_EFFICIENCY = define(
    g.scaling_efficiency,
    derivation=Derivation("The step on one GPU", g.one_gpu_step_time)
    .multiply("over the step on many", 1 / g.step_time, g.one_gpu_step_time / g.step_time)
    .multiply("ideally as many times shorter", 1 / g.num_gpus, g.one_gpu_step_time / (g.num_gpus * g.step_time)),
    conventions=(
        Convention(
            "scaling",
            "What stays the same when GPUs are added?",
            (
                Alternative("strong", "the global batch", "this book"),
                Alternative("weak", "the batch per GPU", "throughput reports", formula=WEAK_EFFICIENCY),
            ),
        ),
    ),
    **_STRONG,
)

EXPOSED_EFFICIENCY = define(
    g.scaling_efficiency,
    name="exposed_scaling_efficiency",
    derivation=Derivation("Efficiency", STRONG_EFFICIENCY.expr)
    .substitute(
        "The step is the divided work and what no work hides",
        {g.step_time: g.one_gpu_step_time / g.num_gpus + g.exposed_comm_time},
        g.one_gpu_step_time / (g.num_gpus * (g.one_gpu_step_time / g.num_gpus + g.exposed_comm_time)),
    )
    .rewrite("over the work of one GPU", _STRONG_EXPOSED),
    **_STRONG,
)

EXPOSED_GROWTH = define(
    g.exposed_growth,
    derivation=Derivation(
        "Efficiency when the exposed time has grown", 1 / (1 + g.num_gpus * g.exposed_growth * g.exposed_comm_time / g.one_gpu_step_time)
    ).solve(
        "down to the efficiency that is still accepted",
        g.exposed_growth,
        g.scaling_efficiency,
        g.one_gpu_step_time / (g.num_gpus * g.exposed_comm_time) * (1 / g.scaling_efficiency - 1),
    ),
    **_STRONG,
)

# --- walls --------------------------------------------------------------------------------------------------------------

_WALL = {
    "source": "Williams et al., Roofline, 2009, carried over from a chip to a cluster",
    "chapter": 1,
    "covers": ("F32",),
    "assumptions": ("work divided evenly by data parallelism at a fixed global batch", "one stream of communication, bandwidth per rank"),
}

COMPUTE_TIME = define(
    g.compute_time,
    derivation=Derivation("All work of a step", g.step_flop)
    .multiply("shared by all GPUs", 1 / g.num_gpus, g.step_flop / g.num_gpus)
    .multiply(
        "at the speed its kernels reach",
        1 / (g.peak_flop_per_s * g.kernel_efficiency),
        g.step_flop / (g.num_gpus * g.peak_flop_per_s * g.kernel_efficiency),
    ),
    **_WALL,
)

COMM_TIME = define(
    g.comm_time,
    derivation=Derivation("What one rank sends", g.comm_bytes).multiply("over its link", 1 / g.bandwidth, g.comm_bytes / g.bandwidth),
    **_WALL,
)

SERIAL_STEP = define(
    g.step_time,
    name="serial_step_time",
    derivation=Derivation("Computation", g.compute_time).add("then communication", g.comm_time, g.compute_time + g.comm_time),
    **_WALL,
)

STEP_TIME = define(
    g.step_time,
    derivation=Derivation("While the GPUs compute", g.compute_time).at_least(
        "the links carry everything", g.comm_time, sp.Max(g.compute_time, g.comm_time)
    ),
    conventions=(
        Convention(
            "overlap",
            "Does communication wait?",
            (
                Alternative("overlapped", "all of it runs beside computation: the longer of the two", "an upper bound on speed"),
                Alternative("serial", "all of it runs afterwards: their sum", "a lower bound on speed", formula=SERIAL_STEP),
            ),
        ),
    ),
    **_WALL,
)

_CRITICAL = g.step_flop * g.bandwidth / (g.peak_flop_per_s * g.kernel_efficiency * g.comm_bytes)
CRITICAL_GPUS = define(
    g.critical_gpus,
    derivation=Derivation("Computation shrinks with every GPU", COMPUTE_TIME.expr).solve(
        "until it takes as long as communication, which does not", g.num_gpus, COMM_TIME.expr, _CRITICAL
    ),
    **{**_WALL, "assumptions": (*_WALL["assumptions"], "one rank's bytes do not depend on the number of ranks: (k-1)/k taken as 1")},
)

HIDING_GPUS = define(
    g.hiding_gpus,
    derivation=Derivation(
        "Only backward, two thirds of the computation, has gradients to send", sp.Rational(2, 3) * COMPUTE_TIME.expr
    ).solve("as long as communication", g.num_gpus, COMM_TIME.expr, sp.Rational(2, 3) * _CRITICAL),
    **{**_WALL, "assumptions": (*CRITICAL_GPUS.assumptions, "gradients are sent during backward alone, as DDP does")},
)

HIDING_TOKENS = define(
    g.hiding_tokens,
    derivation=Derivation("Work of one GPU's tokens", FLOP_PER_TOKEN.expr * g.hiding_tokens)
    .multiply("of which backward is two thirds", sp.Rational(2, 3), sp.Rational(2, 3) * FLOP_PER_TOKEN.expr * g.hiding_tokens)
    .multiply(
        "at the speed of its kernels",
        1 / (g.peak_flop_per_s * g.kernel_efficiency),
        sp.Rational(2, 3) * FLOP_PER_TOKEN.expr * g.hiding_tokens / (g.peak_flop_per_s * g.kernel_efficiency),
    )
    .solve(
        "as long as an all-reduce of the gradients, sent twice: the number of parameters cancels",
        g.hiding_tokens,
        2 * g.bytes_per_grad * g.num_params / g.bandwidth,
        2 * g.bytes_per_grad * g.num_params * g.peak_flop_per_s * g.kernel_efficiency * 3 / (2 * FLOP_PER_TOKEN.expr * g.bandwidth),
    ),
    **{**_WALL, "assumptions": (*CRITICAL_GPUS.assumptions, "attention scores not counted")},
)

MACHINE_BALANCE = define(
    g.machine_balance,
    derivation=Derivation("FLOP in a second", g.peak_flop_per_s).multiply(
        "for the bytes of a second", 1 / g.bandwidth, g.peak_flop_per_s / g.bandwidth
    ),
    **_WALL,
)
