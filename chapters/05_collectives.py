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
# # 5 · Collectives
#
# **What you will be able to decide.** Whether a message between many cards is bound by bandwidth or by latency, and therefore
# what helps: a faster link, fewer messages, larger ones, or another algorithm.
#
# **How long it takes.** About 45 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
from math import prod
from statistics import median

import sympy as sp
import torch
from IPython.display import display

from autograder import ask
from explorers import bucket_explorer, message_explorer, ring_blocks_explorer, ring_explorer
from explorers.table import Table
from formulary import Claim, judge
from formulary.amounts import read
from formulary.claims import claims
from formulary.communication import (
    ALGORITHM_BANDWIDTH,
    ALL_GATHER,
    ALL_REDUCE,
    ALL_REDUCE_BUS,
    ALL_REDUCE_TIME,
    BUCKETED_TIME,
    EQUAL_COST,
    HALVING_TIME,
    HIERARCHICAL_LEDGER,
    INTER_NODE,
    MIN_ALL_REDUCE,
    REDUCE_SCATTER,
    SWITCH_ALL_REDUCE,
    TREE_TIME,
)
from formulary.fully_shard import model_tensors
from formulary.hardware import NETWORKS
from formulary.memory import STATE_LEDGER
from formulary.shapes import MODELS
from formulary.units import BYTE, SECOND

# %% [markdown]
# ## The decision
#
# Sixty-four cards train one model together. Each works on its own part of the batch, and at the end of a step all of them need
# the *sum of all gradients*, that is, one sum for every parameter over all the cards. The model has

# %%
shape = MODELS["Llama 2 7B"]
gradients = {"message_bytes": STATE_LEDGER(num_params="7B")["gradients"]}
tensors = len(model_tensors(**shape))

Claim("{message_bytes} of half-precision gradients, in {num_tensors} tensors.")(num_tensors=tensors, **gradients)

# %% [markdown]
# The simplest program sums tensor by tensor, in the order in which the backward pass makes them. Somebody proposes to pack them
# into larger messages first. Somebody else wants a network of twice the bandwidth. Who is right depends on one comparison that
# you can make on paper, and by the end of this chapter you will have made it.
#
# The network, for one card in one direction, and what passes before a message's first byte arrives: its *latency*, here in
# microseconds (us). Bandwidth is the maker's figure. The latency is an assumption of ours, of the order that is measured in
# practice; measure yours.

# %%
network = NETWORKS["InfiniBand NDR"]
link = {**network, "latency": 0.00001}
Claim("{bandwidth}, and {latency} before the first byte.")(**link)

# %% [markdown]
# **Guess first.** Take eight cards and the gradients above. How many bytes must each card *send*, so that in the end every card
# has the complete sum? Put your guess in place of `None`, a number and its unit in quotes, and run the cell again.

# %%
guess = None

eight = {"world_size": 8, **gradients}
slips = {"once": gradients["message_bytes"], "one pass": REDUCE_SCATTER(**eight)}
hints = {
    "once": "as if the sum came back for free",
    "one pass": "that leaves each card with one slice of the sum; the slices have to go round too",
}
guess and judge(ALL_REDUCE.quantity.accept(guess), ALL_REDUCE(**eight), unit=BYTE, within=0.05, mistakes=slips, hints=hints)

# %% [markdown]
# ## Passing plates round a table
#
# A *collective* is an operation that a group of processes performs together; each process is a *rank*. Three of them matter
# most:
#
# - **reduce-scatter**: every rank brings a whole tensor, and leaves with one slice of the sum of them all;
# - **all-gather**: every rank brings a slice, and leaves with the whole;
# - **all-reduce**: every rank brings a whole tensor, and leaves with the whole sum.
#
# Imagine the ranks seated at a round table. Everybody has a full set of plates, one plate for each seat, and on every plate a
# portion of their own. All portions for a seat are to end up on one plate, no matter where. If everyone handed everything to
# everyone, the table would be busy for a long time. Instead, all pass *one* plate to the right, at once, everyone the plate of
# another seat. Whoever receives a plate adds their own portion for that seat, and passes it on in the next round. After one
# round less than there are seats, everybody holds one plate with all portions on it. No hand was ever idle, and nobody had to
# pass more than one plate at a time. That is a **ring reduce-scatter**.
#
# Here it is in code, for anything that can be added. `held[r][place]` is what rank `r` holds of block `place`; in each round,
# every rank sends one block to its right neighbour, all at once. Ranks and blocks are counted from zero, and after the last
# comes the first again (`% k`).


