"""What a model in training keeps in memory between steps: weights, gradients, master copy, Adam's two moments.

The ledger counts bytes per parameter and multiplies by the number of parameters; ZeRO divides some of its items
among the data-parallel ranks.
"""

import sympy as sp

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import define
from .ledger import Ledger

ZERO_PAPER = "Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020, section 3"

# name: (bytes of a weight, gradient, master weight, first moment, second moment), what it is, who counts so
_RECIPES = {
    "mixed_adam": (
        (2, 2, 4, 4, 4),
        "16-bit weights and gradients, fp32 master and moments: 16 bytes",
        "ZeRO paper; Ultra-Scale Playbook by default",
    ),
    "fp32_adam": ((4, 4, 0, 4, 4), "everything in fp32, the weights are their own master: 16 bytes", "plain PyTorch training"),
    "mixed_adam_fp32_grads": (
        (2, 4, 4, 4, 4),
        "16-bit weights, fp32 gradients: 18 bytes",
        "Megatron-LM with bf16; ml-engineering (stas00)",
    ),
    "mixed_adam_both_grads": ((2, 6, 4, 4, 4), "16-bit and fp32 gradients both kept: 20 bytes", "Megatron-LM with fp16; ZeRO-Infinity"),
    "no_master_adam": ((2, 2, 0, 4, 4), "16-bit weights updated directly, fp32 moments: 12 bytes", "QLoRA's figure of 780 GB for 65B"),
    "mixed_adam_8bit": ((2, 2, 4, 1, 1), "fp32 master, one byte a moment: 10 bytes", "bitsandbytes' 8-bit Adam"),
    "bf16_adam": ((2, 2, 0, 2, 2), "everything in bf16 with stochastic rounding: 8 bytes", "masterless bf16 training"),
    "mixed_momentum": ((2, 2, 4, 4, 0), "mixed precision with one moment: 12 bytes", "Lion; SGD with momentum"),
    "mixed_sgd": ((2, 2, 4, 0, 0), "mixed precision, plain SGD: 8 bytes", "SGD without momentum"),
    "fp32_momentum": ((4, 4, 0, 4, 0), "fp32 with one moment: 12 bytes", "plain PyTorch SGD with momentum"),
    "fp32_sgd": ((4, 4, 0, 0, 0), "fp32, plain SGD: 8 bytes", "plain PyTorch SGD"),
}
_SIZES = (g.bytes_per_weight, g.bytes_per_grad, g.bytes_per_master, g.bytes_per_momentum, g.bytes_per_variance)

RECIPE = Convention(
    "recipe",
    "How many bytes does one parameter cost?",
    tuple(
        Alternative(name, meaning, who, dict(zip(map(str, _SIZES), sizes, strict=True))) for name, (sizes, meaning, who) in _RECIPES.items()
    ),
)

_REPLICA = {
    "source": ZERO_PAPER,
    "conventions": (RECIPE,),
    "chapter": 1,
    "assumptions": ("one replica, nothing sharded", "activations, buffers and fragmentation are counted elsewhere"),
}

PARAM_STATE = define(
    g.param_state_bytes,
    derivation=Derivation("The forward and backward kernels read a working weight", g.bytes_per_weight)
    .add("Backward leaves one gradient for it", g.bytes_per_grad, sum(_SIZES[:2]))
    .add("A 16-bit weight would round small updates away, so the optimizer keeps a master copy", g.bytes_per_master, sum(_SIZES[:3]))
    .add("Adam remembers a running mean of the gradient", g.bytes_per_momentum, sum(_SIZES[:4]))
    .add("and a running mean of its square", g.bytes_per_variance, sum(_SIZES)),
    covers=("F02",),
    **_REPLICA,
)

