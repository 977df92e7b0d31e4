# %% [markdown]
# # Lab: what does QLoRA hold?
#
# After this lab you can decide whether a model can be fine-tuned on a card that could not even hold its gradients, and say of every byte
# that is there what it is for: codes, scales, scales of scales, adapters. It takes 30 minutes; the runs take seconds, on a laptop,
# without a GPU.
#
# You predict first. Then `bitsandbytes` quantises the matrices of a model, `peft` puts adapters beside them, a few steps are trained,
# and everything that is there is counted and held against the formulas.

# %%
# In Colab this fetches the book and installs only what is missing; elsewhere it does nothing.
import importlib.util
import subprocess
import sys

book = ""  # in Colab: the address of the repository you opened this from, like https://github.com/…/…
if "google.colab" in sys.modules and not importlib.util.find_spec("labs"):
    subprocess.run(["git", "clone", "--depth", "1", book, "book"], check=True)
    sys.path.insert(0, "book")
    for package in ("sympy", "torch", "matplotlib", "bitsandbytes", "peft"):
        if not importlib.util.find_spec(package):
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
from formulary import Claim, formula
from formulary.amounts import write
from formulary.hardware import GPUS
from formulary.units import BYTE
from labs.gpu import on_gpu
from labs.llamas import sizes
from labs.measurement import kept
from labs.qlora import LAB as lab

# %% [markdown]
# ## The job
#
# A model shaped like LLaMA gets random weights. Block after block, each of its matrices is quantised: sixty-four neighbours are
# divided by the largest among them, and each is rounded to the nearest of sixteen values, those of *NormalFloat*. So a weight
# becomes a code of four bits, and sixty-four weights share one fp32 scale. That is **nf4**. In **nf4_double_quant** the scales
# themselves are quantised to one byte, and two hundred and fifty-six of them share an fp32 scale of their own.
#
# Codes cannot be trained. Beside each matrix lie two narrow ones, the adapter, in fp32; they alone have gradients and moments.
# Embedding, head and norms are neither quantised nor trained. The script is
# [`labs/jobs/qlora.py`](../jobs/qlora.py), and these are its conditions:

# %%
conditions = lab.under()
conditions

# %% [markdown]
# The model, when the conditions ask for the tiny one and all of its layers:

# %%
shape = sizes(conditions)
shape

# %%
Claim("It has {model_params} parameters.")(**shape)

# %% [markdown]
# ## Your prediction
#
# How many bytes does the process hold in all after training, with and without double quantisation? And how many are the codes
# alone? Write a text with a unit, such as `"… MB"`, or a plain number of bytes. Leave `None` where you would rather not guess.

# %%
my_prediction = {"nf4": None, "nf4_double_quant": None, "nf4/0/codes": None}

# %% [markdown]
# ## What the formulas say
#
# A quantised weight is its code and its shares of the scales:

# %%
formula("quantized_weight_bytes")

# %% [markdown]
# The adapters are as wide as the matrices and as narrow as their rank:

# %%
formula("lora_params")

# %% [markdown]
# Together:

# %%
formula("qlora_memory_bytes")

# %% [markdown]
# And line by line, with the working:

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
# The line across a pair of bars is the paper's figure. And your own prediction, held against the measurement:

# %%
report.guesses(my_prediction)

# %% [markdown]
# It does train. The loss before the first step and before the last, on one batch seen again and again:

# %%
{name: loss for name, loss in report.measurement.numbers.items() if "loss" in name}

# %% [markdown]
# You can start the same script by hand, from the folder of the book:

# %%
print(report.command)

# %% [markdown]
# ## A model that matters
#
# For the tiny model, quantising hardly pays: embedding and head weigh nearly as much as all its codes, and the adapters with their
# states more. See how that turns when the model is a real one. These are predictions; nothing runs.

# %%
large = lab.predictions(model="Llama 2 7B", quantizers="nf4_double_quant")
large

# %%
card = GPUS["RTX 4090"]
f"{write(large.total, BYTE)} of {write(card['memory_capacity'], BYTE)}"

# %% [markdown]
# On a GPU this runs for real, and the job may then take no more memory than a card of your choice has:
#
# `psi lab run qlora --device cuda --timeout 600 seq_length=512 "model=…" "card=…"`
#
# with the names of the model and the card above. The line *peak* then says how much activations, gradients on their way and
# dequantised matrices came on top. If this machine has a GPU, as much of
# the model runs there as fits:

# %%
on_gpu(lab)

# %% [markdown]
# And this one, on one H200, was held to the memory of the card above:

# %%
lab.report(kept("qlora-h200"))

# %% [markdown]
# ## The differences, by name
#
# **whole groups.** A group of scales ends with its matrix. Where the scales of a matrix are no multiple of a group, the last
# group is short and costs as much as a full one. For this model that is a handful of bytes, for the real one nothing.
#
# **tables.** To turn codes into weights one needs to know what they stand for: sixteen fp32 values, and bitsandbytes keeps
# them beside *every* matrix. Double quantisation brings a second table, sixteen times as long. The smaller a matrix, the more of
# the saving that eats up. Compare the lines *scales* and *tables* of the two.
#
# **the rest in fp32.** The usual preparation for training turns to fp32 whatever is not quantised. In the large model this is
# embedding and head, and it costs as much again as they did.
#
# **precision.** Adapters are trained in fp32 and are their own master: four bytes of weight, four of gradient, eight of moments.
# The paper's recipe arrives at the same sixteen in another way.
#
# **step counters.** One number for each tensor that Adam updates.
#
# ## Your explanation
#
# Why do the totals differ from the paper's? Name the differences. Naming is counted by machine; whether the reasons are right, you or
# your instructor compare with the last column.

# %%
my_explanation = ""
report.explained(my_explanation)

# %% [markdown]
# ## Questions
#
# 1. How wide must a square matrix be for double quantisation to save more than its second table costs? Decide with the formulas.
# 2. At which `lora_rank` do the adapters with their states weigh as much as the frozen model: the tiny one, and the large one?
# 3. The backward pass goes through frozen matrices. Why must it, and what does it *not* compute there? What does that do to the FLOP
#    of a step?
# 4. Codes are decoded to whole 16-bit matrices for every product. How many bytes is the largest of the large model, and how many of them
#    are there at a time?
# 5. Run on two processes: `lab.run(2)`. What is divided among them, what is not, and how many bytes travel in a step?
