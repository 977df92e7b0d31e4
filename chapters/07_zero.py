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
# # 7 · ZeRO, FSDP and hybrid sharding
#
# **What you will be able to decide.** What to shard, over which cards, and what the saving costs in traffic: a ZeRO stage or an
# FSDP strategy, chosen by an inequality and not by its name.
#
# **How long it takes.** About 60 minutes, without a GPU. Every number below is computed as the notebook runs. It helps to have
# read chapter 1 (the ledger of model states) and to know from chapter 5 what the collectives do; what is needed of them is said
# again here.

# %%
from collections import Counter, deque

import sympy as sp
import torch
from IPython.display import display

from autograder import ask
from explorers import (
    fsdp_peak_explorer,
    gather_explorer,
    hybrid_explorer,
    hybrid_time_explorer,
    memory_explorer,
    sharding_explorer,
    traffic_explorer,
)
from explorers.sharding import UNITS
from formulary import Claim, judge
from formulary.attention import KEPT_INPUT, SWIGLU_ACTIVATION
from formulary.claims import claims
from formulary.hardware import GPUS, NETWORKS
from formulary.memory import ZERO_LEDGER, ZERO_STATE
from formulary.shapes import MODELS
from formulary.units import BYTE
from formulary.zero import (
    ACCUMULATION_COMM,
    BUFFERS,
    FSDP_LEDGER,
    FSDP_PEAK,
    FULL_SHARD_EGRESS,
    GRAD_PASSES,
    HPZ_EGRESS,
    HPZ_STATE,
    HSDP_EGRESS,
    HSDP_INTER,
    HSDP_INTRA,
    HSDP_STATE,
    WEIGHT_GATHERS,
    ZERO_TRAFFIC,
    ZERO_TRAFFIC_LEDGER,
    ZERO_TRAFFIC_RATIO,
)
from labs.measurement import kept
from labs.paper_cluster import LAB as paper_cluster

# %% [markdown]
# ## The decision
#
# You are given two *nodes*: two machines with eight cards each. Inside a node the cards talk over fast links of their own;
# between the nodes there is one network link. And you are given a model to train from scratch.

# %%
card, network = GPUS["A100 40GB"], NETWORKS["InfiniBand HDR"]
one_node = {"num_params": "13B", "world_size": 8}
both_nodes = {"num_params": "13B", "world_size": 16}

case = Claim("{num_params:B} parameters need {state_bytes} of model states; there are {world_size} cards of {memory_capacity}.")
case(**both_nodes, **card)

# %% [markdown]
# Together the cards have room several times over. One card alone has not even room for a quarter. So something has to be
# divided, and three questions decide how: *what* is divided, *over whom*, and *how often it must be put together again*.
#
# **Guess first.** Divide everything over all ranks, so that a rank keeps only its slice of weights, gradients and optimizer
# state. How many bytes does a rank then *send* in a step, relative to plain data parallelism (where it only averages its
# gradients with the others)? Put a factor such as `"…x"` or a plain number in place of `None`.

# %%
guess = None

ratio = ZERO_TRAFFIC_RATIO(stage=3, accumulation_steps=1)
slips = {"one pass": 3, "nothing": 1}
hints = {
    "one pass": "that counts the all-reduce of plain data parallelism as one pass; it is two",
    "nothing": "that holds for stages 1 and 2; stage 3 also has to put the weights together",
}
guess and judge(ZERO_TRAFFIC_RATIO.quantity.accept(guess), ratio, within=0.02, mistakes=slips, hints=hints)

# %% [markdown]
# ## A street of tool sheds
#
# Picture a street in which every household owns the same complete set of tools. That is *data parallelism*, PyTorch's DDP: every
# rank (one process with one card) keeps the whole model, computes gradients on its own part of the batch, and the ranks average
# these gradients, after which all of them make the same update. Nothing is wrong with it, except that most sheds are full of
# things used once a month.
#
# ZeRO turns the street into a tool library, in three stages, the most rarely used things first:
#
# 1. **Stage 1.** The *optimizer state* (master copy and Adam's two moments) is touched once a step. Each rank keeps one
#    slice of it, and updates only that slice of the weights.
# 2. **Stage 2.** Whoever updates one slice needs the summed *gradient* of that slice only. So each rank keeps no more of it.
# 3. **Stage 3.** Even the *weights* are needed one layer at a time. Each rank keeps its slice and borrows the rest just before
#    a layer runs.
#
# Nothing is compressed and nothing is approximated. It is the same ledger, kept once for the street and not once a house. Here
# is the derivation with the usual recipe filled in (half-precision weights and gradients, three fp32 items). $\Psi$ counts the
# parameters and $k$ the ranks. Each line is the memory that one stage takes on a rank, and sympy has checked that it follows from
# the line before:

