"""Timelines as pictures: a row for each rank, a bar for each operation, as replayed from the table and as it was on the clock."""

from matplotlib.patches import Patch

from .picture import Picture
from .replay import BACKWARD, FORWARD, INPUT, TIMES, WEIGHT, Timeline, replay
from .schedules import table

COLORS = {FORWARD: "#56b4e9", BACKWARD: "#009e73", INPUT: "#e69f00", WEIGHT: "#cc79a7"}
ROW = 0.8
FEW = 60  # bars in a row of which each can have its micro-batch's number


def gantt(*timelines):
    """A Picture of (title, Timeline) pairs, one below the other."""
    heights = [len(timeline.rows) for _, timeline in timelines]
    figure = Picture(figsize=(10, sum(0.32 * height + 0.75 for height in heights)), facecolor="white", layout="constrained")
    rows = figure.subplots(len(timelines), squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (title, timeline) in zip(rows[:, 0], timelines, strict=True):
        _draw(axes, f"{title}: {timeline.bubble:.1%} idle", timeline)
    used = {slot.operation.kind for _, timeline in timelines for slot in timeline.slots}
    handles = [Patch(color=color, label=kind) for kind, color in COLORS.items() if kind in used]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    return figure


def _draw(axes, title, timeline):
    begun = min(slot.start for slot in timeline.slots)
    for rank, row in enumerate(timeline.rows):
        for slot in row:
            left, wide = float(slot.start - begun), float(slot.end - slot.start)
            axes.barh(rank, wide, ROW, left, color=COLORS[slot.operation.kind], edgecolor="white", linewidth=0.5)
            if len(row) <= FEW:
                axes.text(left + wide / 2, rank, slot.operation.micro_batch, ha="center", va="center", fontsize=6)
    axes.set_yticks(range(len(timeline.rows)), [f"rank {rank}" for rank in range(len(timeline.rows))], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def replayed(name, num_ranks, num_micro_batches, num_chunks=2):
    """The Timeline of torch's table of the schedule `name`, in slots."""
    return replay(table(name, num_ranks, num_micro_batches, num_chunks), TIMES)


def both_timelines(report):
    """Of each schedule in a report of the lab pipeline, the Timeline replayed and, if it was measured, the one on the clock."""
    conditions, numbers = report.conditions, report.measurement.numbers if report.measurement else {}
    shown = []
    for name in conditions["schedules"].split(","):
        planned = replayed(name, conditions["world_size"], conditions["num_micro_batches"], conditions["chunks_per_stage"])
        shown.append((f"{name}, replayed (slots)", planned))
        if found := numbers.get(f"{name}/timeline"):
            shown.append((f"{name}, on the clock (s)", Timeline.of(found)))
    return gantt(*shown)
