# %% [markdown]
# # Lab: how fast does it train?
#
# After this lab you can decide how good a throughput is: how many of a machine's FLOP a training step makes use of, where the others
# went, and how much of one process's speed is left when several share the work. It takes 40 minutes; the runs take less than one
# minute, on a laptop, without a GPU.
#
# You predict first. Then a small model is trained on one process and on more, its FLOP are counted, its steps are timed, and both
# are held against the formulas. FLOP are judged; times are shown beside what the formulas make of this machine's speed.

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
from labs.gpu import on_gpu
from labs.measurement import kept
from labs.throughput import LAB as lab

# %% [markdown]
# ## The job
#
# On **one** process: PyTorch's own counter counts the FLOP of a training step of a small GPT. Then the machine shows what it can do: one
# large square product, and one product of the model's own size. The faster of the two is called the peak. Then the
# model's steps are timed.
#
# On **more and more** processes, with `DistributedDataParallel`: in *weak* scaling each process takes the same micro-batch, in
# *strong* scaling all of them share one batch. Apart from the steps, the job times what they are made of: the parts of a step
# without any communication, on all processes at once, and the all-reduce of the gradients without any computation.
#
# Every time is the shortest of several, since a disturbance only ever adds. The script is
# [`labs/jobs/throughput.py`](../jobs/throughput.py), and these are its conditions:

# %%
num_processes = 4
conditions = lab.under(num_processes)
conditions

# %%
shape = {name: conditions[name] for name in formula("gpt_params").inputs}
Claim("The model has {gpt_params} parameters.")(**shape)

# %% [markdown]
# ## Your prediction
#
# How many FLOP does a token take? Which share of the peak will one process reach, as a number from 0 to 1? Which share of one process's
# speed does each of two keep in weak scaling, and each of all in strong scaling? Your machine may have fewer cores than that.
# Leave `None` where you would rather not guess.

# %%
my_prediction = {"FLOP per token": None, "MFU": None, "weak 2/efficiency": None, "strong 4/efficiency": None}

# %% [markdown]
# ## What the formulas say
#
# The usual estimate counts six FLOP for each parameter:

# %%
formula("flop_per_token")

# %% [markdown]
# It misses the attention scores, where activations meet activations:

# %%
formula("attention_flop_per_token")

# %% [markdown]
# And it counts parameters that stand in no product: embeddings, which are looked up, biases and the scales of norms. What is left
# is exact:

# %%
lab.predictions(num_processes)

# %% [markdown]
# No formula knows how fast your machine is. But once its products are timed, they say what the model could reach, were all of its time
# spent in products:

# %%
formula("mfu_from_efficiency")

# %% [markdown]
# And once the parts of a step and the all-reduce are timed, they say how long a step takes in which gradients travel while the backward
# pass still runs, bucket by bucket:

# %%
formula("overlapped_step_time")

# %% [markdown]
# ## The run

# %%
report = lab.run(num_processes, timeout=300)
report

# %%
report.figure()

# %% [markdown]
# The line across each pair of bars is what the formula gives with the times of a process that has the machine to itself; the paler
# bar takes the times of processes that share it. And your own prediction, where a fifth more or less counts as right:

# %%
report.guesses(my_prediction, within=0.2)

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# What was timed, in seconds, and the speeds, in FLOP a second:

# %%
report.measurement.numbers

# %% [markdown]
# ## The differences, by name
#
# **scores.** They grow with the length of the sequence and not with the parameters. For the short sequences of this job they are a few
# percent of the work; the formula says from where on they are half of it.
#
# **no product.** In a small model the embeddings are a large part of the parameters. In a large one the six FLOP are nearly right.
#
# **small products.** A product as narrow as the model's may run slower than a large square one, or faster, if all of it fits into a
# cache. On a GPU a product this small would leave most of the chip idle.
#
# **What is left between prediction and measurement on one process** is all that is not a product: the optimizer, norms, softmax, the
# loss, and the time it takes Python to start each of them. In a model this small it is most of the time. Make it wider and see it shrink.
#
# **shared machine.** More processes than cores cannot compute at the same time. And even with a core for each they share the
# memory's bandwidth. On a cluster, each GPU has its own, and this difference is small.
#
# **What is left between prediction and measurement on several**: here, averaging gradients takes the same cores that compute. The
# formula's assumption says the network takes nothing from the computation; on a CPU that is wrong, on a GPU nearly right.
#
# ## Your explanation
#
# Where did the FLOP go? Name the differences. Naming is counted by machine; whether the reasons are right, you or your instructor
# compare with the last column.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## On a GPU
#
# The same script runs on GPUs, one process for each. The model must then be large enough to be worth it:
#
# `psi lab run throughput --device cuda --nproc 1 --timeout 600 dtype=bfloat16 hidden_size=2048 ffn_size=8192 num_layers=12 num_heads=16
# num_positions=1024 vocab_size=32000 micro_batch=8 product_size=8192 steps=20`
#
# Where the card is one of the book's, a line *matmul peak* holds the measured peak against its datasheet. If this machine
# has a GPU, this runs there, at a size that fits:

# %%
on_gpu(lab)

# %% [markdown]
# Such a run on one H200, kept with the book:

# %%
lab.report(kept("throughput-h200"))

# %% [markdown]
# What the cards together reach, and weak and strong scaling over several GPUs: not yet measured.
#
# ## Questions
#
# 1. Double `hidden_size` and `ffn_size`, then once more. What happens to the MFU, and why?
# 2. From which `num_positions` on are the scores half of the work? Decide with the formulas.
# 3. Which is easier to keep up, weak or strong scaling, and what does that say about the batch on a cluster twice as large?
# 4. Set `bucket_mebibytes` so that all gradients fit into one bucket. What can still overlap? What do the formulas and the run say?
# 5. A vendor reports twice your MFU on the same card. Name three choices in the definition that could make the difference.
