"""Floating-point formats: what they reach, what they round away, and what training does about it."""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define
from .hardware import FORMATS, IEEE, OCP
from .memory import PARAM_STATE, RECIPE
from .units import BYTE

_FORMAT = {"source": IEEE + "; " + OCP, "chapter": 2, "covers": ("F27",), "assumptions": ("binary format with an implied leading one",)}

_USES = {
    "bf16": "weights, gradients and activations of most training runs",
    "fp16": "the same before bf16, with loss scaling",
    "fp32": "master weights, moments, sums",
    "E4M3": "weights and activations in eight-bit products",
    "E5M2": "gradients in eight-bit products",
}
NUMBER_FORMAT = Convention(
    "number_format",
    "How are a number's bits divided?",
    tuple(
        Alternative(
            title,
            f"{FORMATS[title]['exponent_bits']} bits of exponent, {FORMATS[title]['mantissa_bits']} of mantissa",
            who,
            dict(FORMATS[title]),
        )
        for title, who in _USES.items()
    ),
)

EXPONENT_BIAS = define(
    g.exponent_bias,
    derivation=Derivation("The exponent field has so many codes", 2**g.exponent_bits)
    .multiply("Half of them stand for exponents of at most zero", sp.Rational(1, 2), 2 ** (g.exponent_bits - 1))
    .add("and code zero is kept for subnormal numbers", -1, 2 ** (g.exponent_bits - 1) - 1),
    **_FORMAT,
)

SMALLEST_NORMAL = define(
    g.smallest_normal,
    derivation=Derivation("The smallest exponent code with a full mantissa is 1", 2 ** (1 - g.exponent_bias)).substitute(
        "less the bias", [EXPONENT_BIAS], 2 ** (2 - 2 ** (g.exponent_bits - 1))
    ),
    **_FORMAT,
)

SMALLEST_SUBNORMAL = define(
    g.smallest_subnormal,
    derivation=Derivation("Below the smallest normal number the spacing stays what it was there", SMALLEST_NORMAL.expr).multiply(
        "one step of the last mantissa bit", 2**-g.mantissa_bits, 2 ** (2 - 2 ** (g.exponent_bits - 1) - g.mantissa_bits)
    ),
    **_FORMAT,
)

LARGEST_FLOAT = define(
    g.largest_float,
    derivation=Derivation("A mantissa of ones is one step short of two", 2 - 2**-g.mantissa_bits)
    .add(
        "E4M3 gives its last code to NaN, so its largest is a step lower",
        -g.reserved_codes * 2**-g.mantissa_bits,
        2 - (1 + g.reserved_codes) * 2**-g.mantissa_bits,
    )
    .multiply("times the largest power of two", 2**g.max_exponent, (2 - (1 + g.reserved_codes) * 2**-g.mantissa_bits) * 2**g.max_exponent),
    **_FORMAT,
)

FLOAT_SPACING = define(
    g.float_spacing,
    derivation=Derivation("A binade is as wide as its lower end is large", 2**g.binade).multiply(
        "and the mantissa cuts it into equal steps", 2**-g.mantissa_bits, 2 ** (g.binade - g.mantissa_bits)
    ),
    **_FORMAT,
)

MACHINE_EPSILON = define(
    g.machine_epsilon,
    derivation=Derivation("The spacing of a binade", FLOAT_SPACING.expr).substitute(
        "of the one above 1", {g.binade: 0}, 2**-g.mantissa_bits
    ),
    **_FORMAT,
)

_NEAREST = {**_FORMAT, "assumptions": ("rounding to nearest, ties to even",)}

UNIT_ROUNDOFF = define(
    g.unit_roundoff,
    derivation=Derivation("The spacing over the smallest number of its binade", FLOAT_SPACING.expr / 2**g.binade)
    .rewrite("does not depend on the binade", 2**-g.mantissa_bits)
    .multiply("and rounding misses by half a step at most", sp.Rational(1, 2), 2 ** (-1 - g.mantissa_bits)),
    **_NEAREST,
)

SWALLOW_THRESHOLD = define(
    g.swallow_threshold,
    derivation=Derivation("The spacing around a weight", FLOAT_SPACING.expr)
    .multiply(
        "which is half as wide just below a power of two",
        sp.Rational(1, 2) ** g.spacing_halvings,
        2 ** (g.binade - g.mantissa_bits - g.spacing_halvings),
    )
    .multiply(
        "An update of less than half a step rounds back", sp.Rational(1, 2), 2 ** (g.binade - g.mantissa_bits - g.spacing_halvings - 1)
    ),
    conventions=(
        Convention(
            "update_direction",
            "Which way does the update move the weight?",
            (
                Alternative(
                    "either_way", "any weight that is no power of two, or away from zero", "the usual rule", {"spacing_halvings": 0}
                ),
                Alternative(
                    "toward_zero_from_a_power_of_two", "the numbers below lie twice as close", "the corner case", {"spacing_halvings": 1}
                ),
            ),
        ),
    ),
    **_NEAREST,
)

