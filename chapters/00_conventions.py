# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 0 · Conventions: what a number means
#
# **What you will be able to decide.** Whether two figures that disagree do so in fact, or only in units, in what is
# counted, or in whose share it is.
#
# **How long it takes.** About 20 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import numpy as np
import torch

from autograder import ask
from explorers import unit_explorer
from explorers.table import Table
from formulary import Claim, InputError, amounts, formula, judge, look_up
from formulary.attention import ACTIVATION, KEPT_INPUT
from formulary.capacity import BINARY_BYTES, BIT_BYTES, FREE_SHARE, PREFIX_RATIO, SAFETY_FACTOR
from formulary.claims import claims
from formulary.hardware import GPUS, NETWORKS
from formulary.memory import PARAM_STATE, STATE
from formulary.reliability import CHECKPOINT_TIME
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# Two people planned the same training run. One wrote that a card needs this much for its *activations* (what the
# forward pass keeps for the backward pass; chapter 3), the other that:

# %%
run = {**MODELS["LLaMA 7B"], "micro_batch": 4, "seq_length": "2048"}
activations = ACTIVATION.under("flash_attention")
Claim("{activations:GiB}", activations=activations)(**run)

# %%
Claim("{activations:GB}", activations=activations)(**run)

# %% [markdown]
# And the first one dropped the little *i*, as most people do. Is one of them wrong, and does the run fit or not? Before
# you can argue about memory you need to know what a figure says. Every figure in this book has three parts: a
# **value**, a **unit**, and a **convention**, that is, what was counted and whose it is. Leave out one, and the other
# two are worth little.
#
# **Guess first.** By how many percent does a figure in giga-units change its meaning with that *i*? Put a number with
# its percent sign in place of `None`, in quotes.

# %%
guess = None

factor = PREFIX_RATIO(prefix_power=3)
slip = {"one step": np.subtract(PREFIX_RATIO(prefix_power=1), 1)}
hint = {"one step": "that is the difference of one prefix, kilo; giga is three of them on top of each other"}
guess and judge(amounts.read(guess), float(np.subtract(factor, 1)), within=0.05, mistakes=slip, hints=hint)

# %% [markdown]
# ## Two families of prefixes
#
# Kilo, mega, giga and tera are powers of ten. Memory chips come in powers of two, and since two to the tenth is nearly
# a thousand, people borrowed the same words for it. Since then there are two families, and the honest name of the
# second has an *i*: Ki, Mi, Gi, Ti. The difference is small and grows with every step, like a clock that loses a minute
# an hour:

# %%
PREFIX_RATIO.derivation

# %%
prefixes = {name: PREFIX_RATIO.given(prefix_power=power) for power, name in enumerate(("kilo", "mega", "giga", "tera"), 1)}
steps = Claim("Kilo: {kilo}, mega: {mega}, giga: {giga}, tera: {tera}.", **prefixes)
steps()

# %% [markdown]
# No need to believe a formula: write a one with thirty zeros and read it as a binary numeral, and one with nine zeros
# as a decimal one.

# %%
binary, decimal = int("1" + "0" * 30, base=2), int("1" + "0" * 9, base=10)
judge(np.divide(binary, decimal), PREFIX_RATIO(prefix_power=3))

# %% [markdown]
# This book counts in powers of ten: GB is a thousand million bytes. GiB appears only where a tool is quoted, such as
# `torch.cuda.memory_summary` or `nvidia-smi`, and always with its *i*. What a figure in either family amounts to:

# %%
BINARY_BYTES.derivation

# %% [markdown]
# ## Bits and bytes
#
# Memory is counted in bytes, lines are rented by the bit. An InfiniBand adapter with "four hundred" on its label does
# not move four hundred gigabytes a second:

# %%
Claim("{bandwidth:Gb/s} are {bandwidth:GB/s}.")(**NETWORKS["InfiniBand NDR"])

# %%
BIT_BYTES.derivation

# %% [markdown]
# ## Elements and bytes
#
# A tensor has a number of *elements*, and each takes a number of bytes. Papers that count communication often count
# elements, tools count bytes; between them lies the size of the format. PyTorch knows both:

# %%
tensor = torch.zeros(30, 50, dtype=torch.bfloat16)
judge(tensor.nbytes, formula("weight_bytes")(num_params=tensor.numel()), within=0, unit=BYTE)

# %% [markdown]
# In this book a count of elements is a pure number and a count of bytes is not, and the formulas check that: one that
# forgot the bytes per element would not even load. The same guard stands at the door of every formula:

