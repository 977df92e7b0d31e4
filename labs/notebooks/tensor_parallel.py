# %% [markdown]
# # Lab: layers cut across processes
#
# After this lab you can decide how to cut a Transformer layer across processes, say for any plan which collectives it calls and
# how many bytes they send, and recognise the plan that is right in every digit and sends twice as much in the backward pass. It
# takes 30 minutes; the run takes seconds, on a laptop, without a GPU.
#
# You predict first, then several real processes run the same layers under three plans, and every collective is counted.

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
from formulary.amounts import number
from labs.tensor_parallel import LAB as lab

# %% [markdown]
# ## The job
#
# A stack of GPT blocks on random activations, forward, backward and a step of Adam. `parallelize_module` cuts queries, keys,
# values and the MLP's first matrix by columns, the attention's output and the MLP's second matrix by rows. Three plans cut
# alike:
#
# - **naive**: every matrix cut on its own, as the shortest tutorial has it.
# - **prepared**: with `PrepareModuleInput` the attention takes in the activations once, for its three matrices together.
# - **sequence**: between the cut matrices every process has its own tokens only (`SequenceParallel`).
#
# Each is compared with the same blocks uncut, outputs and gradients, and a plan that is further off than rounding explains
# breaks the run. The script is [`labs/jobs/tensor_parallel.py`](../jobs/tensor_parallel.py), and these are its conditions:

# %%
num_processes = 2
conditions = lab.under(num_processes)
conditions

# %% [markdown]
# ## Your prediction
#
# How many all-reduces does the backward pass of all layers call under **naive**, how many under **prepared**? How many
# parameters of the MLP's matrices does a process hold of one layer? And how many bytes does it send in all, under each plan, in
# fp32? Leave `None` where you would rather not guess.

# %%
my_prediction = {
    "naive/all-reduce backward": None,
    "prepared/all-reduce backward": None,
    "MLP matrices": None,
    "naive": None,
    "prepared": None,
    "sequence": None,
}

# %% [markdown]
# ## What the formulas say
#
# What a rank holds of a layer, attention with its heads and the MLP with its width. Norms and some biases are whole everywhere:

# %%
formula("tp_attention_params")

# %%
formula("tp_mlp_params")

# %%
formula("tp_vector_params")

# %% [markdown]
# For the traffic, read the plan. A row-cut matrix leaves a *partial sum* in the forward pass. A column-cut one leaves a
# *partial gradient* of what it took in, in the backward pass. Each has to be added up, and what is taken in together is added
# up together:

# %%
formula("plan_passes")

# %%
formula("tp_model_bytes")

# %% [markdown]
# With these every line has its prediction:

# %%
lab.predictions(num_processes)

# %% [markdown]
# ## The run

# %%
report = lab.run(num_processes)
report

# %%
report.figure()

# %% [markdown]
# Your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# How far are the cut layers from the uncut ones? The norm of the difference over the norm, outputs and gradients together, is
# no more than rounding in another order gives:

# %%
{name: number(value) for name, value in report.measurement.numbers.items() if "difference" in name}

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# ## More processes
#
# The same layers on twice as many. Before you run it: which lines stay as they are, which halve, and by how much does the
# traffic grow?

# %%
wider = lab.run(num_processes + num_processes)
wider

# %% [markdown]
# ## Explain
#
# In your own words, with the names of the last column: what leads from the paper to each plan? Each difference you name is a
# point, each right reason another, which a reader gives.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## The differences, by name
#
# **a copy for each matrix.** The naive plan computes the same numbers, so no test of the numbers finds it. Queries, keys and
# values each turn the same activations into a distributed tensor of their own, so that autograd sees three inputs and adds up
# three gradients. With the MLP's that is four sums where two would do, and the backward pass sends twice as much. A gated MLP
# that is not prepared has the same trouble with gate and up.
#
# **gathered inputs kept.** On paper sequence parallelism gathers a block's input again in the backward pass, so as not to keep
# it whole. PyTorch keeps it whole: less traffic than the paper's plan, and more memory.
#
# **added up in Adam.** The traffic that nobody looks for: under *sequence* the norms' gradients stay partial until somebody
# uses them, and Adam uses each more than once. The bytes are few but every sum is a message, so it costs latency. And whoever
# clips gradients or looks at their norm uses them once more.
#
# **precision.** Activations travel in the precision they are computed in.
#
# *tensor* and *sequence* plans send alike in a layer, because an all-reduce is a reduce-scatter and an all-gather. What
# sequence parallelism saves is memory between the cut matrices, not traffic.
#
# On a GPU the same script runs with `lab.run(…, device="cuda")`, one GPU for each process; on one GPU alone nothing is cut and
# nothing is sent. GPU figures: not yet measured.
#
# ## Questions
#
# 1. Write the plan of a gated MLP, with gate and up cut by columns, naive and prepared. How many collectives does each call?
#    Put it into `labs/jobs/tensor_parallel.py` and see.
# 2. What is replicated on every process, and what share of a layer is that as the processes become many? Use
#    `formula("tp_vector_params")`.
# 3. How many processes can share these heads? What does the lab say to one more, and what does a model with fewer key-value
#    heads do?
# 4. When every layer is recomputed in the backward pass, which calls double? Ask `formula("tp_layer_bytes").compare()`.
# 5. Multiply the norms' gradients under *sequence* by their number of sums. At which latency do these sums take as long as the
#    layers' own traffic?
