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
# # 17 · Errata: where sources disagree
#
# **What you will be able to decide.** Which of two published figures to believe, or that both are right about different things.
#
# **How long it takes.** About 40 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import ipywidgets as widgets
from IPython.display import display

from autograder import ask
from explorers import memory_explorer, traffic_explorer
from formulary import Claim, judge
from formulary.attention import LINEAR_ACTIVATION
from formulary.claims import claim, claims, rulings
from formulary.memory import STATE
from formulary.shapes import MODELS
from formulary.zero import ZERO_TRAFFIC

# %% [markdown]
# ## The decision
#
# Two documents lie on your desk, both by people who train large models. Both say how much memory the states of a model of ten billion
# parameters need, and one figure is a third above the other. You have to order cards on Monday.

# %%
both = Claim("One says {lean}, the other {full}.", lean=STATE.under("no_master_adam"), full=STATE.under("mixed_adam"))
both(num_params="10B")

# %% [markdown]
# **Guess first.** Is one of them wrong? Put `"one is wrong"` or `"both are right"` in place of `None`.

# %%
guess = None

answers = {"both are right": "They are: about two recipes. Read on.", "one is wrong": "Which bytes does each of them count?"}
guess and answers.get(guess, "Put one of the two texts.")

# %% [markdown]
# ## Five questions for a figure
#
# A figure without its conditions is like a price without its currency. Most contradictions between sources in this book went away when
# one of five questions was asked. Ask them in this order; the first ones are quickly answered.
#
# 1. **In which unit?** Powers of ten or of two; bits or bytes; elements or bytes.
# 2. **Of whom?** One rank or the cluster; sent, or sent and received.
# 3. **Per what?** One micro-batch, one step, one layer, one token.
# 4. **By which recipe?** Precision, optimizer, what is recomputed, when gradients are synchronised.
# 5. **Against what?** A share of the whole, or a ratio to the rest; of the paper's count, or of a library's.
#
# What is left after these five is *wrong*, and can be recomputed.
#
# **In which unit?** A GiB is more than a GB. The activations of a familiar model, in both:

# %%
seven = {**MODELS["LLaMA 7B"].only(LINEAR_ACTIVATION), "micro_batch": 4, "seq_length": "2048"}
Claim("{linear_activation_bytes:GiB} is {linear_activation_bytes:GB}.")(**seven)

# %% [markdown]
# **Of whom?** Under hybrid sharding (chapter 7) every rank of a node sends to other nodes, so what one rank sends and what its node
# sends are far apart:

# %%
crossing = Claim("Across nodes a rank sends {hsdp_inter_bytes}, and its node {hsdp_egress_bytes}.")
crossing(num_params="7B", num_nodes=2, ranks_per_node=8, accumulation_steps=1)

# %% [markdown]
# **By which recipe?** The two documents on your desk:

# %%
Claim("Without a master copy {lean}, with one {full}.", lean=STATE.under("no_master_adam"), full=STATE.under("mixed_adam"))(
    num_params="10B"
)

# %% [markdown]
# **Per what?** "ZeRO-2 sends half of what data parallelism does" and "ZeRO-2 sends the same" are both in print. The first speaks of the
# phase in which gradients are reduced, the second of the whole step. And when a step accumulates several micro-batches neither holds:

# %%
ratio = Claim("Stage {stage}, micro-batches a step {accumulation_steps}: {zero_traffic_ratio:x} the traffic of plain data parallelism.")
display(*(ratio(stage=stage, accumulation_steps=steps) for stage in (2, 3) for steps in (1, 8)))

# %% [markdown]
# **Against what?** Idle time of a pipeline, over the whole step or over the working part of it:

# %%
line = {"num_stages": 8, "num_micro_batches": 64}
Claim("{pipeline_bubble:%} of the step, or {bubble_ratio:%} of the work.")(**line)

# %% [markdown]
# And what is plainly wrong? A course says how much time is lost by saving a checkpoint every two hours. The figure (last line of the
# table) lies *below the smallest that its own formula can give*. No measurement is needed to see that:

# %%
claims(ruling="X19", verdict="wrong")

# %% [markdown]
# ## Explore
#
# 1. Ten billion parameters on one card: under which recipes are the two documents right?
# 2. Find a recipe with gradients *and* a master copy in fp32. What would a third document say?

# %%
memory_explorer(num_params="10B", world_size=1, stage=0)

