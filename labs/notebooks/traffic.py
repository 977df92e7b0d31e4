# %% [markdown]
# # Lab: what does a rank send in a step?
#
# After this lab you can decide, for DDP, ZeRO-1, FSDP, HSDP, tensor and sequence parallelism as PyTorch has them, how many
# bytes a process sends in a training step, what accumulating gradients saves of that, and for which reasons the library sends
# more or less than the paper. It takes 40 minutes; the run takes about half a minute, on a laptop, without a GPU.
#
# You predict first, then several real processes train a small model in each of these ways while every collective is counted,
# and every line of the count is held against its formula. At the end you write a ring all-reduce of your own.

# %%
# In Colab this fetches the book and installs only what is missing; elsewhere it does nothing.
import importlib.util
import subprocess
import sys

book = ""  # in Colab: the address of the repository you opened this from, like https://github.com/…/…
if "google.colab" in sys.modules and not importlib.util.find_spec("labs"):
    subprocess.run(["git", "clone", "--depth", "1", book, "book"], check=True)
    sys.path.insert(0, "book")
    for package in ("sympy", "torch", "matplotlib"):
        if not importlib.util.find_spec(package):
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
from formulary import Claim, formula
from formulary.zero import ZERO_TRAFFIC_LEDGER
from labs.traffic import LAB as lab
from labs.traffic import written

# %% [markdown]
# ## The job
#
# A GPT with random weights reads random tokens for a few steps in each of these ways, and the last step is counted:
#
# - **ddp**: gradients averaged. With several micro-batches in a step, **ddp_every_pass** averages after each of them,
#   **ddp_no_sync** after the last.
# - **zero1**: `ZeroRedundancyOptimizer`. Each tensor is updated by one process, which then tells the others.
# - **fsdp**: `fully_shard` around every block and around the rest. **fsdp_kept** keeps blocks whole until their backward pass
#   (`reshard_after_forward=False`), **fsdp_bf16** gathers in bf16 and reduces in fp32, **fsdp_every_pass** and **fsdp_no_sync**
#   have several micro-batches.
# - **hsdp**: cut within a node, alike on all nodes.
# - **tp**, **sp**: the blocks cut across the processes, without and with sequence parallelism. That is the lab on tensor
#   parallelism.
#
# A dispatch mode sees every operation that torch carries out, so it sees collectives whoever calls them, DDP's C++ included. It
# notes the kind, the bytes of the whole tensor, and among how many processes. What a rank *sends* for it is taken from a ring:
# an all-reduce is two passes, a gather, a scatter or a broadcast is one. The script is
# [`labs/jobs/traffic.py`](../jobs/traffic.py), the counting is [`labs/collectives.py`](../collectives.py), and these are the
# conditions:

# %%
num_processes = 2
conditions = lab.under(num_processes)
conditions

# %%
shape = {name: conditions[name] for name in formula("gpt_params").inputs}
Claim("With these numbers the model has {gpt_params} parameters.")(**shape)

# %% [markdown]
# ## Your prediction
#
# How many bytes does a process send in one step, under each of these? Everything travels in fp32, unless the name says
# otherwise. Write a text with a unit, such as `"… MB"`, or a plain number of bytes, and run the cell. Leave `None` where you
# would rather not guess.

# %%
my_prediction = {"ddp": None, "ddp_every_pass": None, "zero1": None, "fsdp": None, "fsdp_kept": None, "wire/reduce-scatter": None}

# %% [markdown]
# ## What the formulas say
#
# One pass round a ring sends this much of a tensor:

# %%
formula("all_gather_bytes")

# %% [markdown]
# On paper the stages of ZeRO differ in how many such passes they make over weights and over gradients:

# %%
ZERO_TRAFFIC_LEDGER

# %% [markdown]
# The paper counts one implementation; libraries call other collectives, or call them more often:

# %%
formula("grad_passes").compare(stage=1, accumulation_steps=conditions["accumulation_steps"])

# %% [markdown]
# `fully_shard` has one more habit. What the forward pass needs last the backward pass needs first, so some weights are not let
# go in between:

# %%
formula("fsdp_gather_bytes")

# %% [markdown]
# With these every line has its prediction, and its working. Here are those of two variants:

# %%
lab.predictions(num_processes, variants="zero1,fsdp")

# %% [markdown]
# ## The run

# %%
report = lab.run(num_processes, timeout=300)
report

# %%
report.figure()

