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
# # 4 · Attention as a memory-traffic problem
#
# **What you will be able to decide.** When tiled attention (FlashAttention) pays, by how much, and what it leaves
# exactly as it was.
#
# **How long it takes.** About 40 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import numpy as np
import torch

from autograder import ask
from explorers import access_explorer, intensity_explorer, tiles_explorer
from formulary import Claim, judge
from formulary.attention import (
    ACCESS_SAVING,
    ATTENTION_STATISTICS,
    FLASH_ACCESSES,
    FLASH_INTENSITY,
    FLASH_ORDER,
    LEAST_ACCESSES,
    MERGED_OUTPUT,
    MERGED_ROW_SUM,
    SRAM_ELEMENTS,
    STANDARD_ACCESSES,
    STANDARD_INTENSITY,
)
from formulary.claims import claims
from formulary.hardware import GPUS
from formulary.shapes import MODELS

# %% [markdown]
# ## The decision
#
# A profile of a training run shows that a large part of the step goes into attention, and that the card's arithmetic
# units stand idle for most of that time. Somebody proposes a FlashAttention kernel; somebody else objects that it does
# *more* arithmetic than the present code, and that a slow kernel doing more cannot be the cure. Who is right?
#
# A card computes in its multiprocessors, and each of them has a small memory of its own **on the chip**. The large
# memory, the one on the label (its technical name is HBM), lies beside the chip, and every number that is used has to
# be fetched from there.

# %%
card, gpt2 = GPUS["A100 80GB"], MODELS["GPT-2"]
Claim("{num_multiprocessors} multiprocessors with {multiprocessor_memory:KiB} each; beside them {memory_capacity}, {memory_bandwidth}.")(
    **card
)

# %% [markdown]
# Think of a cook with a tiny worktop and a pantry down the hall. Chopping is quick. What takes the evening is walking,
# if for every onion the cook goes once to fetch it, carries the slices back onto the shelf, and fetches them again for
# the pan.
#
# **Guess first.** Four thousand tokens, a head (one of attention's parallel copies) of the width that GPT-2 has, this
# card's on-chip memory. By which factor does a clever order of the work cut the walking? A number in place of `None`.

# %%
guess = None

head = {"seq_length": "4096", "head_dim": gpt2["head_dim"], "sram_elements": SRAM_ELEMENTS(**card.only(SRAM_ELEMENTS))}
guess and judge(guess, ACCESS_SAVING(**head), within=0.3)

# %% [markdown]
# ## Counting the walks
#
# One head, $s$ tokens, each with a query, a key and a value of width $d$. The textbook computes the table of scores,
# turns its rows into weights by a softmax, and takes weighted sums of the values. Each of the three steps reads its
# input from the large memory and writes its result there:

# %%
STANDARD_ACCESSES.derivation

# %% [markdown]
# What must be moved in any case is little: the inputs in, the output out.

# %%
LEAST_ACCESSES.derivation

# %% [markdown]
# Is the walking really the trouble? Divide the arithmetic by the bytes moved, and compare with how much the card can
# compute in the time in which one byte arrives.

# %%
STANDARD_INTENSITY.derivation

# %%
bound = Claim("Attention with stored scores does {standard_intensity}; this card can do {machine_balance}.")
bound(**head, peak_flop_per_s=card["peak_flop_per_s"], bandwidth=card["memory_bandwidth"])

# %% [markdown]
# So while it runs, the arithmetic units are busy for a fifth of the time at best. It is *bound by memory*, and a kernel
# that moves less may well compute more.
#
# ## A softmax that never sees its whole row
#
# The obvious cure is to take a **tile**, some rows of queries and some keys that fit on the chip together, and do
# everything with it before the next one is fetched. The table of scores would never leave the chip. There is one
# obstacle: a softmax divides by the sum over the *whole* row, and for safety subtracts the row's maximum first. A tile
# sees neither.
#
# The way out is bookkeeping in a currency that may be devalued. Keep a running maximum $m$, and a running sum $\ell$ of
# exponentials *relative to it*. The next block has a maximum $\tilde m$ and a sum $\tilde\ell$ of its own. If its maximum is
# the larger one, restate the old sum in the new currency, that is, multiply it by $e^{m - \tilde m}$, and add; if not, restate
# the block's:

