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
# # 12 · Parameter-efficient fine-tuning
#
# **What you will be able to decide.** Whether an adapter is enough, on which matrices and of which rank, and in how few bits
# the model beneath it may be stored.
#
# **How long it takes.** About 45 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import torch
from IPython.display import display
from torch import nn

from autograder import ask
from explorers import adapter_explorer, rank_scale_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.claims import claims
from formulary.compute import FLOP_PER_TOKEN
from formulary.hardware import GPUS
from formulary.lowrank import (
    ADAPTED_MEMORY,
    ADAPTED_SHARE,
    BREAK_EVEN_RANK,
    DEQUANTIZED,
    DORA_MATRIX,
    DOUBLE_QUANT_SAVING,
    LORA_FLOP,
    LORA_LEDGER,
    LORA_MATRIX,
    LORA_MEMORY,
    LORA_PARAMS,
    LORA_SCALE,
    LORA_STATE,
    QLORA_BASE,
    QLORA_MEMORY,
    QUANTIZED_WEIGHT,
    RSLORA_SCALE,
)
from formulary.memory import STATE
from formulary.models import MODEL_LEDGER
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# You have one consumer card at home, and a model that you would like to teach your own way of answering:

# %%
card, shape = GPUS["RTX 4090"], MODELS["Llama 2 7B"]
model = shape.only(LORA_PARAMS)

home = Claim(
    "The card has {memory_capacity}. The model weighs {weight_bytes} in half precision, and trained in full it needs {state_bytes}."
)
home(num_params="7B", **card)

# %% [markdown]
# Training in full is out of the question by chapter 1's arithmetic. But must all weights move? Perhaps what you want to teach is a
# small correction: a few directions in which the model should lean a little.
#
# **Guess first.** Somebody freezes the model, stores it in four bits, and trains small *adapters* beside the query and value
# matrices, of rank 8 (the rank sets their size, as you will see). How much memory do the frozen model and all states of the
# adapters take together? An amount such as `"… GB"`.

# %%
guess = None

small = {**model, "lora_rank": 8, "bytes_per_frozen": 0.5}
together = ADAPTED_MEMORY(**small, num_params="7B")
slips = {"sixteen bits": ADAPTED_MEMORY(**{**small, "bytes_per_frozen": 2}, num_params="7B"), "full": STATE(num_params="7B")}
hints = {
    "sixteen bits": "that is with the frozen model in half precision",
    "full": "that is training in full; frozen weights have no gradients",
}
guess and judge(read(guess, BYTE), together, within=0.1, unit=BYTE, mistakes=slips, hints=hints)

# %% [markdown]
# ## A note in the margin
#
# Think of a trained weight matrix $W$ as a printed book. Full fine-tuning reprints the book. **LoRA** (low-rank adaptation) leaves it
# as it is and writes notes in the margin: a second, thin matrix product beside it, $BA$, where $A$ has few rows and $B$ has few
# columns. Reading means reading both, $Wx + \tfrac{\alpha}{r} BAx$. The number of rows of $A$ is the **rank** $r$; $\alpha$ is a
# constant that one chooses, of which more below.
#
# Why should few directions be enough? The hope is that the *difference* between the model you have and the model you want is simple,
# even though the model is not. That is a hypothesis, and it is tested by whether training works. For a matrix of $d_{\mathrm{in}}$
# inputs and $d_{\mathrm{out}}$ outputs the adapter has

# %%
LORA_MATRIX.derivation

# %%
one = Claim("A matrix of {in_features} by {out_features}: an adapter of rank {lora_rank} has {lora_matrix_params} parameters.")
one(in_features=shape["hidden_size"], out_features=shape["hidden_size"], lora_rank=8)

# %% [markdown]
# It is small only as long as the rank is. At which rank does the adapter have as many parameters as the matrix?

# %%
BREAK_EVEN_RANK.derivation

# %%
Claim("For this matrix at rank {break_even_rank}.")(in_features=shape["hidden_size"], out_features=shape["hidden_size"])

# %% [markdown]
# ## Build one
#
# A frozen linear layer, $A$ from random numbers, $B$ from zeros. Three things must hold. At the start the note is empty: the layer
# gives exactly what it gave before. Then learning can begin, although $B$ is zero (which gradient is zero, and which is
# not?). And in the end the note can be **merged** into the page, so that using the model costs nothing extra.


