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
# # 13 · Throughput, utilization and scaling
#
# **What you will be able to decide.** How long a training takes and how well it uses its machine, whether a reported
# figure can be true, and up to which number of cards more of them are worth having.
#
# **How long it takes.** About 40 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import time

import numpy as np
import sympy as sp
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from autograder import ask
from explorers import mfu_explorer, scaling_explorer, training_time_explorer
from formulary import Claim, amounts, judge
from formulary.claims import claims
from formulary.compute import (
    ATTENTION_FLOP,
    FLOP_PER_TOKEN,
    FORWARD_FLOP,
    HFU,
    MFU,
    MFU_FROM_EFFICIENCY,
    MFU_OF_PARAMETERS,
    MFU_WITH_SCORES,
    RATE_AT_MFU,
    STEP_LEDGER,
    TOKENS_PER_S,
    TRAINING_DOLLARS,
    TRAINING_TIME,
    TRAINING_TIME_AT_RATE,
)
from formulary.hardware import GPUS
from formulary.scaling import EXPOSED_EFFICIENCY, EXPOSED_GROWTH, STRONG_EFFICIENCY, WEAK_EFFICIENCY
from formulary.shapes import MODELS
from formulary.units import FLOP, SECOND
from labs.jobs.tiny_gpt import TinyGPT

# %% [markdown]
# ## The decision
#
# A report on a well-known training says: so many cards, so many tokens a second on each, and a *utilization* of so many
# percent. Your own run reaches another rate on the same cards. Is yours bad, or is theirs miscounted? And if you are
# given twice the cards, will it take half the time?

# %%
card = GPUS["A100 80GB"]
llama = {**MODELS["LLaMA 65B"], "num_params": "65.2B", "seq_length": "2048"}
run = {"num_gpus": "2048", "peak_flop_per_s": card["peak_flop_per_s"]}
one_card = {"num_gpus": 1, "peak_flop_per_s": card["peak_flop_per_s"], "tokens_per_s": 380}
reported = Claim("{num_params:B} parameters, {tokens_per_s} on one card whose peak is {peak_flop_per_s}.")
reported(**llama, **one_card)

# %% [markdown]
# **Guess first.** Which share of the card's peak is that? Put a number with its percent sign in place of `None`, in
# quotes.

# %%
guess = None

guess and judge(amounts.read(guess), MFU_OF_PARAMETERS(num_params=llama["num_params"], **one_card), within=0.05)

# %% [markdown]
# ## What a token costs
#
# Training is arithmetic on a conveyor belt. Every token passes all matrices, and in each of them meets every parameter
# once: a multiplication and an addition. Those are two **FLOP**, floating-point operations. (Written as *FLOP/s* it is
# a speed. Never write FLOPS, which may be either.)

# %%
FORWARD_FLOP.derivation

# %% [markdown]
# The backward pass does two products where forward did one: one for the gradient of the layer's input, one for that of
# its weights. So a training step costs three forward passes, and there is the most useful number of this book:

# %%
FLOP_PER_TOKEN.derivation

# %% [markdown]
# Attention's scores involve no parameter, so they have to be added, if the sequence is long enough for them to matter:

# %%
ATTENTION_FLOP.derivation

# %%
shares = Claim("A token costs {flop_per_token}; its scores {attention_flop_per_token} more.")
shares(**llama, causal_share=1)

# %% [markdown]
# ## Count them
#
# PyTorch has a counter of FLOP. A small GPT, one step, and the products of its layers, against the ledger of a step.
# (The counter looks inside PyTorch's operations only where they are made of plain products, so we ask attention to be
# written that way.)

# %%
shape = {"vocab_size": 100, "hidden_size": 64, "num_layers": 3}
model = TinyGPT(**shape, ffn_size=256, num_heads=4, num_positions=32)
tokens = torch.randint(100, (2, 32))
with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
    model(tokens).sum().backward()

judge(counter.get_total_flops(), STEP_LEDGER.total(**shape, seq_length=32, global_batch=2), within=0.000001, unit=FLOP)

# %% [markdown]
# To the last operation. Where they go:

# %%
STEP_LEDGER.at(**shape, seq_length=32, global_batch=2)

# %% [markdown]
# In a model as small as this one, logits and scores still matter. In a large one the matrices are nearly all there is:

# %%
STEP_LEDGER.at(**{name: llama[name] for name in ("vocab_size", "hidden_size", "num_layers", "seq_length")}, global_batch=1)

