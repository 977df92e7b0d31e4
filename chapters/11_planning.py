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
# # 11 · Capacity planning
#
# **What you will be able to decide.** Which combination of tensor, pipeline and data parallelism, which ZeRO stage, which
# micro-batch and whether to recompute: for a model, a cluster and a batch that somebody gives you.
#
# **How long it takes.** About an hour, without a GPU. Every number below is computed as the notebook runs.

# %%
from itertools import product

from IPython.display import display

from autograder import ask
from explorers import planner_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.capacity import DATA_ONLY_STATE, FEWEST_GPUS, LARGEST_PARAMS, NUM_GPUS, PARALLEL_STATE
from formulary.claims import claims
from formulary.hardware import GPUS, NETWORKS
from formulary.plan import PLAN_ACTIVATION, PLAN_COMPUTE, PLAN_STEP
from formulary.planner import plans
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# On Monday you get a cluster, and a model that somebody wants trained on it:

# %%
card, network = GPUS["A100 80GB"], NETWORKS["InfiniBand HDR"]
cluster = {"num_gpus": 128, "global_batch": "1024", "seq_length": "4096"}

job = Claim(
    "A model of {num_params:B} parameters; {num_gpus} cards of {memory_capacity}, eight in a node, {link_bandwidth} between cards of a "
    "node and {bandwidth} from each card to the network; {global_batch} sequences of {seq_length} a step."
)
job(num_params="70B", **cluster, **card, **network)

# %% [markdown]
# Every chapter so far has added a dial. Tensor parallelism (chapter 9) cuts each matrix over $t$ cards. Pipeline parallelism
# (chapter 10) cuts the layers over $P$ stages. Data parallelism (chapter 6) puts $k$ replicas side by side, and ZeRO (chapter 7)
# lets them share what they all hold. A colleague remembers a recipe for just this case: eight ways, four stages, four replicas,
# stage 1.
#
# **Guess first.** How much memory do the model states of that recipe take on one card? An amount such as `"… GB"`.

# %%
guess = None

recipe = {"tensor_parallel": 8, "num_stages": 4, "world_size": 4, "stage": 1, "context_parallel": 1}
states = PARALLEL_STATE(num_params="70B", **recipe)
slips = {
    "all by all": PARALLEL_STATE(num_params="70B", **{**recipe, "stage": 3}),
    "no replicas": PARALLEL_STATE(num_params="70B", **{**recipe, "stage": 0}),
}
hints = {
    "all by all": "that divides everything by all cards; under stage 1 only the optimizer states are shared by the replicas",
    "no replicas": "that leaves out what stage 1 shares among the replicas",
}
guess and judge(read(guess, BYTE), states, within=0.02, unit=BYTE, mistakes=slips, hints=hints)

# %% [markdown]
# ## Three knives
#
# Think of the model as a loaf. Tensor parallelism slices it lengthwise: everybody gets a strip of every layer. Pipeline
# parallelism slices it crosswise: everybody gets a few whole layers. Data parallelism does not slice at all: it bakes another
# loaf, and only ZeRO then says that not everybody has to keep the whole recipe book. The three cuts do not get in each other's way,
# so the number of cards is simply their product ($c$ counts parts of a sequence that cards may share as well, chapter 9's context
# parallelism; until further notice it is one):

# %%
NUM_GPUS.derivation

# %% [markdown]
# And the states of a card are those of ZeRO, of the share of the model that the first two cuts leave it. Under stage 1, with the
# usual recipe (half-precision weights and gradients, three fp32 items):

# %%
PARALLEL_STATE.derivation.given(stage=1, context_parallel=1, **PARALLEL_STATE.defaults)

# %% [markdown]
# ## Deal them out and count
#
# Does that hold for real cards? Deal out a small model, parameter by parameter: which cards keep its weight, which keep its
# optimizer states? A card is a triple: its strip, its stage, its replica.