# %% [markdown]
# Read the last two columns first: *on paper* is the paper's figure, and the last column leads from it to the prediction. What
# is counted at a collective must agree to the byte, or the verdict says so. Your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# ## On the wire
#
# A count at the collective trusts that a collective goes round a ring as the books say. The lines that begin with *wire*
# don't: the processes move into a network of their own, where nobody else sends, and read the counter of the interface before
# and after. The headers of the packets are taken off, and of several takes the least counts, since TCP sends again what a busy
# machine was slow to acknowledge. What then remains beside the formula is what gloo says beside the message, and packets whose
# headers are of another size.
#
# Look at the reduce-scatter. Its result is right, its name is right, and it sends twice what it should. Only a counter on the
# wire can tell you. A network of one's own takes Linux and root; where a process may not make one, the lines say so and are
# neither right nor wrong.
#
# ## A ring of your own
#
# Here is an all-reduce that is right and sends far too much: it passes whole messages round, as often as there are other
# processes. With two processes nobody notices. `exchange(tensor)` sends a tensor to the next process and returns what the one
# before has sent, of the same shape.


# %% tags=["definition"]
def all_reduce(message, rank, num_ranks, exchange):
    """Add up everybody's `message`, a flat tensor, in place."""
    passing = message.clone()
    for _ in range(num_ranks - 1):
        passing = exchange(passing)
        message += passing


# %%
mine = lab.run(num_processes + num_processes, variants="", ring=written(all_reduce))
mine

# %% [markdown]
# The line `ring: sent` says how far off it is. Rewrite it so that the line comes true: cut the message into as many blocks as
# there are processes (`message.chunk(num_ranks)`), let each process finish one block, then hand the finished blocks round. The
# sums must stay right. If you are stuck, [`labs/jobs/ring.py`](../jobs/ring.py) has one.
#
# ## More processes
#
# The same job with twice as many. The vocabulary's rows do not divide now, and there is more than one node:

# %%
wider = lab.run(num_processes + num_processes, variants="zero1,fsdp,hsdp")
wider

# %% [markdown]
# ## Explain
#
# In your own words: why does each line that differs from the paper do so? Use the names of the last column. Each difference you
# name is a point, and each right reason another, which a reader gives.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## The differences, by name
#
# **precision.** The paper sends half-precision numbers. Mixed precision changes traffic as much as it changes memory, and the
# two can be chosen apart: *fsdp_bf16* gathers narrow and reduces wide.
#
# **all-reduced, not scattered.** Stage 1 of the paper costs no more traffic than DDP. PyTorch's does, by half, since it keeps
# DDP's all-reduce and sends the weights on top. A rank is sent gradient sums that it has no use for.
#
# **every backward pass.** Forget `no_sync` and gradient accumulation saves memory but not one byte of traffic.
#
# **the last pass only.** Under full sharding waiting is not free: somebody has to keep the whole gradients. And the weights are
# gathered for every micro-batch either way.
#
# **the root stays whole.** The embeddings and the head are a large part of a small model, and a small part of a large one: on
# paper-sized models this difference all but vanishes.
#
# **rows rounded up.** Padding travels like data.
#
# **gathered inputs kept**, **added up in Adam.** See the lab on tensor parallelism. The second is traffic in the optimizer
# step, where nobody looks for it.
#
# **hidden buckets.** Memory, not traffic, and invisible to a count of tensors: a communication hook sees the buckets, and they
# share no memory with any gradient unless the gradients are views.
#
# **a reduce-scatter sent as an all-reduce.** On gloo's wire, full sharding costs as many passes as the paper gives it plus one.
# Someone who times FSDP on CPUs and concludes for GPUs is off by that much. NCCL on the wire: not yet measured.
#
# On GPUs the same script is started with `lab.run(…, device="cuda")`, one GPU for each process. It has been tried on one H200
# and did not finish there, so there are no figures of GPUs, and none of several.
#
# ## Questions
#
# 1. From how many micro-batches on does *fsdp_no_sync* send less than half of *fsdp_every_pass*? Find it with the formulas,
#    then run it with `accumulation_steps=…`.
# 2. *hsdp* on four processes: which of its lines cross the network between nodes, and what would *fsdp* send across it?
# 3. Choose a `vocab_size` for which **rows rounded up** vanishes on three processes as well. What else must divide?
# 4. Which share of the traffic of *zero1* would a reduce-scatter save? Why would gloo not show it?
# 5. Take the learner's ring to an odd number of processes. Does its number of rounds depend on the size of the message? When
#    does that matter?