# %%
ZERO_STATE.derivation.given(stage=3, **ZERO_STATE.defaults)

# %% [markdown]
# Each stage has a floor, what stays when the ranks are many. Stage 1 never gets below weights and gradients, stage 2 never
# below the weights, and stage 3 has none ($M_z$ is the memory of stage $z$; here stages 1, 2 and 3):

# %%
display(*(ZERO_STATE.by_convention().given(stage=stage).limit("world_size", sp.oo) for stage in (1, 2, 3)))

# %% [markdown]
# For the model of the decision, item by item, first under stage 2 and then under stage 3, on all ranks:

# %%
ZERO_LEDGER.at(**both_nodes, stage=2)

# %%
ZERO_LEDGER.at(**both_nodes, stage=3)

# %% [markdown]
# ## Do real tensors agree?
#
# Does dividing the optimizer really change nothing? Here is one Adam step on the whole, and the same step on slices, each with
# an optimizer of its own that has seen only its slice. The slices, laid end to end again, must be the same numbers to the last
# bit, and one slice's states must be one $k$-th of the bytes.


# %% tags=["definition"]
def adam_step(weights, gradient):
    """The weights after one step of Adam, and the bytes of its two moments."""
    weights = weights.clone().requires_grad_()
    weights.grad = gradient.clone()
    adam = torch.optim.Adam([weights])
    adam.step()
    return weights.detach(), sum(adam.state[weights][name].nbytes for name in ("exp_avg", "exp_avg_sq"))


ranks = 4
weights, gradient = torch.randn(240), torch.randn(240)
whole, _ = adam_step(weights, gradient)
slices = [adam_step(*pair) for pair in zip(weights.chunk(ranks), gradient.chunk(ranks), strict=True)]

# %%
torch.equal(torch.cat([updated for updated, _ in slices]), whole)

# %%
fp32 = ZERO_LEDGER.under("fp32_adam")(num_params=weights.numel(), world_size=ranks, stage=1)
judge(max(moments for _, moments in slices), fp32["first moments"] + fp32["second moments"], within=0, unit=BYTE)

# %% [markdown]
# Adam treats every weight by itself, so cutting is harmless. (An optimizer that looks at whole matrices, such as Muon, or a
# norm over all gradients, needs a little communication for what it looks at.)
#
# ## Explore: what a stage saves
#
# The bars are the ledger above, in your browser. Drag the number of GPUs:
#
# 1. Which stage is the first to fit the model of the decision on one node of its cards? Which on both?
# 2. Double the GPUs again and again. Which stages stop profiting, and at which amount?
# 3. Enlarge the model until stage 2 does not fit with any number of GPUs. Which item is in the way?

# %%
memory_explorer(**both_nodes, stage=2, memory_capacity=card["memory_capacity"])

# %%
sharding_explorer(**both_nodes, stage=3, memory_capacity=card["memory_capacity"])

# %% [markdown]
# ## What borrowing costs
#
# Two *collectives* (operations that all ranks perform together) are all we need. In an **all-gather** every rank contributes
# its slice and ends with the whole. In a **reduce-scatter** every rank contributes a whole, and ends with one slice of the sum.
# On a ring, either one makes every rank send nearly the whole message once: call that one *pass*. And an **all-reduce**, which
# leaves the whole sum on every rank, is one after the other: two passes. Chapter 5 derives this.
#
# So traffic is a matter of counting passes. How often does a step put together all weights? ($z$ is the stage, $K$ the number
# of *micro-batches* of a step: the pieces into which a batch is cut when it is too large to be computed at once, with their
# gradients added up, or *accumulated*, before the update.)

# %%
WEIGHT_GATHERS.derivation

# %% [markdown]
# And how often does a pass go over all gradients?

# %%
GRAD_PASSES.derivation

# %% [markdown]
# Each pass sends $(k-1)/k$ of the message. Weights travel in $b_{\mathrm{gat}}$ bytes a number when they are gathered, gradients
# in $b_{\mathrm{red}}$ when they are reduced; both are half precision here. Together, for stage 3 (the others read alike):

