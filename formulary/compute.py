"""How much work a training step is, how much of the machine's peak does it, and what it takes in days and dollars."""

from . import glossary as g
from .convention import Alternative, Convention
from .derivation import Derivation
from .formula import Formula, define
from .ledger import Ledger
from .units import FLOP, TOKEN

KAPLAN = "Kaplan et al., Scaling Laws for Neural Language Models, 2020, section 2.1"
PALM = "Chowdhery et al., PaLM, 2022, appendix B"
KORTHIKANTI = "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022, appendix A"
NARAYANAN = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, appendix"

_PER_TOKEN = {
    "chapter": 13,
    "covers": ("F30",),
    "assumptions": ("a multiply-add is two FLOP", "norms, softmax and activations not counted"),
}
_FLOP = FLOP / TOKEN

FORWARD_FLOP = define(
    g.forward_flop_per_token,
    derivation=Derivation("Every parameter takes part in one multiply-add per token", g.num_params).multiply(
        "which is two FLOP", 2 * _FLOP, 2 * _FLOP * g.num_params
    ),
    source=KAPLAN,
    **_PER_TOKEN,
)

CAUSAL = Convention(
    "causal",
    "Which scores count?",
    (
        Alternative(
            "all_scores",
            "all of them, also those a causal mask drops",
            "PaLM; Korthikanti et al.; nanoGPT; torchtitan",
            {"causal_share": 1},
        ),
        Alternative("causal_scores", "half of them", "FlashAttention's benchmarks with a causal mask", {"causal_share": 0.5}),
    ),
)

_SCORES = g.num_layers * g.num_heads * g.head_dim * g.seq_length / TOKEN * g.causal_share * _FLOP
ATTENTION_FLOP = define(
    g.attention_flop_per_token,
    conventions=(CAUSAL,),
    derivation=Derivation("A token's query meets every key of its sequence: d multiply-adds a head", 2 * _SCORES)
    .add("and its weights meet every value", 2 * _SCORES, 4 * _SCORES)
    .multiply("Backward takes twice as long as forward", 3, 12 * _SCORES),
    source=PALM,
    **_PER_TOKEN,
)

_TRAIN = (
    Derivation("Forward", FORWARD_FLOP.expr)
    .add("Backward, for the activations' gradients", 2 * _FLOP * g.num_params, 4 * _FLOP * g.num_params)
    .add("and for the weights' gradients", 2 * _FLOP * g.num_params, 6 * _FLOP * g.num_params)
)

FLOP_WITH_ATTENTION = define(
    g.flop_per_token,
    name="flop_per_token_with_attention",
    conventions=(CAUSAL,),
    derivation=_TRAIN.add("The scores involve no parameter", ATTENTION_FLOP.expr, _TRAIN.expr + ATTENTION_FLOP.expr),
    source=PALM,
    **_PER_TOKEN,
)

_MATRICES = g.num_params - g.vocab_size * g.hidden_size
FLOP_OF_MATRICES = define(
    g.flop_per_token,
    name="flop_per_token_without_embedding",
    conventions=(CAUSAL,),
    derivation=Derivation("Each parameter in a product", 6 * _FLOP * g.num_params)
    .add("The input embedding is looked up, not multiplied", -6 * _FLOP * g.vocab_size * g.hidden_size, 6 * _FLOP * _MATRICES)
    .add("and the scores", ATTENTION_FLOP.expr, 6 * _FLOP * _MATRICES + ATTENTION_FLOP.expr),
    valid=((g.vocab_size * g.hidden_size < g.num_params, "the embedding is only a part of the parameters"),),
    source="torchtitan, get_nparams_and_flops",
    **{**_PER_TOKEN, "assumptions": (*_PER_TOKEN["assumptions"], "the output head is not tied to the embedding")},
)

FLOP_PER_TOKEN = define(
    g.flop_per_token,
    derivation=_TRAIN,
    source=KAPLAN,
    conventions=(
        Convention(
            "flop_count",
            "What counts as a token's work?",
            (
                Alternative("parameters", "six FLOP a parameter", "Kaplan et al.; Chinchilla; quick estimates"),
                Alternative("parameters_and_scores", "and twelve for each score's element", "PaLM; nanoGPT", formula=FLOP_WITH_ATTENTION),
                Alternative("matrices_and_scores", "the same without the input embedding", "torchtitan", formula=FLOP_OF_MATRICES),
            ),
        ),
    ),
    **_PER_TOKEN,
)


def multiplied_params(*, vocab_size, hidden_size, ffn_size, num_layers, **_):
    """Parameters of a GPT that stand in a product: projections, feed-forward and head, but no embedding, bias or norm."""
    return num_layers * (4 * hidden_size**2 + 2 * hidden_size * ffn_size) + vocab_size * hidden_size