# %% [markdown]
# 3. Set one micro-batch and compare stages 1 and 2. Then accumulate. When does "the same traffic" stop being true?
# 4. Let gradients travel in full precision. Which stage's figure changes most?

# %%
traffic_explorer(num_params="7B", world_size=8, stage=2)

# %% [markdown]
# ## Look one up
#
# Every claim that the chapters have judged, by its id: what is said, what is computed, which verdict and why. Verdicts are worked out,
# not typed: a claim states its number as people write it, names its calculation, and the tolerance follows from its own digits. So a
# claim can be true, true with rounding, right under a convention of its own, right but for its unit, wrong, or a matter for a
# measurement (*empirical*). How many there are of each:

# %%
claims().counts()

# %% tags=["definition"]
picked = widgets.Combobox(options=[one.id for one in claims()], value="C002-050", description="claim", ensure_option=True)
shown = widgets.interactive_output(lambda name: display(claim(name)) if name else None, {"name": picked})
widgets.VBox([picked, shown])

# %% [markdown]
# ## What holds: between sources
#
# Where sources contradict each other, somebody has to say what holds in this book. Each ruling settles a few claims; to see those of
# the first one, write `claims(ruling="X01")`. First the contradictions between sources:

# %%
rulings().among(1, 22)

# %% [markdown]
# ## What holds: within one source
#
# Then errors that one source makes alone, most of them units, powers and off-by-ones:

# %%
rulings().among(23, 46)

# %% [markdown]
# ## What holds: habits
#
# And habits stated as facts. They may be good habits. They are not facts, and an alarm that is set by one fires on somebody else's
# cluster:

# %%
rulings().among(47, 52)

# %% [markdown]
# ## Referee
#
# Fifteen claims, and you are the referee. Give each a verdict: `"true"`, `"convention"` (right under a convention of its own, when
# another is usual), `"unit_slip"` (the number is right and its unit is not) or `"wrong"`.

# %%
bench = ("C000-047", "C002-004", "C002-005", "C002-039", "C002-050", "C002-058", "C002-060", "C002-099", "C000-038")
bench = (*bench, "C003-031", "C003-038", "C003-041", "C002-038", "C000-057", "C002-074")
for name in bench:
    print(f"{name}: {claim(name).sentence}")

# %% [markdown]
# Write your verdicts between the braces, such as `{"C002-050": "…", …}`; those you leave out are not judged. Where you are wrong, the
# reason is shown.

# %%
verdicts = {}

given = {name: verdict for name, verdict in verdicts.items() if verdict}
{name: "right" if verdict == claim(name).verdict else claim(name).reason for name, verdict in given.items()}

# %%
judge(sum(verdict == claim(name).verdict for name, verdict in given.items()), len(bench), within=0) if given else "no verdict yet"

# %% [markdown]
# ## The decision, made
#
# Neither document is wrong. One trains with weights that are updated in half precision and no master copy. In long training that
# loses small updates (chapter 2), so for *your* run the larger figure counts. Both documents lack the same thing: the recipe, printed
# beside the number.
#
# ## Check yourself
#
# Three exercises of earlier chapters, now as a referee. Answer, press *check*, and read the hint that fits:

# %%
ask("E002-Q02").form()

# %%
ask("E002-Q16").form()

# %%
ask("E002-Q36").form()

# %% [markdown]
# ## What people get wrong
#
# **"The paper says so."** The paper counts what its authors ran. A library that implements it may send more, keep more or
# keep less, and says so in its source rather than its documentation. (Bold is what this book assumes; every other row changes one
# thing.)

# %%
ZERO_TRAFFIC.compare(num_params="7B", world_size=8, stage=2, accumulation_steps=8)

# %% [markdown]
# **"It is measured, so it is true."** It is true of that machine and those conditions. A measurement without them is the weakest
# kind of figure, since it cannot even be recomputed.
#
# **"The difference is small."** A few percent is the size of a slip between GB and GiB. On a card that is nearly full it decides
# whether the job runs.
#
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Two sources give you different numbers. What do you do?"* The five questions, aloud and in order, with an example for one
#    of them.
# 2. *"How would you check a figure you cannot measure?"* Recompute it from its inputs; try its limits; ask whether it may lie
#    below a bound.
# 3. *"Tell me of a number that everybody quotes and that is wrong."* Have one ready, with the right one, and why people believe
#    the other.