# %% tags=["definition"]
def ring_pass(held, first, arrive):
    """k-1 rounds round the ring; in each, rank r sends one block to its right neighbour. Yields (round, what was sent)."""
    k = len(held)
    for step in range(k - 1):
        sent = [(r, (first + r - step) % k, held[r][(first + r - step) % k]) for r in range(k)]
        for r, place, block in sent:
            right = held[(r + 1) % k]
            right[place] = arrive(right[place], block)
        yield step + 1, sent


def reduce_scatter(held):
    """Afterwards rank r has the finished sum of block r+1."""
    yield from ring_pass(held, first=0, arrive=lambda mine, block: mine + block)


def all_gather(held):
    """Starts from there; afterwards every rank has every block."""
    yield from ring_pass(held, first=1, arrive=lambda mine, block: block)


# %% [markdown]
# To see who has contributed to what, let every rank's portion be its letter, and adding mean writing letters side by side. Four
# ranks, before the first round and after each:


# %% tags=["definition"]
def seen(title, held):
    """What each rank holds, a row for each rank."""
    columns = [f"block {place + 1}" for place in range(len(held))]
    return Table(title, ["rank", *columns], [[letter, *row] for letter, row in zip("abcdefgh", held, strict=False)])


letters = [[letter] * 4 for letter in "abcd"]
display(seen("at the start", letters))
for number, _ in reduce_scatter(letters):
    display(seen(f"after round {number}", letters))

# %% [markdown]
# Follow one block down the rounds: it collects one letter at each seat it passes. In the last table every rank holds one block
# with all letters, each rank another one.
#
# The second half hands the finished blocks round. It is the same motion, except that what arrives *replaces* what was there:

# %%
for number, _ in all_gather(letters):
    display(seen(f"after round {number} of the all-gather", letters))

# %% [markdown]
# The same for as many ranks as you like, with the number of contributions in each block. Before you press play: on a ring of
# twice as many ranks, how many rounds does it take until everything is complete?

# %%
ring_blocks_explorer(world_size=8)

# %% [markdown]
# ## How many bytes is that?
#
# Call the bytes of the message $S$ and the number of ranks $k$. The formula is the counting of rounds ($r_{\mathrm{round}}$),
# and nothing else:

# %%
REDUCE_SCATTER.derivation

# %%
ALL_GATHER.derivation

# %%
ALL_REDUCE.derivation

# %% [markdown]
# Remarkable about the last line: $k$ all but cancels. More ranks mean more rounds of smaller blocks. For a long ring,

# %%
ALL_REDUCE.limit("world_size", sp.oo)

# %%
claim = Claim("{world_size} ranks: every one of them sends {ring_all_reduce_bytes}.")
display(*(claim(**gradients, world_size=ranks) for ranks in (2, 8, 64, 512)))

# %% [markdown]
# ### Could one do with less?
#
# Not if the ranks do the adding. Think of one byte of the sum first, then of all bytes and all ranks together:

# %%
MIN_ALL_REDUCE.derivation

# %% [markdown]
# The ring sends exactly that (take the two out of the brackets), so nothing that adds in the ranks can beat it. A network that
# adds *can*: a switch that receives every rank's message once and sends back the sum.

# %%
SWITCH_ALL_REDUCE.derivation

# %% [markdown]
# ## Do real tensors agree?
#
# The same code, now with tensors, and the bytes of everything that was sent. (`list` runs a pass to its end.)

