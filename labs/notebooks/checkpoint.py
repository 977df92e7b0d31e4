# %% [markdown]
# # Lab: ranks die, training goes on
#
# After this lab you can decide how often a training run should save, what a checkpoint has to hold, and whether a run that was
# killed and one that was not are the same run. It takes 30 minutes; the runs take about a minute, on a laptop, without a GPU
# (with GPUs it has not been run).
#
# You predict first. Then several real processes train a small model, and one of them is killed in the middle of a step, as a
# machine dies that loses its power. All are started again, take up the last checkpoint, and every loss is compared bit by bit.

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
from formulary.shapes import RUNS
from labs.checkpoint import LAB as lab
from labs.checkpoint import timeline
from labs.interruptions import runs

# %% [markdown]
# ## The job
#
# A GPT with random weights is cut up with `fully_shard` and trained with Adam, all in fp32. Every few steps
# `torch.distributed.checkpoint` writes what cannot be computed again: each rank its own shards, into its own file. The batch
# of a step depends on the number of the step alone, and is the same however many ranks share it.
#
# First comes a run that nobody disturbs. Then come runs in which a rank sends itself signal 9, after the backward pass and
# before the update, at a step drawn at random. It cannot catch that signal, nor say goodbye. The other ranks fail at
# the next collective, and whoever started the job starts it again. Last come two runs that go on with another number of ranks than they
# began with. The script is [`labs/jobs/checkpoint.py`](../jobs/checkpoint.py), and these are its conditions:

# %%
num_processes = 4
conditions = lab.under(num_processes)
conditions

# %% [markdown]
# The runs, each with its phases (ranks, steps done at the end) and its kill (rank, step):

# %%
list(runs(conditions, num_processes))

# %% [markdown]
# ## Your prediction
#
# How many bytes of tensors does rank 0 write into a checkpoint? How many steps must be done again after the first kill, how many
# after the second? And how many of all losses that the first killed run logs, those of steps done again included, are
# the same to the last bit as in the undisturbed run? Write a number, or a text with a unit for the bytes; leave `None` where
# you would rather not guess.

# %%
my_prediction = {
    "checkpoint": None,
    "kill 1/steps done again": None,
    "kill 2/steps done again": None,
    "kill 1/losses alike to the bit": None,
}

# %% [markdown]
# ## What the formulas say
#
# A checkpoint holds what cannot be computed again:

# %%
formula("checkpoint_bytes")

# %% [markdown]
# How much that is of a parameter is a convention. Gradients are never part of it: the next step computes them anew. In fp32
# there is no master copy either, since a weight is its own.
#
# The losses need no formula, only a thought. The data of a step depend on its number, the state is saved to the bit, and the same
# ranks add the same numbers in the same order: then *every* loss is the same. With another number of ranks, the numbers are
# the same and the order of adding is not.

# %%
lab.predictions(num_processes)

# %% [markdown]
# ## The run

# %%
report = lab.run(num_processes, timeout=300)
report

# %% [markdown]
# What each rank wrote:

# %%
report.figure()

# %% [markdown]
# What became of the runs that were killed:

# %%
timeline(report)

# %% [markdown]
# And your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# You can start the same script by hand, from the folder of the book. `JOB_FOLDER` says where checkpoints lie; on a cluster it must be
# a place that all machines see.

# %%
print(report.command)

# %% [markdown]
# ## How often to save
#
# The run measured how long a checkpoint and a restart take here:

# %%
numbers = report.measurement.numbers
times = {"checkpoint_time": numbers["seconds to save"], "restart_time": numbers["seconds to restart"]}
Claim("Saving took {checkpoint_time}, and from the kill to the first step after it passed {restart_time}.")(**times)

# %% [markdown]
# How often does a job fail? For a large one it is known. As failures come independently, the rate of the whole job is
# all its stops over its time: the formula for the stops, solved for the rate, with the job taken as one piece.

# %%
run = next(iter(RUNS.values()))
stops = {name: run[name] for name in ("expected_stops", "training_time")}
rate = formula("expected_stops").solve_for("gpu_failure_rate")(num_gpus=1, **stops)
Claim(f"{run.title}: {{expected_stops}} stops in {{training_time}} are one in {{mtbf:h}}.")(num_gpus=1, gpu_failure_rate=rate, **stops)

# %% [markdown]
# Saving costs time at every checkpoint, and not saving costs half an interval at every failure. Young's formula is where the sum is
# least. Both of its inputs carry a unit of time, and they must be the same one: seconds, and failures per *second*.

# %%
formula("checkpoint_interval")

# %%
Claim(
    "With this machine's checkpoints and that job's failures: save every {checkpoint_interval} (Young), "
    "every {daly} (less the checkpoint's own time, Daly), every {higher} (Daly's longer series). "
    "Then {least_checkpoint_overhead:%} of the time is lost.",
    daly=formula("daly_interval"),
    higher=formula("daly_higher_order_interval"),
)(failure_rate=rate, **times)

# %% [markdown]
# ## The differences, by name
#
# **precision.** The paper keeps two bytes of weight and four of master copy, the job four of weight and no master.
#
# **rows rounded up.** The vocabulary does not divide by the ranks, so the last rank writes less.
#
# **step counters.** Every rank keeps a counter for every tensor it updates, and they are all alike; a checkpoint holds each only once. So
# they are no rank's own, and stand in a line of their own.
#
# **The files weigh more than the tensors.** Each rank's piece of each tensor is an archive with a header of its own, which weighs as
# much for a small piece as for a large one, and there is an index that says where every piece lies. For this model the headers
# are a good part of all; for a large one they are nothing.
#
# **The last losses after a change of ranks** agree but for rounding: a sum of the same numbers in another order. Compare the number of
# losses that are still alike to the bit in the two directions:

# %%
{name: number for name, number in numbers.items() if "alike" in name}

# %% [markdown]
# **Seconds** are shown and not judged. They depend on the machine, its disk, and on who else is at work.
#
# ## Your explanation
#
# Why does the checkpoint differ from the paper's sixteen bytes, what is done again after a kill, and why are losses alike to the bit
# in one case and not in the other? Name the differences. Naming is counted by machine; whether the reasons are right, you or your
# instructor compare with the last column.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## Questions
#
# 1. The rank dies between the backward pass and the update. Would anything change if it died after the update? In the middle
#    of writing a checkpoint? Look at how the job finds the newest one, then try it.
# 2. Run `lab.run(…, kills=10, timeout=900)` and take the mean of the steps done again. What does Young's formula take it to be?
# 3. On a CPU, a job that torchrun started again used to fail every time: torchrun keeps its store of addresses between attempts, and
#    the new ranks found those of dead ones in it. What does `together` in `labs/jobs/ranks.py` do about it? Take it out and run
#    with `launcher="torchrun"`.
# 4. The data of a step depend on its number alone. What else would a checkpoint have to hold if they came from a shuffled file, and if
#    the model used dropout?
# 5. Fewer ranks take up a checkpoint of many, and losses differ in the last bits. Is that a fault? Which of a run's
#    numbers would you compare to tell a fault from rounding?
# 6. Saving blocks training here. What changes in Young's formula if a copy in memory is enough and writing goes on beside training?
