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
# # 1 · The memory ledger
#
# **What you will be able to decide.** Given a model and a card: does training fit, by how much does it miss, and which
# item of the bill do you attack first?
#
# **How long it takes.** About 40 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import sympy as sp
import torch

from autograder import ask
from explorers import memory_explorer, wall_explorer
from formulary import Claim, judge
from formulary.claims import claims
from formulary.hardware import GPUS
from formulary.memory import OPTIMIZER_SHARE, PARAM_STATE, STATE, STATE_LEDGER, ZERO_LEDGER, ZERO_STATE
from formulary.scaling import COMM_TIME, COMPUTE_TIME, CRITICAL_GPUS, HIDING_GPUS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# A colleague has a model and a card (a GPU with its own memory) and asks you whether the one fits on the other for
# training. The weights are no problem:

# %%
card = GPUS["A100 80GB"]
weights = Claim("A model of {num_params:B} parameters weighs {weight_bytes} in half precision, and the card has {memory_capacity}.")
weights(num_params="7B", **card)

# %% [markdown]
# So it fits several times over, says your colleague, and starts the job. It stops with an out-of-memory error before the
# first step is done. Where did the memory go?
#
# **Guess first.** How much does training this model keep in memory, all in all, before a single *activation* (what the
# forward pass leaves for the backward pass) is stored? Put your guess in place of `None`, a number and its unit in quotes,
# and run the cell again.

# %%
guess = None

known_slip = {"weights": STATE_LEDGER(num_params="7B")["weights"]}
hint = {"weights": "that is the weights alone; training keeps four more things for each of them"}
guess and judge(STATE.quantity.accept(guess), STATE(num_params="7B"), unit=BYTE, within=0.1, mistakes=known_slip, hints=hint)

# %% [markdown]
# ## Five items to a parameter
#
# Think of a parameter as a guest who never comes alone. The **weight** itself is what the forward and backward
# computations read. Backward leaves a **gradient** beside it. Adam keeps two diaries about that gradient: a running **mean** and a
# running mean of its **square**. And in *mixed precision*, where the computation runs in a 16-bit format (half
# precision) and the bookkeeping in a 32-bit one (fp32), there is one more companion: a half-precision weight has so few
# digits that a small update rounds away to nothing, so the optimizer applies its updates to an fp32 **master copy** and
# hands the kernels a rounded print of it.
#
# Each line below adds one item; $b$ with an index is how many bytes that item takes for one parameter. The steps are
# checked by sympy as the notebook loads: a step that did not follow from the one before it would have raised an error.

# %%
PARAM_STATE.derivation

# %% [markdown]
# How many bytes each of the five takes is a choice, the *recipe*. This is the one most people mean, half-precision weights
# and gradients with fp32 optimizer state:

# %%
STATE_LEDGER.under("mixed_adam")

# %% [markdown]
# Add the terms, and the letter this book is named after appears. With $\Psi$ parameters:

# %%
STATE.derivation

# %%
STATE.by_convention()

# %% [markdown]
# For the colleague's model the same ledger reads:

# %%
STATE_LEDGER.at(num_params="7B")

# %% [markdown]
# So the weights are one eighth of the bill. The largest share is what the optimizer keeps:

# %%
Claim("The optimizer's own copies make up {share:%} of all model states, whatever the size of the model.", share=OPTIMIZER_SHARE)()

# %%
OPTIMIZER_SHARE.derivation

# %% [markdown]
# ## Do real tensors agree?
#
# A formula that only agrees with itself proves nothing, so let us build a small network, take one step of real AdamW,
# and add up the bytes of every tensor that is left in memory. PyTorch's plain training keeps everything in fp32,
# which is another recipe with its own five numbers (one of them zero: fp32 weights need no master copy).

# %%
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
adam = torch.optim.AdamW(net.parameters())
net(torch.ones(8, 64)).sum().backward()
adam.step()

weights = list(net.parameters())
gradients = [weight.grad for weight in weights]
moments = [state[name] for state in adam.state.values() for name in ("exp_avg", "exp_avg_sq")]
counted = sum(tensor.nbytes for tensor in (*weights, *gradients, *moments))
predicted = STATE.under("fp32_adam")(num_params=sum(weight.numel() for weight in weights))

judge(counted, predicted, within=0, unit=BYTE)

# %% [markdown]
# To the byte. (Adam also keeps a step counter for each *tensor*, which does not grow with the size of the model.)
# The [lab on model states](../labs/notebooks/model_states.ipynb) does the same with several processes that share the bill.
#
# ## Same total, different items
#
# Put the two recipes side by side: all in fp32, and mixed precision.

# %%
STATE_LEDGER.under("fp32_adam").at(num_params="7B")