# %%
ranks = 8
brought = [torch.randint(9, (840,), dtype=torch.half) for _ in range(ranks)]
held = [list(tensor.chunk(ranks)) for tensor in brought]
rounds = [*reduce_scatter(held), *all_gather(held)]

all(torch.equal(torch.cat(row), sum(brought)) for row in held)

# %%
sent_by_first = sum(block.nbytes for _, sent in rounds for rank, _, block in sent if rank == 0)
judge(sent_by_first, ALL_REDUCE(message_bytes=brought[0].nbytes, world_size=ranks), within=0, unit=BYTE)

# %% [markdown]
# ## Explore: the ring at work
#
# A row is a rank, a block in it is a message that the rank sends, with the number of the block it carries. Press play, or drag.
#
# 1. Follow one number: where does it start, and where is it when the reduce-scatter ends?
# 2. Double the ranks. What happens to the length of a round, and to that of the whole?
# 3. Make the message small. Which of the two grows now with the number of ranks, and why?

# %%
ring_explorer(world_size=8, **gradients, **link)

# %% [markdown]
# ## Everybody counts differently
#
# When two sources disagree about "the traffic of an all-reduce", look for these four. The first is ours throughout this book:
# what one rank sends.

# %%
ALL_REDUCE.compare(**eight, message_elements="7B")

# %% [markdown]
# ## From bytes to seconds
#
# The simplest useful model of a link has two numbers: a message costs a **latency** $\alpha$, however small it is, and then its
# bytes over the **bandwidth** $\beta$. A ring makes $2(k-1)$ rounds, and each of them is a message:

# %%
ALL_REDUCE_TIME.derivation

# %% [markdown]
# Run the ring against a clock. A round is over when its largest block has arrived; the tensors are those from above.


# %% tags=["definition"]
def clocked(rounds, start_up, rate):
    """Seconds that the rounds take when a message costs `start_up` seconds and its bytes over `rate`."""
    return sum(start_up + max(block.nbytes for *_, block in sent) / rate for _, sent in rounds)


# %%
small = {"message_bytes": brought[0].nbytes, "world_size": ranks, **link}
judge(clocked(rounds, link["latency"], link["bandwidth"]), ALL_REDUCE_TIME(**small), unit=SECOND)

# %% [markdown]
# The two terms behave in opposite ways. The bandwidth term hardly feels $k$; the latency term grows with every rank. So for
# every ring there is a message size at which the two are equal: below it you wait for messages to *start*, above it for bytes
# to *arrive*.

# %%
EQUAL_COST.derivation

# %%
balance = Claim("On {world_size} ranks latency and bandwidth are equal at a message of {equal_cost_bytes}.")
display(*(balance(world_size=ranks, **link) for ranks in (8, 64, 512)))

# %% [markdown]
# Solve for another letter and the same formula says which latency a message of some size can bear:

# %%
EQUAL_COST.solve_for("latency")

# %% [markdown]
# **Guess first.** Of the gradients' all-reduce on sixty-four ranks, in one piece: which share of its time is latency? A number
# such as `"…%"`.

# %%
guess = None

many = {"world_size": 64, **link}
whole = ALL_REDUCE_TIME(**many, **gradients)
latency_only = ALL_REDUCE_TIME(**many, message_bytes=0)
share = judge(latency_only, whole).ratio
guess and judge(read(guess), share, within=0.5)

# %% [markdown]
# ## Explore: the bend
#
# On both axes a step is a factor. To the left the curves are flat: there you pay for starting, and a message of nothing costs
# as much as one of some kilobytes. To the right they rise in proportion.
#
# 1. Find the bend of the ring for eight ranks, and for many. How does it move?
# 2. To the left of the bend another algorithm is faster. Which, and by what factor on many ranks?
# 3. Why does the tree lose on the right?

# %%
message_explorer(**eight, **link)