# %% [markdown]
# ## From work to a rate
#
# **Throughput** is tokens per second. It is what one pays for, and it says nothing about whether the machine is used
# well, since a smaller model on the same cards has more of it.

# %%
TOKENS_PER_S.derivation

# %% [markdown]
# **MFU**, *model FLOP utilization*, is the answer to "how well": the FLOP that the model *needs*, over what the cards
# could have done in that time.

# %%
MFU.derivation

# %% [markdown]
# **HFU**, *hardware FLOP utilization*, counts what the hardware *does*, recomputed layers (chapter 3) included. It is
# never the smaller one, and it may rise when the run gets slower: recompute more, and it looks busier.

# %%
HFU.derivation

# %% [markdown]
# When nothing waits, neither for other cards nor for data, the hardware is as busy as its kernels are efficient, and
# recomputation takes its share of the MFU:

# %%
MFU_FROM_EFFICIENCY.derivation

# %% [markdown]
# Now the report. Once by parameters alone, and once with scores:

# %%
audit = Claim("By parameters {plain:%}, with scores {scores:%}.", plain=MFU_OF_PARAMETERS, scores=MFU_WITH_SCORES)
audit(**llama, **one_card)

# %% [markdown]
# The report had said forty-three. Which rate would belong to that?

# %%
RATE_AT_MFU.derivation

# %%
belongs = Claim("{mfu:%} would be {tokens_per_s_at_mfu} a card.")
belongs(**one_card, mfu=0.43, flop_per_token=FLOP_PER_TOKEN(num_params=llama["num_params"]))

# %% [markdown]
# So the two figures in the report do not belong together. That is arithmetic, and takes no access to their cluster.
#
# ## Explore
#
# 1. Set the model to your own and the peak to your card's. Which rate is half of the peak?
# 2. Lengthen the sequences. Which two lines part, and what does that mean for a comparison across papers?
# 3. Turn recomputation off and on. Which line moves, and which of the two figures would you rather publish?

# %%
mfu_explorer()

# %% [markdown]
# ## Measure one
#
# Here is a machine: this computer, one thread. Its peak is not on any label that would help, so measure it as the best
# large matrix product; then run a small GPT and see which share of that its steps reach. (Yours will differ; small
# products on a busy computer reach little.)


