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
# # 10 · Pipeline parallelism
#
# **What you will be able to decide.** How many stages, how many micro-batches and which schedule: what share of the step the
# cards idle, what they hold meanwhile, and what they send.
#
# **How long it takes.** About 50 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import sympy as sp
from IPython.display import display

from autograder import ask
from explorers import bubble_explorer, in_flight_explorer, micro_batches_explorer, pipeline_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.claims import claims
from formulary.pipeline import (
    BOUNDARIES,
    BUBBLE,
    BUBBLE_RATIO,
    GPIPE_IN_FLIGHT,
    IN_FLIGHT,
    INTERLEAVED_BUBBLE,
    INTERLEAVED_IN_FLIGHT,
    MICRO_BATCHES,
    P2P,
    STEP_TIME,
    ZB_H1_BUBBLE,
    ZB_H1_TIME,
    ZB_H2_TIME,
)
from formulary.shapes import MODELS
from formulary.tensor_parallel import BOUNDARY
from formulary.units import SECOND

# %% [markdown]
# ## The decision
#
# Your model is too large for one card, even with everything else you have tried, so its layers are laid out over several: the
# first layers on the first card, the next on the second, and so on. Each card is a **stage**. A batch is cut into
# **micro-batches**, which follow each other through the stages like cars on an assembly line, forward and then, with the
# gradients, back. You have

# %%
line = {"num_stages": 8, "num_micro_batches": 64}
longer = {**line, "num_stages": 16}
shape = MODELS["LLaMA 65B"]

Claim("{num_layers} layers on {num_stages} stages, {num_micro_batches} micro-batches a step.")(**line, num_layers=shape["num_layers"])

# %% [markdown]
# Memory is short, and somebody suggests twice as many stages, so that each holds half as many layers. Somebody else says that
# the cards idle too much as it is, and that a cleverer schedule would help. What does each proposal cost, and what does it
# bring?
#
# **Guess first.** Which share of a step does a card idle with the stages you have? A number such as `"…%"`.

# %%
guess = None

slips = {"ratio": BUBBLE_RATIO(**line)}
hints = {"ratio": "that is idle time over working time; measured against the whole step it is a little less"}
guess and judge(read(guess), BUBBLE(**line), within=0.02, mistakes=slips, hints=hints)

# %% [markdown]
# ## An assembly line that starts empty
#
# A car factory with eight stations is most efficient when every station has a car. But in the morning only the first station
# has one; the last station waits until the first car has passed all the others. In the evening, when the last car has left the
# first station, that one waits for the others to finish. Filling and draining cost the same whether you build eight cars or
# eight thousand. What changes is over how many cars you spread it.
#
# A pipeline in training fills, drains *and turns round*: each micro-batch goes forward through all stages, and its gradients
# come back through them. At the end of the step all weights are updated, so the line must be empty then. (Schedules that do not
# wait exist, and train on stale weights; they are not in use for large models.)
#
# Call the time of a forward pass of one micro-batch on one stage $t_F$, that of its backward pass $t_B$, the stages $P$ and the
# micro-batches $M$. Stages are equally fast and messages take no time:

# %%
STEP_TIME.derivation

# %% [markdown]
# The work of a stage is $M$ times both passes. The rest of the step it idles, and this share is called the **bubble**, $\phi$:

# %%
BUBBLE.derivation

# %% [markdown]
# Two limits. With many micro-batches the bubble vanishes; with a single one, all stages but one idle at any time:

# %%
display(BUBBLE.limit("num_micro_batches", sp.oo), BUBBLE.given(num_micro_batches=1))

# %% [markdown]
# And turned round: how many micro-batches keep it within a share you allow?

# %%
MICRO_BATCHES.derivation

# %%
enough = Claim("With {num_stages} stages, {needed_micro_batches} micro-batches keep the bubble at or below {pipeline_bubble:%}.")
display(*(enough(num_stages=8, pipeline_bubble=share) for share in (0.1, 0.05)))

# %% [markdown]
# (Beware of rules of thumb such as "four micro-batches a stage". They state $M/P$, where what counts is $M/(P-1)$, and
# everybody has another share in mind.)
#
# ## Lay it out and count
#
# A formula for idle time is easily believed, so let a line run. Each stage is given its *order*, a list of what it shall do,
# and does the next thing as soon as it can: as soon as it is free, and what it needs is there. A forward pass needs the forward
# pass of the stage before; a backward pass needs the backward pass of the stage after, or on the last stage its own forward
# pass.
#
# Two orders. **GPipe** does all forwards, then all backwards. **1F1B** ("one forward, one backward") warms up with one forward
# for each stage behind it and one more, and from then on does a backward after each forward.


