"""The key of a formula asked for: a sympy expression over quantities, and the letters in which a learner may write it."""

import operator
import re

import sympy as sp

from formulary import GLOSSARY
from formulary import glossary as _glossary  # noqa: F401  fills the table
from formulary.catalogue import find
from formulary.units import without_units

from .expression import GREEK, readings

FUNCTIONS = {
    "sqrt": sp.sqrt,
    "max": sp.Max,
    "min": sp.Min,
    "ceil": sp.ceiling,
    "ceiling": sp.ceiling,
    "floor": sp.floor,
    "log2": lambda x: sp.log(x, 2),
}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": operator.pow}

# What other texts call a quantity, beside its letter in the glossary.
ALIASES = {
    "num_params": ("N", "P", "Φ", "n"),
    "world_size": ("N", "n", "K", "d", "w", "p", "N_d", "DP", "D", "R", "G"),
    "num_gpus": ("N", "G", "k", "w", "p"),
    "tensor_parallel": ("k", "T", "TP", "p", "N", "n"),
    "num_stages": ("p", "k", "K", "S", "PP", "D"),
    "num_micro_batches": ("m", "n"),
    "chunks_per_stage": ("v",),
    "context_parallel": ("k", "N", "CP", "n"),
    "num_layers": ("l", "n"),
    "hidden_size": ("H", "d", "d_model"),
    "seq_length": ("T", "n", "N", "S", "L"),
    "micro_batch": ("B",),
    "accumulation_steps": ("k", "M", "A", "a", "m"),
    "message_bytes": ("M", "n", "V", "D"),
    "bandwidth": ("B", "b", "W", "BW"),
    "latency": ("a", "l"),
    "lora_rank": ("R",),
    "num_workers": ("n", "N", "W", "k"),
    "head_dim": ("d_h", "d_head", "D"),
    "stage_forward_time": ("t_f", "t_fwd", "F", "f"),
    "stage_backward_time": ("t_b", "t_bwd", "B", "b"),
    "sram_elements": ("M", "S"),
    "num_segments": ("k", "n", "G"),
    "layer_activation_bytes": ("a",),
}


def symbolic(text, own=(), named=None):
    """Arithmetic over formulas, quantities and names `named` as an expression without units.

    A name is one of the learner's `own` symbols, then a named value, then a formula (which may choose a convention, as in
    `state_bytes.fp32_adam`), then a quantity. Raises NotFormula for what is none, InputError for an unknown convention.
    """
    names = {}
    for word in re.findall(r"[A-Za-z_][\w.]*", text):
        if (meaning := _meaning(word, own, named or {})) is not None:
            names[word.replace(".", "__")] = meaning
    plain = re.sub(r"(?<=[a-z_0-9])\.(?=[a-z])", "__", text.replace("**", "^"))
    return sp.sympify(_sympy(readings(plain, names)[0], names))


def _meaning(word, own, named):
    name, _, convention = word.partition(".")
    if name in own:
        return symbol(name)
    if name in named:
        return named[name]
    chosen = find(name)
    if chosen is None:
        return symbol(name) if name in GLOSSARY else None
    return without_units(chosen.under(*([convention] if convention else [])).by_convention().expr)


def _sympy(tree, names):
    kind = tree[0]
    if kind == "num":
        return sp.Rational(tree[1].numerator, tree[1].denominator)
    if kind == "name":
        return names[tree[1]]
    if kind == "call":
        return FUNCTIONS[tree[1]](*(_sympy(part, names) for part in tree[2]))
    return OPERATIONS[kind](*(_sympy(part, names) for part in tree[1:]))


def symbol(name):
    """The symbol of a quantity, or a positive one for a name that is the exercise's own."""
    return GLOSSARY[name].symbol if name in GLOSSARY else sp.Symbol(name, positive=True)


def filled(chosen, values):
    """The expression of a formula with `values` and its conventions filled in, without units."""
    return without_units(chosen.given(**values).by_convention().expr)


# --- letters ---------------------------------------------------------------------------------------------------------


def bare(letter):
    """A letter as the reader knows it, without TeX's marks: `b_master` for `b_{\\mathrm{master}}`, `Ψ` for `\\Psi`."""
    letter = re.sub(r"\\(mathrm|text|mathit|operatorname|tilde|bar)(?![A-Za-z])", "", letter)
    letter = re.sub(r"\\([A-Za-z]+)", lambda match: GREEK.get(match[1], match[1]), letter)
    return re.sub(r"[{}\\\s,]", "", letter)


def alphabet(names, letters=()):
    """{letter: names it may stand for} for quantities `names`: those given for the exercise, then the glossary's, then usual ones.

    A letter that a stronger table gives away is not taken by a weaker one, and a name is always its own letter.
    """
    found = {name: (name,) for name in names}
    for table in (dict(letters), _glossary_letters(names), _aliases(names), _other_case(names)):
        new = {}
        for letter, name in table.items() if isinstance(table, dict) else table:
            if bare(letter) not in found:
                new.setdefault(bare(letter), []).append(name)
        found |= {letter: tuple(meant) for letter, meant in new.items()}
    return found


def _glossary_letters(names):
    return [(GLOSSARY[name].tex, name) for name in names if name in GLOSSARY]


def _aliases(names):
    return [(letter, name) for name in names for letter in ALIASES.get(name, ())]


def _other_case(names):
    return [(bare(letter).swapcase(), name) for letter, name in _glossary_letters(names) if len(bare(letter)) == 1]


def first_letters(letters):
    """{name: the letter it is shown by}, the first that stands for nothing else."""
    found = {}
    for letter, meant in letters.items():
        if len(meant) == 1 and letter != meant[0]:
            found.setdefault(meant[0], letter)
    return {name: found.get(name, name) for names in letters.values() for name in names}


def shown(letters, names=None):
    """The letters by which quantities are shown, or those of these `names`, in order."""
    first = first_letters(letters)
    return sorted({first[name] for name in names or first}, key=lambda letter: (letter.lower(), letter))


def written(expr, letters):
    """An expression as a learner would write it, in the first letter of each quantity."""
    first = first_letters(letters)
    return str(expr.xreplace({s: sp.Symbol(first.get(s.name, s.name)) for s in expr.free_symbols}))
