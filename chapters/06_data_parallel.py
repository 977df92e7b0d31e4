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
# # 6 · Data parallelism
#
# **What you will be able to decide.** How to split a batch over cards and micro-batches, when the gradients should travel, and
# how much of their journey can hide behind computation.
#
# **How long it takes.** About 45 minutes, without a GPU. Every number below is computed as the notebook runs. Chapter 5
# explains the all-reduce, on which everything here rests.

# %%
import sympy as sp
import torch
from IPython.display import display

from autograder import ask
from explorers import batch_explorer, exposed_explorer, overlap_explorer
from formulary import Claim, judge
from formulary.claims import claims
from formulary.communication import BUCKETED_TIME
from formulary.data_parallel import (
    ACCUMULATED_GRAD,
    ACCUMULATION_BIAS,
    ACCUMULATION_STEPS,
    BUCKETED_EXPOSED,
    CLUSTER_BATCH,
    DATA_PARALLEL_RANKS,
    DDP_BYTES,
    DDP_TIME,
    EXPOSED_COMM,
    GLOBAL_BATCH,
    NUM_BUCKETS,
    OVERLAPPED_STEP,
    SERVER_BYTES,
    WORKER_BYTES,
)
from formulary.hardware import NETWORKS
from formulary.memory import STATE_LEDGER
from formulary.models import MODEL_PARAMS
from formulary.shapes import MODELS
from formulary.units import SECOND
from formulary.zero import ACCUMULATION_COMM

# %% [markdown]
# ## The decision
#
# A model small enough to train on one card is to be trained on many, to be done sooner:

# %%
shape = MODELS["GPT-2 XL"]
model = {"num_params": MODEL_PARAMS(**shape.only(MODEL_PARAMS))}
network = {**NETWORKS["InfiniBand HDR"], "latency": 0.00001}
cards = {"world_size": 64}
gradients = {"message_bytes": STATE_LEDGER(**model)["gradients"]}

case = Claim("{num_params:B} parameters, {message_bytes} of gradients, {world_size} cards, {bandwidth} each.")
case(**model, **gradients, **cards, **network)

# %% [markdown]
# You measured on one card: it has room for four sequences at a time, computes their forward pass in a tenth of a second, and
# the backward pass takes twice that. The recipe asks for a certain number of sequences before each update of the weights. All
# cards must then agree on the gradients. That costs time: how much, and must you wait for it?

# %%
micro_batch = {"micro_batch": 4}
computing = {"forward_time": 0.1, "backward_time": 0.2}
wanted = {"global_batch": 512}

alone = Claim("On its own, averaging the gradients takes {ddp_gradient_time}, latency not counted; backward takes {backward_time}.")
alone(**model, **cards, **network, **computing)

# %% [markdown]
# **Guess first.** If gradients are sent while the backward pass still runs, in ten pieces, how much longer than its computation
# does a step take? A number and its unit in quotes.

# %%
guess = None

ten = {**gradients, **cards, **network, "num_buckets": 10, "backward_time": computing["backward_time"]}
slips = {"all of it": BUCKETED_TIME(**{name: ten[name] for name in BUCKETED_TIME.inputs})}
hints = {"all of it": "that is all of the communication, as if nothing were hidden"}
guess and judge(EXPOSED_COMM.quantity.accept(guess), BUCKETED_EXPOSED(**ten), unit=SECOND, within=0.1, mistakes=slips, hints=hints)

# %% [markdown]
# ## A choir with one score
#
# *Data parallelism* is a choir: every singer has the whole score (all weights), each rehearses other bars (part of the batch),
# and after each round all agree on the same corrections (the averaged gradient) and pencil them in. Since they started from the
# same score and make the same corrections, their scores stay the same. Nobody ever has to compare them again.
# Everybody also keeps gradients and optimizer states of their own, in full, so data parallelism buys speed and no memory.
#
# Does averaging give what one singer with all the bars would have arrived at? The loss is a mean over sequences, and gradients
# are linear, so a mean of means over *equal* parts is the mean over the whole. Let autograd say it:


# %% tags=["definition"]
def gradient_of(weights, data):
    """Gradient of a mean squared error over the rows of `data`."""
    weights = weights.detach().requires_grad_()
    return torch.autograd.grad(((data @ weights - 1) ** 2).mean(), weights)[0]


torch.manual_seed(0)
weights, batch = torch.randn(16, dtype=torch.double), torch.randn(32, 16, dtype=torch.double)
by_rank = [gradient_of(weights, part) for part in batch.chunk(8)]

# %%
torch.allclose(torch.stack(by_rank).mean(0), gradient_of(weights, batch))