# %% tags=["definition"]
def gpipe(stages, micros):
    """Every stage's order: (kind, micro-batch)."""
    return [[("F", m) for m in range(micros)] + [("B", m) for m in range(micros)] for _ in range(stages)]


def one_forward_one_backward(stages, micros):
    """Every stage's order: forwards until each stage behind has one, then a backward after each forward."""
    orders = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, micros)
        steady = [work for m in range(micros - ahead) for work in (("F", m + ahead), ("B", m))]
        orders.append([("F", m) for m in range(ahead)] + steady + [("B", m) for m in range(micros - ahead, micros)])
    return orders


def play(orders, seconds):
    """When each piece of work ends, by (kind, micro-batch, stage); `seconds` says how long each kind takes."""
    ends, queues = {}, [list(order) for order in orders]
    clocks = [0.0 for _ in orders]
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue and (ready := when_ready(ends, *queue[0], stage, len(orders))) is not None:
                kind, micro = queue.pop(0)
                clocks[stage] = ends[kind, micro, stage] = max(clocks[stage], ready) + seconds[kind]
    return ends


def when_ready(ends, kind, micro, stage, stages):
    """When what this piece of work needs is there, or None if that is not known yet."""
    if kind == "F":
        return ends.get(("F", micro, stage - 1)) if stage else 0.0
    return ends.get(("B", micro, stage + 1)) if stage + 1 < stages else ends.get(("F", micro, stage))


def idle_share(orders, seconds):
    """The share of the step that the first stage does nothing."""
    step = max(play(orders, seconds).values())
    return 1 - sum(seconds[kind] for kind, _ in orders[0]) / step


# %%
seconds = {"F": 0.01, "B": 0.02}
orders = {"GPipe": gpipe(8, 64), "1F1B": one_forward_one_backward(8, 64)}
display(*(judge(idle_share(order, seconds), BUBBLE(**line), within=0.0001) for order in orders.values()))

# %% [markdown]
# Both are what the formula says, and *both are the same*. 1F1B has no smaller bubble than GPipe. Why is it what everybody uses,
# then? And does the time of the whole step agree?

# %%
times = {"stage_forward_time": seconds["F"], "stage_backward_time": seconds["B"]}
judge(max(play(orders["1F1B"], seconds).values()), STEP_TIME(**line, **times), unit=SECOND)

# %% [markdown]
# ## Explore: play a step
#
# Rows are stages; each block is a pass, with the number of its micro-batch. The line on each row counts what the stage *holds*:
# micro-batches whose forward pass is done and whose backward pass is still to come. Their activations have to be kept. The
# other schedules in the list are explained further down; try them already.
#
# 1. Compare GPipe with 1F1B. What is different, if not the bubble?
# 2. Which stage holds most under 1F1B, and how much is it?
# 3. Choose *interleaved*, where a card has several short stretches of layers, *chunks*, and the line counts those. What becomes of
#    the bubble?

# %%
pipeline_explorer(num_stages=4, num_micro_batches=8, schedule="gpipe")

# %% [markdown]
# ## What a stage holds
#
# Count in *layer-activations*, what one layer keeps of one micro-batch. (Their number is written $L$ with the schedule's name below
# it; $L$ alone is the model's number of layers.) Under GPipe all forwards come first, so a stage holds every micro-batch at once,
# in each of its $L/P$ layers:

# %%
GPIPE_IN_FLIGHT.derivation

# %% [markdown]
# Under 1F1B a stage takes in no more than is needed to keep the stages behind it busy. Stage $j$ of $P$:

# %%
IN_FLIGHT.derivation

# %% [markdown]
# For the first stage, with enough micro-batches, something neat comes out: $P$ micro-batches in $L/P$ layers. As many
# layer-activations as the model has layers, *however many stages there are*:

# %%
IN_FLIGHT.given(stage_index=1).limit("num_micro_batches", sp.oo)

# %% [markdown]
# So more stages save weights, gradients and optimizer states, but not activations of the first stage. Count it in the orders: a
# forward adds one, a backward takes one away.


# %% tags=["definition"]
def most_held(order):
    """The most micro-batches that a stage holds at once."""
    held = most = 0
    for kind, _ in order:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return most


# %%
one_layer_each = {**line, "num_layers": 8}
judge(most_held(orders["GPipe"][0]), GPIPE_IN_FLIGHT(**one_layer_each), within=0)

