"""How the tensors of a model are dealt out to ranks: by rows rounded up, or as whole tensors.

On paper one k-th of everything goes to each of k ranks. A library deals in tensors: `fully_shard` cuts each one by
rows, ZeroRedundancyOptimizer never cuts one. The formulas here are exact, to the last row.
"""

import sympy as sp

from . import glossary as g
from .derivation import Derivation
from .formula import define
from .together import ONE_OF_THE_RANKS
from .units import BYTE

GPT2 = "Radford et al., Language Models are Unsupervised Multitask Learners, 2019: the architecture, with the output head untied"
TORCH_CHUNK = "PyTorch documentation, torch.chunk: pieces of ceil(rows / chunks), the last ones shorter or missing"
FULLY_SHARD = "PyTorch documentation, torch.distributed.fsdp.fully_shard: every parameter is sharded on dimension 0"

_L, _h, _f = g.num_layers, g.hidden_size, g.ffn_size

# name: (rows, columns, how many there are)
GPT_TENSORS = {
    "token embedding": (g.vocab_size, _h, 1),
    "position embedding": (g.num_positions, _h, 1),
    "query, key, value and output projections": (_h, _h, 4 * _L),
    "their biases": (_h, 1, 4 * _L),
    "feed-forward up": (_f, _h, _L),
    "its bias": (_f, 1, _L),
    "feed-forward down": (_h, _f, _L),
    "the bias of down": (_h, 1, _L),
    "scales and shifts of the layers' norms": (_h, 1, 4 * _L),
    "scale and shift of the last norm": (_h, 1, 2),
    "output head": (g.vocab_size, _h, 1),
}


def _elements(*names, rows=lambda rows: rows):
    """Elements of the named tensors (of all by default), where `rows` says how many of a tensor's rows count."""
    chosen = [GPT_TENSORS[name] for name in names or GPT_TENSORS]
    return sum(times * rows(num_rows) * columns for num_rows, columns, times in chosen)


_EMBEDDINGS, _ATTENTION, _FEED_FORWARD, _NORMS, _HEAD = (
    [*GPT_TENSORS][:2],
    [*GPT_TENSORS][2:4],
    [*GPT_TENSORS][4:8],
    [*GPT_TENSORS][8:10],
    [*GPT_TENSORS][10:],
)

GPT_PARAMS = define(
    g.gpt_params,
    derivation=Derivation("A row for every token and for every position", _elements(*_EMBEDDINGS))
    .add("Each layer's attention has four square projections with biases", _elements(*_ATTENTION), _elements(*_EMBEDDINGS, *_ATTENTION))
    .add("Its feed-forward goes up to f and back", _elements(*_FEED_FORWARD), _elements(*_EMBEDDINGS, *_ATTENTION, *_FEED_FORWARD))
    .add("Two norms a layer and one at the end, each with scale and shift", _elements(*_NORMS), _elements() - _elements(*_HEAD))
    .add("The head is a matrix of its own", _elements(*_HEAD), _elements()),
    source=GPT2,
    chapter=1,
    assumptions=("LayerNorm with scale and shift", "biases everywhere but in the head", "learned positions"),
)

GPT_TENSOR_COUNT = define(
    g.gpt_tensors,
    derivation=Derivation("Sixteen tensors a layer, and five outside the layers", sum(times for _, _, times in GPT_TENSORS.values())),
    source=GPT2,
    chapter=1,
)

_CHUNK = sp.ceiling(g.num_rows / g.world_size)
_left = lambda chunk: sp.Min(chunk, sp.Max(0, g.num_rows - g.rank_index * chunk))

SHARD_ROWS = define(
    g.shard_rows,
    derivation=Derivation(
        "Full shards come first; a rank gets what they leave, at least nothing and at most a full shard", _left(g.chunk_rows)
    ).substitute("A full shard has one k-th of the rows, rounded up", {g.chunk_rows: _CHUNK}, _left(_CHUNK)),
    valid=(ONE_OF_THE_RANKS,),
    source=TORCH_CHUNK,
    chapter=7,
)

_SHARDED = {"source": FULLY_SHARD, "chapter": 7, "assumptions": ("a GPT as counted by gpt_params", "one sharding group of k ranks")}
_shard = lambda rows: SHARD_ROWS.expr.subs(g.num_rows, rows)
_full_shard = lambda rows: _CHUNK.subs(g.num_rows, rows)

GPT_SHARD = define(
    g.gpt_shard_params,
    derivation=Derivation("Every tensor gives the rank its rows, all columns wide", _elements(rows=_shard)),
    valid=(ONE_OF_THE_RANKS,),
    **_SHARDED,
)

GPT_BUFFER = define(
    g.gpt_buffer_params,
    derivation=Derivation("Collectives want equal pieces, so every rank's buffer has room for a full shard", _elements(rows=_full_shard)),
    **_SHARDED,
)

_moved = lambda rows: g.world_size * _full_shard(rows)
_ROOT = [*_EMBEDDINGS, "scale and shift of the last norm", *_HEAD]

GPT_PADDED = define(
    g.gpt_padded_params,
    derivation=Derivation("One rank's buffers", GPT_BUFFER.expr).multiply(
        "and those of all others", g.world_size, g.world_size * GPT_BUFFER.expr
    ),
    **_SHARDED,
)

GPT_ROOT = define(
    g.root_params,
    name="gpt_padded_root_params",
    derivation=Derivation("Embeddings, last norm and head belong to no layer; all ranks' buffers of them", _elements(*_ROOT, rows=_moved)),
    **_SHARDED,
)

PADDING = define(
    g.padding_bytes,
    derivation=Derivation("Elements of the buffers that no parameter uses", g.gpt_buffer_params - g.gpt_shard_params).multiply(
        "once for the weights and once for the gradients; optimizer state is made from the shard itself",
        g.bytes_per_weight + g.bytes_per_grad,
        (g.bytes_per_weight + g.bytes_per_grad) * (g.gpt_buffer_params - g.gpt_shard_params),
    ),
    valid=((g.gpt_shard_params <= g.gpt_buffer_params, "the shard must fit its buffer"),),
    **_SHARDED,
)

STEP_COUNTERS = define(
    g.step_bytes,
    derivation=Derivation("Adam counts the steps of each tensor on its own", g.num_tensors).multiply(
        "in one 32-bit number", 4 * BYTE, 4 * BYTE * g.num_tensors
    ),
    source="PyTorch documentation, torch.optim.Adam: state_dict holds a float32 tensor `step` for every parameter tensor",
    chapter=1,
)


def gpt_tensor_sizes(**shape):
    """Elements of every parameter tensor of the GPT with this `shape`, in no special order."""
    values = {symbol: shape[symbol.name] for symbol in GPT_PARAMS.expr.free_symbols}
    number = lambda expr: int(sp.sympify(expr).subs(values))
    table = [(number(rows * columns), number(times)) for rows, columns, times in GPT_TENSORS.values()]
    return [size for size, times in table for _ in range(times)]


def whole_tensor_partition(sizes, num_ranks):
    """Who holds which tensors when none may be cut: the largest first, each to whoever holds least so far.

    Returns one list of sizes per rank. This is the greedy rule of torch's ZeroRedundancyOptimizer.
    """
    held = [[] for _ in range(num_ranks)]
    for size in sorted(sizes, reverse=True):
        min(held, key=sum).append(size)
    return held