# %%
ZERO_TRAFFIC.derivation.given(stage=3)

# %% [markdown]
# and over what plain data parallelism sends, parameters and ranks cancel:

# %%
ZERO_TRAFFIC_RATIO.derivation.given(stage=3)

# %% [markdown]
# With one micro-batch a step, in bytes that one rank sends:

# %%
sent = Claim("Stage {stage}: {zero_traffic_bytes} sent per rank and step, {zero_traffic_ratio:x} what plain data parallelism sends.")
display(*(sent(**one_node, stage=stage, accumulation_steps=1) for stage in range(4)))

# %% [markdown]
# Stages 1 and 2 are free, and it is worth seeing why. Plain data parallelism reduce-scatters the gradients and then all-gathers
# *the averaged gradients*, so that every rank can make the whole update. Stage 1 reduce-scatters the gradients, updates a
# slice, and all-gathers *the updated weights*. The same two passes, with the update moved in between. Stage 3 does not gather
# after the update, but twice in each step: before the forward pass and, since it has let go of the weights meanwhile, again
# before the backward pass. That makes three passes.

# %%
ZERO_TRAFFIC_LEDGER.at(**one_node, stage=3, accumulation_steps=1)

# %% [markdown]
# ## Count it on a ring
#
# Let a small ring do it, with real tensors. `sent_by` counts the bytes every rank hands to its neighbour. Read `train`: it is
# the whole of ZeRO in a dozen lines, and the only thing the stages differ in is when they reduce and what they gather.

# %% tags=["definition"]
sent_by = Counter()


def pass_on(parcels):
    """Every rank hands what it holds to its right neighbour."""
    for rank, parcel in enumerate(parcels):
        sent_by[rank] += parcel[1].nbytes
    parcels.rotate()


def reduce_scatter(arrays):
    """Slices of the sum, in order; each rank adds its own share to the parcel that comes by."""
    shares = [array.chunk(len(arrays)) for array in arrays]
    parcels = deque((place, shares[place][place]) for place in range(len(arrays)))
    for _ in arrays[1:]:
        pass_on(parcels)
        for rank, (place, total) in enumerate(parcels):
            parcels[rank] = place, total + shares[rank][place]
    return [total for _, total in sorted(parcels, key=lambda parcel: parcel[0])]


def all_gather(slices):
    """The whole, once every slice has travelled past every rank."""
    parcels = deque(enumerate(slices))
    for _ in slices[1:]:
        pass_on(parcels)
    return torch.cat(slices)


# %% tags=["definition"]
def train(stage, weights, gradients):
    """One step under a ZeRO stage. `gradients[m][r]` is rank r's gradient of micro-batch m. Returns the new weights."""
    sent_by.clear()
    ranks = len(gradients[0])
    shards = list(weights.chunk(ranks))
    for micro_batch in gradients:
        for _ in ("forward", "backward") if stage == 3 else ():
            all_gather(shards)
        if stage >= 2:
            shards = [shard - part for shard, part in zip(shards, reduce_scatter(micro_batch), strict=True)]
    if stage >= 2:
        return all_gather(shards) if stage == 2 else torch.cat(shards)
    summed = reduce_scatter([sum(of_rank) for of_rank in zip(*gradients, strict=True)])
    if stage == 1:
        return all_gather([shard - part for shard, part in zip(shards, summed, strict=True)])
    return weights - all_gather(summed)


# %% [markdown]
# Each stage must end with the weights that plain data parallelism ends with, and send what the formula says. (Small whole
# numbers, so that half-precision sums are exact; a learning rate of one; several micro-batches.)

# %%
ranks, micro_batches = 8, 4
start = torch.randint(8, (240,), dtype=torch.half)
gradients = [[torch.randint(2, start.shape, dtype=torch.half) for _ in range(ranks)] for _ in range(micro_batches)]
plain = train(0, start, gradients)
counts = {"num_params": start.numel(), "world_size": ranks, "accumulation_steps": micro_batches}

for stage in range(4):
    same = torch.equal(train(stage, start, gradients), plain)
    display(Claim("Stage {stage}, same weights: " + str(same))(stage=stage))
    display(judge(max(sent_by.values()), ZERO_TRAFFIC(**counts, stage=stage), within=0, unit=BYTE))