# %%
by_stage = [judge(most_held(orders["1F1B"][j]), IN_FLIGHT(**one_layer_each, stage_index=j + 1), within=0).passed for j in range(8)]
all(by_stage), [most_held(order) for order in orders["1F1B"]]

# %% [markdown]
# That is why 1F1B is used. It does not make the line faster; it keeps the yard from filling up.
#
# ## Interleaving: smaller pieces, more often
#
# The bubble is so long because the first micro-batch has to pass $P-1$ whole stages before the last one can start. Give each
# card not one stretch of layers but $V$ shorter ones, *chunks*, dealt out like cards: card 1 gets chunks 1, $P+1$, and so on.
# The first micro-batch now reaches the last card after $P-1$ *chunks*.

# %%
INTERLEAVED_BUBBLE.derivation

# %%
BOUNDARIES.derivation

# %% [markdown]
# **Guess first.** Your line with two chunks on each card: which share of the step does a card idle?

# %%
guess = None

two_chunks = {**line, "chunks_per_stage": 2}
slips = {"unchanged": BUBBLE(**line)}
hints = {"unchanged": "that is the bubble without interleaving"}
guess and judge(read(guess), INTERLEAVED_BUBBLE(**two_chunks), within=0.03, mistakes=slips, hints=hints)

# %% [markdown]
# It takes an order as well, Megatron's: as many micro-batches as there are cards go through one chunk, then the same ones
# through the next. The player lays it out, and counts:

# %%
small_line = {"num_stages": 4, "num_micro_batches": 8, "chunks_per_stage": 2}
player = pipeline_explorer(**small_line, schedule="interleaved")
judge(player.scene()["counted"], INTERLEAVED_BUBBLE(**small_line), within=0.0001)

# %%
player

# %% [markdown]
# What is the price? Messages: a micro-batch changes cards $VP-1$ times instead of $P-1$, so a card sends $V$ times as much. And
# memory: the first card holds more than under plain 1F1B. Again in layer-activations, for card $j$ of $P$:

# %%
INTERLEAVED_IN_FLIGHT.derivation

# %%
in_flight_explorer(**two_chunks, num_layers=16)

# %% [markdown]
# ## Zero-bubble schedules
#
# A backward pass does two things: it computes the gradient of its *input*, for which the stage before is waiting, and the
# gradients of its *weights*, for which nobody is waiting until the end of the step. Do the first at once, and keep the second
# for when you would otherwise idle. Let the two take $t_X$ and $t_W$, together $t_B$. The schedule called **ZB-H1** puts off no more
# weight gradients than 1F1B's memory allows, and idles for

# %%
ZB_H1_TIME.derivation

# %% [markdown]
# If forward, input gradient and weight gradient take equally long, the bubble is a third of that of 1F1B in time, with the same
# memory:

# %%
ZB_H1_BUBBLE.derivation

# %%
zero_bubble = pipeline_explorer(num_stages=4, num_micro_batches=8, schedule="zb_h1")
judge(zero_bubble.scene()["counted"], ZB_H1_BUBBLE(num_stages=4, num_micro_batches=8), within=0.0001)

# %% [markdown]
# **ZB-H2** starts with more forwards, and so keeps about twice the activations. If the three parts take equally long, it does not
# idle at all:

# %%
ZB_H2_TIME

# %% [markdown]
# ## Explore: how fast the bubble shrinks
#
# 1. With sixteen stages, how many micro-batches bring back the bubble of eight? Is it twice as many?
# 2. Which gains more: twice the micro-batches, or two chunks?
# 3. Allow half the bubble: what happens to the micro-batches you need, and to your batch?

# %%
bubble_explorer(**two_chunks)

# %%
micro_batches_explorer()

# %% [markdown]
# ## What travels
#
# Between two stages goes one tensor a micro-batch: the *residual stream*, one vector of the model's width for each token.
# Forward the activations, back their gradients. With $b$ sequences of $s$ tokens in a micro-batch, a model $h$ wide and
# $b_{\mathrm{act}}$ bytes a number:

# %%
BOUNDARY.derivation

# %%
P2P.derivation

# %% [markdown]
# An inner stage of the decision's line, with one sequence a micro-batch, beside the gradients that a data-parallel card with as
# many parameters would all-reduce:

# %%
tokens = {"seq_length": "2048", "micro_batch": 1, "hidden_size": shape["hidden_size"]}
stage_params = {"num_params": "8B", "world_size": 8}
traffic = Claim("A stage sends {pipeline_p2p_bytes} a step; averaging gradients of {num_params:B} parameters, {ddp_gradient_bytes}.")
traffic(**line, **tokens, **stage_params, chunks_per_stage=1)

