"""Which runs the checkpoint lab takes: the job takes them, the predictions foretell them."""

import random
from dataclasses import dataclass

UNINTERRUPTED = "uninterrupted"


@dataclass(frozen=True)
class Run:
    """A training run in `phases` of (ranks, steps done at the end); `kill` is (rank, step) where one dies by kill -9."""

    name: str
    phases: tuple
    kill: tuple | None = None


def kills(conditions, num_ranks):
    """(rank, step) of each kill: the ranks in turn, at steps that `draw` decides."""
    chance = random.Random(conditions["draw"])
    return [(number % num_ranks, chance.randrange(conditions["steps"])) for number in range(conditions["kills"])]


def runs(conditions, num_ranks):
    """Every run, in order: undisturbed, killed, and going on with another number of ranks."""
    steps, fewer = conditions["steps"], num_ranks // 2
    whole, middle = ((num_ranks, steps),), steps // 2
    killed = [Run(f"kill {number}", whole, kill) for number, kill in enumerate(kills(conditions, num_ranks), 1)]
    pairs = ((num_ranks, fewer), (fewer, num_ranks)) if fewer else ()
    resized = [Run(f"from {before} to {after}", ((before, middle), (after, steps))) for before, after in pairs]
    return [Run(UNINTERRUPTED, whole), *killed, *resized]
