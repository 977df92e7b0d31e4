"""The catalogue: every formula by name, from the subjects that define them."""

import importlib

from .formula import FORMULAS
from .quantity import InputError
from .spelling import nearest

SUBJECTS = (
    "memory",
    "attention",
    "step_memory",
    "sharding",
    "communication",
    "data_parallel",
    "zero",
    "fully_shard",
    "tensor_parallel",
    "pipeline",
    "models",
    "precision",
    "lowrank",
    "compute",
    "scaling",
    "offload",
    "reliability",
    "capacity",
    "plan",
)


def load_all():
    """Import every subject, so that the catalogue is whole; returns it, name to Formula."""
    for subject in SUBJECTS:
        importlib.import_module(f"formulary.{subject}")
    return FORMULAS


def find(name):
    """The formula of that name, or None.

    Subjects are imported one after the other and only until one defines it, so the first chapters start quickly.
    """
    for subject in SUBJECTS:
        if name in FORMULAS:
            break
        importlib.import_module(f"formulary.{subject}")
    return FORMULAS.get(name)


def formula(name):
    """The formula of that name. Raises InputError with the nearest names if there is none."""
    found = find(name)
    if found is None:
        hint = nearest(name, FORMULAS) or "; `psi formula list` names them all"
        raise InputError(f"no formula is called {name!r}{hint}")
    return found
