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
# # 16 · Capstone designs
#
# **What you will be able to decide.** A whole plan, three times over: the configuration of a node, a fine-tuning at home, and a
# month on thousands of cards. Each with its ledger, what would prove it wrong, and how you would find out early.
#
# **How long it takes.** About 120 minutes, without a GPU, most of them spent on your own plans. Every number below is computed
# as the notebook runs.

# %%
import numpy as np
import torch
from IPython.display import display

from autograder import ask
from explorers import Dashboard, adapter_explorer, interval_explorer, memory_explorer, planner_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.attention import FULL_RECOMPUTE_PEAK, LINEAR_ACTIVATION, LOGITS
from formulary.claims import claims
from formulary.data_parallel import ACCUMULATION_STEPS
from formulary.hardware import GPUS, NETWORKS
from formulary.lowrank import LORA_PARAMS
from formulary.memory import STATE, ZERO_STATE
from formulary.planner import plans
from formulary.reliability import CHECKPOINT_INTERVAL, FAILURE_RATE, LEAST_OVERHEAD
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## What a design is
#
# An architect does not hand over a picture of a house. There are drawings, a structural calculation, a list of what is checked at
# the acceptance, and, if the architect is good, a page about what happens should the ground turn out to be soft. A design for a
# training run has the same four parts:
#
# 1. **The plan.** Every dial has a position, and every position a reason.
# 2. **The ledger.** Bytes and seconds, part by part, with the recipe beside the number.
# 3. **Failure criteria.** What measurement, beyond which value, says that the plan is wrong? And what is done then?
# 4. **The validation.** Which small, cheap runs come first, and what each of them could refute.
#
# Parts three and four are where designs differ. A plan that nothing can refute has not been thought through.
#
# The decision is yours this time. Three customers wait. For each you make a guess, then a ledger, then the rest. The chapter works
# each design far enough for you to see how; your own goes into the forms, and into a file.
#
# ## First customer: a node, and a model of medium size
#
# "Eight cards, one model. Which ZeRO stage, and do we need tensor or pipeline parallelism?"

# %%
card, network = GPUS["A100 80GB"], NETWORKS["InfiniBand HDR"]
shape = MODELS["LLaMA 7B"]
node = {"num_params": "7B", "world_size": 8, "micro_batch": 4, "seq_length": "2048", "global_batch": 256}

brief = Claim(
    "{num_params:B} parameters on {world_size} cards of {memory_capacity}: micro-batches of {micro_batch} sequences of {seq_length}, "
    "{global_batch} sequences a step."
)
brief(**node, **card)

# %% [markdown]
# **Guess first.** What do the model states of one card take under ZeRO-2? An amount such as `"… GB"`.

# %%
guess = None

states = {stage: ZERO_STATE(num_params=node["num_params"], world_size=8, stage=stage) for stage in (1, 2, 3)}
slips = {"stage 1": states[1], "stage 3": states[3]}
hints = {"stage 1": "that leaves the gradients whole", "stage 3": "that shards the weights, too"}
guess and judge(read(guess, BYTE), states[2], within=0.02, unit=BYTE, mistakes=slips, hints=hints)

# %% [markdown]
# ### The ledger
#
# States by stage, accumulation, and the activations of a micro-batch with FlashAttention:

# %%
line = Claim("ZeRO-{stage}: {zero_state_bytes}")
display(*(line(**node, stage=stage) for stage in (1, 2, 3)))

# %%
rest = Claim("{accumulate} micro-batches a card and step; each leaves {linear_activation_bytes}.", accumulate=ACCUMULATION_STEPS)
rest(**node, **shape.only(LINEAR_ACTIVATION))

# %% [markdown]
# Deal out the sequences, and count the rounds: as a check, and because everybody at some time divides by the wrong thing.


# %% tags=["definition"]
def rounds(sequences, cards, at_once):
    """How often each card has to take sequences until all are dealt."""
    left, count = list(range(sequences)), 0
    while left:
        left, count = left[cards * at_once :], count + 1
    return count


# %%
judge(rounds(sequences=256, cards=8, at_once=4), ACCUMULATION_STEPS(global_batch=256, micro_batch=4, world_size=8), within=0)

# %% [markdown]
# ### The plan
#
# All plans, ranked, by chapter 11's planner. (In a plan's name $t$ counts tensor-parallel ranks, $P$ stages, $k$ replicas, and
# $b$ the sequences of a micro-batch.) Then the three candidates with a whole model on each card:

# %%
found = plans(shape, card, network, num_gpus=8, global_batch=256, seq_length="2048", num_params="7B")
whole = {"tensor_parallel": 1, "num_stages": 1, "micro_batch": 4, "recomputed": 0}
candidates = {stage: found.find(stage=stage, **whole) for stage in (1, 2, 3)}
display(*candidates.values())