# %% [markdown]
# PyTorch has two of these. `nn.DataParallel`, the older, is one process that scatters inputs to several cards and copies the
# weights anew in each step; do not use it. `DistributedDataParallel` (**DDP**) is one process for each card, with an all-reduce
# behind the backward pass. This chapter is about DDP.
#
# ## What makes a batch
#
# Three factors: $b$ sequences in a *micro-batch*, what a card computes at a time; $K$ micro-batches whose gradients are added
# up (*accumulated*) before the update; and the number of replicas.

# %%
GLOBAL_BATCH.derivation

# %% [markdown]
# Solved for the number of micro-batches that a wanted batch $B$ needs, and rounded up:

# %%
ACCUMULATION_STEPS.derivation

# %%
needed = Claim("For {global_batch} sequences on {world_size} replicas: {needed_accumulation_steps} micro-batches of {micro_batch}.")
steps = {"accumulation_steps": ACCUMULATION_STEPS(**wanted, **micro_batch, **cards)}
needed(**wanted, **micro_batch, **cards)

# %% [markdown]
# Replicas, *not* cards. A replica may itself be spread over several cards, because its layers are cut (tensor parallelism,
# chapter 9), laid out in stages (pipelines, chapter 10) or its sequences are cut. These cards work on the same sequences. So
# divide the $n$ cards by all three: $t$ cards to a layer, $P$ stages, $c$ pieces of a sequence.

# %%
DATA_PARALLEL_RANKS.derivation

# %%
spread = {"num_gpus": 128, "tensor_parallel": 8, "num_stages": 4, "context_parallel": 1}
Claim("{num_gpus} cards, tensor parallel {tensor_parallel}, {num_stages} stages: {data_parallel_ranks} replicas.")(**spread)

# %% [markdown]
# **Guess first.** These cards, with one sequence a micro-batch and sixteen of them accumulated: how many sequences does a step
# use? A number without a unit.

# %%
guess = None

sixteen = {"micro_batch": 1, "accumulation_steps": 16}
slips = {"cards": GLOBAL_BATCH(**sixteen, world_size=spread["num_gpus"])}
hints = {"cards": "that counts every card as a replica"}
guess and judge(GLOBAL_BATCH.quantity.accept(guess), CLUSTER_BATCH(**sixteen, **spread), within=0, mistakes=slips, hints=hints)

# %% [markdown]
# Explore: reach the batch of the decision with as few cards as you can, then with as few accumulated micro-batches. Raise the
# tensor-parallel ranks, and see why more cards need not mean a larger batch. Where the cards make no whole replicas there is no
# curve.

# %%
batch_explorer(**sixteen, num_gpus=128, tensor_parallel=8, num_stages=4)

# %% [markdown]
# ## What averaging costs
#
# One all-reduce of one number for each parameter, which takes $b_{\mathrm{red}}$ bytes on its way:

# %%
DDP_BYTES.derivation

# %%
DDP_TIME.derivation

# %% [markdown]
# In which precision do they travel? DDP sends gradients as they are. Under `autocast` the weights, and so the gradients, are
# fp32:

# %%
DDP_TIME.compare(**model, **cards, bandwidth=network["bandwidth"])

# %% [markdown]
# ### Once a step, or once a micro-batch?
#
# With several micro-batches in a step, plain DDP reduces after *each* backward pass, and only the last of these results is
# needed. `no_sync()` keeps the others quiet. Whether accumulation thins out communication is therefore a question to your
# library, and to your code. The value below is communication per computation, held against a step of one micro-batch: one means
# that accumulating saves nothing. Plain data parallelism is stage zero in the language of ZeRO (chapter 7):

# %%
ACCUMULATION_COMM.compare(**steps, stage=0)

# %% [markdown]
# Watch a loop do both. The ranks average what they hold by a call that counts itself:


# %% tags=["definition"]
class Average:
    """Averages the gradients of all ranks, and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self, gradients):
        self.calls += 1
        return torch.stack(gradients).mean(0)


def accumulate(micro_batches, average, every):
    """One step of several ranks: `micro_batches[m]` has a part for each rank. Averages after every one of them, or at the end."""
    parts = [[gradient_of(weights, part) for part in micro_batch.chunk(8)] for micro_batch in micro_batches]
    if every:
        return sum(average(by_rank) for by_rank in parts) / len(parts)
    return average([sum(of_rank) / len(parts) for of_rank in zip(*parts, strict=True)])


# %%
always, last = Average(), Average()
pieces = batch.chunk(4)
same = torch.allclose(accumulate(pieces, always, every=True), accumulate(pieces, last, every=False))
same, always.calls, last.calls

# %% [markdown]
# The same gradient, once with four reductions and once with one.
#
# ## Behind the backward pass
#
# The backward pass walks from the last layer to the first, and the gradients of the last layer are finished first. Why wait for
# the others? DDP packs gradients into **buckets**, in about the order in which they get ready, and all-reduces each bucket as
# soon as it is full, while the cards compute on. Only what is still under way when the backward pass ends is *exposed*.
#
# How many buckets of $S_{\mathrm{bucket}}$ bytes there are (DDP's option is `bucket_cap_mb`, and it counts MiB), and when the
# step ends ($i_{\mathrm{bucket}}$ counts the buckets):

# %%
NUM_BUCKETS.derivation

# %%
OVERLAPPED_STEP.derivation

# %% [markdown]
# The maximum has two cases. The first: communication is short, and only the last bucket shows. The second: the network is busy
# from the first bucket on, and what does not fit behind the rest of the backward pass shows. Take away the computation itself,
# and what is left is

# %%
EXPOSED_COMM.derivation

# %% [markdown]
# Two limits say what can be gained and what cannot. With very many buckets, if latency did not exist:

# %%
EXPOSED_COMM.limit("num_buckets", sp.oo)

# %% [markdown]
# With a single one, everything shows:

# %%
EXPOSED_COMM.given(num_buckets=1)

# %% [markdown]
# ### Bucket by bucket
#
# A clock for the cards and a clock for the network; a bucket leaves when it is full and the network is free.


# %% tags=["definition"]
def step_by_the_clock(forward, backward, sending, buckets):
    """When a step ends whose `sending` seconds of communication are cut into equal buckets."""
    card = network_free = forward
    for _ in range(buckets):
        card += backward / buckets
        network_free = max(card, network_free) + sending / buckets
    return max(card, network_free)


# %%
for sending in (0.05, 0.2, 0.6):
    by_the_clock = step_by_the_clock(computing["forward_time"], computing["backward_time"], sending, buckets=10)
    display(judge(by_the_clock, OVERLAPPED_STEP(**computing, comm_time=sending, num_buckets=10), unit=SECOND))

# %% [markdown]
# ## Explore: what shows
#
# The picture is laid out bucket by bucket in your browser; the formula stands beside it.
#
# 1. Start with one bucket and add some. When does adding stop helping?
# 2. Make the network slow enough that it never rests. What do more buckets bring now?
# 3. Make the backward pass longer (more sequences in a micro-batch). When does communication vanish?

# %%
overlap_explorer(**computing, **gradients, **cards, **network, num_buckets=10)

# %% [markdown]
# Every bucket also pays a latency (chapter 5), so too many are as bad as too few. The same question over all numbers of
# buckets:

# %%
BUCKETED_EXPOSED.derivation

# %%
exposed_explorer(backward_time=computing["backward_time"], **gradients, **cards, **network, num_buckets=10)

# %% [markdown]
# ## When parts are unequal
#
# A mean of means is the mean of the whole only for equal parts. Losses of language models are means over *tokens*, and
# sequences are padded or masked to different lengths. Two micro-batches, with $n_1$ and $n_2$ tokens that count, gradients
# summed to $G_1$ and $G_2$ over them, and means $\bar g_1$ and $\bar g_2$:

# %%
ACCUMULATED_GRAD.derivation

# %% [markdown]
# A loop that divides each loss by the number of micro-batches gives every micro-batch the same say instead. Its error:

# %%
ACCUMULATION_BIAS.derivation

# %% [markdown]
# Let autograd commit the mistake: a few rows in one micro-batch, the others in the second. First the error that the loop makes
# in the first weight's gradient, against the formula; then whether weighting by size repairs it.

# %%
short, long = batch[:4], batch[4:]
means = {"mean_grad_first": gradient_of(weights, short)[0].item(), "mean_grad_second": gradient_of(weights, long)[0].item()}
sizes = {"tokens_first": len(short), "tokens_second": len(long)}
mean_of_means = ACCUMULATED_GRAD.under("mean_of_means")(**means)

error = torch.tensor(mean_of_means).sub(gradient_of(weights, batch)[0]).item()
judge(error, ACCUMULATION_BIAS(**means, **sizes), within=0.001)

# %%
judge(ACCUMULATED_GRAD(**means, **sizes), gradient_of(weights, batch)[0].item(), within=0.001)

# %% [markdown]
# The same holds across ranks, since DDP averages the ranks' means. To be exact, divide the *sum* of token losses by the number
# of tokens of the whole batch, which takes one more all-reduce of a single number.
#
# Equal on average is not equal in everything. BatchNorm sees a micro-batch and not the batch. Clip the gradient after
# accumulating and averaging, not before. The learning-rate schedule counts updates, of which there are fewer, not
# micro-batches. And dropout draws other masks.
#
# ## The parameter server, and why it went
#
# Before rings there were *parameter servers*: machines that keep the weights. Workers push gradients to them and pull new
# weights. A worker sends what it computed,

# %%
WORKER_BYTES

# %% [markdown]
# but a server has to answer everybody. With $w$ workers and $q$ servers that share the weights:

# %%
SERVER_BYTES.derivation

# %%
server = {**gradients, "num_workers": 64, "num_servers": 1}
compare = Claim("One server sends {server_bytes} a step, a worker {worker_bytes}; on a ring everybody sends {ring_all_reduce_bytes}.")
compare(**server, **cards)

# %% [markdown]
# Count it: one server, several workers, the same tensor for each.

# %%
pulled = [gradient_of(weights, batch) for _ in range(8)]
small = {"message_bytes": pulled[0].nbytes, "num_workers": len(pulled), "num_servers": 1}
judge(sum(tensor.nbytes for tensor in pulled), SERVER_BYTES(**small), within=0)

# %% [markdown]
# As many servers as workers bring the load back to that of a ring; put a server into each worker, and what you have is the
# reduce-scatter and the all-gather of chapter 5. ZeRO (chapter 7) is that idea, with the optimizer where the server was.
#
# ## The decision, made
#
# Batch: as computed above, so many micro-batches per card and step. With `no_sync` all but the last are pure computation. For
# the last, the communication that shows, with one bucket, with ten, and with a hundred:

# %%
shows = Claim("Buckets: {num_buckets}. Of {bucketed_all_reduce_time} of communication {bucketed_exposed_time} show.")
display(*(shows(**{**ten, "num_buckets": buckets}) for buckets in (1, 10, 100)))

# %% [markdown]
# The network needs longer than the backward pass, so some of it shows whatever you do: no number of buckets gets below

# %%
over = EXPOSED_COMM.limit("num_buckets", sp.oo)
Claim("{least}.", least=over)(comm_time=DDP_TIME(**model, **cards, bandwidth=network["bandwidth"]), **computing)

# %% [markdown]
# What helps is to compute more for each time you send. A larger micro-batch, if it fits, makes the backward pass longer, and
# more hides behind it; accumulating more micro-batches, if the recipe bears the larger batch, spreads what shows over more
# computation. What does not help is half as many cards: the bytes of a rank hardly depend on their number. And if the model did
# *not* fit one card, nothing in this chapter would have helped at all. That is chapter 7.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E000-TF02", "en")` or `"zh"`.

# %%
ask("E000-TF02").form()

# %%
ask("E002-Q23").form()

# %%
ask("E002-Q22").form()

# %%
ask("E000-TF03").form()

# %%
ask("E003-Q08").form()

# %%
ask("E002-Q17").form()

# %% [markdown]
# ## What people get wrong
#
# **"The batch is micro-batch times accumulation times GPUs."** Times *replicas*. For the cards of the example above:

# %%
both = Claim("Sequences of a step, counting every card: {wrong}; counting replicas: {cluster_sequences_per_step}.", wrong=GLOBAL_BATCH)
both(**sixteen, **spread, world_size=spread["num_gpus"])

# %% [markdown]
# **"Accumulating over K micro-batches makes communication K times as rare."** If your library synchronises once a step. Plain
# DDP without `no_sync` does not, and neither can what shards gradients (chapter 7): see the table above.
#
# **"Data parallelism saves memory."** Every card keeps everything. What shrinks with more cards is a card's share of the
# *batch*, and so its activations, if you let it shrink.
#
# **"A worker of a parameter server needs no weights."** It computes with them: it holds a working copy, and the gradients it
# made.
#
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are right under a convention of their own:

# %%
claims(chapter=6, verdict="wrong")

# %%
claims(chapter=6, verdict="convention")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How does DDP hide its communication?"* Buckets in the order of the backward pass, all-reduced as they fill; what is
#    exposed, in both cases; why there is a best number of buckets; what `no_sync` is for.
# 2. *"You double the cards. What happens to batch, memory, traffic and learning rate?"* The batch doubles unless you accumulate
#    half as much; a card's memory and bytes stay; latency grows; the learning rate is a policy (linear or square-root scaling,
#    with warm-up), not arithmetic.
# 3. *"Is accumulation the same as a large batch?"* In the gradient yes, if parts are weighted by their tokens; in batch
#    statistics, clipping per micro-batch and dropout no. In memory it costs one micro-batch's activations; in communication it
#    depends on the library.
#
# ## Where to go on
#
# - Lab [What does a rank send in a step?](../labs/notebooks/traffic.ipynb): DDP's all-reduces in real processes, with and without
#   `no_sync`.
# - Next: [chapter 7, *ZeRO, FSDP and hybrid sharding*](07_zero.ipynb), for models that do not fit.