# --- many small updates -------------------------------------------------------------------------------------------------

_DRIFT = {
    "source": "Zamirai et al., Revisiting BFloat16 Training, 2020, sections 3 and 4",
    "chapter": 2,
    "covers": ("F27",),
}
_u, _n = g.update_size, g.num_updates

KEPT_DRIFT = define(
    g.weight_drift,
    name="kept_drift",
    derivation=Derivation("One update", _u).multiply("and all others, none of them lost", _n, _u * _n),
    assumptions=("an fp32 master, or a compensation that keeps what rounding took; or stochastic rounding, on average",),
    **_DRIFT,
)

_STEPS_MOVED = sp.floor(_u / g.float_spacing + sp.Rational(1, 2))

ROUNDED_DRIFT = define(
    g.weight_drift,
    name="rounded_drift",
    derivation=Derivation("An update is so many steps of the weight's format, rounded to the nearest", _STEPS_MOVED)
    .multiply("each as wide as the spacing", g.float_spacing, _STEPS_MOVED * g.float_spacing)
    .multiply("and rounding forgets what it took, so every update goes alike", _n, _STEPS_MOVED * g.float_spacing * _n),
    assumptions=("rounding to nearest, no tie", "the weight stays within its binade and moves away from zero"),
    **_DRIFT,
)

FORMAT_DRIFT = define(
    g.weight_drift,
    name="format_drift",
    derivation=Derivation("The drift when every update is rounded", ROUNDED_DRIFT.expr).substitute(
        "to the spacing of a format", [FLOAT_SPACING], ROUNDED_DRIFT.expr.subs(g.float_spacing, FLOAT_SPACING.expr)
    ),
    assumptions=ROUNDED_DRIFT.assumptions,
    **_DRIFT,
)

# --- loss scaling and clipping ------------------------------------------------------------------------------------------

MICIKEVICIUS = "Micikevicius et al., Mixed Precision Training, 2018, section 3.2"
_SCALING = {
    "source": MICIKEVICIUS,
    "chapter": 2,
    "covers": ("F28",),
    "assumptions": ("gradients are linear in the loss", "unscaled in fp32 before clipping and the update"),
}

RESCUED_GRADIENT = define(
    g.rescued_gradient,
    derivation=Derivation("The scaled gradient must reach the smallest number of the format", SMALLEST_SUBNORMAL.expr).multiply(
        "and is divided by the scale in fp32", 1 / g.loss_scale, SMALLEST_SUBNORMAL.expr / g.loss_scale
    ),
    **_SCALING,
)

OVERFLOW_GRADIENT = define(
    g.overflow_gradient,
    derivation=Derivation("The scaled gradient must stay below the largest number of the format", LARGEST_FLOAT.expr).multiply(
        "and is divided by the scale in fp32", 1 / g.loss_scale, LARGEST_FLOAT.expr / g.loss_scale
    ),
    **_SCALING,
)

SKIPPED_SHARE = define(
    g.skipped_share,
    derivation=Derivation("After so many clean steps the scale doubles", g.growth_interval)
    .add("and the next step overflows, which halves it again", 1, g.growth_interval + 1)
    .power("One step of each such round is skipped", -1, 1 / (g.growth_interval + 1)),
    source="torch.amp.GradScaler documentation",
    chapter=2,
    covers=("F28",),
    assumptions=("gradients of one size, so that twice the scale always overflows",),
)

CLIP_FACTOR = define(
    g.clip_factor,
    derivation=Derivation("The factor that brings the norm to its limit", g.max_norm / g.grad_norm)
    .at_most("never above 1: a small gradient is left alone", 1, sp.Min(1, g.max_norm / g.grad_norm))
    .rewrite("in one fraction, which a zero gradient survives", g.max_norm / sp.Max(g.grad_norm, g.max_norm)),
    source="Pascanu et al., On the difficulty of training recurrent neural networks, 2013, algorithm 1",
    chapter=2,
    covers=("F29",),
    assumptions=("norm of the whole gradient, after accumulation and unscaling", "torch adds a millionth to the norm"),
)

