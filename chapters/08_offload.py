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
# # 8 · Offload
#
# **What you will be able to decide.** What may leave the GPU, to the host's memory or to drives, before the way there
# becomes the bottleneck, and what that costs per step.
#
# **How long it takes.** About 35 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import time

import torch

from autograder import ask
from explorers import copies_explorer, drives_explorer, hiding_explorer, offload_explorer
from formulary import Claim, judge
from formulary.attention import FULL_RECOMPUTE_PEAK
from formulary.claims import claims
from formulary.hardware import GPUS, PCIE
from formulary.memory import STATE_LEDGER
from formulary.offload import (
    COPIES_TIME,
    DUPLEX_COPIES_TIME,
    EXPOSED_OFFLOAD,
    HIDING_BANDWIDTH,
    HOST_STATE,
    NVME_TIME,
    OFFLOAD_DOWN,
    OFFLOAD_STEP,
    OFFLOAD_UP,
    PCIE_BANDWIDTH,
    THROUGHPUT_LOSS,
)
from formulary.shapes import MODELS
from formulary.units import BYTE, SECOND

# %% [markdown]
# ## The decision
#
# There is one card, and a model whose states are several times too large for it. Sharding (chapter 7) needs more cards,
# and there are none. But the machine around the card, the *host*, has a memory of its own, often ten times as large and
# nearly idle.

# %%
card, model = GPUS["A100 80GB"], MODELS["LLaMA 13B"]
states = Claim("{num_params:B} parameters have {state_bytes} of model states; the card has {memory_capacity}.")
states(num_params="13B", **card)

# %% [markdown]
# Could part of it live there? It could, and the price is a corridor: everything that lives on the host and is needed on
# the card, or the other way round, has to walk through a link (PCIe) that is much narrower than the card's own memory.
#
# **Guess first.** All optimizer states move to the host and are updated there. How long do the copies of one step take,
# gradients down and weights up, one after the other, through a PCIe link of generation four? A time with its unit, in
# quotes, in place of `None`.

# %%
guess = None

link = PCIE["PCIe 4.0 x16"]
bandwidth = PCIE_BANDWIDTH(**link)
alone = {"num_params": "13B", "world_size": 1, "accumulation_steps": 1, "host_bandwidth": bandwidth}
slips = {"one way": DUPLEX_COPIES_TIME(**alone)}
hints = {"one way": "that is one way; gradients go down, and weights come up"}
guess and judge(COPIES_TIME.quantity.accept(guess), COPIES_TIME(**alone), unit=SECOND, within=0.2, mistakes=slips, hints=hints)

# %% [markdown]
# ## What can leave the bench
#
# Think of a workshop. The card is the bench, the host a store room down a corridor, a drive a warehouse across town.
# What should be on the bench is what the hands need all the time; what is needed once a day may live down the corridor.
# For a training step:
#
# - The **weights** are read by every layer, forward and backward: they stay.
# - **Gradients** are made one layer at a time and wanted once, by the optimizer: they may leave as they are made.
# - **Master weights and moments** are touched once a step: they can live in the store room, if the *work* on them is
#   done there too. Carrying them to the bench and back would be most of the ledger, twice a step.
#
# That is ZeRO-Offload. What remains on the card, and what goes:

# %%
STATE_LEDGER.under("mixed_adam").at(num_params="13B")

# %%
HOST_STATE.derivation

# %%
Claim("On the card {weight_bytes}, on the host {host_state_bytes}.")(num_params="13B")

# %% [markdown]
# Sending the weights away as well, layer by layer, is possible too: that came later (ZeRO-Infinity), with stage 3 of
# chapter 7, and loads the corridor in both passes.
#
# ## How wide is the corridor?
#
# A PCIe link has lanes, and each lane transfers one bit at a time. A few of the bits are there for the receiver's
# clock:

# %%
PCIE_BANDWIDTH.derivation

# %%
corridor = Claim("{pcie_bandwidth} in each direction; the card's own memory does {memory_bandwidth}.")
corridor(**link, **card)

# %% [markdown]
# Real copies stay below that, and come near it only from *pinned* host memory, which the operating system promises
# not to move. For comparison, the memory of this computer: one large copy, several times, the fastest of them.


# %% tags=["definition"]
def copy_rate(times=5):
    source = torch.ones(999, 800, 80)  # far more than the processor's caches hold
    target, durations = torch.empty_like(source), []
    for _ in range(times):
        start = time.perf_counter()
        target.copy_(source)
        durations.append(time.perf_counter() - start)
    return source.nbytes / min(durations)


# %%
Claim("This computer copies {bandwidth}.")(bandwidth=copy_rate())

# %% [markdown]
# ## What walks through it
#
# A rank that owns a slice of the gradients copies just that slice. Down goes what backward made; up come the updated
# weights, in sixteen bits:

# %%
OFFLOAD_DOWN.derivation

# %%
OFFLOAD_UP.derivation