# --- a GPT's step, part by part -----------------------------------------------------------------------------------------

_S, _H = g.seq_length / TOKEN, g.hidden_size
_BATCH = g.global_batch * FLOP
_GPT = {
    "source": KORTHIKANTI,
    "chapter": 13,
    "covers": ("F30",),
    "assumptions": ("GELU MLP four times as wide as the model, as many key-value heads as heads", "all scores counted", "no recomputation"),
}
# name: (forward FLOP of a step, why)
_FORWARD = {
    "queries, keys, values": (6 * _BATCH * g.num_layers * _S * _H**2, "Three square matrices, a multiply-add for each element and token"),
    "scores": (2 * _BATCH * g.num_layers * _S**2 * _H, "Queries times keys"),
    "weighted values": (2 * _BATCH * g.num_layers * _S**2 * _H, "Weights times values"),
    "output projection": (2 * _BATCH * g.num_layers * _S * _H**2, "One more square matrix"),
    "MLP": (16 * _BATCH * g.num_layers * _S * _H**2, "Two matrices four times as large"),
    "logits": (2 * _BATCH * _S * _H * g.vocab_size, "The output head, once"),
}


def _forward():
    (first, why), *others = _FORWARD.values()
    steps = Derivation(why, first)
    for part, why in others:
        steps = steps.add(why, part, steps.expr + part)
    return steps


_ALL = _forward()
_LAYERS = _ALL.expr - _FORWARD["logits"][0]

RECOMPUTED_STEP = define(
    g.step_flop,
    name="recomputed_step_flop",
    derivation=Derivation("Forward, and twice as much backward", 3 * _ALL.expr)
    .add("and the layers' forward once more", _LAYERS, 3 * _ALL.expr + _LAYERS)
    .rewrite(
        "In the usual form",
        96 * _BATCH * g.num_layers * _S * _H**2 * (1 + _S / (6 * _H) + g.vocab_size / (16 * g.num_layers * _H)),
    ),
    **{**_GPT, "source": NARAYANAN, "assumptions": (*_GPT["assumptions"][:2], "every layer recomputed")},
)

STEP = define(
    g.step_flop,
    derivation=_ALL.multiply("Backward takes twice as long as forward", 3, 3 * _ALL.expr).rewrite(
        "In the usual form",
        72 * _BATCH * g.num_layers * _S * _H**2 * (1 + _S / (6 * _H) + g.vocab_size / (12 * g.num_layers * _H)),
    ),
    conventions=(
        Convention(
            "recomputation_counted",
            "Does the repeated forward pass count?",
            (
                Alternative("model_flop", "no: 72 BLsh² (1 + …)", "Korthikanti et al.; MFU"),
                Alternative("hardware_flop", "yes: 96 BLsh² (1 + …)", "Narayanan et al.; EleutherAI's calculator", formula=RECOMPUTED_STEP),
            ),
        ),
    ),
    **_GPT,
)

STEP_LEDGER = Ledger(
    "FLOP of a step",
    {name: Formula(g.part_flop, 3 * part, source=KORTHIKANTI, name=f"{name} FLOP") for name, (part, _) in _FORWARD.items()},
    STEP,
)

# --- throughput and utilisation -----------------------------------------------------------------------------------------

_SPEED = {"source": PALM, "chapter": 13, "covers": ("F30",)}

TOKENS_PER_STEP = define(
    g.tokens_per_step,
    derivation=Derivation("Sequences of one length", g.global_batch).multiply("tokens each", g.seq_length, g.global_batch * g.seq_length),
    **_SPEED,
    assumptions=("no padding",),
)

TOKENS_PER_S = define(
    g.tokens_per_s,
    derivation=Derivation("Tokens of a step", TOKENS_PER_STEP.expr).multiply(
        "in the time it takes", 1 / g.step_time, g.global_batch * g.seq_length / g.step_time
    ),
    **_SPEED,
    assumptions=("no padding",),
)

PEAK = Convention(
    "peak",
    "Which peak is the machine's?",
    (
        Alternative("dense", "of dense products", "papers", {"peak_factor": 1}),
        Alternative("sparse", "with 2:4 sparsity, twice the dense one", "NVIDIA's datasheets, in bold", {"peak_factor": 2}),
    ),
)
_CLUSTER_PEAK = g.num_gpus * g.peak_flop_per_s * g.peak_factor

MFU = define(
    g.mfu,
    conventions=(PEAK,),
    derivation=Derivation("Work done a second", g.flop_per_token * g.tokens_per_s).multiply(
        "over what the GPUs could do", 1 / _CLUSTER_PEAK, g.flop_per_token * g.tokens_per_s / _CLUSTER_PEAK
    ),
    valid=((g.flop_per_token * g.tokens_per_s <= _CLUSTER_PEAK, "so many tokens are more work than the GPUs can do"),),
    **_SPEED,
    assumptions=("the work the model needs, recomputation not counted",),
)