GLOBAL_GRAD_NORM = define(
    g.grad_norm,
    name="global_grad_norm",
    derivation=Derivation(
        "Every rank adds up the squares it holds; all together", g.tensor_parallel * (g.sharded_square_sum + g.replicated_square_sum)
    )
    .add(
        "A replicated parameter was counted on every rank; it is one",
        (1 - g.tensor_parallel) * g.replicated_square_sum,
        g.tensor_parallel * g.sharded_square_sum + g.replicated_square_sum,
    )
    .power("The norm is the root", sp.Rational(1, 2), sp.sqrt(g.tensor_parallel * g.sharded_square_sum + g.replicated_square_sum)),
    source="Megatron-LM, megatron/core/optimizer/clip_grads.py",
    chapter=2,
    covers=("F29",),
    assumptions=("sharded over tensor-parallel ranks, norms and biases replicated",),
)

# --- the order of a sum -------------------------------------------------------------------------------------------------

_ORDER = {
    "source": "Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2",
    "chapter": 15,
    "covers": ("F41",),
    "assumptions": ("rounding to nearest, no overflow", "a bound: typical gaps are far smaller", "equal where every partial sum is exact"),
}


def _gap(because, roundings):
    """Twice the relative error a sum may have when no term is rounded more than `roundings` times."""
    missed = roundings * g.unit_roundoff / (1 - roundings * g.unit_roundoff)
    return (
        Derivation(because, 1 / (1 - roundings * g.unit_roundoff))
        .add("of which 1 is the exact sum", -1, missed)
        .multiply("Two orders may miss it on opposite sides", 2, 2 * missed)
        .substitute("in this format", [UNIT_ROUNDOFF], 2 * roundings / (2 ** (g.mantissa_bits + 1) - roundings))
    )


_ORDER_LOST = "so many terms may lose every digit, and there is no bound"

TREE_ORDER_GAP = define(
    g.order_gap,
    name="tree_order_gap",
    derivation=_gap("In a tree a term is rounded once a level, and grows by no more than this factor", sp.ceiling(sp.log(g.num_terms, 2))),
    valid=((g.num_terms <= 8**g.mantissa_bits, _ORDER_LOST),),
    **_ORDER,
)

ORDER_GAP = define(
    g.order_gap,
    derivation=_gap("A term is rounded once for every later one, and grows by no more than this factor", g.num_terms - 1),
    valid=((g.num_terms <= 2**g.mantissa_bits, _ORDER_LOST),),
    conventions=(
        Convention(
            "summation_order",
            "How deep is the sum?",
            (
                Alternative("any_order", "one after the other, or any other order", "a ring; a loop"),
                Alternative("tree", "halves added to halves", "a tree all-reduce; numpy's pairwise sum", formula=TREE_ORDER_GAP),
            ),
        ),
    ),
    **_ORDER,
)

# --- 8-bit optimizer states ---------------------------------------------------------------------------------------------

_EIGHT_BIT = {
    "source": "Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2022, section 2",
    "chapter": 2,
    "covers": ("F42",),
}
_SAVED = g.bytes_per_momentum + g.bytes_per_variance - 2 * BYTE
_MOMENTS = (_SAVED >= 0, "the recipe must have moments of more than a byte each")

MOMENT_SAVING = define(
    g.moment_saving_bytes,
    conventions=(RECIPE,),
    derivation=Derivation("Adam's two moments of one parameter", g.bytes_per_momentum + g.bytes_per_variance)
    .add("become one byte each", -2 * BYTE, _SAVED)
    .multiply("for every parameter", g.num_params, _SAVED * g.num_params),
    valid=(_MOMENTS,),
    assumptions=("block scales counted apart", "all tensors quantised, embeddings and small ones too"),
    **_EIGHT_BIT,
)

MOMENT_SAVING_SHARE = define(
    g.moment_saving_share,
    conventions=(RECIPE,),
    derivation=Derivation("What is saved, over all model states", g.moment_saving_bytes / (g.param_state_bytes * g.num_params)).substitute(
        "parameter by parameter", [MOMENT_SAVING, PARAM_STATE], _SAVED / PARAM_STATE.expr
    ),
    valid=(_MOMENTS,),
    assumptions=("block scales counted apart",),
    **_EIGHT_BIT,
)

MOMENT_SCALE = define(
    g.moment_scale_bytes,
    derivation=Derivation("A tensor has so many blocks", g.num_params / g.quantizer_block)
    .round_up("the last one not full", sp.ceiling(g.num_params / g.quantizer_block))
    .multiply("each with an fp32 scale for either moment", 8 * BYTE, 8 * BYTE * sp.ceiling(g.num_params / g.quantizer_block)),
    assumptions=("all parameters in one tensor",),
    **_EIGHT_BIT,
)