# name: (result of one replica, of one rank under ZeRO, bytes per parameter, first ZeRO stage that shards it)
_ITEMS = {
    "weights": (g.weight_bytes, g.zero_weight_bytes, g.bytes_per_weight, 3),
    "gradients": (g.grad_bytes, g.zero_grad_bytes, g.bytes_per_grad, 2),
    "master weights": (g.master_bytes, g.zero_master_bytes, g.bytes_per_master, 1),
    "first moments": (g.momentum_bytes, g.zero_momentum_bytes, g.bytes_per_momentum, 1),
    "second moments": (g.variance_bytes, g.zero_variance_bytes, g.bytes_per_variance, 1),
}


def _item(result, size):
    steps = Derivation("One parameter costs", size).multiply("and there are so many of them", g.num_params, size * g.num_params)
    return define(result, derivation=steps, **_REPLICA)


_PARTS = {name: _item(result, size) for name, (result, _, size, _) in _ITEMS.items()}

STATE = define(
    g.state_bytes,
    derivation=Derivation("One parameter costs", PARAM_STATE.expr).multiply(
        "and so does every other", g.num_params, PARAM_STATE.expr * g.num_params
    ),
    covers=("F01", "F02"),
    **_REPLICA,
)

STATE_LEDGER = Ledger("model states", _PARTS, STATE)

OPTIMIZER_SHARE = define(
    g.optimizer_share,
    derivation=Derivation("Optimizer state over all state", sum(part.expr for part in list(_PARTS.values())[2:]) / STATE.expr).rewrite(
        "The number of parameters cancels", sum(_SIZES[2:]) / PARAM_STATE.expr
    ),
    covers=("F03",),
    **_REPLICA,
)

_RANK = {
    "source": ZERO_PAPER,
    "conventions": (RECIPE,),
    "chapter": 7,
    "assumptions": ("every tensor splits evenly, without padding", "a stage shards all that the stages before it shard"),
}


def _sharded(name):
    """An item of the ledger, divided among the ranks from its ZeRO stage on and whole before it."""
    whole = _PARTS[name].expr
    return sp.Piecewise((whole / g.world_size, g.stage >= _ITEMS[name][3]), (whole, True))


def _shard(name):
    steps = Derivation("Without ZeRO every rank holds", _PARTS[name].expr).add(
        "A rank that owns one k-th of it drops the rest", _sharded(name) - _PARTS[name].expr, _sharded(name)
    )
    return define(_ITEMS[name][1], derivation=steps, **_RANK)


_SHARDS = {name: _shard(name) for name in _ITEMS}
_WEIGHTS, _GRADS, *_OPTIMIZER = _ITEMS


def _rank_holds(*sharded):
    return sum((_SHARDS if name in sharded else _PARTS)[name].expr for name in _ITEMS)


def _saving(*names):
    return sum(_SHARDS[name].expr - _PARTS[name].expr for name in names)


ZERO_STATE = define(
    g.zero_state_bytes,
    derivation=Derivation("Plain data parallelism: every rank holds the whole ledger", _rank_holds())
    .add(
        "Replicas start alike and see the same averaged gradient, so their optimizer states agree: from stage 1 on each owns one k-th",
        _saving(*_OPTIMIZER),
        _rank_holds(*_OPTIMIZER),
    )
    .add(
        "A rank that updates one k-th of the weights needs only that slice of the reduced gradient: from stage 2 on it keeps no more",
        _saving(_GRADS),
        _rank_holds(_GRADS, *_OPTIMIZER),
    )
    .add(
        "Weights are needed one layer at a time: from stage 3 on each rank stores one k-th and gathers the rest on demand",
        _saving(_WEIGHTS),
        _rank_holds(*_ITEMS),
    ),
    covers=("F04",),
    **_RANK,
)

ZERO_LEDGER = Ledger("model states of one rank", _SHARDS, ZERO_STATE)

ZERO_HEADROOM = define(
    g.zero_headroom_bytes,
    derivation=Derivation("A card has", g.memory_capacity).add(
        "and the model states of its rank take up their share", -ZERO_STATE.expr, g.memory_capacity - ZERO_STATE.expr
    ),
    **_RANK,
)