# %% [markdown]
# ## Accumulation changes the order
#
# Look at the last two amounts: with several micro-batches in a step, stages 2 and 3 fall far behind. Before you read on:
#
# **Guess first.** The model of the decision on one node, under stage 2 and with eight micro-batches accumulated: how many bytes
# does a rank send in a step? An amount such as `"… GB"`.

# %%
guess = None

accumulated = ZERO_TRAFFIC(**one_node, stage=2, accumulation_steps=8)
slips = {"as DDP": ZERO_TRAFFIC(**one_node, stage=0, accumulation_steps=1)}
hints = {"as DDP": "that is one reduce-scatter for the whole step; a rank that keeps only its slice has no place to add the others up"}
guess and judge(ZERO_TRAFFIC.quantity.accept(guess), accumulated, unit=BYTE, within=0.05, mistakes=slips, hints=hints)

# %% [markdown]
# Stage 2 keeps one slice of the gradients. There is no room to add up whole gradients over the micro-batches, so each of them
# has to be reduced at once. Stage 3 gathers the weights for each of them as well. What matters is how many passes there are for
# each micro-batch computed. Relative to a step of one micro-batch call this $\rho_K$. For stage 2 it is

# %%
ACCUMULATION_COMM.derivation.given(stage=2)

# %% [markdown]
# Let the micro-batches be many. Under stage 1 communication vanishes beside computation; stage 2 keeps half of it for good, and
# stage 3 all of it:

# %%
per_step = [ACCUMULATION_COMM.given(stage=stage) for stage in (1, 2, 3)]
display(*(each.limit("accumulation_steps", sp.oo) if each.inputs else each for each in per_step))

# %% [markdown]
# So with accumulation stage 1 is the cheapest that saves anything, and that is also why pipelines (chapter 10), which live on
# many micro-batches, are combined with stage 1. Libraries do not all do what the paper says. Ask what yours does before you
# believe a figure, here for eight micro-batches under stage 2. The rows in bold are what this book assumes; every other row
# changes one thing: when a rank reduces, in how many bytes a number travels, or what is counted.

# %%
ZERO_TRAFFIC.compare(**one_node, stage=2, accumulation_steps=8)

# %% [markdown]
# Explore: find a number of micro-batches at which stage 2 sends more than stage 3 with one. Then let gradients travel in fp32:
# which stages mind most?

# %%
traffic_explorer(**one_node, accumulation_steps=8, stage=2)

# %% [markdown]
# ## FSDP: stage 3, one unit at a time
#
# PyTorch's *fully sharded data parallel* is stage 3 with a schedule. The model is wrapped into **units**, usually one per
# Transformer block; what belongs to no block (embedding, last norm, head) forms the **root unit**. For each unit:
#
# - forward: all-gather its weights, compute, let go of them again;
# - backward: all-gather them once more, compute, reduce-scatter the unit's gradients, let go of both;
# - meanwhile the next unit's weights are already on their way (*prefetch*), so that the card need not wait.
#
# Watch a step. The first row computes, the second gathers, the third reduces, and the line below counts the whole weights that
# are there at the moment.
#
# 1. Gather one unit at a time instead of two: what does it save, and what does it cost?
# 2. Slow the network down until the computation has to wait. Does a larger unit help, or a smaller one?
# 3. How many units are whole at once, and does the number of ranks change that?

# %%
gather_explorer()

# %% [markdown]
# The library keeps its shards all the time. What is whole comes on top, for a moment, and it is the worst moment that decides
# whether a job runs. $\Psi_u$ are the parameters of a unit and $\Psi_{\mathrm{root}}$ those of the root unit; $n_{\mathrm{gat}}$
# counts the units whose weights are whole at once, $n_{\mathrm{red}}$ those whose gradients are. Every $b$ is the bytes of one
# number: a weight, a gradient, a master weight, a moment, a weight as gathered, a gradient as reduced. $M_{\mathrm{act}}$ are the
# activations kept, and $A_{\mathrm{work}}$ those that a block works with at the moment.

# %%
FSDP_PEAK.derivation

# %% [markdown]
# What surprises people about the last line is what it does *not* contain: nothing but the shards shrinks with more ranks.
# Activations are each rank's own, and a unit is as large as ever while it works.
#
# For a real shape of the decision's size, with one sequence per rank and every block recomputed in the backward pass (so that
# only the blocks' inputs are kept, and one block's inside is rebuilt at a time; chapter 3):

