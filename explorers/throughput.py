"""Explorers of speed: how well a run uses its cards, how long it takes, and what more cards are worth."""

from formulary import look_up
from formulary.compute import HFU_WITH_SCORES, MFU_OF_PARAMETERS, MFU_WITH_SCORES, TRAINING_TIME_AT_RATE
from formulary.hardware import GPUS
from formulary.scaling import EXPOSED_EFFICIENCY
from formulary.shapes import MODELS

from .control import Slider
from .curve import Curve
from .explorer import Explorer
from .memory import sizes

LLAMA = {"num_params": "65.2B", **MODELS["LLaMA 65B"]}
CARD = GPUS["A100 80GB"]["peak_flop_per_s"]
LENGTH = MODELS["GPT-3"]["num_positions"]
PRESETS = {
    "model": {title: sizes(shape, shape) for title, shape in MODELS.items()},
    "card": GPUS,
}
PER_CARD = look_up("one_gpu_tokens_per_s").span


def mfu_explorer(
    tokens_per_s=380,
    num_gpus=1,
    num_params=LLAMA["num_params"],
    num_layers=LLAMA["num_layers"],
    num_heads=LLAMA["num_heads"],
    head_dim=LLAMA["head_dim"],
    seq_length=LENGTH,
    peak_flop_per_s=CARD,
    recomputed_share=1,
    presets=PRESETS,
):
    """Share of the cards' peak that a rate of tokens means: by parameters, with scores, and with what is recomputed."""
    controls = [
        Slider("tokens_per_s", tokens_per_s, "tokens per second, all cards", span=PER_CARD),
        Slider("num_gpus", num_gpus, "cards", scale="doubling"),
        Slider("num_params", num_params, "parameters"),
        Slider("num_layers", num_layers, "layers"),
        Slider("num_heads", num_heads, "heads"),
        Slider("head_dim", head_dim, "width of a head", scale="doubling"),
        Slider("seq_length", seq_length, "tokens of a sequence", scale="doubling"),
        Slider("peak_flop_per_s", peak_flop_per_s, "peak of a card"),
        Slider("recomputed_share", recomputed_share, "share of the forward pass recomputed"),
    ]
    curves = {"MFU, parameters": MFU_OF_PARAMETERS, "MFU, and scores": MFU_WITH_SCORES, "HFU, and scores": HFU_WITH_SCORES}
    view = Curve(curves, controls[0], "share of the peak", scale="%", log=(True, True))
    fixed = {"causal_share": 1, "peak_factor": 1}
    title = "How well the cards are used"
    return Explorer([MFU_OF_PARAMETERS], controls, view, title=title, presets=presets, fixed=fixed, made_by="explorers.mfu_explorer")


def training_time_explorer(tokens_per_s=None, num_tokens=None):
    """How long a training takes over the rate of its cluster."""
    controls = [
        Slider("tokens_per_s", tokens_per_s, "tokens per second, all cards"),
        Slider("num_tokens", num_tokens, "tokens of the training"),
    ]
    view = Curve({"training time": TRAINING_TIME_AT_RATE}, controls[0], "training time", log=(True, True))
    title = "How long it takes"
    return Explorer(TRAINING_TIME_AT_RATE, controls, view, title=title, made_by="explorers.training_time_explorer")


def scaling_explorer(num_gpus=64, one_gpu_step_time=60, exposed_comm_time=0.2):
    """Speed-up per card over the number of cards, at one global batch, when some communication cannot hide."""
    controls = [
        Slider("num_gpus", num_gpus, "cards", scale="doubling"),
        Slider("one_gpu_step_time", one_gpu_step_time, "a step on one card"),
        Slider("exposed_comm_time", exposed_comm_time, "exposed communication"),
    ]
    view = Curve({"scaling efficiency": EXPOSED_EFFICIENCY}, controls[0], "speed-up per card", log=(True, False), scale="%")
    title = "What more cards are worth"
    return Explorer(EXPOSED_EFFICIENCY, controls, view, title=title, made_by="explorers.scaling_explorer")
