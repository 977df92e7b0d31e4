"""What blocks of torch hold during a step, to the byte: what each saves, at any width, and the moments at which a step holds most.

The block is the textbook's, with LayerNorm, dropout, stored scores and a GELU MLP. The step is one forward and one backward pass; what
was there before it, weights and data, is not counted.
"""

import sympy as sp

from . import glossary as g
from .attention import RESIDUAL_ELEMENTS, SAVED, SCORE_ELEMENTS
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .units import BYTE, TOKEN

_w, _h, _L, _done = g.bytes_per_saved, g.hidden_size, g.num_layers, g.blocks_done
_TOKENS = g.seq_length * g.micro_batch / TOKEN
_ELEMENT = _w * RESIDUAL_ELEMENTS  # one tensor as wide as the model
_MASK = BYTE * RESIDUAL_ELEMENTS
_SCORES = (2 * _w + BYTE) * SCORE_ELEMENTS
_STATISTIC = 2 * g.bytes_per_statistic * _TOKENS  # of one LayerNorm: mean and inverse deviation

_SAVING = {
    "source": "PyTorch's autograd, followed tensor by tensor; measured by the lab peak_memory",
    "chapter": 3,
    "assumptions": (
        "one width for all activations, one-byte dropout masks",
        "GELU MLP four times as wide as the model, no biases",
        "LayerNorm keeps a mean and an inverse deviation for each token",
    ),
}

# --- what a block saves ------------------------------------------------------------------------------------------------

NORM_STATISTICS = define(
    g.norm_statistics_bytes,
    derivation=Derivation("A LayerNorm keeps two numbers for each token", _STATISTIC)
    .multiply("a block has two of them", 2, 2 * _STATISTIC)
    .multiply("and there are so many blocks", _L, 2 * _STATISTIC * _L),
    **_SAVING,
)


def _kept(name):
    """As the textbook counts it, at any width; masks stay as they are."""
    return _MASK if "mask" in name else _ELEMENT * SAVED[name][0] / 2


def _each():
    """Tensor after tensor, what one block saves, without statistics."""
    names = list(SAVED)
    steps = Derivation(SAVED[names[0]][1].replace("16-bit ", ""), _kept(names[0]))
    for name in names[1:]:
        steps = steps.add(SAVED[name][1], _kept(name), steps.expr + _kept(name))
    return steps.add("Softmax keeps its output, dropout a mask and its output", _SCORES, steps.expr + _SCORES)


_STEPS = _each()
_SAVED = _STEPS.expr + 2 * _STATISTIC  # by one block
_INPUTS_OF_SCORES = _SAVED - _SCORES  # where the scores are rebuilt

BLOCK_SAVED = define(
    g.block_saved_bytes,
    derivation=_STEPS.add("Statistics of the norms", 2 * _STATISTIC, _SAVED).multiply("in every block", _L, _SAVED * _L),
    **_SAVING,
)

_PARTS = {
    name: Formula(g.saved_tensor_bytes, _kept(name) * _L, source=_SAVING["source"], name=f"{name} bytes at any width") for name in SAVED
} | {
    "attention scores": Formula(g.saved_tensor_bytes, _SCORES * _L, source=_SAVING["source"], name="attention scores bytes at any width"),
    "norm statistics": NORM_STATISTICS,
}
SAVED_LEDGER = Ledger("saved by blocks", _PARTS, BLOCK_SAVED)

# --- recomputation that stops early ----------------------------------------------------------------------------------------

_FORWARD_FLOP = 24 * _h**2 + 4 * g.seq_length / TOKEN * _h

