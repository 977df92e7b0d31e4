"""Models shaped like LLaMA that a lab can be asked for by name: a tiny one, and the published ones."""

from formulary import InputError, nearest
from formulary.shapes import FAMILIES, MODELS

TINY = "tiny"
WIDTHS = ("hidden_size", "ffn_size", "vocab_size", "num_heads", "num_kv_heads", "head_dim")
_TINY = {"hidden_size": 256, "ffn_size": 688, "vocab_size": 512, "num_heads": 8, "num_kv_heads": 4, "head_dim": 32, "num_layers": 4}

SHAPES = {TINY: {**FAMILIES["llama"], **_TINY}} | {
    name: dict(bundle) for name, bundle in MODELS.items() if FAMILIES["llama"].items() <= dict(bundle).items()
}


def sizes(conditions):
    """The shape of the `model` of the conditions, with their `num_layers` if that is not 0. Raises InputError for another name."""
    name, num_layers = conditions["model"], conditions["num_layers"]
    if name not in SHAPES:
        raise InputError(f"model is {name!r}{nearest(name, SHAPES)}; there are {', '.join(SHAPES)}")
    return SHAPES[name] | ({"num_layers": num_layers} if num_layers else {})