# %% [markdown]
# ## Other shapes than a ring
#
# **Halving and doubling** pairs ranks up: swap half of what you hold with a partner, then a quarter with another, and so on. As
# few bytes as a ring, and far fewer rounds, namely as often as $k$ can be halved. (That is the logarithm to base two, which is
# written as a quotient of two logarithms here.)

# %%
HALVING_TIME.derivation

# %% [markdown]
# **A tree** sends whole messages towards one rank and back again. Few rounds, but each of them with all bytes. Libraries cut
# the message into pieces that follow each other through the tree, and so get most of both. NCCL, the library that NVIDIA's
# cards use, chooses between rings and trees by the size of the message and the number of ranks.

# %%
TREE_TIME.derivation

# %% [markdown]
# For one tensor of the smallest kind, a norm's vector, on sixty-four ranks:

# %%
vector = {"message_bytes": torch.ones(shape["hidden_size"], dtype=torch.half).nbytes}
three = Claim("{message_bytes}: ring {ring_all_reduce_time}, halving {halving_all_reduce_time}, tree {tree_all_reduce_time}.")
three(**vector, **many)

# %% [markdown]
# **Two levels.** Inside a *node*, a machine with several cards, links are much faster than between nodes. So reduce-scatter
# inside the node first, let each rank all-reduce its slice with the ranks of the same place in the other nodes, and all-gather
# inside. The same sixty-four ranks, eight to a node:

# %%
nodes = {"ranks_per_node": 8, "num_nodes": 8, **gradients}
HIERARCHICAL_LEDGER.at(**nodes)

# %% [markdown]
# The total is what one ring of all ranks would send. But only the second part crosses the slow links, and with one network card
# to each GPU all of them carry it at once. With $n_{\mathrm{node}}$ nodes of $k_{\mathrm{node}}$ ranks:

# %%
INTER_NODE.derivation

# %% [markdown]
# ## Buckets
#
# Now cut the gradients into $n_{\mathrm{bucket}}$ messages, *buckets*, one after the other:

# %%
BUCKETED_TIME.derivation

# %% [markdown]
# Bandwidth is paid once, latency with every bucket. One bucket is the fastest, then; but a bucket can leave as soon as the
# backward pass has filled it, and with a single one nothing leaves until the end. Chapter 6 weighs the two. Here is the price
# alone:

# %%
bucket_explorer(**many, **gradients, num_buckets=tensors)

# %% [markdown]
# ## What a benchmark tells you
#
# `nccl-tests` and its like report two figures. The *algorithm bandwidth* is the message over the time it took. It depends on
# the collective and on $k$, so you cannot hold it against a datasheet:

# %%
ALGORITHM_BANDWIDTH

# %% [markdown]
# The *bus bandwidth* is what the links carried, and that you can:

# %%
ALL_REDUCE_BUS.derivation

# %%
measured = ALL_REDUCE_TIME(**eight, **link)
reported = Claim("{message_bytes} in {collective_time}: {algorithm_bandwidth} by the message, {all_reduce_bus_bandwidth} on the links.")
reported(**eight, collective_time=measured)

# %% [markdown]
# ## The decision, made
#
# The tensors as they are, each a message of its own: the smallest, one in the middle, the largest, and the size of balance.

# %%
grad_bytes = STATE_LEDGER.parts["gradients"]
messages = sorted(grad_bytes(num_params=prod(tensor)) for tensor in model_tensors(**shape))
tensor_time = Claim("A tensor of {message_bytes} takes {ring_all_reduce_time}.")
display(*(tensor_time(message_bytes=size, **many) for size in (messages[0], median(messages), messages[-1])), balance(**many))

# %% [markdown]
# The step's bill, tensor by tensor, in one piece, and tensor by tensor on a network of twice the bandwidth. (Counted tensor by
# tensor the model has a little less than the round number of parameters used so far, so its one piece takes a little less too.)