# %%
MERGED_ROW_SUM.derivation

# %% [markdown]
# The weighted sum of the values, the output so far, is restated by the same factor:

# %%
MERGED_OUTPUT.derivation

# %% [markdown]
# This is no approximation. A row in two parts, merged by the two formulas, against the softmax of the whole row:

# %%
torch.manual_seed(16)
scores, values = torch.randn(12, dtype=torch.float64).mul(5), torch.randn(12, dtype=torch.float64)
early, late = scores.split([5, 7])
so_far = {"row_max": early.max().item(), "row_sum": early.sub(early.max()).exp().sum().item()}
so_far["row_output"] = torch.dot(early.softmax(0), values[:5]).item()
block = {"block_max": late.max().item(), "block_sum": late.sub(late.max()).exp().sum().item()}
block["block_output"] = torch.dot(late.sub(late.max()).exp(), values[5:]).item()
judge(MERGED_OUTPUT(**so_far, **block), torch.dot(scores.softmax(0), values).item(), within=0.000001)

# %% [markdown]
# ## Tiles
#
# Now the kernel, in the order of the first FlashAttention: an outer loop over blocks of keys and values, which stay on
# the chip while all queries stream past them in an inner loop. Every access of the large memory goes through `Memory`,
# which counts.


# %% tags=["definition"]
class Memory:
    """An array in the large memory, whose every access is counted."""

    moved = 0

    def __init__(self, array):
        self.array = array

    def read(self, rows=slice(None)):
        Memory.moved += self.array[rows].size
        return self.array[rows].copy()

    def write(self, values, rows=slice(None)):
        Memory.moved += values.size
        self.array[rows] = values


def textbook(query, key, value):
    scores, weights, output = Memory(query.read() @ key.read().T), Memory(None), Memory(None)
    Memory.moved += scores.array.size  # written where it was made
    exponentials = np.exp(scores.read() - scores.array.max(1, keepdims=True))
    weights.array, output.array = np.empty_like(exponentials), np.empty_like(value.array)
    weights.write(exponentials / exponentials.sum(1, keepdims=True))
    output.write(weights.read() @ value.read())
    return output.array


def tiled(query, key, value, fits):
    length, width = query.array.shape
    output, top, total = (Memory(np.full(shape, start)) for shape, start in (((length, width), 0.0), (length, -np.inf), (length, 0.0)))
    columns = fits // (4 * width)
    rows = min(columns, width)
    for start in range(0, length, columns):
        keys, values = key.read(slice(start, start + columns)), value.read(slice(start, start + columns))
        for first in range(0, length, rows):
            tile = slice(first, first + rows)
            scores = query.read(tile) @ keys.T
            old, old_top, old_total = output.read(tile), top.read(tile), total.read(tile)
            new_top = np.maximum(old_top, scores.max(1))
            weights = np.exp(scores - new_top[:, None])
            kept = np.exp(old_top - new_top) * old_total
            new_total = kept + weights.sum(1)
            output.write((kept[:, None] * old + weights @ values) / new_total[:, None], tile)
            top.write(new_top, tile)
            total.write(new_total, tile)
    return output.array


# %% [markdown]
# The same answer from both, to the last digits:

# %%
stream = np.random.default_rng(16)
inputs = [Memory(stream.standard_normal((512, 32))) for _ in range(3)]
Memory.moved = 0
plain = textbook(*inputs)
moved_plain, Memory.moved = Memory.moved, 0
clever = tiled(*inputs, fits=int("4096"))
moved_clever = Memory.moved
bool(np.allclose(plain, clever))

# %% [markdown]
# Now derive what the counter should say. Four blocks share the chip (queries, keys, values, outputs), so a quarter of
# it holds keys:

# %%
FLASH_ACCESSES.derivation

# %%
small = {"seq_length": 512, "head_dim": 32}
judge(moved_plain, STANDARD_ACCESSES(**small), within=0)

# %%
judge(moved_clever, FLASH_ACCESSES(sram_elements="4096", **small), within=0)

