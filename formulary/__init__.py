"""Sixteen Psi's book of formulas: what is true, once, with units, sources and derivations."""

import importlib

from .claim import Claim
from .convention import Alternative, Convention
from .derivation import Derivation, DerivationError, tex
from .formula import FORMULAS, Formula, define
from .judge import Outcome, Verdict, judge
from .ledger import Balance, Ledger
from .quantity import GLOSSARY, InputError, Quantity, look_up, quantity
from .spelling import nearest
from .units import UnitError

SUBJECTS = (
    "memory",
    "attention",
    "sharding",
    "communication",
    "data_parallel",
    "zero",
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
)


def load_all():
    """Import every subject, so that the catalogue is whole; returns it, name to Formula."""
    for subject in SUBJECTS:
        importlib.import_module(f"{__name__}.{subject}")
    return FORMULAS


def formula(name):
    """The formula of that name. Raises InputError with the nearest names if there is none.

    Subjects are imported one after the other and only until one defines it, so the first chapters start quickly.
    """
    for subject in SUBJECTS:
        if name in FORMULAS:
            break
        importlib.import_module(f"{__name__}.{subject}")
    if name not in FORMULAS:
        hint = nearest(name, FORMULAS) or "; `psi formula list` names them all"
        raise InputError(f"no formula is called {name!r}{hint}")
    return FORMULAS[name]


__all__ = [
    "FORMULAS",
    "GLOSSARY",
    "SUBJECTS",
    "Alternative",
    "Balance",
    "Claim",
    "Convention",
    "Derivation",
    "DerivationError",
    "Formula",
    "InputError",
    "Ledger",
    "Outcome",
    "Quantity",
    "UnitError",
    "Verdict",
    "define",
    "formula",
    "judge",
    "load_all",
    "look_up",
    "nearest",
    "quantity",
    "tex",
]
