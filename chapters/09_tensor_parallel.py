# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 9 · Tensor and sequence parallelism
#
# **What you will be able to decide.** Over how many cards to cut a layer, where the cut must be healed by communication, and
# whether the links you have can bear it.
#
# **How long it takes.** About 50 minutes, without a GPU. Every number below is computed as the notebook runs. It helps to know
# from chapter 5 what an all-reduce is and costs, and from chapter 3 what a layer keeps for its backward pass.

# %%
from collections import Counter

import sympy as sp
import torch
from IPython.display import display

from autograder import ask
from explorers import layer_activation_explorer, layer_params_explorer, layer_traffic_explorer, split_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.claims import claims
from formulary.communication import ALL_REDUCE
from formulary.hardware import GPUS, NETWORKS
from formulary.models import MODEL_PARAMS
from formulary.scaling import COMM_TIME
from formulary.shapes import MODELS
from formulary.tensor_parallel import (
    BOUNDARY,
    CP_LAYER,
    SP_ACTIVATION,
    TP_ACTIVATION,
    TP_ATTENTION,
    TP_LAYER,
    TP_MLP,
    TP_MODEL,
    ULYSSES_LAYER,
)
from formulary.units import BYTE
from formulary.zero import ZERO_TRAFFIC

# %% [markdown]
# ## The decision
#
# ZeRO (chapter 7) leaves every card with a whole layer while it works, and with all the activations of its own sequences. What
# if even one sequence is too much for a card? Then several cards have to share *one layer*: the same sequence, at the same
# time. That is **tensor parallelism**. The question is over how many cards, and it is mostly a question about links:

# %%
shape = MODELS["LLaMA 65B"]
card, network = GPUS["A100 80GB"], NETWORKS["InfiniBand HDR"]
sequence = {"seq_length": "2048", "micro_batch": 1, "hidden_size": shape["hidden_size"]}

Claim("Inside a node of eight cards, {link_bandwidth} from each; between nodes, {bandwidth}.")(**card, **network)

# %% [markdown]
# Eight cards fill a node. Sixteen would need two. Is it eight, fewer, or sixteen?
#
# **Guess first.** How many bytes does each of eight cards send to have *one* sequence go through all layers, forward and
# backward? A number and its unit in quotes.

# %%
guess = None

cut = {**sequence, "tensor_parallel": 8, "num_layers": shape["num_layers"]}
slips = {"two all-reduces": TP_MODEL.under("one_block")(**cut)}
hints = {"two all-reduces": "that is two all-reduces a layer; attention and MLP need two each, one forward and one backward"}
guess and judge(TP_MODEL.quantity.accept(guess), TP_MODEL(**cut), unit=BYTE, within=0.1, mistakes=slips, hints=hints)

# %% [markdown]
# ## Two cooks, one recipe
#
# A layer's MLP multiplies by a wide matrix, applies a function to each number by itself, and multiplies by a tall matrix back
# to the old width: $Y = \mathrm{GELU}(XA)\,B$. Two cooks can share it like this. The first takes the left half of the *columns*
# of $A$ and makes half of the ingredients, the second makes the other half. The function treats each ingredient by itself, so
# neither has to look into the other's pot. Then each needs only those *rows* of $B$ that belong to his ingredients. Each ends
# with a dish of the full size that tastes of half. Pour the two together, and it is the dish.
#
# In matrices: with $A = [A_1, A_2]$ cut by columns and $B$ by rows,
#
# $$\mathrm{GELU}(XA)\,B = \mathrm{GELU}(XA_1)\,B_1 + \mathrm{GELU}(XA_2)\,B_2$$
#
# One sum at the end, an all-reduce, and nothing before it. Had one cut $A$ by rows instead, $XA$ would have been a sum, and
# GELU of a sum is not the sum of GELUs: one would have had to communicate in the middle as well. Do the matrices agree?

# %% tags=["definition"]
torch.manual_seed(0)
ranks = 4
x = torch.randn(6, 16, dtype=torch.double)
up, down = torch.randn(16, 64, dtype=torch.double), torch.randn(64, 16, dtype=torch.double)
gelu = torch.nn.functional.gelu

