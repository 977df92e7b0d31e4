"""Plans ranked: every way to lay a model out on a cluster, the fastest first, and why the others fail.

The front end tries all plans itself, by the rules of `formulary.planner` and the JavaScript of its formulas.
"""

from dataclasses import dataclass

import sympy as sp

from formulary.amounts import in_one_unit, write
from formulary.data_parallel import ACCUMULATION_STEPS, DATA_PARALLEL_RANKS
from formulary.plan import PLAN_COMPUTE, PLAN_DP, PLAN_HIDDEN, PLAN_LEDGER, PLAN_MEMORY, PLAN_STEP, PLAN_TP
from formulary.planner import MEMORY, RULES, all_plans
from formulary.units import BYTE, SECOND

from .palette import PALETTE

SHOWN = 8
HEIGHT = 340  # pixels of the picture, whatever its width
# what of a step's time is drawn, and what it is called
TIMES = {"computation": PLAN_COMPUTE, "tensor parallelism": PLAN_TP, "replicas": PLAN_DP, "hidden": PLAN_HIDDEN}
HEAD = ["plan", "step", "fullest card"]
DRAWN = ("computation and idling", "collectives of layers", "exchange that shows")
FAILS = {
    "heads": "heads do not divide by t",
    "layers": "layers do not divide by P",
    "node": "t larger than a node",
    "batch": "batch does not divide",
    "stage": "ZeRO-2 or 3 in a pipeline",
    "replicas": "ZeRO with one replica",
    MEMORY: "does not fit",
}


@dataclass(frozen=True)
class Ranking:
    """The best plans as bars of time, with their memory; beside them how many plans fail for what."""

    kind = "ranking"
    formulas = ()
    inner = (*TIMES.values(), PLAN_STEP, *PLAN_LEDGER.parts.values(), PLAN_MEMORY, DATA_PARALLEL_RANKS, ACCUMULATION_STEPS)
    units = (BYTE, SECOND)

    @property
    def defaults(self):
        """What conventions supply for the formulas."""
        return {name: value for formula in self.inner for name, value in formula.defaults.items()}

    @property
    def expressions(self):
        """The rules as sympy, by name: 1 where a plan obeys."""
        return {f"rule {name}": sp.Piecewise((1, relation), (0, True)) for name, relation, _ in RULES}

    def spec(self):
        """What the front end needs to know, as JSON values."""
        return {
            "height": HEIGHT,
            "rules": [name for name, _, _ in RULES],
            "fails": FAILS,
            "times": [formula.name for formula in TIMES.values()],
            "step": PLAN_STEP.name,
            "memory": PLAN_MEMORY.name,
            "drawn": DRAWN,
            "head": HEAD,
            "shown": SHOWN,
            "units": {"bytes": str(BYTE), "seconds": str(SECOND)},
        }

    def scene(self, state, evaluate):
        """The best plans, how many there are, and how many fail for each reason."""
        found = all_plans(state)
        best = [{"label": str(p), "memory": p.memory_bytes, "step": p.step_time, "times": _drawn(p)} for p in found.good[:SHOWN]]
        return {"best": best, "good": len(found.good), "failed": {name: found.faults[name] for name in FAILS if found.faults[name]}}

    def sentence(self, scene):
        """What came out, in words."""
        if not scene["best"]:
            return f"No plan works: {self._reasons(scene)}."
        first = scene["best"][0]
        fills = write(first["memory"], BYTE, 3)
        return (
            f"{scene['good']} plans work. Fastest: {first['label']}, {write(first['step'], SECOND, 3)} a step, {fills} on the fullest card."
        )

    def _reasons(self, scene):
        return ", ".join(f"{count} {FAILS[name]}" for name, count in scene["failed"].items())

    def table(self, scene):
        """(head, rows): a row for each plan that is shown, and one for each reason that others fail for."""
        labels, steps, memory = ([row[name] for row in scene["best"]] for name in ("label", "step", "memory"))
        best = zip(labels, in_one_unit(steps, SECOND, 3), in_one_unit(memory, BYTE, 3), strict=True)
        failed = ([f"{count} plans: {FAILS[name]}", "", ""] for name, count in scene["failed"].items())
        return HEAD, [*map(list, best), *failed]

    def draw(self, axes, scene):
        """The bars on matplotlib `axes`."""
        places, left = range(len(scene["best"])), [0.0] * len(scene["best"])
        for i, name in enumerate(DRAWN):
            widths = [row["times"][i] for row in scene["best"]]
            axes.barh(places, widths, left=left, color=PALETTE[i], label=name)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.set_yticks(places, [f"{row['label']}\n{write(row['memory'], BYTE, 3)}" for row in scene["best"]])
        axes.invert_yaxis()
        axes.set_xlabel(f"time of a step; {scene['good']} plans work")
        axes.xaxis.set_major_formatter(lambda value, _: write(value, SECOND, 3))
        axes.spines[["top", "right"]].set_visible(False)
        axes.figure.legend(frameon=False, loc="outside lower center", ncols=3)


def _drawn(plan):
    times = plan.times
    return [times["computation"], times["tensor parallelism"], max(0.0, times["replicas"] - times["hidden"])]