# %%
shape = MODELS["Llama 2 13B"]
sequence = {"seq_length": "4096", "micro_batch": 1}
activations = {
    "activation_bytes": KEPT_INPUT(**sequence, **shape.only(KEPT_INPUT)),
    "working_bytes": SWIGLU_ACTIVATION.given(num_layers=1)(**sequence, **shape.only(SWIGLU_ACTIVATION.given(num_layers=1))),
}
FSDP_LEDGER.at(**UNITS["Llama 2 13B"], **activations, world_size=8)

# %% [markdown]
# How many units are whole at once is a setting of the library, and a question on which estimates differ:

# %%
BUFFERS

# %% [markdown]
# ## Ask PyTorch
#
# Is that what `fully_shard` does? The lab [A cluster on paper](../labs/notebooks/paper_cluster.ipynb) lets PyTorch's own code
# take a step of a whole model on tensors that have a shape but no bytes, and counts every tensor. Here is such a measurement,
# kept from a run for this book, next to its prediction. The column *on paper* has only the sharded model states; the last column
# names whatever makes a difference to it. Most of that you know from the ledger above. Two things are new: this library keeps its
# shards in fp32 (its weights are their own master), and at the peak the gradients of some blocks are not there yet.

# %%
paper_cluster.report(kept("paper_cluster-7b-8"))

# %% [markdown]
# Explore: more ranks lower one of the two curves. Find the number of ranks from which the shards are the *smaller* half of the
# peak; then double the parameters of a unit (wrap two blocks into one) and see what it does. Prefetch has its price here.

# %%
fsdp_peak_explorer(**UNITS["Llama 2 13B"], activation_bytes=activations["activation_bytes"], memory_capacity=card["memory_capacity"])

# %% [markdown]
# ### Names you will meet
#
# | FSDP1, `ShardingStrategy` | FSDP2, `fully_shard` | what it does |
# |---|---|---|
# | `NO_SHARD` | none; use DDP | everything whole |
# | `SHARD_GRAD_OP` | `reshard_after_forward=False` | weights stay whole from forward to backward, and are sharded between steps |
# | `FULL_SHARD` | `reshard_after_forward=True` | let go of after each pass |
# | `HYBRID_SHARD` | a two-dimensional device mesh | full sharding inside a group, copies of the group |
#
# FSDP1 glues a unit's parameters into one flat vector and cuts that; FSDP2 cuts each tensor by rows and leaves it a tensor you
# can look at. `SHARD_GRAD_OP` is often called ZeRO-2. With one micro-batch it sends as much, but stage 2 of the paper keeps whole
# weights even between steps. FSDP1's `no_sync` puts off reducing until the last micro-batch, and pays for it with whole gradients.
#
# ## Hybrid sharding: stay in the node
#
# Back to the two nodes. Sharding over all ranks makes one ring of them. In each node one rank has its right neighbour in another
# node, and only this rank sends over the network. It sends what every rank on a ring sends: three passes under stage 3. So with
# $n_{\mathrm{node}}$ nodes of $k_{\mathrm{node}}$ ranks, what leaves a node per step ($X$, for all its ranks together) is

# %%
FULL_SHARD_EGRESS.by_convention()

# %% [markdown]
# **Hybrid sharding** (HSDP) shards inside each node only and keeps a copy in every node. A rank then holds more:

# %%
HSDP_STATE.derivation

# %% [markdown]
# but gathers and reduces over the fast links inside,

# %%
HSDP_INTRA.by_convention()

# %% [markdown]
# and between the nodes only one thing is left to do: agree on the gradients. Each rank all-reduces its own slice with the ranks
# that hold the same slice elsewhere.

# %%
HSDP_INTER.derivation

# %% [markdown]
# All ranks of a node do so, each with its slice, so that a node sends

# %%
HSDP_EGRESS.derivation

# %% [markdown]
# Compare the bytes that leave a *node*. Those of a rank would mislead, since under hybrid sharding every rank of the node sends
# over the network, and on one ring only the last. With many nodes the two tend to

# %%
display(*(formula.by_convention().limit("num_nodes", sp.oo) for formula in (FULL_SHARD_EGRESS, HSDP_EGRESS)))

# %% [markdown]
# **Guess first.** How many bytes leave one of your two nodes per step under hybrid sharding, with one micro-batch? An amount such
# as `"… GB"`.

# %%
guess = None