# %% tags=["definition"]
def dealt(params, tensor, stages, replicas):
    """Bytes on each card when every parameter's five items are put where stage 1 puts them."""
    cards = dict.fromkeys(product(range(tensor), range(stages), range(replicas)), 0)
    for number in range(params):
        strip, part = number % tensor, number // tensor % stages
        owner = number // (tensor * stages) % replicas
        for replica in range(replicas):
            cards[strip, part, replica] += 2 + 2  # weight and gradient, in 16 bits
        cards[strip, part, owner] += 4 + 4 + 4  # master copy and two moments, in 32
    return cards


# %%
small = {"tensor_parallel": 2, "num_stages": 3, "world_size": 4, "stage": 1, "context_parallel": 1}
cards = dealt(960, tensor=2, stages=3, replicas=4)
judge(max(cards.values()), PARALLEL_STATE(num_params=960, **small), within=0, unit=BYTE)

# %%
display(len(set(cards.values())), judge(len(cards), NUM_GPUS(**{k: v for k, v in small.items() if k in NUM_GPUS.inputs}), within=0))

# %% [markdown]
# All cards hold the same, and there are as many as the formula says.
#
# ## How large a model, how many cards?
#
# Turn the ledger round. A card of capacity $C$ keeps something for activations ($M_{\mathrm{act}}$), for its context and buffers
# ($M_{\mathrm{reserve}}$), and for what is whole only for a moment ($M_{\mathrm{trans}}$); the rest may hold states, of which a
# parameter has five (every $b$ is the bytes of one of them). With everything sharded over all cards:

# %%
LARGEST_PARAMS.derivation

# %%
room = {**card, "world_size": 4}
largest = Claim("With {activation_bytes} of activations, {reserve_bytes} reserved: {largest_params:B} parameters.")
display(
    largest(activation_bytes="15_000_000_000", reserve_bytes="2_000_000_000", transient_bytes=0, **room),
    largest(activation_bytes="10_000_000_000", reserve_bytes="1_000_000_000", transient_bytes=0, **room),
)

# %% [markdown]
# The two lines differ by what you *assume* about activations, not by arithmetic. A largest model says little unless one also says
# how much was left for activations. The other way round:

# %%
FEWEST_GPUS.derivation

# %%
fewest = Claim("{num_params:B} parameters with {activation_bytes} of activations need at least {fewest_gpus} cards.")
tight = {"activation_bytes": "12_000_000_000", "reserve_bytes": "4_000_000_000", "transient_bytes": "4_000_000_000"}
fewest(num_params="70B", **card, **tight)

# %% [markdown]
# ## What a plan costs
#
# A **plan** is a choice of all dials. Its memory is a ledger of four parts, each of which you know from its chapter. New is only
# that they are cut at once. The activations, for instance: a strip of each layer (chapter 9), for every micro-batch that
# the first stage holds (chapter 10). Without recomputation, and with FlashAttention, which keeps no scores (chapter 4):

# %%
PLAN_ACTIVATION.given(recomputed=0, bytes_per_score=0)

# %% [markdown]
# Where layers are recomputed (chapter 3) only their inputs stay, and one layer at a time is whole:

# %%
PLAN_ACTIVATION.derivation.given(recomputed=1, bytes_per_score=0)

# %% [markdown]
# And its time has three parts. The first is computation, stretched by what the pipeline idles and, where layers are recomputed
# ($\rho_{\mathrm{all}}$ is then one), by a second forward pass. $C_{\mathrm{step}}$ is the work of a step of $B$ sequences, $F$ the peak
# of each of $n$ cards, and $\eta$ the share of it that kernels reach; $p_{\mathrm{causal}}$ is the share of attention's scores that is
# counted:

# %%
PLAN_COMPUTE.derivation

# %% [markdown]
# The second is the collectives inside the layers, over the fast links of a node. The third is what replicas exchange, as far as no
# computation hides it:

# %%
PLAN_STEP.derivation

# %% [markdown]
# Nothing here is measured. The one number that is *assumed* is which share of their peak the kernels reach; you measure that
# on one card, in the lab on throughput.
#
# ## Every plan
#
# A cluster of this size can be divided in a few dozen ways, each with four stages, several micro-batches, with and without
# recomputation. That is too many for a head and nothing for a computer: try them all. Some are impossible before anything is
# computed, by rules you have met:

# %%
found = plans(MODELS["Llama 2 70B"], card, network, **cluster)
found

# %% [markdown]
# In a plan's name $b$ is the micro-batch, and ZeRO-0 is plain data parallelism. Read the lower half first: each line is a rule of
# an earlier chapter, with one plan that breaks it. Then the upper half, the fastest of the plans that fit. They are close to each
# other, and differ more in the memory they need than in time. A plan that leaves room survives a longer sequence or a fragmented
# allocator. Where is the colleague's recipe?

# %%
remembered = found.find(tensor_parallel=8, num_stages=4, world_size=4, stage=1, micro_batch=1, recomputed=0)
found.place(remembered)

# %% [markdown]
# It works and is not bad. What makes the difference? Eight ways of tensor parallelism pay more for collectives than four ways do,
# and four stages idle while they fill and drain. (*Replicas* is the time of their exchange, and *hidden* how much of it computation
# could hide: only what exceeds it is waited for. The states are a little smaller than in your guess, since the planner counts the
# parameters of the published model.)

# %%
display(remembered, found.good[0])

# %% [markdown]
# ## Explore
#
# The same search, in your browser. Each bar is a plan, its time in three parts.
#
# 1. Halve the network's bandwidth, and again. At what point does the best plan change, and into what?
# 2. Lengthen the sequence until the best plan recomputes. What else could it have done?
# 3. Choose a card with a slow link (a consumer card). What happens to tensor parallelism?
# 4. Give the 30B-class model eight cards. Which dials are left?

# %%
explorer = planner_explorer("Llama 2 70B", **cluster)
explorer

# %% [markdown]
# ## Published recipes, audited
#
# **Seven billion on eight cards.** The classic exercise; its three figures are the first line of each table:

# %%
seven = plans(MODELS["Llama 2 7B"], card, network, num_gpus=8, global_batch=64, seq_length="2048", num_params="7B")
one = {"tensor_parallel": 1, "num_stages": 1, "micro_batch": 1, "recomputed": 0}
display(*(seven.find(stage=stage, **one) for stage in (1, 2, 3)))

# %% [markdown]
# **Thirty billion on eight cards of eighty gigabytes.** Often answered with "ZeRO-3 and it fits". The states do; with all
# activations kept they do not fit beside them. Recomputed, they do, and the step takes a third longer:

# %%
thirty = plans(MODELS["LLaMA 33B"], card, network, num_gpus=8, global_batch=64, seq_length="2048", num_params="30B")
display(thirty.find(stage=3, **one), thirty.find(stage=3, **{**one, "recomputed": 1}))

# %% [markdown]
# **Seventy billion on 128 cards.** Your colleague's recipe, as it circulates: with few micro-batches a step. Memory was never its
# problem, as the guess at the start showed. The bubble is:

# %%
idle = Claim("{num_micro_batches} micro-batches: {pipeline_bubble:%} of the step idle.")
display(*(idle(num_stages=4, num_micro_batches=number) for number in (8, 16, 256)))

# %% [markdown]
# **Two ways, two stages, two replicas with ZeRO-2.** A pipeline accumulates gradients over its micro-batches; stage 2 throws away
# all but a shard of them after each. Libraries refuse the pair, and so does the planner:

# %%
thirty.find(tensor_parallel=2, num_stages=2, stage=2, micro_batch=1, recomputed=0).why

# %% [markdown]
# **Who shards with whom?** Where long sequences are cut as well (context parallelism), the cards that hold parts of one sequence
# hold the same weights, and can share optimizer states too. Count them in, or not:

# %%
long = {"num_params": "70B", **recipe, "context_parallel": 4}
both = Claim("Over replicas and sequence parts {shared}, over replicas alone {alone}.", shared=PARALLEL_STATE, alone=DATA_ONLY_STATE)
both(**long)

