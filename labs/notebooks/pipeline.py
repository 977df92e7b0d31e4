# %% [markdown]
# # Lab: how long does a pipeline idle, and what does it keep alive?
#
# After this lab you can decide, for a number of stages and micro-batches, which schedule to take: how large a share of the time
# its stages idle, how many micro-batches each must keep the activations of, and what a real library adds to either. It takes 30
# minutes; a run takes about a minute, on a laptop, without a GPU.
#
# You predict first. Then PyTorch's own schedules are laid out as tables and replayed, real processes run them, and both are
# held against the formulas.

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
from formulary import formula
from labs.gantt import gantt, replayed
from labs.measurement import kept
from labs.pipeline import LAB as lab
from labs.schedules import as_torch_has_it

# %% [markdown]
# ## The job
#
# A model is cut into stages, one for each process, and a batch into micro-batches that pass the stages one after the other. The
# processes run four schedules of `torch.distributed.pipelining`:
#
# - **gpipe**: all forward passes, then all backward passes.
# - **1f1b**: backward passes as early as they can start, one for one with forward passes.
# - **interleaved**: the same with several chunks of the model on each process.
# - **zero_bubble**: that again with backward in two halves, of which only the first is waited for.
#
# What a stage computes is beside the point, so it sleeps: a forward pass takes one slot, a backward pass two, each of its
# halves one. Everything else is real: the schedules, the messages, autograd. Each process writes down when it does what, and
# counts of how many micro-batches autograd holds tensors at once. The script is [`labs/jobs/pipeline.py`](../jobs/pipeline.py),
# and these are its conditions:

# %%
num_processes = 4
conditions = lab.under(num_processes)
conditions

# %% [markdown]
# ## Your prediction
#
# Which share of the time do processes idle under each schedule, and how many micro-batches does **rank 0** keep alive at most?
# (Where a process has several chunks, a micro-batch counts once for each chunk that it is alive in.) Write numbers, a share as
# a number below 1, and run the cell. Leave `None` where you would rather not guess.

# %%
my_prediction = {
    "gpipe/bubble of the table": None,
    "interleaved/bubble of the table": None,
    "zero_bubble/bubble of the table": None,
    "gpipe/0/alive at most": None,
    "1f1b/0/alive at most": None,
    "interleaved/0/alive at most": None,
}

# %% [markdown]
# ## What the formulas say
#
# A stage idles while the pipeline fills and while it drains. GPipe and 1F1B do both alike:

# %%
formula("pipeline_bubble")

# %%
formula("pipeline_bubble").derivation

# %% [markdown]
# With chunks, the pipeline is full after one *chunk* of every process:

# %%
formula("interleaved_bubble")

# %% [markdown]
# And with backward in two halves, what is not waited for fills the gaps:

# %%
formula("interleaved_zero_bubble")

# %% [markdown]
# What is kept alive is where they differ most. GPipe keeps every micro-batch. 1F1B keeps what is on its way to the last stage
# and back:

# %%
formula("in_flight")

# %%
formula("interleaved_in_flight")

# %%
formula("interleaved_zero_in_flight")

# %% [markdown]
# With these, every number has its prediction and its working:

# %%
lab.predictions(num_processes)

# %% [markdown]
# ## The tables, replayed
#
# PyTorch lays each schedule out as a table before it runs: for each process, what it does and in which order. A table says
# nothing of *when*. That follows once each operation has a length: a process takes up the next one when it is free and what it
# needs is there. This is all that a simulator of pipelines has to know, and messages take no time in it.

# %%
micro_batches = conditions["num_micro_batches"]
gantt(*((name, replayed(name, num_processes, micro_batches)) for name in ("gpipe", "1f1b", "interleaved", "zero_bubble")))

# %% [markdown]
# Tables can be wrong. This is the last row of 1F1B as this version of PyTorch hands it out. What is the matter with it, and
# what would a simulator do?

# %%
[str(operation) for operation in as_torch_has_it("1f1b", num_processes, num_processes, 1)[-1]][:4]

# %% [markdown]
# Its forward passes are counted from one, so that the first backward pass waits for a forward pass that is never made: all
# processes wait for each other. What PyTorch *runs* is right, as the run below shows. The lab puts the row right before it
# replays it.
#
# ## The run
#
# Now real processes, one step under each schedule. The clock's bubble may be off by a few percentage points: messages take time, a
# machine does other things too.

# %%
report = lab.run(num_processes, steps=1)
report

# %%
report.figure()

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# Your own prediction, held against what was measured. Each that comes true is a point:

# %%
report.guesses(my_prediction, within=0.02)

# %% [markdown]
# And this is what was measured for this book, on four processes:

# %%
lab.report(kept("pipeline-4"))

# %% [markdown]
# ## The differences, by name
#
# Explain in your own words what leads from GPipe to each of the other schedules. Name the differences as the report does; a
# reader who marks it looks for the reasons in the last column.

# %%
my_explanation = ""

# %%
report.explained(my_explanation)

# %% [markdown]
# **backward early** does not touch the bubble, which is the same to the last digit. It is all about memory, and the more
# micro-batches there are, the more: GPipe's count grows with them, that of 1F1B stops at the number of stages.
#
# **shorter fill** costs messages, since a micro-batch changes processes after every chunk, and **chunks** costs memory: the
# first process keeps more pieces alive than it has micro-batches. Each is a piece of a chunk, so divide by the chunks before
# you compare.
#
# **filled with weight gradients** keeps a micro-batch alive until both halves of its backward pass are done. That every process
# now keeps equally much is the same trade: the later ones put off more.
#
# **The clock.** What remains between table and clock has no formula here: messages, Python between two operations, a process
# that is woken late. It is a time for each operation, not a share, so it weighs the more the shorter the slots are. Try
# `slot_ms` of a few milliseconds.
#
# One thing the job had to avoid. The first stage's input is data and needs no gradient, so autograd skips that half of its
# backward pass, and a stage that "takes two slots" takes one. The stages have a parameter before their work for that reason
# alone. Even so, when backward is in halves PyTorch's first stage does both of them with the weights: find the place in the
# picture.
#
# On GPUs the same script runs with `lab.run(…, device="cuda")`, one GPU for each process. GPU figures: not yet measured.

# %% [markdown]
# ## Questions
#
# 1. How many micro-batches does 1F1B need on these processes for its bubble to be smaller than that of *interleaved* here? Ask
#    `formula("needed_micro_batches")`, then run it. Which of the two would you choose, and what does each of them cost?
# 2. Take the parameter `shift` out of `Slotted` and run it again. Which lines change, which don't, and why?
# 3. Replay the row of 1F1B as PyTorch hands it out, with `labs.replay.replay`. Read the error: who waits for whom?
# 4. Give the weights' half of backward no time at all (`labs.replay.TIMES`) and replay *zero_bubble*. What is its bubble then, and why does
#    the formula not hold?
# 5. A step keeps `alive at most` micro-batches. With activations of one micro-batch and layer from chapter 3, how many bytes is that on the
#    first stage of a model of your choice, under each schedule?