across = {"num_params": "13B", "num_nodes": 2, "accumulation_steps": 1}
cluster = {**across, "ranks_per_node": 8}
slips = {"one ring": FULL_SHARD_EGRESS(**cluster), "one rank": HSDP_INTER(**cluster)}
hints = {"one ring": "that is one ring of all ranks", "one rank": "that is one rank of the node; every one of them sends its slice"}
guess and judge(HSDP_EGRESS.quantity.accept(guess), HSDP_EGRESS(**across), unit=BYTE, within=0.05, mistakes=slips, hints=hints)

# %% [markdown]
# Two rings can be counted as well. Let each node reduce among its ranks, and then each slice among the nodes, on tensors, and
# count only what crosses:


# %% tags=["definition"]
def hybrid_reduction(gradients_by_node):
    """Reduce-scatter inside every node, then all-reduce each slice across the nodes; the bytes one node sends to others."""
    slices_by_node = [reduce_scatter(gradients) for gradients in gradients_by_node]
    sent_by.clear()
    for same_slice in zip(*slices_by_node, strict=True):
        all_gather(reduce_scatter(list(same_slice)))
    return sent_by[0]


# %%
nodes = [gradients[0], gradients[1], gradients[2]]
expected = HSDP_EGRESS(num_params=start.numel(), num_nodes=len(nodes), accumulation_steps=1)
judge(hybrid_reduction(nodes), expected, within=0, unit=BYTE)

# %% [markdown]
# A third way, *hpZ* of ZeRO++ (a later version of ZeRO that sends less), shards everything over all ranks and also keeps *a second
# copy of the weights*, sharded inside each node, for the backward pass. It is not the same as hybrid sharding: it costs less memory
# and saves less traffic.

# %%
hpz = Claim("With it a rank holds {states} and a node sends {egress} per step.", states=HPZ_STATE, egress=HPZ_EGRESS)
hpz(**cluster)

# %%
hybrid_explorer(**cluster)

# %% [markdown]
# ## The decision, made
#
# Rule out by memory first. On both nodes, what does a stage leave of the card for activations and everything else?

# %%
room = Claim("Stage {stage} over {world_size} cards: {zero_state_bytes} of states each, {zero_headroom_bytes} to spare.")
display(*(room(**both_nodes, stage=stage, **card) for stage in (1, 2, 3)))

# %% [markdown]
# Stage 1 is out. Stage 2 fits and leaves next to nothing, so the first long sequence ends it. That leaves full sharding, over
# all ranks or inside each node:

# %%
hybrid = Claim("Hybrid sharding: {hsdp_state_bytes} of states each, at the peak {peak}.", peak=FSDP_PEAK)
hybrid(**{**UNITS["Llama 2 13B"], **cluster}, **activations, world_size=8)

# %% [markdown]
# That fits, with room for more than one sequence. Now the network, at its full rate and with nothing hidden behind computation:

# %%
over_network = Claim("One ring of all ranks: {full_shard_egress_bytes} leave a node per step, {full_shard_crossing_time} on the wire.")
over_network(**cluster, **network)

# %%
in_and_out = Claim("Hybrid: {hsdp_egress_bytes}, {hsdp_crossing_time} on the wire, and {hsdp_inside_time} on the links inside the node.")
in_and_out(**cluster, **network, **card)

# %%
hybrid_time_explorer(**cluster, link_bandwidth=card["link_bandwidth"], **network)

# %% [markdown]
# Hybrid sharding, then: it fits, and what it saves on the slow link is most of what there is to save. Had the states not fitted
# one node, sharding over both would have been the only way, and the second shard of hpZ the thing to try next. And if one step
# took several micro-batches, you would ask the library to reduce across nodes only once, which PyTorch's FSDP2 offers
# (`set_requires_all_reduce`).
#
# The order of thought is always the same: *the lowest stage that fits* with its activations, over *the fewest ranks* that make
# it fit, on *the fastest links* there are.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E004-Q01", "en")` or `"zh"`. First what the
# stages are and save:

# %%
display(*(ask(name).form() for name in ("E004-Q01", "E004-M01", "E004-Q03", "E004-Q06", "E002-Q07", "E002-Q08", "E002-Q38")))

# %% [markdown]
# What the sharding sends:

# %%
display(*(ask(name).form() for name in ("E000-TF04", "E004-Q07", "E004-M02", "E002-Q15", "E002-Q16", "E004-Q10", "E002-Q45")))