# %%
STATE_LEDGER.under("mixed_adam").at(num_params="7B")

# %% [markdown]
# The totals are equal. Mixed precision saves half of the weights and half of the gradients, and spends exactly that on
# the master copy. What it buys is speed and smaller *activations* (chapter 3), not smaller model states.
#
# ## One word, many ledgers
#
# When two people quote different bytes per parameter, both are usually right, about different recipes. Before you
# compare two numbers, find out which recipe each of them counts:

# %%
PARAM_STATE.compare()

# %% [markdown]
# Some differences in that table are worth remembering:
#
# - **Gradients in fp32** take twice the room, and some frameworks keep both a half-precision and an fp32 gradient: the
#   reason why one documentation says eighteen or twenty where the paper says sixteen.
# - **Eight-bit Adam** stores one byte a moment. Only the two moments shrink, so the saving is smaller than the name
#   promises:

# %%
saving = Claim("For {num_params:B} parameters the ledger falls from {state_bytes} to {shorter}.", shorter=STATE.under("mixed_adam_8bit"))
saving(num_params="7B")

# %% [markdown]
# ## Turn the formula round
#
# The same formula, solved for the number of parameters, answers the opposite question: how large a model do the model
# states of one card allow?

# %%
largest = STATE.by_convention().solve_for("num_params")
largest

# %%
room = Claim("A card of {memory_capacity} holds the states of {largest:B} parameters, if nothing else needed room.", largest=largest)
room(state_bytes=card["memory_capacity"], **card)

# %% [markdown]
# ## Share the bill: ZeRO in one paragraph
#
# To go faster, one trains on many cards at once: each runs a process, called a *rank*, on its own part of the data, and
# they average their gradients. Under this plain *data parallelism* every rank pays the whole bill, although all ranks hold
# the same numbers. ZeRO lets the $k$ ranks share it. Stage 1 shares the optimizer's items, stage 2 the gradients as well,
# stage 3 the weights too.
# Chapter 7 derives what this costs in traffic; what it saves is already in our ledger. $M_z$ is what one rank keeps:

# %%
ZERO_STATE.by_convention().given(stage=1)

# %%
ZERO_STATE.by_convention().given(stage=2)

# %%
ZERO_STATE.by_convention().given(stage=3)

# %% [markdown]
# With many ranks the shared terms vanish. What stays under stage 1 are the weights and gradients in full:

# %%
ZERO_STATE.by_convention().given(stage=1).limit("world_size", sp.oo)

# %% [markdown]
# ## Explore
#
# Move the sliders. The bars, the totals and the lamp (fits, or too big) are the ledger above, evaluated in your browser.
# One rank runs on one GPU.
#
# 1. Find the smallest number of GPUs at which your colleague's model fits, for each stage. One of the stages has no such
#    number: which, and why?
# 2. Towards which amount does each stage tend as you add GPUs? Which item is it that stays?
# 3. Switch the recipe to the 8-bit optimizer. By how much does each total fall, and why by equally much wherever
#    there is sharding? For which of these stages is that the largest share of its bill?

# %%
explorer = memory_explorer(world_size=8, stage=2, memory_capacity=card["memory_capacity"])
explorer

# %% [markdown]
# ## Two more walls
#
# Memory is the first wall a run meets, and not the last. Each of the three is an inequality that you can check:
#
# - **Memory:** what a card must hold is more than it has. More cards help only as far as the states are *sharded*, cut
#   into parts of which every rank keeps one.
# - **Computation:** the cards are busy, and the step is still too long. Work is counted in FLOP, floating-point
#   operations. A step has $C_{\mathrm{step}}$ of them, a card could do $F$ a second at its peak and reaches the share
#   $\eta$ of that. (Counted over a whole step that share is called MFU, model FLOP utilization; chapter 13. A low one
#   means that the cards wait for something, so the wall is another one.) At a fixed batch $n$ cards share the work:

# %%
COMPUTE_TIME.derivation

# %% [markdown]
# - **Communication:** the links are busy while the cards wait. What a rank sends in a step, $V_{\mathrm{rank}}$ bytes at
#   a link's $\beta$ bytes a second, does not shrink with the number of cards:

# %%
COMM_TIME.derivation

# %% [markdown]
# One falls with every card and the other does not, so there is a number of cards at which they meet; beyond it more cards
# buy little. What is sent are gradients, and those can only hide behind the backward pass that makes them. It does twice
# the work of the forward pass (chapter 3), two thirds of the whole, so hiding ends earlier:

# %%
CRITICAL_GPUS.derivation

# %%
HIDING_GPUS.derivation

# %% [markdown]
# Count it out: add cards one by one until the links take longer than the cards.