# %%
try:
    STATE(num_params=amounts.write(GPUS["A100 80GB"]["memory_capacity"], BYTE))
except InputError as refused:
    print(refused)

# %% [markdown]
# ## Whose share, and which direction
#
# Many quarrels about figures are about neither value nor unit. Ask two questions of every number:
#
# - **Of one, or of all?** Memory *per card* and memory of the *cluster* differ by the number of cards; bytes a *rank*
#   (one process, driving one card) sends differ from bytes that cross the network in all. For example: what training
#   keeps for each parameter, the *model states*, can be shared among cards, in a scheme called ZeRO whose *stages* share
#   more and more of it. Chapter 1 opens both; here only look at whose figure is whose.

# %%
share = Claim("{world_size} cards under ZeRO stage {stage}: {zero_state_bytes} each; one unsharded copy is {state_bytes}.")
share(num_params="7B", world_size=8, stage=3)

# %% [markdown]
# - **One direction, or both added up?** Links carry data both ways at once. Data sheets add the two; a message travels
#   one way. This book counts per direction, and bytes *sent*, not sent and received.

# %%
Claim("An A100's links to its neighbours: {link_bandwidth} per direction, printed as twice that.")(**GPUS["A100 80GB"])

# %% [markdown]
# ## One word, several recipes
#
# And where even that is settled, people count different things under one word. "Bytes per parameter" is the classic.
# Such a choice is called a **convention** here; it has a name, and says who uses it:

# %%
PARAM_STATE.compare()

# %% [markdown]
# The first row is the book's own. Whenever a number in a later chapter looks odd to you, ask its formula for its
# conventions this way, before you ask whether it is wrong.
#
# ## The letters
#
# One letter for one idea. Parameters are $\Psi$, which gave the book its title, and never $N$, because half of the
# literature counts cards with that letter. This is a list to come back to: a chapter that needs a letter explains it
# where it first stands.

# %%
common = ["num_params", "world_size", "tensor_parallel", "num_stages", "num_micro_batches", "accumulation_steps", "chunks_per_stage"]
shapes = ["message_bytes", "micro_batch", "seq_length", "hidden_size", "num_heads", "num_layers", "global_batch", "num_gpus"]
letters = [look_up(name) for name in (*common, *shapes)]
Table("Letters of this book", ["name in code", "letter", "meaning"], [[q.name, f"${q.tex}$", q.meaning] for q in letters])

# %% [markdown]
# ## Explore
#
# One figure, read in three ways. The slider moves the figure, the other one the prefix.
#
# 1. Set the figure of a card's memory as its label gives it, eighty, and giga. How much would it be if the label meant
#    the binary unit?
# 2. Set the adapter's four hundred. What does it move a second, in bytes?
# 3. At which prefix does the gap between the upper two lines exceed a twentieth?

# %%
unit_explorer()

# %% [markdown]
# ## Head-room: two scales for one wish
#
# Nobody plans a card to the last byte. Two ways to say how much stays free are in use, and they are easily confused: a
# *factor* $x$ on what was predicted, or a *share* $p_{\mathrm{free}}$ of the card that must remain free.

# %%
FREE_SHARE.derivation

# %%
SAFETY_FACTOR

# %%
scales = Claim("A factor of {safety_factor} leaves {free_share:%} of the card free.")
scales(safety_factor=1.3)

# %%
Claim("To keep {free_share:%} of the card free takes a factor of {safety_factor}.")(free_share=0.3)

# %% [markdown]
# The same figure on the two scales is two wishes. The book's rule: predict, add what is measured on top (buffers,
# fragmentation; chapter 14), then keep fifteen to twenty percent of the card free.
#
# ## The decision, made
#
# Both planners were right about the activations, each in a unit of their own. The mistake happens one step later, when
# a figure in GiB is added to model states in GB. First the sum in one unit, then as it is told:

# %%
total = Claim("States of one card {zero_state_bytes:GB}, activations {activations:GB}, of {memory_capacity:GB}.", activations=activations)
total(**run, **GPUS["A100 80GB"], num_params="7B", world_size=8, stage=2)

# %%
claims(chapter=0, verdict="unit_slip")

# %% [markdown]
# This run fits under either reading; on a fuller card the slip would have decided. Convert first, add second.
#
# ## Spot the slip
#
# Ten figures are wrong below, each by a slip of this chapter. The first five circulate: they were computed in powers of
# two and written with the name of a power of ten. (Chapter 3 says where they come from; to correct them takes only this
# one. Mind the third: a figure per layer in MiB was added up in thousands.)