# %% [markdown]
# ## The decision, made
#
# What do you answer on Monday? Take the fastest plan that leaves a tenth of each card free, since activations are never exactly
# what a formula says. How much speed does that caution cost?

# %%
careful = found.leaving(0.1, card["memory_capacity"])
display(found.place(careful[0]), careful[0])

# %% [markdown]
# Then say what would prove you wrong: a step that is slower than predicted by more than the kernels' efficiency explains, a
# peak above the ledger, a bubble that does not shrink when you double the micro-batches. The
# [lab of the paper cluster](../labs/notebooks/paper_cluster.ipynb) runs such a plan on a laptop, every byte counted; the
# [pipeline lab](../labs/notebooks/pipeline.ipynb) measures the bubble.
#
# ## Build your own
#
# The planner is short. Its test of feasibility is the list of rules above and one comparison; its ranking is a sort. Write both
# yourself for the model of your choice, and hold your list against this one:


# %% tags=["definition"]
def possible(heads, layers, gpus, per_node, batch):
    """(t, P, k) of every division of the cards that keeps heads, layers, nodes and the batch whole."""
    ways = product(range(1, gpus + 1), repeat=2)
    cut = [(t, stages, gpus // (t * stages)) for t, stages in ways if gpus % (t * stages) == 0]
    whole = lambda t, stages, k: not (heads % t or layers % stages or per_node % t or batch % k)
    return [plan for plan in cut if whole(*plan)]


# %%
mine = possible(heads=32, layers=32, gpus=8, per_node=8, batch=64)
theirs = {(plan.chosen["tensor_parallel"], plan.chosen["num_stages"], plan.chosen["world_size"]) for plan in seven.good}
judge(len(mine), len(theirs), within=0)

# %% [markdown]
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q19", "en")` or `"zh"`.

# %%
ask("E002-Q19").form()

# %%
ask("E002-Q12").form()

# %%
ask("E002-Q28").form()

# %%
ask("E003-Q03").form()

# %%
ask("E003-Q09").form()

# %%
ask("E000-LQ03").form()

# %% [markdown]
# ## What people get wrong
#
# **"Eight cards, two ways of tensor parallelism: two groups of four."** Two *ranks to a group* make four groups of two. Two groups
# of four have four ways, and two replicas:

# %%
groups = Claim("{tensor_parallel} ways on {num_gpus} cards: {data_parallel_ranks} groups.")
display(*(groups(tensor_parallel=t, num_gpus=8, num_stages=1, context_parallel=1) for t in (2, 4)))

# %% [markdown]
# **"More stages, less memory."** Of states, yes. The first stage's activations stay what they were, however many stages there are
# (chapter 10), unless there are fewer micro-batches than stages:

# %%
busy = {**MODELS["Llama 2 70B"], "seq_length": "4096", "micro_batch": 1, "recomputed": 0, "bytes_per_score": 0}
stages = Claim("Stages: {num_stages}. Activations on the first: {plan_activation_bytes}.")
display(*(stages(num_stages=number, num_micro_batches=64, tensor_parallel=8, **busy) for number in (1, 4, 16)))

# %% [markdown]
# **"It fits, so it is a plan."** A plan has a time as well. Here is the slowest that fits:

# %%
found.place(found.good[-1])

# %% [markdown]
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own:

# %%
claims(chapter=11, verdict="wrong")

# %%
claims(chapter=11, verdict="convention")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Train this model on that cluster. How?"* State first: parameters to bytes, cards to bytes, so how much must be
#    shared. Then the order of the dials: tensor parallelism up to the node, then sharding or stages, then
#    replicas. Then the batch: does it fill the pipeline? Say at each step what you give up.
# 2. *"Why not more tensor parallelism?"* It pays in every layer, forward and backward, and nothing hides it; beyond the node it
#    pays on the slow link. And heads must divide.
# 3. *"Your plan is twice as slow as you said. What do you look at?"* Efficiency of one card first (a small job, no
#    communication), then one dial at a time: the bubble by doubling micro-batches, the exchange by switching it off.
#
# Next: [chapter 12](12_adapters.ipynb) trains what no cluster is needed for.
