"""The planner: a model, a cluster and a batch, and every way to bring them together."""

from formulary.hardware import GPUS, NETWORKS
from formulary.planner import USUAL
from formulary.shapes import MODELS

from .control import Slider
from .explorer import Explorer
from .memory import sizes
from .ranking import Ranking

_SHAPE = ("num_layers", "hidden_size", "num_heads", "head_dim", "vocab_size")


SIZES = {title: sizes(shape, _SHAPE) for title, shape in MODELS.items()}
PRESETS = {"model": SIZES, "card": GPUS, "network": NETWORKS}
LARGEST_SEARCH = 1024  # cards; beyond that a slider would wait for the plans


def planner_explorer(model="Llama 2 7B", card="A100 80GB", network="InfiniBand HDR", num_gpus=8, global_batch=64, seq_length=4096, **given):
    """Every plan for a model of `formulary.shapes`, a card and a network of `formulary.hardware`; `given` sets further controls."""
    start = {**USUAL, **SIZES[model], **GPUS[card], **NETWORKS[network], **given}
    at = lambda name, label, **options: Slider(name, start[name], label, **options)
    controls = [
        at("num_params", "parameters"),
        at("num_layers", "layers"),
        at("hidden_size", "width"),
        at("num_heads", "heads"),
        at("vocab_size", "vocabulary"),
        Slider("num_gpus", num_gpus, "GPUs", scale="doubling", span=(1, LARGEST_SEARCH)),
        at("ranks_per_node", "GPUs in a node", scale="doubling"),
        Slider("global_batch", global_batch, "sequences a step", scale="doubling"),
        Slider("seq_length", seq_length, "tokens a sequence", scale="doubling"),
        at("memory_capacity", "memory of a card"),
        at("peak_flop_per_s", "peak of a card"),
        at("kernel_efficiency", "share of it reached"),
        at("link_bandwidth", "link in a node"),
        at("bandwidth", "network link"),
    ]
    view = Ranking()
    fixed = view.defaults | {name: start[name] for name in ("reserve_bytes", "bytes_per_score", "head_dim")}
    return Explorer(
        [],
        controls,
        view,
        title="Every plan (t ranks a layer, P stages, k replicas, b sequences)",
        presets=PRESETS,
        fixed=fixed,
        made_by="explorers.planner_explorer",
    )