# %% tags=["hide-input"]
told = claims(chapter=3, verdict="unit_slip")
right = [(amounts.read(figure, BYTE), BYTE) for claim in told for figure in claim.computed.split("; ")]
print(*map(": ".join, zip(("1", "2", "3", "4 and 5"), (claim.sentence for claim in told), strict=True)), sep="\n")

# %% [markdown]
# The other five end the sentences of a plan, and there the slips are of every kind: a prefix, bits, elements, whose
# share it is, a unit of time.

# %% tags=["hide-input"]
adapter, saved = NETWORKS["InfiniBand NDR"], {"num_params": "7B", "storage_bandwidth": "2_000_000_000"}
links, weights, cluster = Claim("An adapter sends {bandwidth:Gb/s}."), formula("weight_bytes"), {"world_size": 8, "stage": 3}
wrong = {
    "6": links(**adapter).replace("Gb", "GB"),
    "7": Claim("In sixteen bits the weights of {num_params:B} parameters take {num_params:G}B.")(num_params="7B"),
    "8": Claim("Of {num_params:B} parameters, training keeps states of {state_bytes:TiB}.")(num_params="70B").replace("TiB", "TB"),
    "9": Claim("Under ZeRO stage {stage} these are, on {world_size} cards together, {zero_state_bytes}.")(num_params="70B", **cluster),
    "10": Claim("A checkpoint of {checkpoint_bytes} at {storage_bandwidth}: {checkpoint_time:s}.")(**saved).replace(" s.", " min."),
}
right += [(adapter["bandwidth"], look_up("bandwidth").unit), (weights(num_params="7B"), BYTE)]
right += [(STATE(num_params="70B"), BYTE), (STATE(num_params="70B"), BYTE), (CHECKPOINT_TIME(**saved), CHECKPOINT_TIME.unit)]
print(*map(": ".join, wrong.items()), sep="\n")

# %% [markdown]
# Write what each figure should say in place of its `None`, a number and its unit in quotes, and run the cell.

# %%
answers = {1: None, 2: None, 3: None, 4: None, 5: None, 6: None, 7: None, 8: None, 9: None, 10: None}

for (number, answer), (value, unit) in zip(answers.items(), right, strict=True):
    verdict = judge(amounts.read(answer, unit), value, unit=unit) if answer else None
    print(number, verdict.outcome.value if verdict else "not answered", verdict.reason if verdict else "")

# %% [markdown]
# ## Check yourself
#
# A question of chapter 1 that is won or lost by its units: every item on one card, in one unit. The bytes of model state
# per parameter are the first row of the table above, and the question says how to count activations. Do as much as you
# can, and come back for the rest after chapter 1; a hint names the slip of unit where it meets one.

# %%
ask("E002-Q10").form()

# %% [markdown]
# ## What people get wrong
#
# **"The tool shows less than the formula, so something was saved."** The same memory in two units:

# %%
Claim("{state_bytes:GB} is {state_bytes:GiB}.")(num_params="7B")

# %% [markdown]
# **"A link of four hundred moves the weights in a blink."** Four hundred what? The adapter's bits are an eighth of that
# in bytes, and beside the links inside a node they are slow:

# %%
slower = Claim("Between nodes {bandwidth}, between the cards of a node {link_bandwidth}, per direction and card.")
slower(**GPUS["A100 80GB"], **NETWORKS["InfiniBand NDR"])

# %% [markdown]
# **"MiB times a thousand is GB."** Figures per layer in MiB, added up in thousands, are neither. The inputs of all
# layers of the run above, and of one:

# %%
Claim("{kept_input_bytes:GB}, or {kept_input_bytes:GiB}; a layer's is {one:MiB}.", one=KEPT_INPUT.given(num_layers=1))(**run)

# %% [markdown]
# **"Ours needs twice as much as theirs."** Ask for the recipe, the direction, and whose share it is, before asking for
# the cause. All that is said on this chapter's subject and depends on such a choice:

# %%
claims(chapter=0, verdict="convention")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"The card has eighty, the tool shows less, where is the rest?"* Two families of prefixes first; then what the
#    driver and the framework keep for themselves; only then a leak.
# 2. *"How long does it take to send these gradients over that adapter?"* Bits to bytes, per direction, per card or per
#    node, and how often they travel; then one division.
# 3. *"Two papers disagree by a factor. Which one is wrong?"* Often neither. Value, unit, convention: elements or bytes,
#    sent or sent and received, one rank or all, which recipe.
#
# **Next.** Chapter 1 opens the ledger of a training run, item by item. The lab that holds units to account byte by byte
# is [what a rank keeps between steps](../labs/notebooks/model_states.ipynb).
