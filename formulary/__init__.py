"""Sixteen Psi's book of formulas: what is true, once, with units, sources and derivations."""

from .catalogue import SUBJECTS, formula, load_all
from .claim import Claim
from .convention import Alternative, Convention
from .derivation import Derivation, DerivationError, tex
from .formula import FORMULAS, Formula, define
from .judge import Outcome, Verdict, judge
from .ledger import Balance, Ledger
from .quantity import GLOSSARY, InputError, Quantity, look_up, quantity
from .spelling import nearest
from .units import UnitError

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