parts = [gelu(x @ a) @ b for a, b in zip(up.chunk(ranks, dim=1), down.chunk(ranks, dim=0), strict=True)]
torch.allclose(sum(parts), gelu(x @ up) @ down)

# %% [markdown]
# and with a cut by rows, what one gets without communicating in the middle is something else:

# %% tags=["definition"]
wrong = [gelu(piece @ a) for piece, a in zip(x.chunk(ranks, dim=1), up.chunk(ranks, dim=0), strict=True)]
torch.allclose(sum(wrong), gelu(x @ up))

# %% [markdown]
# Which piece of which matrix does a rank hold? Play through the ranks. Note that what the first matrix makes on a rank (its
# columns) is exactly what the second one needs there (its rows).

# %%
split_explorer()

# %% [markdown]
# So of the MLP's parameters a rank holds one $t$-th, where $t$ counts the tensor-parallel ranks ($h$ is the width of the model,
# $f$ that between the two matrices; $n_{\mathrm{mlp}}$ counts the matrices, since some models have a third one):

# %%
TP_MLP.derivation

# %%
sizes = {"hidden_size": x.shape[1], "ffn_size": up.shape[1], "tensor_parallel": ranks}
judge(up.chunk(ranks, dim=1)[0].numel() + down.chunk(ranks, dim=0)[0].numel(), TP_MLP(**sizes, mlp_matrices=2), within=0)

# %% [markdown]
# **Attention** is cut already: its *heads* work side by side and know nothing of each other. Give each rank some of the heads:
# their columns of the query, key and value matrices, and their rows of the output matrix. Again one sum at the end. (Where
# several query heads share a key-value head, and there are fewer of those than ranks, each rank needs a copy of one.) With $a$
# query heads, $a_{\mathrm{kv}}$ key-value heads, each $d$ wide:

# %%
TP_ATTENTION.derivation

# %% [markdown]
# Explore: which of the two parts stops shrinking first, for a model with few key-value heads? Where the query heads cannot be
# shared equally there is no curve.

# %%
layer_params_explorer()

# %% [markdown]
# ## Where the cut is healed
#
# Forward, the partial results of both blocks are summed. And backward? Each rank computes the gradient by the block's input,
# but only what came through *its* columns; the whole gradient is the sum. So there is an all-reduce at the *entry* of each
# block as well, in the backward pass. Megatron's authors call the two places $f$ (not the width above) and $g$: where one sums, the
# other only hands on.
#
# | | forward | backward |
# |---|---|---|
# | $f$, at the entry of a block | hand the input to all ranks | **all-reduce** |
# | $g$, at its end | **all-reduce** | hand the gradient to all ranks |
#
# In PyTorch that is two short functions. These count how often they sum, and how many bytes:

# %% tags=["definition"]
summed = Counter()


def all_reduce(when, tensors):
    """The sum of the ranks' tensors; counts that it was needed, and how many bytes the message has."""
    summed[when] += 1
    summed["bytes"] += tensors[0].nbytes
    return sum(tensors)


class F(torch.autograd.Function):
    """The entry: every rank gets x; backward, what the ranks have of its gradient is summed."""

    @staticmethod
    def forward(ctx, x, ranks):
        return tuple(x.clone() for _ in range(ranks))

    @staticmethod
    def backward(ctx, *gradients):
        return all_reduce("backward", gradients), None


class G(torch.autograd.Function):
    """The end: the ranks' parts are summed; backward, every rank gets the gradient."""

    @staticmethod
    def forward(ctx, *parts):
        ctx.ranks = len(parts)
        return all_reduce("forward", parts)

    @staticmethod
    def backward(ctx, gradient):
        return tuple(gradient for _ in range(ctx.ranks))


# %% tags=["definition"]
def attention(x, qkv, out, heads):
    """Causal attention of (tokens, width) with `heads` heads; qkv is a tuple of three matrices."""
    q, k, v = ((x @ matrix).unflatten(1, (heads, -1)).transpose(0, 1) for matrix in qkv)
    seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return seen.transpose(0, 1).flatten(1) @ out