# %% [markdown]
# ## Explore
#
# The score matrix, tile by tile, in the order of the loops above. Press play.
#
# 1. Which tiles share their keys, and which their queries? Which of the two is fetched again and again?
# 2. Make the on-chip memory larger. What happens to the tiles, and what to the accesses? Why only nearly half as many
#    for twice the memory?
# 3. Double the width of a head. Two things grow: which?

# %%
tiles_explorer()

# %% [markdown]
# ## The order, and a famous misprint
#
# For long sequences one term survives, and without its constant it is what papers write:

# %%
FLASH_ORDER.derivation

# %%
FLASH_ACCESSES.compare(**head)

# %% [markdown]
# The constant is about a dozen and must be on both sides or on neither when one compares. And the width $d$ comes
# *squared*: one factor because a row has $d$ elements, another because wider rows mean fewer of them on the chip, hence
# more blocks and more passes. A version with a single $d$ is all over the place, and it can be refuted without any
# derivation. Let the chip hold the whole head, $M = s\,d$. Then the right order says that the inputs cross about once:

# %%
everything = FLASH_ORDER(seq_length="4096", head_dim=64, sram_elements="262144")
judge(everything, torch.empty(64, 64, 64).numel(), within=0)

# %% [markdown]
# (That is as many elements as the queries have.) With one $d$ fewer it would say that a sixty-fourth of the queries is
# enough, and nobody can compute attention without looking at its input.
#
# ## The decision's number

# %%
ACCESS_SAVING.derivation

# %%
saved = Claim("Stored scores move {standard_accesses} elements, tiles {flash_accesses}: {access_saving} times fewer.")
saved(**head)

# %%
FLASH_INTENSITY

# %%
after = Claim("Each byte now carries {flash_intensity}, and the card's balance is {machine_balance}.")
after(**head, peak_flop_per_s=card["peak_flop_per_s"], bandwidth=card["memory_bandwidth"])

# %% [markdown]
# It has crossed over: what limited the kernel was memory, now it is arithmetic.
#
# ## Explore
#
# 1. Three of the four lines rise alike over long sequences. Which, and what do the distances between them say?
# 2. Make the chip smaller. Which lines move? When is the clever order no longer worth much?
# 3. Where does the line "order alone" dip below what must be moved at least? What is wrong with it there?

# %%
access_explorer(seq_length="4096")

# %% [markdown]
# The other view: what bounds the kernel, over the size of the on-chip memory.
#
# 1. How large must the chip's memory be before tiled attention is bound by arithmetic?
# 2. Newer cards gain arithmetic faster than bandwidth. Raise the peak, and see which kernels fall behind.

# %%
intensity_explorer(seq_length="4096")

# %% [markdown]
# ## What is kept for the backward pass
#
# The backward pass wants the weights, and they were never stored. It gets by with one number for each row, the
# logarithm of the row's sum of exponentials, and computes the scores of a tile again: from scores and that number the
# weights follow without a second look at the row.

# %%
ATTENTION_STATISTICS.derivation

# %%
llama = MODELS["LLaMA 7B"]
kept = Claim(
    "LLaMA's smallest model, one sequence of {seq_length}: scores {score_activation_bytes}, statistics {attention_statistics_bytes}."
)
kept(**llama, micro_batch=1, seq_length="4096")

# %% [markdown]
# Let us do a backward pass that way, tile by tile, and ask PyTorch's autograd whether the gradients are right.


# %% tags=["definition"]
def gradients(query, key, value, output, log_sum, out_grad, rows=16):
    """Gradients of queries, keys and values from the inputs and one number a row; scores are rebuilt a tile at a time."""
    grads = [torch.zeros_like(tensor) for tensor in (query, key, value)]
    weighted = (output * out_grad).sum(1)
    for start in range(0, len(key), rows):
        block = slice(start, start + rows)
        weights = (query @ key[block].T - log_sum[:, None]).exp()
        score_grad = weights * (out_grad @ value[block].T - weighted[:, None])
        grads[0] += score_grad @ key[block]
        grads[1][block] = score_grad.T @ query
        grads[2][block] = weights.T @ out_grad
    return grads