# %%
wall = {"step_flop": "24_000_000", "comm_bytes": "4_000", "peak_flop_per_s": "1_000", "kernel_efficiency": 0.5, "bandwidth": "10"}
shared = {name: wall[name] for name in ("step_flop", "peak_flop_per_s", "kernel_efficiency")}
sending = COMM_TIME(comm_bytes=wall["comm_bytes"], bandwidth=wall["bandwidth"])
met = next(cards for cards in range(1, 999) if COMPUTE_TIME(num_gpus=cards, **shared) <= sending)
judge(met, CRITICAL_GPUS(**wall), within=0)

# %% [markdown]
# The same with the sliders of a real card and network:
#
# 1. Double the bandwidth. Which wall moves, and by how much?
# 2. A newer card computes three times as fast on the same network. What becomes of the number of cards that is worth having?
# 3. Is there a slider that moves both curves? What does that mean for the plan to buy faster cards?

# %%
wall_explorer()

# %% [markdown]
# ## Make your own
#
# An explorer is an ordinary ipywidget: `explorer.world_size = 16` moves it, `explorer.observe(...)` listens to it. For a
# quick question of your own, stock sliders and matplotlib are a few lines:

# %% tags=["definition"]
import ipywidgets as widgets
from matplotlib import pyplot as plt


def draw(world_size=8, stage=1):
    ledger = ZERO_LEDGER.at(num_params="7B", world_size=world_size, stage=stage)
    plt.barh(list(ledger.rows), list(ledger.rows.values()))
    plt.xlabel("bytes on one rank")
    plt.show()


_ = widgets.interact(draw, world_size=(1, 64), stage=(0, 3))

# %% [markdown]
# ## The decision, made
#
# Back to the colleague. What is left of the card when the model states have their place? A negative amount is what is
# missing. First the one large card:

# %%
small = GPUS["RTX 4090"]
plan = Claim("Stage {stage}, {world_size} × {memory_capacity}: {zero_state_bytes} of model states each, {zero_headroom_bytes} to spare.")
plan(stage=0, num_params="7B", world_size=1, **card)

# %% [markdown]
# Now eight small ones, stage by stage:

# %%
plan(stage=1, num_params="7B", world_size=8, **small)

# %%
plan(stage=2, num_params="7B", world_size=8, **small)

# %%
plan(stage=3, num_params="7B", world_size=8, **small)

# %% [markdown]
# Only where something is left over can training start at all, and activations must fit into just that: chapter 3 says
# how much they need, chapter 7 what the sharding costs in traffic.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E004-Q02", "en")` or `"zh"`.
# `ask("E004-Q02").solution()` shows the worked solution.

# %%
ask("E004-Q02").form()

# %%
ask("E000-TF01").form()

# %%
ask("E002-Q01").form()

# %%
ask("E002-Q02").form()

# %%
ask("E000-SA01").form()

# %%
ask("E002-Q10").form()

# %%
ask("E000-SA04").form()

# %% [markdown]
# ## What people get wrong
#
# **"Weights, gradients and two moments, that is all."** The sum leaves out the master copy. Without one it would be
# right, but then small updates are lost to rounding:

# %%
Claim("Claimed: {claimed}. With the master copy: {state_bytes}.", claimed=STATE.under("no_master_adam"))(num_params="10B")

# %% [markdown]
# **"Mixed precision halves the memory."** It halves the weights, the gradients and the activations. The sum of the model
# states stays where it was:

# %%
Claim("All in fp32: {full}. Mixed precision: {state_bytes}.", full=STATE.under("fp32_adam"))(num_params="7B")

# %% [markdown]
# **"The tool shows fewer GB than the formula, so something was saved."** Formulas count in powers of ten; many tools
# count in powers of two, and some still print GB. The same memory twice, and the factor between them:

# %%
twice = Claim("{state_bytes:GB} is {state_bytes:GiB}; a step of three prefixes makes a factor of {prefix_ratio}.")
twice(num_params="7B", prefix_power=3)

# %% [markdown]
# **"The eight-bit optimizer leaves ten bytes untouched."** Ten bytes is what is *left*; what it does not touch are the
# weights, the gradients and the master copy:

# %%
STATE_LEDGER.under("mixed_adam_8bit").at(num_params="7B")

# %% [markdown]
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own:

# %%
claims(chapter=1, verdict="wrong")

# %%
claims(chapter=1, verdict="convention")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How much memory does it take to train this model with Adam?"* Name the recipe first, then the five items, then
#    the total, then what the total leaves out: activations, buffers, fragmentation.
# 2. *"Why does mixed precision not halve it?"* The master copy, and why it is needed: digits, not range.
# 3. *"It does not fit. What now?"* Attack the largest item first: the optimizer's share. Shard it (ZeRO), shrink it
#    (eight-bit moments), or move it (offload), and say what each costs.