# %% tags=["definition"]
def seconds(run, times):
    """The shortest of several runs."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        durations.append(time.perf_counter() - start)
    return min(durations)


def flop_of(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def step():
    model(tokens).sum().backward()


square = torch.randn(512, 512)


def product():
    return square @ square


# %%
threads = torch.get_num_threads()
torch.set_num_threads(1)
peak = np.divide(flop_of(product), seconds(product, times=20))
rate = np.divide(tokens.numel(), seconds(step, times=20))
torch.set_num_threads(threads)
mine = {"num_gpus": 1, "peak_flop_per_s": float(peak), "tokens_per_s": float(rate)}
work = float(np.divide(flop_of(step), tokens.numel()))
Claim("Peak {peak_flop_per_s}, rate {tokens_per_s}: MFU {mfu:%}.")(**mine, flop_per_token=work)

# %% [markdown]
# ## From a rate to days and money

# %%
TRAINING_TIME.derivation

# %%
TRAINING_TIME_AT_RATE.derivation

# %%
whole = {"num_tokens": "1_400_000_000_000", "tokens_per_s": "778240"}
Claim("{num_tokens} at {tokens_per_s}: {training_time_at_rate}.")(**whole)

# %%
TRAINING_DOLLARS.derivation

# %% [markdown]
# **Guess first.** For how many days would the same cards be busy with ten times the tokens, at three quarters of the
# rate? A number of days in quotes. Then let the explorer say it.

# %%
guess = None

longer = {"num_tokens": "14_000_000_000_000", "tokens_per_s": "583680"}
guess and judge(TRAINING_TIME_AT_RATE.quantity.accept(guess), TRAINING_TIME_AT_RATE(**longer), unit=SECOND, within=0.05)

# %%
training_time_explorer(tokens_per_s=whole["tokens_per_s"], num_tokens=whole["num_tokens"])

# %% [markdown]
# ## More cards
#
# Two experiments go by the name of scaling, and they answer different questions. **Weak scaling** gives every card the
# same batch, so the global batch grows with the cards: does the *rate* keep up?

# %%
WEAK_EFFICIENCY.derivation

# %% [markdown]
# **Strong scaling** keeps the global batch, so every card gets less: does the *step* get shorter? Optimization usually
# dictates the batch, so this is the honest question when more cards are bought for an existing run.

# %%
STRONG_EFFICIENCY.derivation

# %% [markdown]
# What stands in the way is communication that no computation hides, chapter 6's *exposed* time. The work is divided
# among the cards; the exposed time is not.

# %%
EXPOSED_EFFICIENCY.derivation

# %% [markdown]
# However small it is, with enough cards nothing else is left:

# %%
EXPOSED_EFFICIENCY.limit("num_gpus", sp.oo)

# %% [markdown]
# Let us play it. Sequences are dealt to cards one by one; each takes its time; when all are done the cards exchange
# gradients, of which some part shows.


# %% tags=["definition"]
def played(sequences, cards, each, exposed):
    """Seconds of a step, card by card and sequence by sequence."""
    clocks = [0.0] * cards
    for number in range(sequences):
        clocks[number % cards] += each
    return max(clocks) + exposed


# %%
alone, together = (played(sequences=512, cards=cards, each=0.125, exposed=shows) for cards, shows in ((1, 0.0), (64, 0.25)))
steps = {"num_gpus": 64, "one_gpu_step_time": alone}
judge(STRONG_EFFICIENCY(step_time=together, **steps), EXPOSED_EFFICIENCY(exposed_comm_time=0.25, **steps))

# %% [markdown]
# Turned round: by how much may the exposed time grow before the efficiency falls to what you are willing to accept?

# %%
EXPOSED_GROWTH.derivation

# %%
slack = Claim("From {exposed_scaling_efficiency:%} down to {scaling_efficiency:%} it may grow {exposed_growth} times.")
slack(exposed_comm_time=0.25, scaling_efficiency=0.7, **steps)

# %% [markdown]
# ## Explore
#
# 1. Where does the efficiency fall below nine tenths? Halve the exposed time: where now?
# 2. Make the step on one card twice as long, as a larger batch would. Why does that help, and why is it not always
#    allowed?

# %%
scaling_explorer()

# %% [markdown]
# ## The decision, made
#
# The report's rate stands and its percentage does not. Yours is to be compared with the *recomputed* one, by the same
# count, and against the *dense* peak: data sheets like to print the one with sparsity, which is twice as large.

# %%
MFU.compare(**one_card, flop_per_token=FLOP_PER_TOKEN(num_params=llama["num_params"]))

# %% [markdown]
# Twice the cards halve the time only if the exposed communication halves too, or the batch may double. Measure the
# exposed time first; it is the only thing that the formula wants and that cannot be computed from a label.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E003-Q15", "en")` or `"zh"`.

# %%
ask("E003-Q15").form()

# %%
ask("E004-M04").form()

# %% [markdown]
# ## What people get wrong
#
# **"That model ran at forty-three percent."** At the rate in the same sentence it did not:

# %%
audit(**llama, **one_card)

# %% [markdown]
# **"MFU is what the hardware did."** What the model needed. The hardware did more if layers were recomputed:

# %%
busy = Claim("An MFU of {mfu:%} with everything recomputed is an HFU of {hfu:%}.")
busy(mfu=0.4, recomputed_share=1)

# %% [markdown]
# **"This band is normal, that one excellent."** Bands depend on the model's size, the sequence, the count and the card.
# Compare runs of one size on one kind of card by one formula, and quote anything else with its source. The same holds
# for "accept an efficiency of seven tenths": it is a policy, and here is what it allows:

# %%
slack(exposed_comm_time=0.25, scaling_efficiency=0.7, **steps)

# %% [markdown]
# **"More cards, ever more speed."** At a fixed batch the exposed part stays while the divided part shrinks.
#
# ## What else is said about this

# %%
claims(chapter=13, verdict="wrong")

# %%
claims(chapter=13, verdict="convention")

# %%
claims(chapter=13, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Where do the six FLOP come from?"* One multiply-add per parameter and token forward; two products backward; what
#    is left out (scores, the embedding, softmax), and when that matters.
# 2. *"Your MFU is half of what a paper reports. Why?"* First the count (scores, recomputation, dense or sparse peak),
#    then the run: exposed communication, bubbles, small products, input, stragglers. Say how you would tell them apart.
# 3. *"Strong or weak scaling?"* What is held fixed in each; the formula with the exposed time, its limit; and which of
#    the two the purchase of cards depends on.
#
# **Next.** Measure the share of the peak of a real run in the lab [throughput](../labs/notebooks/throughput.ipynb).
# Chapter 14 is about the day on which memory runs out all the same.