# %%
heads = [torch.randn(64, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]
out_grad = torch.randn(64, 8, dtype=torch.float64)
scores = torch.matmul(heads[0], heads[1].T)
output = torch.matmul(scores.softmax(1), heads[2])
expected = torch.autograd.grad(output, heads, out_grad)
with torch.no_grad():
    found = gradients(*heads, output, scores.logsumexp(1), out_grad)

all(torch.allclose(one, other) for one, other in zip(found, expected, strict=True))

# %% [markdown]
# ## What it leaves as it was
#
# **The result.** The same sums in another order; differences are those of rounding.
#
# **The arithmetic of the forward pass,** and nearly that of the backward pass, which has five products instead of four.
# Attention still takes work that grows with the square:

# %%
work = Claim("Scores take {attention_flop_per_token} at {seq_length}, with or without tiles.")
work(**llama, causal_share=1, seq_length="4096")

# %% [markdown]
# **All other activations.** Only the scores are gone; the rest of chapter 3's ledger stands:

# %%
Claim("Scores {score_activation_bytes}, all else {linear_activation_bytes}.")(**llama, micro_batch=4, seq_length="2048")

# %% [markdown]
# ## Versions two and three
#
# The second version keeps the idea and removes waste: loops exchanged, so that a block of *queries* stays and the
# output is rescaled once at the end; work divided over the sequence too, so that small batches fill all
# multiprocessors; fewer operations that are no matrix products, which on such a card are the slow ones. The third is
# written for the Hopper generation: copies and products run asynchronously, the softmax of one group of threads beside
# the products of another, and products may be in FP8 (chapter 2). By how much either is faster is a measurement, on a
# card, at a shape; reported figures are ranges:

# %%
claims(chapter=4, verdict="empirical")

# %% [markdown]
# ## The decision, made
#
# The objection was true and beside the point. The kernel was bound by memory, so it pays to move less and compute a
# little more: at four thousand tokens the traffic falls to less than a seventh, the bound changes sides, and as a gift
# a whole term of the memory ledger vanishes. When does it pay little? When sequences are so short that the scores are
# small beside the inputs:

# %%
saved(seq_length="128", head_dim=gpt2["head_dim"], sram_elements=head["sram_elements"])

# %% [markdown]
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E003-Q04", "en")` or `"zh"`.

# %%
ask("E002-Q05").form()

# %%
ask("E003-Q04").form()

# %%
ask("E002-Q25").form()

# %% [markdown]
# ## What people get wrong
#
# **"FlashAttention makes attention linear."** The *memory* is linear in the sequence. The arithmetic, and the traffic
# too, still grow with its square:

# %%
few, many = (FLASH_ACCESSES.given(seq_length=length) for length in ("4096", "8192"))
growth = Claim("From {few} accesses to {many}, for twice the tokens.", few=few, many=many)
growth(head_dim=gpt2["head_dim"], sram_elements=head["sram_elements"])

# %% [markdown]
# **"It is an approximation."** You compared the two outputs above. Methods that drop scores are another family.
#
# **"It keeps nothing at all."** It keeps a number for each row and head, and its inputs and output.
#
# **"The on-chip memory is a thousand times smaller."** All multiprocessors together, against the large memory, it is
# thousands; and the tiles of one head live on *one* of them.
#
# **"Ping-pong scheduling avoids bank conflicts."** It lets softmax and matrix products overlap; bank conflicts are
# another matter.
#
# ## What else is said about this

# %%
claims(chapter=4, verdict="wrong")

# %%
claims(chapter=4, verdict="convention")

# %%
claims(chapter=4, verdict="true_with_rounding")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Why is FlashAttention faster although it does more FLOP?"* What bounds the kernel, with the machine's balance;
#    the scores that never leave the chip; then the order, with $d$ squared and $M$ below.
# 2. *"How can a softmax be computed block by block?"* Running maximum and sum; restating the sum and the output; why it
#    is exact.
# 3. *"What does the backward pass need?"* Inputs, output, the log-sum-exp of each row; scores rebuilt in the tile; five
#    products instead of four. That is recomputation (chapter 3) where it costs least.
#
# **Next.** The lab [peak memory](../labs/notebooks/peak_memory.ipynb) shows the missing term in a real step. Chapter 5
# leaves the single card: how many of them talk to each other.