# %% [markdown]
# Read stage 1 twice. States and activations alone *fit* on the card, and many a design stops there. The logits and a reserve
# for context and buffers do not. And whoever adds a figure in GiB to one in GB gets a third answer. Stage 2 fits, and its step
# takes no longer, since computation hides its traffic. Neither cut of the model is needed, since ZeRO has solved the memory, and
# no matrix is too large. The two of a layer's MLP, which are the largest, have together:

# %%
matrices = Claim("{hidden_size} by {ffn_size} and back: {tp_mlp_params:M} parameters.")
matrices(hidden_size=shape["hidden_size"], ffn_size="16384", mlp_matrices=2, tensor_parallel=1)

# %% [markdown]
# The planner's ledger and the one above come by different ways. They should agree:

# %%
parts = candidates[2].memory
apart = {"model states": states[2], "activations": LINEAR_ACTIVATION(**{k: {**node, **shape}[k] for k in LINEAR_ACTIVATION.inputs})}
display(*(judge(parts[name], amount, within=0, unit=BYTE) for name, amount in apart.items()))

# %% [markdown]
# How careful to be? Keep between fifteen and twenty percent of the card free, and write down as which factor on the need that is:

# %%
Claim("{free_share:%} free is a factor of {safety_factor}.")(free_share=0.15)

# %%
chosen = candidates[2]
found.leaving(0.15, card["memory_capacity"]).place(chosen)

# %% [markdown]
# ### What would prove it wrong
#
# Each criterion has a measurement, a bound and a consequence. The bounds come from the ledger:

# %%
peak = Claim("The peak exceeds {plan_memory_bytes} by more than the reserve of {reserve_bytes}: look for what the ledger lacks.")
slow = Claim(
    "A step takes longer than {plan_step_time} by more than kernels explain: measure one card alone, then switch the exchange off."
)
first = [
    peak(plan_memory_bytes=chosen.memory_bytes, reserve_bytes="4_000_000_000"),
    slow(plan_step_time=chosen.step_time),
    Claim("Eight cards are less than {scaling_efficiency:%} as efficient as one: a policy of this course, not a law.")(
        scaling_efficiency=0.7
    ),
]
display(*first)

# %% [markdown]
# ### How to find out early
#
# 1. *A minute, one card.* Two layers of the model, the true batch and length: peak and step against the same ledger for two layers.
# 2. *Ten minutes, the node.* Whole model, ten steps. Peak within the ledger; allocated the same after every step (chapter 14).
# 3. *An hour.* The loss curve against a run under plain data parallelism of a small model: the stage must not change it.
#
# Now you:

# %%
ask("E000-LQ03").form()

# %% [markdown]
# ## Second customer: a card at home
#
# "I have one consumer card and want this model to speak my language."

# %%
home, model = GPUS["RTX 4090"], MODELS["Llama 2 7B"]
Claim(
    "{memory_capacity}. Training {num_params:B} parameters in full takes {full}, with eight-bit moments {less}.",
    full=STATE,
    less=STATE.under("mixed_adam_8bit"),
)(num_params="7B", **home)

# %% [markdown]
# **Guess first.** The model frozen in four bits, adapters of rank eight on queries and values: how many parameters do you train? A
# number such as `"…M"`.

# %%
guess = None

widths = model.only(LORA_PARAMS)
adapters = LORA_PARAMS(**widths, lora_rank=8)
slips = {"one of two": LORA_PARAMS(**{**widths, "adapts_value": 0}, lora_rank=8)}
guess and judge(read(guess), adapters, within=0.02, mistakes=slips, hints={"one of two": "both queries and values have adapters"})

# %% [markdown]
# ### The ledger

# %%
small = {**widths, "num_params": "7B", "lora_rank": 8}
bill = Claim(
    "Adapters: {lora_params:M} parameters. Base and adapters' states {adapted_memory_bytes}, {adapted_share:%} of it all is trained."
)
bill(**small, bytes_per_frozen=0.5)

# %% [markdown]
# Build the adapters, without any memory behind them, and count:

# %%
pairs = [
    (torch.empty(8, model["hidden_size"], device="meta"), torch.empty(model["hidden_size"], 8, device="meta"))
    for _ in range(model["num_layers"])
    for _ in ("query", "value")
]
judge(sum(matrix.numel() for pair in pairs for matrix in pair), adapters, within=0)

# %% [markdown]
# What is left is for activations, logits and one matrix at a time in half precision. With every layer recomputed, how long may
# sequences be?

# %%
lengths = Claim("{seq_length}: {full_recompute_peak_bytes} of activations, {logits_bytes} of logits.")
long = {**model.only(FULL_RECOMPUTE_PEAK), **model.only(LOGITS), "micro_batch": 1, "bytes_per_score": 0}
display(*(lengths(**long, seq_length=length) for length in ("1024", "4096", "16384")))

