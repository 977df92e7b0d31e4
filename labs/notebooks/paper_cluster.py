# %% [markdown]
# # Lab: a cluster on paper
#
# After this lab you can decide whether a model fits a cluster that you do not have: what one of its ranks holds between steps
# under FSDP2, what it holds at the worst moment of a step, which moment that is, and what each byte of it is for. It takes 30
# minutes; the runs take seconds to a minute each, on a laptop, in one process and without a GPU.
#
# You predict first. Then PyTorch's own code for FSDP2 takes a training step of a model with billions of parameters, with tensors
# that have a shape and no bytes, every tensor is counted, and the count is held against the formulas.

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
from ipywidgets import interact

from formulary import formula
from formulary.amounts import write
from formulary.units import BYTE, SECOND
from labs.measurement import kept
from labs.paper_cluster import KNOWN, outlook, peak_moment
from labs.paper_cluster import LAB as lab

# %% [markdown]
# ## The job
#
# Two things make a cluster of paper. A *fake tensor* knows its shape and its type, and every operation on it gives the fake
# tensor that the real operation would have given, without computing anything. A *fake process group* says it has many ranks,
# and its collectives return at once. Everything between them is real: the model, autograd, `fully_shard` with its hooks, its
# buffers and its order of work, and Adam. The process plays rank 0.
#
# The model is shaped like LLaMA. It is trained the way many are: `fully_shard` around every block and around the rest, fp32 weights,
# `MixedPrecisionPolicy` with bf16 to compute and fp32 to reduce, and every block recomputed in the backward pass. The script
# is [`labs/jobs/paper_cluster.py`](../jobs/paper_cluster.py), and these are its conditions. Eight layers of the model are
# enough to see everything; you can have all of them further down.

# %%
conditions = lab.under()
conditions

# %% [markdown]
# ## Your prediction
#
# How many bytes does rank 0 hold **at rest**, after a step, and how many **at the peak** of the next one? Write a text with a
# unit, such as `"… GB"`, or a plain number of bytes, and run the cell. Leave `None` where you would rather not guess.

# %%
my_prediction = {"at rest": None, "at peak": None}

# %% [markdown]
# ## What the formulas say
#
# At rest, a rank keeps its shard of everything in fp32:

# %%
formula("fp32_shard_bytes")

# %%
formula("fsdp_adam_bytes")

# %% [markdown]
# The peak is a question of *when*. Follow a step. The forward pass gathers one block after the other, lets it go again, and keeps only
# its input. Then comes **the loss**: no block is gathered, but the whole vocabulary lies there for every token, three times in fp32.
# In the backward pass a block is gathered and recomputed, while the weights of the one before it are already on their way
# and the gradients of the one after it are still being reduced. From **block to block** one input fewer is kept, and one shard of
# gradients more: whichever is larger decides whether the worst block comes early or late. At the end **the root** is reduced:
# embedding, last norm and head.

# %%
outlook()

# %% [markdown]
# Within a block's backward pass, the worst moment is the product of gate and up: all that the block saved is still there, and
# three gradients as wide as the MLP come on top.

# %%
formula("saved_at_block_bytes")

# %%
formula("working_at_block_bytes")

# %% [markdown]
# With these, every category has its prediction, and its working:

# %%
lab.predictions()

# %% [markdown]
# ## The run

# %%
report = lab.run()
report

# %%
report.figure()

# %% [markdown]
# The line across a pair of bars is the paper's figure, sixteen bytes a parameter divided by the ranks. And your own prediction,
# held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# What did it take? The memory that this really used, and the time:

# %%
write(report.measurement.numbers["real memory"], BYTE), write(report.measurement.seconds, SECOND)

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# ## Your model, your cluster
#
# Pick a model and a cluster, and see what the formulas say. Find a cluster for which the peak moves to another moment, say why,
# and then let the run below judge.

# %%
chooser = interact(outlook, model=list(KNOWN), num_layers=(3, 80), ranks=(2, 512), micro_batch=(4, 16))

# %%
mine = {"model": KNOWN[-1], "num_layers": 6, "ranks": 24, "micro_batch": 2}
peak_moment(lab.under(**mine))[0]

# %%
my_report = lab.run(**mine)
my_report

# %% [markdown]
# ## All layers of it
#
# The time grows with the layers and a little with the ranks; how wide the layers are costs nothing. All layers of the small model on
# 8 ranks take under a minute:

# %%
whole = lab.run(num_layers=32)
whole

# %% [markdown]
# The largest one takes minutes, so it is here as it was measured for this book. Take it yourself with
#
# `psi lab run paper_cluster --timeout 900 num_layers=80 ranks=64 micro_batch=2 "model=…"`
#
# with the name of the model that the conditions below say.

# %%
largest = lab.report(kept("paper_cluster-largest"))
largest

# %%
largest.conditions

# %%
write(largest.measurement.numbers["real memory"], BYTE), write(largest.measurement.seconds, SECOND)

# %% [markdown]
# ## Explain
#
# In your own words, with the names of the last column: why does what is held differ from the paper? Each difference you name is a
# point, and each right reason another, which a reader gives.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## The differences, by name
#
# **fp32 shards.** The paper's sixteen bytes are two and two and twelve, those of FSDP2 four and four and eight. At rest the sums
# agree, and only the step counters differ. FSDP2 never stores a 16-bit weight: it casts the shard while gathering it.
#
# **not reduced yet.** The sixteen bytes assume that the gradients of all layers are there. At the peak they seldom are, and that makes the
# peak *smaller* than "states plus transients".
#
# **gathered to compute, gathered ahead, being reduced.** These three do not shrink with more ranks. On few ranks the states decide whether
# a model fits; on many the largest block does, and the vocabulary.
#
# **saved for backward, worked with.** Checkpointing leaves one input a block, and everything of the one block at work. The head's
# gradient, in bf16, is there from the first moment of the backward pass to the last, since the root is reduced at the end.
#
# **rows rounded up** appears where the ranks do not divide the rows of a tensor. Rank 0 always has a full shard.
#
# ## What this is not
#
# The count is of tensors. On a GPU there come on top: the context, the allocator's rounding and fragmentation, workspaces of
# kernels, and what overlapping streams keep alive a little longer. A GPU's kernels may also save other tensors than the CPU's
# decompositions do, which is why the norm here is written to save what a fused one saves. Held against a real GPU: not yet measured.
#
# ## Questions
#
# 1. On how many ranks does the peak of the small model, all layers, move from the last block but one to the second block?
#    Find the formula for the number of ranks first, then use `outlook`.
# 2. For which models is the loss the peak? What would computing the loss in pieces of the sequence save, and what would then be the peak?
# 3. From 8 ranks to 64, the states shrink to an eighth. To what does the peak shrink, and what would you change first?
# 4. The root is reduced last. Which line would shrink if the head were a unit of its own, and which would grow?
# 5. `reshard_after_forward=False` keeps every block whole until its backward pass. Write down the peak, change the job, and run it.
