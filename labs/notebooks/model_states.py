# %% [markdown]
# # Lab: what does a rank keep between steps?
#
# After this lab you can decide, for a library in front of you and not for an idealised one, how many bytes of weights,
# gradients and optimizer state each process keeps under DDP, ZeRO-1 and FSDP2, and name the reason for every byte by which
# the library departs from the paper. It takes 30 minutes; the runs themselves take seconds, on a laptop, without a GPU.
#
# You predict first, then several real processes train a small model, count what they hold, and every line of the count is
# held against its formula.

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
from formulary.memory import ZERO_LEDGER
from labs.gpu import on_gpu
from labs.measurement import kept
from labs.model_states import LAB as lab

# %% [markdown]
# ## The job
#
# A GPT with random weights reads random tokens for a few steps, once under each of three ways to train with several processes:
#
# - **ddp**: `DistributedDataParallel` with `Adam`. Every process keeps everything.
# - **zero1**: the same, but with `ZeroRedundancyOptimizer`. The optimizer state of each tensor lives on one process only.
# - **fsdp2**: `fully_shard`. Weights, gradients and optimizer state are all divided.
#
# Everything is in fp32. After the last step each process adds up the bytes of its weights, its gradients, Adam's two
# moments and Adam's step counters, and whatever lies in the same memory but belongs to none of them. The script is
# [`labs/jobs/model_states.py`](../jobs/model_states.py), and these are its conditions:

# %%
num_processes = 2
conditions = lab.under(num_processes)
conditions

# %% [markdown]
# How many parameters is that? Count them tensor by tensor, and the sum is

# %%
formula("gpt_params")

# %%
shape = {name: conditions[name] for name in formula("gpt_params").inputs}
Claim("With these numbers the model has {gpt_params} parameters in {gpt_tensors} tensors.")(**shape)

# %% [markdown]
# ## Your prediction
#
# How many bytes does **rank 0** keep in all, under each of the three? Write a text with a unit, such as `"… MB"`, or a plain
# number of bytes, and run the cell. Leave `None` where you would rather not guess.

# %%
my_prediction = {"ddp": None, "zero1": None, "fsdp2": None}

# %% [markdown]
# ## What the formulas say
#
# On paper the three are stages of one idea. The paper counts 16-bit weights and gradients and an fp32 master copy, and
# gives each of the ranks an equal part of what a stage divides:

# %%
ZERO_LEDGER

# %% [markdown]
# The job departs from the paper in ways you can know before it runs. It trains in fp32, so there is no master copy. And a
# library deals in tensors: how does each of the two divide a *tensor* among ranks?
#
# `ZeroRedundancyOptimizer` does not: it hands out whole tensors, the largest first, each to the rank that holds least so far.
# That is a procedure and no formula. `fully_shard` cuts every tensor by rows, rounded up, so that a rank with index $i$ holds

# %%
formula("shard_rows")

# %% [markdown]
# With that, each line of the count has its prediction. Here are those of zero1, with the working; the number of parameters
# in each is what this rank *owns*.

# %%
lab.predictions(num_processes, variants="zero1")

# %% [markdown]
# ## The run
#
# Now the real thing: separate processes that find each other over the network interface of this machine and train together.

# %%
report = lab.run(num_processes)
report

# %% [markdown]
# You can start the same script by hand, from the folder of the book, and get the same numbers as one line of JSON:

# %%
print(report.command)

# %%
report.figure()

# %% [markdown]
# Read the last two columns first. *On paper* is the paper's figure; the last column leads from it to the prediction, step by
# step, each step with its name. Predicted and measured agree to the byte, or the verdict says so.
#
# And your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# ## More processes, and a tensor that does not divide
#
# The same job again, with twice as many processes. One thing is new: the vocabulary has a number of rows that the ranks
# cannot share equally. Before you run it: which ranks will hold less, and of what?

# %%
wider = lab.run(num_processes + num_processes)
wider

# %%
wider.figure()

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
# **precision.** The totals of ddp and fsdp2 do not show it: what the paper spends on the master copy, the job spends on wider
# weights and gradients, and the sum per parameter is the same. The total of zero1 shows it at once, because stage 1
# divides the master copy and does not divide weights and gradients. *The same sixteen bytes, cut along another line.*
#
# **whole tensors.** The embedding and the head are the largest tensors of this model. Whoever gets one of them has most of his
# share already. The more ranks, the more a single large tensor weighs, and at some number of ranks it is more than a fair
# share by itself: then adding ranks saves that rank nothing.
#
# **rows rounded up.** The last rank gets what is left. Most of the tensors divide and only the embedding and the head don't,
# so the effect is small here; a tensor with fewer rows than there are ranks leaves some ranks with nothing of it.
#
# **padding.** The last rank holds fewer weights, but its buffers are as large as everybody's, because a collective moves
# pieces of equal size. So for weights and gradients it saves nothing. Its optimizer state is made from the shard itself, so
# there the bytes are really gone.
#
# **step counters.** One number for each tensor: nothing beside the rest, but a count to the byte has to name it. Under zero1
# a rank counts only for the tensors it owns.
#
# One thing does *not* appear, because the job avoids it: by default `DistributedDataParallel` keeps every gradient twice, in
# the parameter's `.grad` and in the bucket that is sent. The job passes `gradient_as_bucket_view=True`, which makes the one a
# view of the other. The second copy belongs to no tensor that Python can see, so counting tensors would have missed it.
#
# On a GPU the same script runs with `lab.run(…, device="cuda")`, one GPU for each process. With one rank nothing is
# divided (several GPUs: not yet measured). If this machine has a GPU, this runs there, on a model of a size that fits:

# %%
on_gpu(lab)

# %% [markdown]
# Such a run on one H200 with close to a billion parameters, kept with the book:

# %%
lab.report(kept("model_states-h200"))

# %% [markdown]
# ## Questions
#
# 1. Choose a `vocab_size` for which the difference *rows rounded up* vanishes on both numbers of processes, and run it:
#    `lab.run(…, vocab_size=…)`. Why do people pad the vocabulary of real models?
# 2. Find conditions under which one rank of zero1 holds at least a tenth more optimizer state than another. What does that
#    say about dealing out whole tensors of a model with a very large vocabulary?
# 3. Is there a number of ranks from which on zero1 keeps less than half of what ddp keeps: in the paper's mixed precision, and
#    in the fp32 of this job? Decide with the formulas, then run it.
# 4. Run `lab.run(1)`. Which differences remain, and why those?
# 5. These are bytes *at rest*. Which of the three variants holds the most in the middle of a backward pass, and what is it that
#    comes on top?