RATE_AT_MFU = define(
    g.tokens_per_s,
    name="tokens_per_s_at_mfu",
    conventions=(PEAK,),
    derivation=Derivation("Utilisation at some rate", MFU.expr).solve(
        "is what it is said to be", g.tokens_per_s, g.mfu, g.mfu * _CLUSTER_PEAK / g.flop_per_token
    ),
    **_SPEED,
    assumptions=MFU.assumptions,
)


def _counting(work, name):
    """The utilisation when a token's work is what formula `work` says."""
    instead = {g.flop_per_token: work.expr}
    return define(
        g.mfu,
        name=name,
        conventions=(PEAK, *(convention for convention in work.conventions if convention is CAUSAL)),
        derivation=Derivation("Utilisation", MFU.expr).substitute("with a token's work", instead, MFU.expr.subs(instead)),
        valid=tuple((relation.subs(instead), words) for relation, words in MFU.valid),
        **_SPEED,
        assumptions=MFU.assumptions,
    )


MFU_OF_PARAMETERS = _counting(FLOP_PER_TOKEN, "mfu_of_parameters")
MFU_WITH_SCORES = _counting(FLOP_WITH_ATTENTION, "mfu_with_scores")

HFU = define(
    g.hfu,
    derivation=Derivation("A step is three parts, one forward and two backward; so much of one is repeated", g.recomputed_share / 3)
    .add("beside the step itself", 1, 1 + g.recomputed_share / 3)
    .multiply("The hardware does all of it", g.mfu, g.mfu * (1 + g.recomputed_share / 3)),
    valid=((g.mfu * (1 + g.recomputed_share / 3) <= 1, "with what is recomputed it is more work than the GPUs can do"),),
    **_SPEED,
    assumptions=("only the forward pass is repeated",),
)

HFU_WITH_SCORES = define(
    g.hfu,
    name="hfu_with_scores",
    conventions=MFU_WITH_SCORES.conventions,
    derivation=Derivation("All that the hardware does", HFU.expr).substitute(
        "with scores counted", [MFU_WITH_SCORES], HFU.expr.subs(g.mfu, MFU_WITH_SCORES.expr)
    ),
    valid=tuple((relation.subs(g.mfu, MFU_WITH_SCORES.expr), words) for relation, words in HFU.valid),
    **_SPEED,
    assumptions=HFU.assumptions,
)

MFU_FROM_EFFICIENCY = define(
    g.mfu,
    name="mfu_from_efficiency",
    derivation=Derivation("When nothing waits the hardware is busy with", HFU.expr).solve(
        "as much as the kernels reach", g.mfu, g.kernel_efficiency, g.kernel_efficiency / (1 + g.recomputed_share / 3)
    ),
    **_SPEED,
    assumptions=("no communication, no bubbles, no input waits",),
)

TRAINING_TIME = define(
    g.training_time,
    conventions=(PEAK,),
    derivation=Derivation("All work", g.flop_per_token * g.num_tokens).multiply(
        "at the speed that is reached", 1 / (_CLUSTER_PEAK * g.mfu), g.flop_per_token * g.num_tokens / (_CLUSTER_PEAK * g.mfu)
    ),
    **_SPEED,
    assumptions=("no stops",),
)

TRAINING_TIME_AT_RATE = define(
    g.training_time,
    name="training_time_at_rate",
    derivation=Derivation("All tokens", g.num_tokens).multiply(
        "at the rate that is reached", 1 / g.tokens_per_s, g.num_tokens / g.tokens_per_s
    ),
    **_SPEED,
    assumptions=("no stops",),
)

_BILL = {
    "chapter": 13,
    "covers": ("F30",),
    "assumptions": ("every GPU is paid for from start to end",),
    "source": "definition of a GPU-hour",
}

GPU_TIME = define(
    g.gpu_time,
    derivation=Derivation("From start to end", g.training_time).multiply("on every GPU", g.num_gpus, g.training_time * g.num_gpus),
    **_BILL,
)

TRAINING_DOLLARS = define(
    g.training_dollars,
    derivation=Derivation("All GPUs' time", GPU_TIME.expr).multiply("at its price", g.gpu_price, GPU_TIME.expr * g.gpu_price),
    **_BILL,
)

TRAINING_ENERGY = define(
    g.training_energy,
    derivation=Derivation("All GPUs' time", GPU_TIME.expr)
    .multiply("at the power they draw", g.gpu_power, GPU_TIME.expr * g.gpu_power)
    .multiply("with cooling and losses", g.power_overhead, GPU_TIME.expr * g.gpu_power * g.power_overhead),
    **{**_BILL, "source": "Patterson et al., Carbon Emissions and Large Neural Network Training, 2021, section 2"},
)
