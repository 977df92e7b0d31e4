"""Every way to lay a model out on a cluster: which plans are possible, which fit, how long a step takes, and why the others fail.

plans(MODELS["Llama 2 70B"], GPUS["A100 80GB"], NETWORKS["InfiniBand HDR"], num_gpus=128, global_batch=1024, seq_length=4096)
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import sympy as sp

from . import glossary as g
from . import plan
from .amounts import in_one_unit, write
from .claim import Statement
from .models import MODEL_PARAMS
from .quantity import InputError, look_up
from .units import BYTE, SECOND


def _divides(divisor, number):
    return sp.Eq(sp.Mod(number, divisor), 0)


CHOSEN = ("tensor_parallel", "num_stages", "world_size", "stage", "micro_batch", "recomputed")
STAGES = (0, 1, 2, 3)
USUAL = {"ranks_per_node": 8, "kernel_efficiency": 0.5, "reserve_bytes": 4 * 10**9, "bytes_per_score": 0}

# what a plan must obey before anything is computed: (short name, relation over all its values, what is said where it fails)
RULES = (
    ("heads", _divides(g.tensor_parallel, g.num_heads), "{num_heads} heads do not divide by t = {tensor_parallel}"),
    ("layers", _divides(g.num_stages, g.num_layers), "{num_layers} layers do not divide by P = {num_stages}"),
    (
        "node",
        _divides(g.tensor_parallel, g.ranks_per_node),
        "t = {tensor_parallel} does not fit into nodes of {ranks_per_node}: its collectives would cross the network",
    ),
    (
        "batch",
        _divides(g.world_size * g.micro_batch, g.global_batch),
        "{global_batch} sequences do not divide by {world_size} replicas with {micro_batch} each",
    ),
    (
        "stage",
        sp.Or(g.stage <= 1, g.num_stages <= 1),
        "ZeRO-{stage} would reduce gradients after each of a pipeline's micro-batches: use stage 1 with P = {num_stages}",
    ),
    ("replicas", sp.Or(g.stage <= 0, g.world_size > 1), "ZeRO-{stage} has nothing to share with a single replica"),
)
MEMORY = "memory"


@dataclass(frozen=True)
class Plan:
    """One way to do it: what was `chosen`, its bytes by part, seconds by part, and in words why it fails, if it does."""

    chosen: Mapping
    fault: str = ""
    why: str = ""
    memory: Mapping = field(default_factory=dict)
    times: Mapping = field(default_factory=dict)

    @property
    def memory_bytes(self):
        return sum(self.memory.values())

    @property
    def step_time(self):
        return self.times["step"]

    def _repr_markdown_(self):
        memory, times = in_one_unit(self.memory.values(), BYTE, 3), in_one_unit(self.times.values(), SECOND, 3)
        rows = zip([*self.memory, *self.times], [*memory, *times], strict=True)
        return "\n".join(
            [f"| {self} | |", "|---|--:|", *(f"| {name} | {told} |" for name, told in rows), *([f"| *{self.why}* | |"] if self.why else [])]
        )

    def __str__(self):
        c = self.chosen
        words = [f"t={c['tensor_parallel']}", f"P={c['num_stages']}", f"k={c['world_size']}", f"ZeRO-{c['stage']}", f"b={c['micro_batch']}"]
        return " ".join([*words, *(["recomputed"] if c["recomputed"] else [])])


class Plans(tuple):
    """Plans, those that work by their step time and then the others; shows itself as a table of the best."""

    SHOWN = 8

    @property
    def good(self):
        """Those that can be run, fastest first."""
        return [plan for plan in self if not plan.fault]

    @property
    def faults(self):
        """{short name of a rule: how many plans break it first}."""
        return Counter(plan.fault for plan in self if plan.fault)

    def place(self, plan):
        """Where a plan that works stands among them, as a sentence."""
        slower = plan.step_time / self.good[0].step_time - 1
        return Statement(f"{plan}: place {self.good.index(plan) + 1} of {len(self.good)}, {slower:.1%} slower than the fastest.")

    def leaving(self, free_share, memory_capacity):
        """Those that work and leave this share of a card free."""
        return Plans(plan for plan in self.good if plan.memory_bytes <= (1 - free_share) * memory_capacity)

    def find(self, **chosen):
        """The plan with exactly these choices. Raises InputError if there is none among them."""
        for found in self:
            if all(found.chosen[name] == value for name, value in chosen.items()):
                return found
        raise InputError(f"no plan has {chosen}; each divides the cards among tensor parallelism, stages and replicas")

    def _repr_markdown_(self):
        head = ["| plan | memory of the fullest card | step |", "|---|--:|--:|"]
        best = self.good[: self.SHOWN]
        memory, times = in_one_unit([p.memory_bytes for p in best], BYTE, 3), in_one_unit([p.step_time for p in best], SECOND, 3)
        rows = [f"| {plan} | {held} | {step} |" for plan, held, step in zip(best, memory, times, strict=True)]
        failed = [f"- {count} plans fail for {name}, such as: {self._example(name)}" for name, count in self.faults.most_common()]
        return "\n".join([*head, *rows, "", *failed])

    def _example(self, name):
        return next(f"{plan}: {plan.why}" for plan in self if plan.fault == name)


def plans(model, card, network, *, num_gpus, global_batch, seq_length, **given):
    """Every plan for `model` (a shape), `card` and `network` (bundles of facts); returns Plans.

    seq_length in tokens. given: further inputs of the formulas, such as ranks_per_node or kernel_efficiency, or `num_params`.
    Raises InputError for values that are not possible.
    """
    known = {**USUAL, **model, **card, **network, **given, "num_gpus": num_gpus, "global_batch": global_batch, "seq_length": seq_length}
    known = {name: look_up(name).accept(value) for name, value in known.items()}
    if "num_params" not in known:
        known["num_params"] = MODEL_PARAMS(**_inputs(MODEL_PARAMS, known))
    return all_plans(known)


def all_plans(known):
    """The same for `known` values of every quantity, in base units."""
    if known["num_gpus"] <= known["ranks_per_node"]:
        known = known | {"bandwidth": known["link_bandwidth"]}  # replicas of one node need no network
    made = [_ruled(known, dict(zip(CHOSEN, values, strict=True))) for values in choices(known)]
    worked = _worked(known, [p for p in made if not p.fault])
    fitting = sorted(_fitting(known, worked), key=lambda p: (bool(p.fault), p.step_time, p.memory_bytes))
    return Plans([*fitting, *(p for p in made if p.fault)])


def choices(known):
    """Every division of the cards, with every stage, micro-batch (in doublings) and recomputation."""
    for t, stages in itertools.product(_divisors(known["num_gpus"]), repeat=2):
        if known["num_gpus"] % (t * stages) == 0:
            replicas = known["num_gpus"] // (t * stages)
            sizes = [2**power for power in range(math.ceil(known["global_batch"] / replicas).bit_length())]
            yield from itertools.product([t], [stages], [replicas], STAGES, sizes, (0, 1))


def _divisors(number):
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _ruled(known, chosen):
    """The plan, with the first rule that it breaks."""
    values = known | chosen
    for (name, _, words), (names, holds) in zip(RULES, _TESTS, strict=True):
        if not holds(*(values[n] for n in names)):
            return Plan(chosen, name, words.format(**values))
    return Plan(chosen)


def _test(relation):
    names = sorted(map(str, relation.free_symbols))
    return names, sp.lambdify(names, relation, "math")


_TESTS = [_test(relation) for _, relation, _ in RULES]


def _worked(known, possible):
    """The plans with their memory and times, all worked out at once."""
    if not possible:
        return []
    columns = {name: np.array([p.chosen[name] for p in possible]) for name in CHOSEN}
    columns["num_micro_batches"] = known["global_batch"] // (columns["world_size"] * columns["micro_batch"])
    memory = {name: _column(part, known | columns, len(possible)) for name, part in plan.PLAN_LEDGER.parts.items()}
    times = {name: _column(formula, known | columns, len(possible)) for name, formula in _TIMES.items()}
    inputs = {formula.name: times[name] for name, formula in _TIMES.items()}
    times["step"] = plan.PLAN_STEP(**_inputs(plan.PLAN_STEP, inputs))
    return [Plan(p.chosen, memory=_row(memory, i), times=_row(times, i)) for i, p in enumerate(possible)]


_TIMES = {"computation": plan.PLAN_COMPUTE, "tensor parallelism": plan.PLAN_TP, "replicas": plan.PLAN_DP, "hidden": plan.PLAN_HIDDEN}


def _column(formula, values, length):
    return np.broadcast_to(formula(**_inputs(formula, values)), length)


def _inputs(formula, values):
    return {name: values[name] for name in formula.inputs if name in values}


def _row(columns, index):
    return {name: float(column[index]) for name, column in columns.items()}


def _fitting(known, worked):
    """The plans, those that need more than a card has found at fault."""
    room = known["memory_capacity"] - known["reserve_bytes"]
    for p in worked:
        over = p.memory_bytes > room
        why = f"it needs {write(p.memory_bytes, BYTE, 3)}, and a card has {write(room, BYTE, 3)} beside its reserve"
        yield Plan(p.chosen, MEMORY, why, p.memory, p.times) if over else p