# %%
faster = {**many, **NETWORKS["InfiniBand XDR"]}
bill = Claim("Messages: {num_tensors}; bandwidth: {bandwidth}; time: {collective_time} a step.")
one_by_one = sum(ALL_REDUCE_TIME(message_bytes=size, **many) for size in messages)
one_by_one_faster = sum(ALL_REDUCE_TIME(message_bytes=size, **faster) for size in messages)
display(
    bill(num_tensors=len(messages), collective_time=one_by_one, **many),
    bill(num_tensors=1, collective_time=ALL_REDUCE_TIME(message_bytes=sum(messages), **many), **many),
    bill(num_tensors=len(messages), collective_time=one_by_one_faster, **faster),
)

# %% [markdown]
# Both help, and packing helps more, for nothing: on so many ranks the balance is as large as a typical matrix, so that much of
# the time goes into starting messages, and the norms' vectors do nothing else. On the eight cards of one node it would be the
# other way round, since there the balance is small and nearly all bytes lie above it. The rule you take with you is one
# comparison: *message against* $k\alpha\beta$.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E003-Q11", "en")` or `"zh"`. The last
# question looks ahead to chapter 7. All you need of it here: ZeRO stage 2 leaves each rank with its own slice of the summed
# gradients, and FSDP keeps weights in slices and all-gathers a block's weights just before the block computes.

# %%
ask("E003-Q11").form()

# %%
ask("E000-SA02").form()

# %%
ask("E000-LQ02").form()

# %% [markdown]
# ## What people get wrong
#
# **"A ring sends twice the lower bound."** It meets the bound that holds for ranks that do the adding. Only against a switch
# that adds is it twice as much:

# %%
bound = Claim("Ring {ring_all_reduce_bytes}; least if ranks add {all_reduce_min_bytes}; if a switch adds {switch_all_reduce_bytes}.")
bound(**eight)

# %% [markdown]
# **"A reduce-scatter costs what an all-reduce costs."** It is half of one. Whoever counts an all-reduce as one pass and a
# reduce-scatter as one pass gets every ratio of chapter 7 wrong:

# %%
halves = Claim("{reduce_scatter_bytes} in {reduce_scatter_time}; the all-reduce {ring_all_reduce_bytes} in {ring_all_reduce_time}.")
halves(**eight, **link)

# %% [markdown]
# **"More ranks, more traffic for each."** Bytes tend to a limit, as you saw. What grows is the number of rounds, and with it
# latency:

# %%
waiting = Claim("{world_size} ranks wait {ring_all_reduce_time} for rounds to start, whatever they send.")
display(*(waiting(message_bytes=0, world_size=ranks, **link) for ranks in (8, 64, 512)))

# %% [markdown]
# **"The link does so many Gb/s."** Bits and bytes differ by a factor, and so do one direction and both, one card and all the
# cards that share a network card. Ask which before you divide.
#
# ## What else is said about this
#
# Claims in circulation about this chapter's subject, with the figure as it is told and the figure as it computes. First the
# wrong ones, then those that are true if one rounds:

# %%
claims(chapter=5, verdict="wrong")

# %%
claims(chapter=5, verdict="true_with_rounding")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How does a ring all-reduce work, and what does it cost?"* Two passes of $k-1$ rounds with one $k$-th of the message each;
#    the bytes per rank, and that they hardly depend on $k$; that latency does; that no scheme in which ranks add sends less.
# 2. *"When is a collective bound by latency?"* The two-term model, the message size at which the terms are equal, and what
#    helps on each side of it: packing and trees below, bandwidth above.
# 3. *"Your all-reduce reaches so many GB/s. Is that good?"* First ask which figure it is. Turn the algorithm bandwidth into bus
#    bandwidth, then compare it with the slowest link that the ring crosses.
#
# ## Where to go on
#
# - Lab [What does a rank send in a step?](../labs/notebooks/traffic.ipynb): the collectives of real processes, counted by their
#   kind. At its end you write a ring all-reduce of your own.
# - Next: [chapter 6, *Data parallelism*](06_data_parallel.ipynb), hides these seconds behind the backward pass.