def layer(x, qkv, out, up, down, heads):
    """A layer on one card."""
    x = x + attention(x, qkv, out, heads)
    return x + gelu(x @ up) @ down


def cut_layer(x, qkv, out, up, down, heads, ranks):
    """The same layer on several: columns, then rows, of attention and MLP."""
    columns = zip(*(matrix.chunk(ranks, dim=1) for matrix in qkv), strict=True)
    attend = zip(F.apply(x, ranks), columns, out.chunk(ranks), strict=True)
    x = x + G.apply(*(attention(mine, heads_of, rows, heads // ranks) for mine, heads_of, rows in attend))
    feed = zip(F.apply(x, ranks), up.chunk(ranks, dim=1), down.chunk(ranks), strict=True)
    return x + G.apply(*(gelu(mine @ a) @ b for mine, a, b in feed))


# %% [markdown]
# The cut layer must give the same result as the whole one, and the same gradients, and it must have summed as often as we said:

# %%
qkv, out = tuple(torch.randn(3, 16, 16, dtype=torch.double)), torch.randn(16, 16, dtype=torch.double)
matrices = {"qkv": qkv, "out": out, "up": up, "down": down, "heads": 8}
one, several = (x.clone().requires_grad_() for _ in range(2))
layer(one, **matrices).square().sum().backward()
cut_layer(several, **matrices, ranks=ranks).square().sum().backward()

torch.allclose(one.grad, several.grad), summed["forward"], summed["backward"]

# %% [markdown]
# ## What it sends
#
# What is summed is the *residual stream*, one vector of the model's width for each token, here of $b$ sequences of $s$ tokens, with
# $b_{\mathrm{act}}$ bytes a number:

# %%
BOUNDARY.derivation

# %% [markdown]
# An all-reduce is two ring passes over it, and a layer has four all-reduces. The number of passes is $n_{\mathrm{pass}}$, here
# eight:

# %%
TP_LAYER.derivation

# %%
as_one_message = ALL_REDUCE(message_bytes=summed["bytes"], world_size=ranks)
counted = {"seq_length": len(x), "micro_batch": 1, "hidden_size": x.shape[1], "bytes_per_activation": x.itemsize, "tensor_parallel": ranks}
judge(as_one_message, TP_LAYER(**counted), within=0, unit=BYTE)

# %% [markdown]
# Look at what the formula does *not* contain: the number of parameters, the size of a slice. Cutting finer does not make
# messages smaller, since each of them is a whole residual stream; it makes them slightly larger, and their number stays. As $t$
# grows,

# %%
TP_LAYER.by_convention().limit("tensor_parallel", sp.oo)

# %% [markdown]
# People count differently here. Recomputing everything repeats the forward all-reduces; some count one block and say "two". (Rows in
# bold are what this book assumes; every other row changes one thing. Each *meaning* ends with the passes, or the bytes of a number.)

# %%
TP_LAYER.compare(**{name: cut[name] for name in ("seq_length", "micro_batch", "hidden_size", "tensor_parallel")})

# %% [markdown]
# And unlike the gradients of data parallelism, these sums cannot wait and hardly hide: the next block needs the result *now*.
#
# Explore: double the ranks from two on. What happens to the bytes of a rank, and what to its share of the computation? Choose
# recomputation, then sequence parallelism (of which more below).

# %%
layer_traffic_explorer(**cut)

# %% [markdown]
# ## What it keeps
#
# Of the activations that a layer keeps for its backward pass, those inside the two blocks are cut: queries, keys, values, the
# MLP's wide tensors. What lies between the blocks is not: inputs of the norms and of the blocks, masks of the last dropouts are
# the same on every rank, $t$ times over. For one layer, with $b_{\mathrm{score}}$ bytes kept for each attention score of $a$ heads:

# %%
TP_ACTIVATION.derivation

# %% [markdown]
# FlashAttention keeps no scores (chapter 4). Then two parts are left, a whole one and a cut one:

# %%
TP_ACTIVATION.under("flash_attention")

# %% [markdown]
# However many ranks, the copied part stays:

# %%
TP_ACTIVATION.under("flash_attention").limit("tensor_parallel", sp.oo)

# %% [markdown]
# ## Sequence parallelism
#
# Norms and dropouts treat each *token* by itself. So let each rank do them for its own piece of the sequence, one $t$-th of it,
# and keep only that. Before a block, where every rank needs all tokens, there is an **all-gather**; after it, where the parts
# are summed, a **reduce-scatter** leaves each rank with the sum of its tokens only. An all-reduce *is* a reduce-scatter and an
# all-gather, so the volume stays what it was. (To keep only its own tokens of a block's input, a rank has to gather it once
# more in the backward pass. That makes ten passes out of eight, and the extra two can hide.)

# %%
SP_ACTIVATION.derivation

# %% [markdown]
# That a norm does not care how tokens are dealt out takes one line to see:

# %%
norm = torch.nn.LayerNorm(16, dtype=torch.double)
torch.allclose(torch.cat([norm(mine) for mine in x.chunk(3)]), norm(x))

# %% [markdown]
# **Guess first.** With eight ranks and FlashAttention, which keeps no scores (chapter 4): by which factor does sequence
# parallelism lower what a layer keeps on a rank, against tensor parallelism alone?

# %%
guess = None

one_unit = {"seq_length": 1, "micro_batch": 1, "hidden_size": 1, "num_heads": 1, "tensor_parallel": 8, "bytes_per_score": 0}
factor = judge(TP_ACTIVATION(**one_unit), SP_ACTIVATION(**one_unit)).ratio
slips = {"ranks": 8}
hints = {"ranks": "that would be so if tensor parallelism alone had cut nothing"}
guess and judge(read(guess), factor, within=0.05, mistakes=slips, hints=hints)

# %% [markdown]
# Per element of the residual stream, in bytes, on eight ranks:

# %%
per_element = Claim("Tensor parallelism {tp_activation_bytes}, with sequence parallelism {sp_activation_bytes}.")
per_element(**one_unit)

# %%
layer_activation_explorer(**{name: cut[name] for name in ("seq_length", "micro_batch", "hidden_size")}, num_heads=shape["num_heads"])

# %% [markdown]
# ## The other thing of that name
#
# "Sequence parallelism" is also said of something else, better called **context parallelism**: another group of ranks in which
# *everything*, attention included, is cut along the sequence, over $c$ ranks. Then a token's query has to meet keys and values that
# lie elsewhere. Either keys and values travel round a ring (ring attention), or are gathered. $n_{\mathrm{kv}}$ counts how often they
# go round for a micro-batch, forward and backward together:

# %%
CP_LAYER.derivation

# %% [markdown]
# or tokens are swapped for heads in an *all-to-all*, so that each rank sees the whole sequence for some of the heads (Ulysses):

# %%
ULYSSES_LAYER.derivation

# %% [markdown]
# Three techniques, then, that must not be mixed up:
#
# | | Megatron's sequence parallelism | context parallelism | Ulysses |
# |---|---|---|---|
# | ranks | the tensor-parallel ones | a group of its own | a group of its own |
# | cut along the sequence | norms, dropouts | everything; attention by exchange | everything but attention |
# | travels | what travelled anyway | keys and values | queries, keys, values, outputs |
# | needed when | always with tensor parallelism | sequences are very long | and there are enough heads |
#
# ## The decision, made
#
# How long do the sums take on the links, with eight ranks in a node and with sixteen across two?

# %%
on_links = Claim("{tensor_parallel} ranks: {comm_bytes} for one sequence, {wire} at {bandwidth}.", wire=COMM_TIME)
sixteen = {**cut, "tensor_parallel": 16}
inside = {"bandwidth": card["link_bandwidth"]}
display(
    on_links(**cut, **inside, comm_bytes=TP_MODEL(**cut)),
    on_links(**sixteen, **network, comm_bytes=TP_MODEL(**sixteen)),
)

# %% [markdown]
# And what is won? The MLP's parameters and what a layer keeps, per rank. (Activations are counted as in chapter 3, for an MLP of two
# matrices that is four times as wide as the model; this model's own differs a little.)

# %%
heads = {name: shape[name] for name in ("num_heads", "num_kv_heads", "head_dim")}
won = Claim("{tensor_parallel} ranks: a layer keeps {sp_activation_bytes}, and {tp_mlp_params:M} parameters of the MLP.")
widths = {"ffn_size": shape["ffn_size"], "mlp_matrices": shape["mlp_matrices"], "bytes_per_score": 0, **heads}
display(won(**cut, **widths), won(**sixteen, **widths))

# %% [markdown]
# Halving what a layer keeps costs more than ten times the waiting, in every layer and for every sequence. So tensor
# parallelism ends where the fast links end: **at most the cards of a node**. And within the node, no more than it takes, since
# small slices also make small matrix products, on which cards are slow. What is still too large after that goes to a pipeline
# between nodes (chapter 10) or is sharded (chapter 7). Turn sequence parallelism on whenever tensor parallelism is: it saves
# most of what is left and costs next to nothing.
#
# How does that compare with full sharding, which cuts parameters as well? It sends weights and gradients and not activations,
# so its bytes do not depend on the sequences. For one micro-batch on eight ranks:

# %%
params = {"num_params": MODEL_PARAMS(**shape.only(MODEL_PARAMS))}
sharded = ZERO_TRAFFIC(**params, world_size=8, stage=3, accumulation_steps=1)
either = Claim("Tensor parallelism: {tp_model_bytes} for one sequence. Full sharding: {comm_bytes} for as many sequences as fit.")
either(**cut, comm_bytes=sharded)

# %% [markdown]
# Tensor parallelism sends less for a single sequence, and more for many. It is for what does not fit otherwise, and for using
# many cards on few sequences.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E000-TF05", "en")` or `"zh"`.

# %%
ask("E000-TF05").form()

# %%
ask("E002-Q29").form()

# %%
ask("E003-Q12").form()

# %%
ask("E002-Q31").form()

# %%
ask("E002-Q13").form()

# %% [markdown]
# ## What people get wrong
#
# **"Twice the ranks, half the traffic."** A rank holds half as much; it *sends* slightly more, because every message is a whole
# residual stream:

# %%
per_layer = Claim("{tensor_parallel} ranks: {tp_layer_bytes} for each layer.")
display(*(per_layer(**{**sequence, "tensor_parallel": t}) for t in (2, 4, 8, 16)))

# %% [markdown]
# **"Two all-reduces a layer."** Two a *block*, and a layer has two blocks. You counted them above.
#
# **"Sequence parallelism divides all activations along the sequence"**, or **"it adds an exchange of keys and values."** That
# is context parallelism. Megatron's divides what tensor parallelism leaves whole, and moves no more than before.
#
# **"Two tensor-parallel and two sequence-parallel ranks leave a quarter."** Megatron's sequence parallelism has no ranks of its
# own. It uses the tensor-parallel ones: with two of them, a half stays.
#
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own, then those that are true:

# %%
claims(chapter=9, verdict="wrong")

# %%
claims(chapter=9, verdict="convention")

# %%
claims(chapter=9, verdict="true")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How do you cut an MLP over two cards?"* Columns, then rows; why the function in between needs no communication; one
#    all-reduce forward at the end, one backward at the entry; heads as the natural cut of attention.
# 2. *"Why does tensor parallelism stay inside a node?"* Bytes per layer and micro-batch, that they do not shrink with more
#    ranks, that nothing hides them; then the two bandwidths, and the division.
# 3. *"What is sequence parallelism?"* First ask which. Megatron's: where, on which ranks, no extra volume, and the activations
#    per layer before and after. Context parallelism: keys and values travel, for very long sequences.
#
# ## Where to go on
#
# - Lab [Layers cut across processes](../labs/notebooks/tensor_parallel.ipynb): three plans that cut alike, and their collectives.
# - Next: [chapter 10, *Pipeline parallelism*](10_pipeline.ipynb), lays layers out instead of cutting them.