# %% [markdown]
# Look at the micro-batches in there. When gradients are *accumulated* over several of them, one would hope to copy once
# per optimizer step. In the implementation most people use, the sum lives on the host, so every micro-batch sends its
# part down, and fetches the sum so far. Count it with real tensors (on the `meta` device, which has sizes and no
# memory):


# %% tags=["definition"]
def copies(params, micro_batches):
    """Bytes (down, up) of an optimizer step of one rank, copy by copy."""
    gradients = torch.empty(params, dtype=torch.bfloat16, device="meta")
    weights = torch.empty(params, dtype=torch.bfloat16, device="meta")
    down, up = [], []
    for number in range(micro_batches):
        if micro_batches > 1:
            up += [gradients] if number else []  # the sum so far, to be added to
            down += [gradients]
    down += [gradients]  # into the buffer that Adam reads
    up += [weights]
    return sum(copy.nbytes for copy in down), sum(copy.nbytes for copy in up)


# %%
counted_down, counted_up = copies(params=800, micro_batches=4)
accumulated = {"num_params": 800, "world_size": 1, "accumulation_steps": 4}
judge(counted_down, OFFLOAD_DOWN(**accumulated), within=0, unit=BYTE)

# %%
judge(counted_up, OFFLOAD_UP(**accumulated), within=0, unit=BYTE)

# %% [markdown]
# So a micro-batch does not spend less time in the corridor, but a little more: accumulating buys a larger batch here, not
# fewer walks.

# %%
single, four = (COPIES_TIME.given(accumulation_steps=count) for count in (1, 4))
waits = Claim("One micro-batch: {single} of copies. Four: {four}.", single=single, four=four)
waits(num_params="13B", world_size=1, host_bandwidth=bandwidth)

# %% [markdown]
# ## Explore
#
# 1. Two micro-batches more than double the copies of a step. Where does the odd part come from?
# 2. Add ranks. What does the link of *each* of them carry now, and where is the rest?
# 3. By which factor does a newer link help? Take it from the presets.

# %%
copies_explorer(num_params="13B")

# %% [markdown]
# ## Behind the backward pass
#
# The corridor is narrow, but it is free while the card computes. Backward finishes the *last* layer first; its
# gradients can be on their way while the layer below is worked on. So there is an assembly line with four stations:
# backward, down, Adam on the host, up. How long does a line of equal pieces take? The first piece passes all stations;
# after that, one piece leaves with every stroke of the slowest.

# %%
OFFLOAD_STEP.derivation

# %% [markdown]
# Play it, piece by piece, and hold the clock against the formula:


# %% tags=["definition"]
def assembly_line(pieces, stations):
    """When the last piece leaves the last station. A station works on one piece at a time."""
    free = [0.0] * len(stations)
    for _ in range(pieces):
        ready = 0.0
        for number, duration in enumerate(stations):
            free[number] = ready = max(ready, free[number]) + duration
    return free[-1]


# %%
step = {"forward_time": 0.5, "backward_time": 1, "host_adam_time": 1.25, "num_layers": 10}
given = {"num_params": "2_000_000_000", "world_size": 1, "host_bandwidth": "16_000_000_000"}
played = assembly_line(10, [0.1, 0.025, 0.125, 0.025])
judge(0.5 + played, OFFLOAD_STEP(**step, **given), unit=SECOND)

# %% [markdown]
# Three cases follow. If backward is the slowest station, nearly everything hides. If the link is, what follows the
# forward pass takes about as long as the gradients do to walk. And if *Adam on the host* is, which is common, because a
# host's memory is slow too, no faster link will help.
#
# **Guess first.** Seven billion parameters, a backward pass of a second, and a second of Adam on the host: how long is
# the whole step, the half second of the forward pass included? Then look at the picture, and find the bandwidth at
# which another station becomes the bottleneck.

# %%
guess = None

seven = {"num_params": "7B", "world_size": 1, "host_bandwidth": bandwidth, "num_layers": 12}
expected = OFFLOAD_STEP(**seven, forward_time=0.5, backward_time=1, host_adam_time=1)
guess and judge(OFFLOAD_STEP.quantity.accept(guess), expected, unit=SECOND, within=0.1)

# %%
offload_explorer()

# %% [markdown]
# 1. Which rows have no gap between their first piece and their last? These are the bottlenecks.
# 2. Halve Adam's time. Who is the bottleneck now, and how much of the step did it buy?
# 3. With eight ranks, each has an eighth of the gradients and of the updates, but the host's memory is shared by all of
#    them. Which slider must not be divided by eight?
#
# ## Two scales again
#
# "It costs thirty to fifty percent" is what one hears. Percent of what? A step that takes longer by a factor loses a
# *share of the throughput*, and the two are different numbers:

# %%
THROUGHPUT_LOSS.derivation

# %%
loss = Claim("Steps {step_time_growth} times as long: {throughput_loss:%} of the throughput is gone.")
loss(step_time_growth=1.5)

# %%
loss(step_time_growth=2)

# %% [markdown]
# Better than either is bytes over bandwidth, since it says what to change.
#
# ## The warehouse: drives
#
# If the host's memory is too small as well, master weights and moments can lie on NVMe drives. But Adam must *read*
# each of them, and *write* it back:

# %%
NVME_TIME.derivation

# %%
drives = Claim("Optimizer states of {num_params:B} parameters at {storage_bandwidth}: {nvme_time} for every step.")
drives(num_params="100B", storage_bandwidth="7_000_000_000")

# %% [markdown]
# A figure half as long circulates; it reads the states and forgets to put them back. Either way the remedy is many
# drives side by side, and large batches, so that there are few optimizer steps for many tokens.

# %%
drives_explorer(storage_bandwidth="7_000_000_000")

# %% [markdown]
# 1. How many drives of that kind bring the update under a minute? Under the time of your step?
# 2. Switch to eight-bit moments (chapter 2). Why is that worth more here than on the card?
#
# ## Activations down the corridor
#
# The inputs that checkpointing keeps (chapter 3) are written in the forward pass and wanted in the backward pass, a
# good while later. They may leave in between. What is waited for is what the forward pass cannot cover:

# %%
EXPOSED_OFFLOAD.derivation

# %%
HIDING_BANDWIDTH.derivation

# %% [markdown]
# And because both the copies and the computation grow with the tokens, this often hides entirely. Layers copied one
# after the other while later ones compute, against the formula:


# %% tags=["definition"]
def forward_with_copies(layers, each, copy):
    """How long the link works on after the last layer has been computed."""
    computed = link_free = 0.0
    for _ in range(layers):
        link_free = max(link_free, computed) + copy  # a layer's input is there when the layer starts
        computed += each
    return max(0.0, link_free - computed)


# %%
hundred = {"moved_bytes": 800, "host_bandwidth": 100, "forward_time": 5}
judge(forward_with_copies(layers=100, each=0.05, copy=0.08), EXPOSED_OFFLOAD(**hundred), unit=SECOND)

# %%
hiding_explorer()

# %% [markdown]
# 1. At which bandwidth does nothing wait any more? Compare the mark with the formula above.
# 2. Twice the batch: twice the activations and twice the forward pass. Which way does the mark move?
#
# ## The decision, made
#
# One card, thirteen billion parameters. With the optimizer on the host the weights stay, activations are rebuilt layer
# by layer, and all of it fits:

# %%
plan = Claim(
    "On the card {weight_bytes} of weights and {peak} of activations, of {memory_capacity}. On the host {host_state_bytes}. "
    "Copies take {copies} a step.",
    peak=FULL_RECOMPUTE_PEAK.under("flash_attention"),
    copies=COPIES_TIME,
)
plan(**alone, **model, **card, micro_batch=4, seq_length="2048")

# %% [markdown]
# Is that slow? It depends on the step it is added to. A small micro-batch computes for less time than the copies take;
# with a large one they are a remainder. So: raise the micro-batch until the card is full, and if even then the copies
# show, buy cards rather than patience.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q18", "en")` or `"zh"`.

# %%
ask("E002-Q18").form()

# %%
ask("E002-Q11").form()

# %%
ask("E002-Q27").form()

# %%
ask("E002-Q32").form()

# %% [markdown]
# ## What people get wrong
#
# **"Offload costs thirty to fifty percent."** Of the throughput, or on top of the step? And on which link, at which
# batch? Ask for the bytes.
#
# **"With offload the gradients still sit on the card."** They stream out as backward makes them; only the sixteen-bit
# weights stay. And before ZeRO-Infinity these could not leave.
#
# **"Accumulation hides the corridor."** Every micro-batch walks it.
#
# **"With activations on the host, sequences may be as long as one likes."** The host's memory ends too, and one layer
# at work must still fit on the card:

# %%
one = FULL_RECOMPUTE_PEAK.under("flash_attention").given(num_layers=1)
endless = Claim("A million tokens: {kept_input_bytes:TB} of layer inputs on the host, {one} for one layer at work on the card.", one=one)
endless(**MODELS["LLaMA 7B"], micro_batch=1, seq_length="1048576")

# %% [markdown]
# **"One drive reads the states in three minutes, so a step costs three minutes."** And three more to write them.
#
# ## What else is said about this

# %%
claims(chapter=8, verdict="wrong")

# %%
claims(chapter=8, verdict="convention")

# %%
claims(chapter=8, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"What does ZeRO-Offload move, and what does it leave?"* By how often a thing is needed: weights stay, gradients
#    stream, optimizer states and their *work* go. Bytes per step, both ways.
# 2. *"How much slower is it?"* Not a percentage: bytes over bandwidth, what hides behind backward, Adam on the host;
#    which of the stations is the bottleneck and what would change it.
# 3. *"Offload or recompute the activations?"* Both are ways not to keep them. Compare the time on the link with the
#    time of a forward pass; they combine, since checkpoints are the cheapest thing to offload.
#
# **Next.** Chapter 9 cuts the layers themselves. What a rank of a cluster keeps without offload is counted in the lab
# [paper cluster](../labs/notebooks/paper_cluster.ipynb).
