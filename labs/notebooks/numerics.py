# %% [markdown]
# # Lab: what low precision loses, and what keeps it
#
# After this lab you can decide which weights may be kept in half precision and what they need beside them: a master copy,
# chance or a memory of what was rounded away. You can say from a format's bits alone which updates and which gradients it
# loses. It takes 30 minutes; the run takes about half a minute, on a laptop, without a GPU.
#
# You predict first. Then torch adds small updates to real half-precision numbers, trains a small model in six ways, and is held
# against the formulas.

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
from formulary.hardware import FORMATS
from labs.gpu import on_gpu
from labs.measurement import kept
from labs.numerics import LAB as lab

# %% [markdown]
# ## The job
#
# Weights are kept in six ways. All compute in fp32, so that what differs is what is *kept*:
#
# - **fp32**: everything in fp32.
# - **bf16**: weights in bf16, and every sum rounded to the nearest.
# - **master**: the same, made from an fp32 copy that takes the updates.
# - **stochastic**: bf16, rounded up or down by chance, as likely as the sum is near.
# - **kahan**: bf16, and a second bf16 number beside each weight that remembers what rounding took.
# - **adam8**: fp32 weights, Adam's moments in one byte each, with a scale for each block of them.
#
# Each adds many equal updates to weights of one, smaller than the format's spacing; then each trains a small GPT. Beside that
# the job looks for the largest update that is swallowed, for the smallest gradient that survives fp16, and for how often a
# `GradScaler` skips a step. The script is [`labs/jobs/numerics.py`](../jobs/numerics.py).
#
# *How many processes* matters in one place only. Replicas average their gradients and then all do the same, so they hold the
# same and measure the same. But with stochastic rounding they must also draw the same random numbers. One process is enough
# here, and these are the conditions. Updates are counted in spacings of bf16:

# %%
conditions = lab.under()
conditions

# %% [markdown]
# ## Your prediction
#
# A weight of one, in bf16. From which update on does it notice? After all the **small updates**, how far has it moved in
# **bf16**, and how far has it with a **master**? And after the **large** ones? What is the smallest gradient that survives in
# fp16 when the loss is scaled? Write plain numbers, or leave `None`.

# %%
my_prediction = {
    "bf16/largest update swallowed": None,
    "bf16/moved by small updates": None,
    "master/moved by small updates": None,
    "bf16/moved by large updates": None,
    "scaled/smallest gradient": None,
    "adam8": None,
}

# %% [markdown]
# ## What the formulas say
#
# A format is its bits:

# %%
FORMATS["bf16"]

# %%
formula("swallow_threshold")

# %% [markdown]
# Many updates, with and without rounding after each:

# %%
formula("kept_drift")

# %%
formula("rounded_drift")

# %% [markdown]
# Gradients, and the scale that lifts them:

# %%
formula("rescued_gradient")

# %%
formula("skipped_share")

# %% [markdown]
# And the bytes of moments in blocks:

# %%
formula("moment_scale_bytes")

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
# Your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# How far the loss falls no formula says. It is held against fp32, which was measured in the same run: closely where every
# update is kept, loosely for moments of one byte. The line of bf16 is only shown. You can start the same script by hand, from
# the folder of the book:

# %%
print(report.command)

# %% [markdown]
# ## Replicas that draw their own numbers
#
# Two processes, stochastic rounding. Nothing changes, as every process draws the same:

# %%
pair = lab.run(2, variants="stochastic", steps=3)
pair

# %% [markdown]
# And if each draws numbers of its own? This share of the weights is then no longer the same on both, though each is right on
# the average. Nothing in a training loop notices: the replicas have become different models.

# %%
{name: share for name, share in pair.measurement.numbers.items() if "own" in name}

# %% [markdown]
# ## Explain
#
# In your own words, with the names of the last column: what does each way lose or keep, and what does it cost? Each difference
# you name is a point, each right reason another, which a reader gives.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## The differences, by name
#
# **rounded at every update.** A small update is lost every time, so all of them are: the weight stalls. A larger one is not
# kept either: it is made a whole spacing, and the weight runs too far. Which of the two happens is a matter of the weight's
# size, so large weights stand still while small ones move.
#
# **no master**, **its own master.** A master copy is what the paper's recipe pays for the lost bits. In fp32 the weight is its
# own, at the price of wider weights.
#
# **compensation.** Half the price of a master, for nearly as much: what rounding took is itself kept in bf16, and added before
# the next rounding.
#
# **one byte a moment**, **scales.** Moments are only averages that steer; a code of one byte is enough if it is relative to its
# block. The codes are not spread evenly, because small moments matter: a second moment of zero would make an update without
# bounds, which is why it is rounded up here.
#
# *Loss scaling* has no line in the last column, because it does what the formula says: both ends of fp16 move down by the
# scale. The range does not grow, it is moved to where the gradients are. bf16 does not need it, and pays with the digits that
# the first part of this lab is about.
#
# On a GPU the same script runs with `lab.run(device="cuda")`. If this machine has a GPU, it does
# so here:

# %%
on_gpu(lab)

# %% [markdown]
# Such a run on one H200, kept with the book:

# %%
lab.report(kept("numerics-h200"))

# %% [markdown]
# ## Questions
#
# 1. Take a `small_update` a little above half a spacing. Predict both lines of bf16, then run it.
# 2. Run it with ten times the `learning_rate`. Does bf16 still stall? Its loss may even fall faster: why is that no good news?
# 3. Which `loss_scale` would lift a gradient of `formula("smallest_subnormal")` of bf16 into fp16, and what would overflow
#    then?
# 4. How large must a weight be for an update of the `learning_rate` to be swallowed? Which tensors of the model have such
#    weights?
# 5. From which `quantizer_block` on do the scales weigh less than a hundredth of the codes? What else changes with the block?