EARLY_STOP_SHARE = define(
    g.recomputed_share,
    name="early_stop_share",
    derivation=Derivation("A block's forward pass, in FLOP for each token", _FORWARD_FLOP)
    .add("Rebuilding ends with the last tensor that is needed, before the last matrix", -8 * _h**2, _FORWARD_FLOP - 8 * _h**2)
    .multiply("as a share of the whole", 1 / _FORWARD_FLOP, (_FORWARD_FLOP - 8 * _h**2) / _FORWARD_FLOP)
    .rewrite("that is", (4 * _h + g.seq_length / TOKEN) / (6 * _h + g.seq_length / TOKEN)),
    **{**_SAVING, "assumptions": ("no dropout", "MLP four times as wide as the model", "all scores computed, causal or not")},
)

# --- the moments of a step -----------------------------------------------------------------------------------------------

# of several sequences the heads do not lie one after the other, and a batched product wants them so
_COPIES = sp.Piecewise((3 * _ELEMENT, g.micro_batch >= 2), (0, True))
# how blocks are recomputed: what a block that waits for its backward pass keeps, what it has saved when that begins, and why
_MODES = {
    "stored": (_SAVED, _SAVED, 0, "Blocks that wait keep all they have saved"),
    "selective": (_INPUTS_OF_SCORES, _INPUTS_OF_SCORES, _COPIES, "Blocks that wait keep all but their scores"),
    "full": (_ELEMENT, _SAVED, 0, "Blocks that wait keep their input"),
}
_BLOCK_GRADS = _w * (12 * _h**2 + 4 * _h)
_DONE_GRADS = _done * _BLOCK_GRADS
_LOSS = 2 * _w
_ATTENTION_LEFT = 5 * _ELEMENT + _STATISTIC
_STEP = {
    **_SAVING,
    "assumptions": (*_SAVING["assumptions"], "the loss is linear in the output", "the input needs a gradient, as an embedding does"),
}


def _sum(steps, *terms):
    for why, term in terms:
        steps = steps.add(why, term, steps.expr + term) if term else steps
    return steps


def _at_mlp(waiting, own, copies, why):
    """The last matrix of the MLP computes both its gradients: nothing of the block is free yet but the mask after it."""
    return _sum(
        Derivation(why, waiting * (_L - 1 - _done)),
        ("the block at work has saved, or rebuilt", own),
        ("but its last dropout has used its mask", -_MASK),
        ("the gradient that came in goes around the MLP, the dropped one into it", 2 * _ELEMENT),
        ("the gradient of the MLP's activation, four times as wide", 4 * _ELEMENT),
        ("and that of the last matrix", 4 * _w * _h**2),
        ("the gradients of the blocks that are done", _DONE_GRADS),
        ("the loss and its own gradient", _LOSS),
    )


def _at_attention(waiting, own, copies, why):
    """The product of scores and values computes both its gradients."""
    return _sum(
        Derivation(why, waiting * (_L - 1 - _done)),
        ("the block at work still has its input, that of the projections, queries, keys, values, one norm's statistics", _ATTENTION_LEFT),
        ("its scores, saved or rebuilt", _SCORES),
        ("rebuilding them has copied queries, keys and values, where there are several sequences", copies),
        ("the gradient that goes around, that of the heads' output and that of the values", 3 * _ELEMENT),
        ("the gradient of the dropped scores", _w * SCORE_ELEMENTS),
        ("the gradients of both MLP matrices, of the output projection and of a norm", _w * (9 * _h**2 + 2 * _h)),
        ("and of the blocks that are done", _DONE_GRADS),
        ("the loss and its own gradient", _LOSS),
    )


MOMENTS = {"mlp": _at_mlp, "attention": _at_attention}
PEAKS = {
    mode: [
        define(
            g.step_peak_bytes,
            name=f"{mode}_at_{moment}_bytes",
            derivation=steps(*kept),
            valid=(
                (_done <= _L - 1, "a block must be left"),
                (g.seq_length * g.micro_batch >= _h * TOKEN, "with fewer tokens than the model is wide, another moment may hold more"),
            ),
            **_STEP,
        )
        for moment, steps in MOMENTS.items()
    ]
    for mode, kept in _MODES.items()
}