# %% [markdown]
# Turn the dials. Where is the first limit, in rank, in precision of the base, or in the model's size?

# %%
adapter_explorer("Llama 2 7B", lora_rank=8)

# %% [markdown]
# ### What would prove it wrong
#
# The most useful criterion here costs nothing: print the share of trainable parameters. If it is not the recipe's, the wrong
# modules are being trained, and no curve will tell you. It has to be *the recipe's*: a fixed alarm for all recipes would ring
# for healthy ones.

# %%
share = Claim("{adapted_share:%} is trained: stop if the printout says anything else.")
every = {"adapts_query": 1, "adapts_key": 1, "adapts_value": 1, "adapts_output": 1, "adapts_mlp": 1}
display(share(**small), share(**{**small, **every, "lora_rank": 16}))

# %%
second = [
    share(**small),
    "Out of memory: halve the sequence, then recompute every layer, then lower the rank, in this order.",
    "Held-out loss no better after an epoch, and not with twice the rank either: the method is too weak; train in full, elsewhere.",
]
display(*second)

# %% [markdown]
# ### How to find out early
#
# Ten steps, with four numbers written down: loss, peak, tokens a second, share trained. Then a sweep over three lengths, peak
# against the ledger. Then the same held-out questions before and after, read by a person. Now you:

# %%
ask("E000-DS01").form()

# %% [markdown]
# ## Third customer: thousands of cards for a month
#
# "It must not stop." It will. The question is how much that costs.

# %%
month = {"num_gpus": "8192", "gpu_failure_rate": "3e-6 /h", "training_time": "2_592_000"}
rate = FAILURE_RATE(num_gpus=month["num_gpus"], gpu_failure_rate=month["gpu_failure_rate"])
job = {"checkpoint_time": 56, "failure_rate": rate, "restart_time": 600}
Claim("{num_gpus} cards for {training_time:days}, each failing {gpu_failure_rate:/h}.")(**month)

# %% [markdown]
# **Guess first.** Which share of the month is lost at the best interval, with restarts of ten minutes? A number such as `"…%"`.

# %%
guess = None

guess and judge(read(guess), LEAST_OVERHEAD(**job), within=0.1)

# %% [markdown]
# ### The ledger, of time

# %%
expects = Claim(
    "Stops every {mtbf:h}, {expected_stops} in all. Save every {checkpoint_interval:min}; {least_checkpoint_overhead:%} is lost."
)
expects(**month, **job)

# %% [markdown]
# That is an *expectation*. Your month will be one month. When you compare, you want to know how far from the expectation an
# unlucky month of a *good* plan may be; only beyond that is the plan to blame. So live through the month, again and again.