# %% tags=["definition"]
class Adapted(nn.Module):
    """A frozen linear layer and a trainable product of rank r beside it."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merged(self):
        """A plain layer that gives the same."""
        layer = nn.Linear(self.base.in_features, self.base.out_features, bias=False)
        layer.weight = nn.Parameter(self.base.weight + self.scale * self.b @ self.a)
        return layer


# %%
torch.manual_seed(0)
layer, x = Adapted(nn.Linear(48, 32, bias=False), rank=4, alpha=8), torch.randn(5, 48)
layer(x).square().sum().backward()

start = {
    "the note is empty": torch.equal(layer(x), layer.base(x)),
    "A does not move yet": bool((layer.a.grad == 0).all()),
    "but B does": bool((layer.b.grad != 0).any()),
    "the page never does": layer.base.weight.grad is None,
}
start

# %%
optimizer = torch.optim.AdamW([layer.a, layer.b], lr=0.01)
for _ in range(20):
    optimizer.zero_grad()
    layer(x).square().sum().backward()
    optimizer.step()

torch.allclose(layer.merged()(x), layer(x), atol=0.0001)

# %%
judge(layer.a.numel() + layer.b.numel(), LORA_MATRIX(in_features=48, out_features=32, lora_rank=4), within=0)

# %% [markdown]
# If both started from zero, neither would ever move: the gradient of each carries the other as a factor. If both started random,
# the model would be damaged before the first step.
#
# ## Which matrices?
#
# A layer has seven matrices that could get an adapter: queries, keys, values, the attention's output, and three of the MLP. Keys and
# values may be narrower than queries (grouped heads), so count by shape. The model is $h$ wide and its MLP $f$; it has $L$ layers,
# $a$ heads of width $d$ and $a_{\mathrm{kv}}$ of them for keys and values. Each $\tau$ is a switch, one where that matrix gets an
# adapter and zero where it does not:

# %%
LORA_PARAMS.derivation

# %%
adapted = Claim("{lora_params:M} adapter parameters, {adapted_share:%} of the model.")
base = {**model, "num_params": MODEL_LEDGER.total(**shape.only(MODEL_LEDGER.total))}
display(
    adapted(**base, **LORA_LEDGER.total.conventions[0]["query_value"].values, lora_rank=8),
    adapted(**base, **LORA_LEDGER.total.conventions[0]["query_value"].values, lora_rank=16),
    adapted(**base, **LORA_LEDGER.total.conventions[0]["all_linear"].values, lora_rank=16),
)

# %% [markdown]
# Three recipes in use: queries and values at two ranks, then every matrix; and about a factor of ten between the first and the
# last. So a rule such as "if more than half a percent is trainable, something is wrong" may be right for one recipe and wrong for
# yours. Print the number of trainable parameters of your own run and compare it with the formula. For every matrix, by item:

# %%
LORA_LEDGER.under("all_linear").at(**model, lora_rank=16)

# %% [markdown]
# With published shares, ask as well: a share *of what*? This book takes base and adapters together; some take the base alone. At
# these sizes it hardly matters. At a very large rank, with every matrix adapted:

# %%
wide = {**base, **LORA_LEDGER.total.conventions[0]["all_linear"].values, "lora_rank": 512}
of_base = judge(LORA_PARAMS(**{name: wide[name] for name in LORA_PARAMS.inputs}), wide["num_params"]).ratio
{"of base and adapters": f"{ADAPTED_SHARE(**{name: wide[name] for name in ADAPTED_SHARE.inputs}):.2%}", "of the base": f"{of_base:.2%}"}

# %% [markdown]
# ## What it saves, and what it does not
#
# Only what trains has a gradient, a master copy and moments. With $\Psi_{\mathrm{LoRA}}$ adapter parameters, $\Psi$ frozen ones, and
# $b$ for the bytes of each item:

# %%
LORA_STATE.derivation

# %%
LORA_MEMORY.derivation

# %%
ledger = Claim("Frozen in half precision with adapters: {lora_memory_bytes}. Of that the adapters' states: {lora_state_bytes}.")
ledger(num_params="7B", lora_params=LORA_PARAMS(**model, lora_rank=8), bytes_per_frozen=2)

# %% [markdown]
# So the adapters are nearly free, and the frozen weights are nearly everything. What is *not* saved is the way back: to reach an
# adapter in the first layer, the gradient must pass through every layer above it. Only the frozen weights' own gradients are
# spared, one third of the work.

# %%
LORA_FLOP.derivation

# %%
work = Claim("{lora_flop_per_token} instead of {flop_per_token}.", flop_per_token=FLOP_PER_TOKEN)
work(num_params="7B", lora_params=LORA_PARAMS(**model, lora_rank=8))

# %% [markdown]
# And activations are kept almost as in full training (chapter 3). If your card is full of activations, an adapter will not help.
#
# ## How loud is the note?
#
# The product $BA$ is multiplied by a factor, $\gamma$. LoRA divides a constant $\alpha$ (a setting, $\alpha_{\mathrm{LoRA}}$ in the
# formulas) by the rank, as for a mean over the $r$ rows of $A$:

# %%
LORA_SCALE.derivation

# %% [markdown]
# Does a step then have the same size at every rank? Follow the first one, with learning rate $\eta_{\mathrm{lr}}$ and a gradient
# $g_{\mathrm{out}}$ at the layer's output. The squared length of $Ax$ grows with the rank, so asking for equal steps gives another
# factor (it is called rsLoRA):

# %%
RSLORA_SCALE.derivation

# %% [markdown]
# With LoRA's factor, raising the rank while keeping $\alpha$ makes steps smaller, and the larger adapter may learn less. Try one step
# of plain gradient descent, at a small and a large rank and with both factors. $A$ is random, so take the mean of many:


# %% tags=["definition"]
def first_step(rank, scale, width=512):
    """How far the output moves in the first step of gradient descent, for an output gradient of ones."""
    a, x = torch.randn(rank, width) / width**0.5, torch.randn(width)
    b = scale * torch.outer(torch.ones(width), a @ x)
    return float((scale * b @ (a @ x)).norm())


def mean_step(rank, scale, times=200):
    """The same, on average over many random adapters."""
    return sum(first_step(rank, scale) for _ in range(times)) / times


# %%
small_rank, large_rank = 4, 64
factors = {"alpha over the root": RSLORA_SCALE, "alpha over the rank": LORA_SCALE}
moved = {
    name: [mean_step(rank, factor(lora_rank=rank, lora_alpha=16)) for rank in (small_rank, large_rank)] for name, factor in factors.items()
}
{name: round(judge(large, small).ratio, 2) for name, (small, large) in moved.items()}

# %% [markdown]
# That is the step at the large rank over the step at the small one. With the root they are about equal; with LoRA's factor the
# large adapter hardly moves.
#
# ## Explore
#
# 1. At which ranks do the two factors agree?
# 2. Double the rank. By what would you have to raise $\alpha$ so that LoRA's steps stay as large?

# %%
rank_scale_explorer()

# %% [markdown]
# **DoRA** splits a weight into length and direction, and lets the adapter turn the direction while a vector learns the lengths:
# one parameter more for each output.

# %%
DORA_MATRIX.derivation

# %% [markdown]
# ## Four bits
#
# The frozen weights are nearly everything, and nobody updates them. So they need not be precise enough to be *updated*, only to be
# *used*. **QLoRA** stores each in four bits: sixteen values, placed where normally distributed weights are dense. A block of
# weights shares one **scale**, its largest magnitude. The scales cost something too, so they are quantised in turn: each is stored in
# one byte, and a group of them shares a scale of its own. (Every $b$ is the bytes of one number; $q_{\mathrm{block}}$ weights share a
# scale, $q_{\mathrm{group}}$ scales share a scale of scales.)

# %%
QUANTIZED_WEIGHT.derivation

# %%
Claim("{quantized_weight_bytes:bit} a weight.")()

# %% [markdown]
# That second step is called *double quantisation*. What does it save?

# %%
DOUBLE_QUANT_SAVING.derivation

# %%
large = {"quantized_params": "65B", "unquantized_params": 0}
spared = Claim(
    "{double_quant_saving:bit} a weight. {quantized_params:B} weights: {plain} with plain scales, {qlora_base_bytes} with scales "
    "of scales.",
    plain=QLORA_BASE.under("nf4"),
)
spared(**large)

# %% [markdown]
# Quantise a matrix yourself, and count. These codes are equal steps instead of QLoRA's table, which changes the values and not the
# bytes.


# %% tags=["definition"]
def quantise(weights, block=64, group=256):
    """Codes (two in a byte), 8-bit scales of blocks, and fp32 scales of groups of scales."""
    blocks = weights.reshape(-1, block)
    scales = blocks.abs().amax(dim=1)
    codes = (blocks / scales[:, None] * 7).round().to(torch.int8) + 8
    packed = (codes[:, ::2] * 16 + codes[:, 1::2]).to(torch.uint8)
    groups = scales.reshape(-1, group)
    tops = groups.amax(dim=1)
    return packed, (groups / tops[:, None] * 255).round().to(torch.uint8), tops


# %%
matrix = torch.randn(512, 512)
stored = quantise(matrix)
whole = QLORA_BASE(quantized_params=matrix.numel(), unquantized_params=0)
judge(sum(part.nbytes for part in stored), whole, within=0, unit=BYTE)

# %% [markdown]
# Embeddings, head and norms ($\Psi_{\mathrm{rest}}$) stay in half precision. In small models with large vocabularies they are a good
# part of the whole, and "half a byte a parameter" is too little.

# %%
QLORA_BASE.derivation

# %%
QLORA_MEMORY.derivation

# %% [markdown]
# One thing is easily forgotten. A product needs numbers it can multiply, so the matrix is unpacked into half precision, used, and thrown
# away; in the forward pass, and *again* in the backward pass, since gradients have to pass through it:

# %%
DEQUANTIZED.derivation

# %%
moment = Claim("For the largest matrix of this model: {dequantized_bytes}, for a moment.")
moment(in_features=shape["hidden_size"], out_features=shape["ffn_size"])

# %% [markdown]
# The [lab](../labs/notebooks/qlora.ipynb) does all of this with the libraries that people use, and counts every byte.
#
# ## Explore
#
# 1. On your card, from which rank on does the model no longer fit, with every matrix adapted? Is that a rank anybody uses?
# 2. Switch the frozen model to half precision. Does it still fit, and what is then left for activations?
# 3. Choose the largest model that fits in four bits. Which part of the bill would you shrink next?

# %%
adapter_explorer()

# %% [markdown]
# ## The decision, made
#
# Four bits, adapters of rank 8 on queries and values:

# %%
plan = Claim("Adapters' states {lora_state_bytes}, with the frozen model {lora_memory_bytes} of {memory_capacity}.")
plan(num_params="7B", lora_params=LORA_PARAMS(**model, lora_rank=8), bytes_per_frozen=0.5, **card)

# %% [markdown]
# And to the byte, for the model as it is published, with its scales and its unquantised rest:

# %%
parts = MODEL_LEDGER(**shape)
matrices = {name: size for name, size in parts.items() if name in ("attention", "MLP")}
sizes = {"quantized_params": sum(matrices.values()), "unquantized_params": sum(parts[name] for name in parts if name not in matrices)}
fine = Claim("{qlora_base_bytes} frozen, {qlora_memory_bytes} with the adapters.")
fine(**sizes, lora_params=LORA_PARAMS(**model, lora_rank=8))

# %% [markdown]
# Either way most of the card is left, for activations and for longer sequences. It fits. Whether an adapter *is enough* is no
# question of memory: how far is what you want from what the model does? A style or a format is near. A language it has hardly
# seen is far; then raise the rank, adapt every matrix, and in the end train in full.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q33", "en")` or `"zh"`.

# %%
ask("E002-Q33").form()

# %%
ask("E002-Q34").form()

# %%
ask("E003-Q05").form()

# %%
ask("E003-Q06").form()

# %%
ask("E003-Q14").form()

# %%
ask("E000-DS01").form()

# %% [markdown]
# ## What people get wrong
#
# **"QLoRA spares twelve bytes a parameter."** Frozen weights have no gradients either. What a frozen parameter does not need is
# everything but its weight:

# %%
Claim("In full {state_bytes}; its weights alone {weight_bytes}.")(num_params="7B")

# %% [markdown]
# **"With an adapter the backward pass is nearly free."** It crosses the whole model; see the FLOP above.
#
# **"After training, add $BA$ to $W$."** Scaled, or the merged model says something else:

# %%
Claim("Here the factor is {rank_scale}, and an unscaled sum would have left it out.", rank_scale=LORA_SCALE)(lora_rank=4, lora_alpha=8)

# %% [markdown]
# **"NF4 stores a zero point for each block."** It divides by the largest magnitude; there is nothing to shift.
#
# **"The memory that is left goes to the key-value cache."** Training sees whole sequences at once and keeps none; only
# generating text does.
#
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own:

# %%
claims(chapter=12, verdict="wrong")

# %%
claims(chapter=12, verdict="convention").first("C000-060", "C002-098", "C002-103", "C003-043")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Where exactly does LoRA save memory?"* Gradients, master copies and moments of the frozen weights; not the weights, hardly the
#    activations, a third of the FLOP.
# 2. *"Why is $B$ zero and $A$ not?"* The model must start unchanged, and one of the two must let a gradient through to the other.
# 3. *"What does QLoRA add, and what does it cost?"* Four-bit weights with scales of scales; every product first unpacks its
#    matrix, forward and backward, and that costs time.
#
# Next: [chapter 13](13_throughput.ipynb) asks how fast all this goes.
