# %% [markdown]
# # Lab: peak memory, and the mountain that leads up to it
#
# After this lab you can decide what a training step will hold at its worst moment: what each layer saves for its backward pass
# and why, what checkpointing takes away from that and what it costs, and what FSDP2 adds. It takes 30 minutes; the runs take
# seconds, on a laptop, without a GPU.
#
# You predict first. Then real blocks are run, every tensor they save is counted under its name, a step is followed from
# operation to operation, and every line of it is held against its formula.

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
from formulary.attention import ACTIVATION_LEDGER
from formulary.step_memory import SAVED_LEDGER
from labs import blind
from labs.gpu import on_gpu
from labs.measurement import kept
from labs.peak_memory import LAB as lab
from labs.picture import stacked_bars

# %% [markdown]
# ## The job
#
# It does four things, on the blocks of a small GPT with random weights:
#
# - **saved**: it runs a forward pass and asks autograd for every tensor it saves. Attention is *standard*, with its scores stored,
#   or *fused* into one kernel; the type is bf16 or fp32.
# - **steps**: it takes a forward and a backward pass and writes down after every operation how many bytes are held. Blocks are
#   *stored*; or checkpointed in *full*, so that all of a block is recomputed; or *selective*, where only the attention itself is.
# - **flop**: it counts what recomputing costs.
# - **fsdp**: on at least two processes, a step under `fully_shard`.
#
# Dropout keeps a mask of one byte an element, as a GPU does; PyTorch's own dropout on a CPU keeps a mask as wide as its input.
# The script is [`labs/jobs/peak_memory.py`](../jobs/peak_memory.py), and these are its conditions:

# %%
num_processes = 2
conditions = lab.under(num_processes)
conditions

# %% [markdown]
# ## Your prediction
#
# How many bytes do the blocks save, all layers together, with stored scores and fused? What is the most that a step holds
# beyond weights and data, with blocks stored and with blocks recomputed in full? And how much more does it compute then? Write
# a text with a unit, such as `"… MB"`, or a plain number, and run the cell. Leave `None` where you would rather not guess.

# %%
my_prediction = {
    "standard": None,
    "fused": None,
    "stored/peak": None,
    "full/peak": None,
    "flop/to the last tensor needed": None,
}

# %% [markdown]
# ## What the formulas say
#
# The textbook's count of one layer, tensor by tensor, in bf16:

# %%
ACTIVATION_LEDGER

# %%
formula("layer_activation_bytes")

# %% [markdown]
# At any width, and with the statistics of the norms, which the textbook leaves out:

# %%
SAVED_LEDGER

# %% [markdown]
# The peak is a question of *when*. All that has been saved lies there when the backward pass begins; from there each block
# frees what it saved and leaves its gradients. So it is in the first block of the backward pass, or, where a block's gradients
# weigh more than what it frees, in the last. Within the block there are two candidates. One is **the last matrix of the MLP**:
# nothing has been freed yet, and three gradients are on their way.

# %%
formula("stored_at_mlp_bytes").derivation

# %% [markdown]
# The other is **the product of scores and values**: the MLP's tensors are gone, but a second matrix of scores comes on top, and
# with selective recomputation the first one has just come back.

# %%
formula("selective_at_attention_bytes").derivation

# %% [markdown]
# With these, every line has its prediction, and its working:

# %%
lab.predictions(num_processes, parts="steps,flop")

# %% [markdown]
# ## The run

# %%
report = lab.run(num_processes)
report

# %% [markdown]
# The mountains. A dashed line is the peak that was predicted. Where is the forward pass at an end? Which of the small summits
# on the way down are blocks being recomputed?

# %%
report.figure()

# %% [markdown]
# And what the blocks saved, term by term. The line across a pair of bars is the textbook's figure.

# %%
stacked_bars(report)

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# Your own prediction, held against what was measured. Each that comes true is a point:

# %%
report.guesses(my_prediction, within=0.02)

# %% [markdown]
# ## Predicted blind
#
# A formula that is written after the measurement proves little. Those for FSDP2 were derived from what `fully_shard` does; then
# these configurations were chosen and their peaks predicted, and only then were they run. Small ones ran as real processes,
# large ones on paper, without their bytes. Nothing was left out.

# %%
blind.Outcome()

# %% [markdown]
# ## The differences, by name
#
# Explain in your own words what makes prediction and paper differ. Name the differences as the report does; a reader who marks
# it looks for the reasons in the last column.

# %%
my_explanation = ""

# %%
report.explained(my_explanation)

# %% [markdown]
# **norm statistics.** Two numbers for each token and norm: beside tensors that are as wide as the model, nothing. They shrink
# with the width.
#
# **fused attention, row statistics.** What grows with the square of the sequence is gone, and for it the kernel keeps one
# number for each row of scores. This is the same idea as checkpointing: rebuild rather than keep, only within one kernel.
#
# **fp32.** Everything twice as wide but the masks. The scores go from five bytes to nine, not ten.
#
# **worked with.** Gradients pass through a block like a wave, and the widest place they pass decides. Compare *selective* with
# *full*: the scores that need not be kept must all the same be rebuilt, one block at a time, and their gradient lies beside
# them.
#
# **early stop.** A third more to compute is the usual figure, for rebuilding everything. PyTorch rebuilds up to the last tensor
# that is needed. With dropout after the last matrix that is the mask behind it, so nothing is left out; the count here is
# without dropout.
#
# **inside operations.** The mountain is made of tensors. The allocator also sees what an operation takes for itself and gives
# back before it returns, so its peak is a little higher. On a CPU a checkpoint also keeps the state of the random numbers, a
# few kB that no operation makes, so that dropout drops the same again.
#
# On a GPU the same script runs with `lab.run(1, device="cuda")`, and larger: give it a `seq_length`, `hidden_size` and
# `num_heads` of real models. The mountain is then the allocator's own count, and its peak may differ from the formula by a tenth,
# for rounding and for what kernels take for themselves. If this machine has a GPU, this runs
# there, at a size that fits:

# %%
on_gpu(lab)

# %% [markdown]
# Such a run on one H200, kept with the book:

# %%
lab.report(kept("peak_memory-h200"))

# %% [markdown]
# ## Questions
#
# 1. At which `seq_length` do the scores weigh as much as everything else that is saved? Ask `formula("crossover_length")`, run it
#    there, and on both sides of it.
# 2. For which conditions does the peak of *selective* lie in the MLP and not in the attention? Find one with the predictions alone, then
#    look at the mountain.
# 3. Recompute only every second block. What is the peak then, and what does it cost? Write both down before you change
#    `labs/jobs/textbook.py`.
# 4. Take a `micro_batch` of one. A line of *selective* shrinks by more than its share. Which tensors are no longer copied, and why not?
# 5. In `Scores`, give the scaled scores a name before the softmax, and run it. Why does one variable raise the summit of the forward pass?