# %% tags=["definition"]
def months(per_second, length, between, save, restart, times=400):
    """The share of each of so many months that is lost to checkpoints, repeated work and restarts."""
    chance, shares = np.random.default_rng(16), []
    for _ in range(times):
        clock = kept = 0.0
        while clock < length:
            alive = min(chance.exponential(1 / per_second), length - clock)
            kept += between * (alive // (between + save))
            clock += alive + restart
        shares.append(1 - kept / clock)
    return np.array(shares)


# %%
best = CHECKPOINT_INTERVAL(checkpoint_time=56, failure_rate=rate)
lived = months(rate, length=read(month["training_time"]), between=best, save=56, restart=600)
judge(float(lived.mean()), LEAST_OVERHEAD(**job), within=0.05)

# %%
alarm = float(np.quantile(lived, 0.99))
loss = Claim("More than {checkpoint_overhead:%} of the month is lost: no more than one good month in a hundred is as unlucky.")
loss(checkpoint_overhead=alarm)

# %% [markdown]
# Such is an alarm with a reason. Compare it with the round figures that circulate, which are set against a wrong optimum.
#
# ### The plan
#
# Detect (heartbeats, a time-out on collectives, a check that isolates a node), replace (spares), restart (from the last
# *complete* checkpoint, with the position in the data), shrink (checkpoints that load on fewer ranks; more accumulation keeps
# the batch), and do not trust silence (checksums among replicas, the gradient's norm). How many spares? As many as fail before
# repaired ones come back:

# %%
spares = Claim("While a node is away for {training_time:days}, {expected_stops} more fail.")
spares(**{**month, "training_time": "259_200"})

# %% [markdown]
# And if the rate you were told is wrong? Move it, and see whether your interval survives. It should; that is worth more than
# being exact.

# %%
failures = interval_explorer(checkpoint_interval=best, **month, checkpoint_time=56, restart_time=600)
failures

# %%
third = [
    loss(checkpoint_overhead=alarm),
    Claim("More than twice {expected_stops} stops in the month: the rate is wrong, set the interval anew.")(**month),
    Claim("A restart takes longer than a tenth of {checkpoint_interval:min}: rehearse until it does not.")(**job),
    "A checkpoint cannot be read back: stop everything else.",
]
display(*third)

# %% [markdown]
# ### How to find out early
#
# Kill a rank on purpose, in week zero, and take the time from the kill to the first new step; the [lab on
# checkpoints](../labs/notebooks/checkpoint.ipynb) is the same in small. Resume with other numbers of ranks. Flip a bit in one
# replica, and see whether the checksum finds it. Log the samples that were consumed, and compare a resumed curve with an
# undisturbed one. Now you:

# %%
ask("E000-DS02").form()

# %% [markdown]
# ## Your sheet
#
# All together: the planner, the states of one card, and the failures, on one sheet. What they share moves in all of them. Set them
# to *your* customer; nothing here has to stay as it is. (The middle one knows of ZeRO alone: if your plan cuts the model by
# tensors or stages, enter the parameters of one cut. Its ranks are the $k$ of your plan.)

# %%
sheet = Dashboard(
    {
        "plan": planner_explorer("Llama 2 7B", num_gpus=8, global_batch=256, seq_length="2048"),
        "states": memory_explorer("7B", world_size=8, stage=2),
        "failures": interval_explorer(num_gpus=8, checkpoint_time=56),
    }
)
sheet

# %% [markdown]
# What the sheet stands at is your plan. Write your criteria and your validation beside it, and hand in the text below. It is
# JSON: a grader reads the settings, makes the same explorers of them, and compares the figures.

# %%
criteria = first  # yours, each with a measurement, a bound and a consequence
validation = ["ten steps on one node: peak against the ledger", "one rank killed on purpose: time to the first new step"]

plan = sheet.plan(criteria=criteria, validation=validation)
plan["plan"]["says"], plan["states"]["says"], plan["failures"]["says"]

# %%
print(sheet.export(criteria=criteria, validation=validation))

# %% [markdown]
# To put it into a file: `pathlib.Path("plan.json").write_text(sheet.export(…))`. And the same state as a line of code, for a
# colleague:

# %%
sheet.explorers["failures"].share()

# %% [markdown]
# ## Check yourself
#
# The three forms above are this chapter's questions. Before you hand in, read each of your designs once as somebody who wants
# it to fail:
#
# - Does every figure have its recipe, its unit, and "per card" or "in all" beside it?
# - Is there a criterion that could come true? Which measurement, on which day, would make you change the plan?
# - Which single number, if it were twice as large, would turn the plan over? Who measures it, and when?
#
# ## What people get wrong
#
# **"It fits: states and activations, and done."** Logits, gathered weights and a reserve decided the first design. Stage 1, by
# the two parts alone and by the planner:

# %%
candidates[1].why

# %%
two_parts = Claim("{zero_state_bytes} and {linear_activation_bytes}, of {memory_capacity}.")
two_parts(**node, **shape.only(LINEAR_ACTIVATION), **card, stage=1)

# %% [markdown]
# **"Thirty-four of activations and twenty-six of states are sixty."** The first figure is in GiB, the second in GB. The same
# activations:

# %%
Claim("{linear_activation_bytes:GiB}, {linear_activation_bytes:GB}")(**node, **shape.only(LINEAR_ACTIVATION))

# %% [markdown]
# **"Alarm at half a percent trainable."** It would stop the healthy recipe with all matrices adapted, and let through one that
# trains too little; you saw both shares.
#
# **"Save once a day."** The most expensive line in any of these designs:

# %%
day = Claim("every {checkpoint_interval:h}: {exact_checkpoint_overhead:%} lost")
display(*(day(**job, checkpoint_interval=each) for each in (best, "86400")))

# %% [markdown]
# **"Efficiency of seven tenths, warm-up of three percent, alarm at eight."** House rules. Quote them as such, or derive your own as
# the alarm above.
#
# ## What else is said about this

# %%
claims(chapter=12, verdict="empirical")

# %%
claims(chapter=15, verdict="convention")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Design the training of this model."* Ask first: which cards, which links, which batch, which deadline? Then bytes, then
#    dials in order, then seconds. Then, unasked, what would prove you wrong.
# 2. *"How do you know that it will work?"* The smallest run that could refute each line of the ledger; what is measured on day one,
#    in week one; who looks at it.
# 3. *"What did you leave out?"* A strong answer has a list: the reserve, the data pipeline, evaluation, stragglers, other
#    people's jobs. A weak one has none.
#
# **Next.** [Chapter 17](17_errata.ipynb) turns to what sources disagree on, and settles it.