# %% [markdown]
# Little, and between neighbours only, with no ring to wait for. That is why pipelines are what crosses between nodes in a large
# cluster, while tensor parallelism (chapter 9), which sends far more, stays inside.
#
# ## The decision, made
#
# Twice as many stages first:

# %%
shares = Claim("{num_stages} stages: the bubble is {pipeline_bubble:%}, and with two chunks {interleaved_bubble:%}.")
display(shares(**line, chunks_per_stage=2), shares(**longer, chunks_per_stage=2))

# %%
states = Claim("{num_stages} stages of {num_params:B} parameters hold {state_bytes} of model states each.")
display(states(**line, num_params="8B"), states(**longer, num_params="4B"))

# %% [markdown]
# It halves model states and *not* activations: the first stage holds as many layer-activations as the model has layers, with
# eight stages as with sixteen. It nearly doubles the idle time. If model states are what does not fit, shard them over
# data-parallel ranks first (ZeRO stage 1, chapter 7, which goes well with pipelines; stages 2 and 3 do not, since they reduce
# or gather in every micro-batch). If it is activations, recompute them (chapter 3).
#
# A cleverer schedule, then. Interleaving costs messages, of which you have few, and some activations. Two chunks bring back
# nearly half of the time you idle. And if the recipe allows a larger batch, that is simplest of all: under 1F1B more micro-batches
# need no more memory, they only make a step longer.
#
# The order of thought: *micro-batches first, then chunks, then stages*.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E000-SA03", "en")` or `"zh"`.

# %%
ask("E000-SA03").form()

# %%
ask("E000-TF06").form()

# %%
ask("E002-Q30").form()

# %%
ask("E000-TF07").form()

# %%
ask("E000-LQ01").form()

# %% [markdown]
# ## What people get wrong
#
# **"1F1B makes the bubble smaller."** It holds less and idles as long. You counted both above. Interleaving and zero-bubble
# schedules are what idles less.
#
# **"The bubble is $(P-1)/M$."** That is idle time over *working* time, which some papers report. Over the whole step it is the
# smaller figure. Neither is wrong; the third line of the table is:

# %%
BUBBLE.compare(**line)

# %% [markdown]
# **"Twice the stages, twice the bubble."** Nearly, never quite, since the step grows as well. The factor is

# %%
round(judge(BUBBLE(**longer), BUBBLE(**line)).ratio, 3)

# %% [markdown]
# **"Nine micro-batches a stage keep the bubble within a tenth."** Nine for each stage *but one*; the rounded rule asks for more
# than needed:

# %%
Claim("{num_stages} stages need {needed_micro_batches}.")(num_stages=8, pipeline_bubble=0.1)

# %% [markdown]
# **"V chunks make V times as many boundaries."** There is one boundary between any two chunks that follow each other, and that
# makes one less than there are chunks in all:

# %%
Claim("{num_stages} stages of {chunks_per_stage} chunks: {chunk_boundaries}.")(num_stages=4, chunks_per_stage=2)

# %% [markdown]
# **"Pipelines do not lower activation memory."** Not on the first stage of 1F1B; on the later ones they do, and under GPipe
# with many micro-batches it is more, not less:

# %%
last = IN_FLIGHT.given(stage_index=8)
held = Claim("Layer-activations: GPipe {gpipe_in_flight}; 1F1B on the first stage {in_flight}, on the last {last}.", last=last)
held(**line, num_layers=shape["num_layers"], stage_index=1)

# %% [markdown]
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own, then those that are true if one rounds:

# %%
claims(chapter=10, verdict="wrong")

# %%
claims(chapter=10, verdict="convention")

# %%
claims(chapter=10, verdict="true_with_rounding")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Derive the bubble."* Fill, work, drain; the share with its assumptions (equal stages, no communication, whole step); both
#    limits; the number of micro-batches for a share that is allowed.
# 2. *"Why 1F1B, if the bubble is the same?"* In-flight micro-batches: as many as stages instead of all of them. Name the first
#    stage as the one that holds most, and that its activations do not shrink with more stages.
# 3. *"When would you interleave?"* When micro-batches are few and links have room: the bubble over $V$, against $V$ times the
#    messages and more activations. Then zero-bubble schedules, and what they need: a backward pass in two halves.
#
# ## Where to go on
#
# - Lab [How long does a pipeline idle, and what does it keep alive?](../labs/notebooks/pipeline.ipynb): PyTorch's own schedules,
#   laid out, counted and run.
# - Next: [chapter 11, *Capacity planning*](11_planning.ipynb), puts stages, cuts and replicas together.
