"""Labs: predict with the formulary, run the real thing on several processes, be told how far off you were."""

import importlib

from formulary import InputError, nearest

# the module of each lab, in the order of the book; each has its LAB
LABS = (
    "model_states",
    "traffic",
    "peak_memory",
    "paper_cluster",
    "pipeline",
    "tensor_parallel",
    "qlora",
    "checkpoint",
    "numerics",
    "throughput",
)


def load(name):
    """The Lab of that name. Raises InputError with the nearest names if there is none."""
    if name not in LABS:
        raise InputError(f"no lab is called {name!r}{nearest(name, LABS)}; there are {', '.join(LABS)}")
    return importlib.import_module(f".{name}", __name__).LAB


__all__ = ["LABS", "load"]