# %% [markdown]
# How stage 3 and FSDP work, and where the peak is:

# %%
about_fsdp = ("E002-Q09", "E002-Q14", "E004-Q04", "E004-Q05", "E004-Q08", "E004-Q09", "E004-M03", "E000-SA05")
display(*(ask(name).form() for name in about_fsdp))

# %% [markdown]
# And the choice between them:

# %%
display(*(ask(name).form() for name in ("E003-Q01", "E003-Q02")))

# %% [markdown]
# ## What people get wrong
#
# **"ZeRO-3 sends three times as much as data parallelism."** It sends three passes; but so does an all-reduce send two, and
# forgetting one of those makes a factor of three out of

# %%
Claim("{zero_traffic_ratio:x}.")(stage=3, accumulation_steps=1)

# %% [markdown]
# **"ZeRO-2 halves the communication."** It halves the *gradient phase*; the other half moves to the gathering of weights, and
# the step as a whole sends what it did before:

# %%
ZERO_TRAFFIC_LEDGER.at(**one_node, stage=2, accumulation_steps=1)

# %% [markdown]
# **"ZeRO-1 keeps the all-reduce and is free."** Either, or. A library that keeps the all-reduce *and* gathers the weights makes
# three passes; free is the reduce-scatter:

# %%
kept_all_reduce = Claim("By the paper: {zero_traffic_bytes}. With the all-reduce kept: {three}.", three=ZERO_TRAFFIC.under("deepspeed"))
kept_all_reduce(**one_node, stage=1, accumulation_steps=1)

# %% [markdown]
# **"The more cards, the more ZeRO-3 sends."** A rank's traffic tends to a limit; what grows are the sum over the cluster, the
# number of rounds (and with it latency), and the chance that the ring crosses a slow link:

# %%
each = Claim("{world_size} ranks: {zero_traffic_bytes} each.")
display(*(each(num_params="13B", stage=3, accumulation_steps=1, world_size=ranks) for ranks in (2, 8, 512)))

# %% [markdown]
# **"FSDP's peak is its shard and the largest layer."** That leaves out the unit on its way, the whole gradient, and all saved
# activations; look at the ledger of the peak above.
#
# **"The gathers are small messages."** One block of the decision's model is gathered in one message of

# %%
Claim("{fsdp_gathered_bytes}.")(unit_params=UNITS["Llama 2 13B"]["unit_params"], gather_buffers=1)

# %% [markdown]
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes: of each kind
# the ones to know, and all others a click away. First wrong ones. Count the passes in your head before you read the last column:

# %%
claims(chapter=7, verdict="wrong").first("C002-050", "C002-130", "C004-006", "C003-020", "C004-016", "C004-022")

# %% [markdown]
# Then those that are right under a convention of their own; say which one:

# %%
claims(chapter=7, verdict="convention").first("C000-008", "C000-053", "C003-019")

# %% [markdown]
# And those that only a measurement can decide:

# %%
claims(chapter=7, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Explain the three stages, and what each costs."* What is sharded and what stays whole, with bytes per parameter; then the
#    passes: two, two, two and three with one micro-batch; then, unasked, what accumulation does to stages 2 and 3.
# 2. *"Why does ZeRO-1 cost no extra traffic?"* An all-reduce is a reduce-scatter and an all-gather; stage 1 puts the update
#    between the two and gathers weights where DDP gathers gradients. And: not every library does it.
# 3. *"FSDP still runs out of memory on many cards. Why, and what do you do?"* Only the shards shrink. Name what does not:
#    activations, the gathered unit and its prefetch, whole gradients, the root unit, fragmentation. Then recompute, cut the
#    micro-batch, wrap smaller units, limit prefetch.
#
# ## Where to go on
#
# - Lab [What does a rank keep between steps?](../labs/notebooks/model_states.ipynb): DDP, ZeRO-1 and FSDP2 in real processes,
#   predicted and counted to the byte.
# - Lab [What does a rank send in a step?](../labs/notebooks/traffic.ipynb): the passes of this chapter, counted.
# - Labs [A cluster on paper](../labs/notebooks/paper_cluster.ipynb) and [Peak memory](../labs/notebooks/peak_memory.ipynb): the
#   worst moment of a step, for models you have no cluster for and on a GPU.
# - Next: [chapter 8, *Offload*](08_offload.ipynb), moves what even sharding leaves too large out of the GPU.
