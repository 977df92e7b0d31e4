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
# # 15 · Reliability
#
# **What you will be able to decide.** How often a training run should save, what failures will cost it all the same, what a
# checkpoint has to hold, and what to do when the loss jumps in the night.
#
# **How long it takes.** About 45 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import hashlib

import numpy as np
import torch
from IPython.display import display
from torch import nn

from autograder import ask
from explorers import interval_explorer, saving_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.claims import claims
from formulary.hardware import FORMATS
from formulary.precision import CLIP_FACTOR, FLOAT_SPACING, ORDER_GAP
from formulary.reliability import (
    CHECKPOINT_BYTES,
    CHECKPOINT_INTERVAL,
    CHECKPOINT_OVERHEAD,
    CHECKPOINT_TIME,
    DALY_INTERVAL,
    EXACT_OVERHEAD,
    EXPECTED_STOPS,
    FAILURE_RATE,
    GOODPUT,
    LEAST_OVERHEAD,
    MTBF,
    SEGMENT_TIME,
)
from formulary.shapes import RUNS
from formulary.units import SECOND

# %% [markdown]
# ## The decision
#
# You are given a large cluster for a month, and the people who run it tell you how often a card fails:

# %%
cluster = {"num_gpus": "8192", "gpu_failure_rate": "3e-6 /h"}
one_card = {**cluster, "num_gpus": 1}
month = {"training_time": "2_592_000"}  # thirty days, in seconds

told = Claim(
    "{num_gpus} cards for {training_time:days}. A card fails {gpu_failure_rate:/h}: once in {one:days}.", one=MTBF.given(num_gpus=1)
)
told(**cluster, **month)

# %% [markdown]
# Once in decades! Hardly worth a thought, one would say. But a training step needs every card: when one of them stops, all
# wait for it, until somebody starts the job again from the last **checkpoint**, the state that was last written to disk. What
# was computed since then is lost. Writing a checkpoint takes about a minute, during which nobody trains.

# %%
saving = {"checkpoint_time": 56}
Claim("Saving takes {checkpoint_time}.")(**saving)

# %% [markdown]
# Save all the time, and you do little else. Save never, and one dead card takes the month with it. How often, then?
#
# **Guess first.** What interval between checkpoints would you choose? An amount such as `"… h"` or `"… min"`, in quotes.

# %%
guess = None

rate = FAILURE_RATE(**cluster)
best = CHECKPOINT_INTERVAL(**saving, failure_rate=rate)
guess and judge(read(guess, SECOND), best, within=0.3, unit=SECOND)

# %% [markdown]
# (Within a third counts as right. You will see why one need not be more exact than that.)
#
# ## A stadium of light bulbs
#
# A good bulb burns for years. Yet in a stadium with thousands of them somebody is always on the ladder. Failures that have nothing
# to do with each other simply add up, so the time from one to the next shrinks by the number of bulbs:

# %%
MTBF.derivation

# %%
EXPECTED_STOPS.derivation

# %%
how_often = Claim("The job stops every {mtbf:h}, on average: {expected_stops} times in {training_time:days}.")
how_often(**cluster, **month)

# %% [markdown]
# Now let bulbs burn out. Every card draws the moments at which it fails; the job stops when the first one does.


# %% tags=["definition"]
def first_failures(cards, per_second, times):
    """Seconds until the first of so many cards fails, again and again."""
    chance = np.random.default_rng(15)
    return np.array([chance.exponential(1 / per_second, cards).min() for _ in range(times)])


# %%
each = first_failures(cards=int(cluster["num_gpus"]), per_second=FAILURE_RATE(**one_card), times=900)
judge(each.mean(), MTBF(**cluster), within=0.1, unit=SECOND)

# %% [markdown]
# What the formula takes for granted: that failures are independent, and come at a steady rate. Neither is quite true. New machines
# fail more often, a switch takes many cards with it, and hot afternoons are bad for everybody. Take the rate from your own
# cluster's log. One such log is published, and you can work out the rate from it:

# %%
run = next(iter(RUNS.values()))
observed = EXPECTED_STOPS.solve_for("gpu_failure_rate")(**run)
log = Claim(
    "{expected_stops} unexpected stops in {training_time:days} on {num_gpus} cards: "
    "a card fails {gpu_failure_rate:/h}, and the job stops every {mtbf:h}."
)
log(**run, gpu_failure_rate=observed)

# %% [markdown]
# Several times the rate that you were told. Remember it when you make the decision.
#
# ## What a checkpoint takes
#
# What must be saved is what cannot be computed again: the weights, their master copy, the two moments of Adam (chapter 1).
# Gradients need not be; the next step computes new ones. People count differently, though:

# %%
CHECKPOINT_BYTES.derivation

# %%
CHECKPOINT_BYTES.compare(num_params="7B")

# %% [markdown]
# All ranks write their own shards at once, into one storage system, so its bandwidth is what counts:

# %%
CHECKPOINT_TIME.derivation

# %% [markdown]
# Bandwidth of storage is bought like everything else, so look at what it does:
#
# 1. Which bandwidth saves a model of seventy billion parameters in a minute?
# 2. What does leaving out the 16-bit weights gain?

# %%
saving_explorer(storage_bandwidth="2_000_000_000", num_params="7B", saved="everything")

# %% [markdown]
# ## Two costs, one scale
#
# Think of a long text that you type on a laptop with a bad battery. Each time you press *save* you wait a moment. Each time the
# battery dies you type again what was not saved: sometimes a line, sometimes nearly everything since the last *save*, half of it on
# average. As shares of the time:

# %%
CHECKPOINT_OVERHEAD.derivation

# %% [markdown]
# One term falls with the interval, the other rises. The sum is least where it stops falling:

# %%
CHECKPOINT_INTERVAL.derivation

# %% [markdown]
# The restart is not in it. It costs what it costs, however often you save. And at the best interval:

# %%
LEAST_OVERHEAD.derivation

# %%
answer = Claim("Save every {checkpoint_interval:min}, and {least_checkpoint_overhead:%} of the time is lost, restarts not counted.")
answer(**saving, failure_rate=rate, restart_time=0)

# %% [markdown]
# That root is worth a moment. Failures four times as frequent ask for twice as many checkpoints, not four times. And a checkpoint
# that blocks for a quarter of the time halves the loss. That is why large runs copy their state to host memory, which takes
# seconds, and write it out while training goes on:

# %%
answer(checkpoint_time=14, failure_rate=rate, restart_time=0)

# %% [markdown]
# The limits say the same in the extreme. If saving took no time, one would save without end; if nothing failed, one never would:

# %%
display(CHECKPOINT_INTERVAL.limit("checkpoint_time", 0), CHECKPOINT_INTERVAL.limit("failure_rate", 0))

# %% [markdown]
# And turned round: up to which time of saving can a given share be kept?

# %%
affordable = LEAST_OVERHEAD.given(restart_time=0).solve_for("checkpoint_time")
allowed = Claim("To lose at most {checkpoint_overhead:%}, a checkpoint may take {wait}.", wait=affordable)
allowed(checkpoint_overhead=0.01, failure_rate=rate)

# %% [markdown]
# ## Let it fail
#
# The derivation said "half an interval on average". Do not believe it: let jobs run and die. Between two failures a job finishes
# some stretches, each with its checkpoint. Whatever is not finished is lost.


# %% tags=["definition"]
def lives(per_second, jobs=300):
    """Seconds from one failure to the next, of many jobs with as many failures each."""
    return np.random.default_rng(16).exponential(1 / per_second, (jobs, jobs))


def share_lost(lives, between, save):
    """The share of time lost by jobs that live so long, when every finished stretch with its checkpoint is kept."""
    finished = lives // (between + save)
    return 1 - float((finished * between).sum() / lives.sum())


# %%
job = {**saving, "failure_rate": rate, "restart_time": 0}
many = lives(rate)
judge(share_lost(many, best, save=56), CHECKPOINT_OVERHEAD(**job, checkpoint_interval=best), within=0.03)

# %% [markdown]
# And two hours, or a whole day, as somebody in the group proposes?

# %%
two_hours, day = "7200", "86400"
judge(share_lost(many, read(two_hours), save=56), CHECKPOINT_OVERHEAD(**job, checkpoint_interval=two_hours), within=0.03)

# %%
off = CHECKPOINT_OVERHEAD(**job, checkpoint_interval=day)
judge(share_lost(many, read(day), save=56), off, within=0.03)

# %% [markdown]
# Two hours agree; the day fails, and on the good side. A failure late in a long interval presupposes that none came before it.
# So failures come earlier than the middle, on average, and lose less than half; the derivation took the interval to be far
# shorter than the time between failures, and a day is not. One does not need the assumption. Ask how long it takes, on average,
# to get through one stretch and its checkpoint, starting over after every failure:

# %%
SEGMENT_TIME.derivation

# %%
GOODPUT.derivation

# %%
EXACT_OVERHEAD.derivation

# %%
exact = EXACT_OVERHEAD(**job, checkpoint_interval=day)
judge(share_lost(many, read(day), save=56), exact, within=0.03)

# %% [markdown]
# The price of exactness is that its optimum has no tidy form. Daly counts the interval from one checkpoint's end to the next,
# and adds terms of a series; for such jobs Young's root is nearly as good:

# %%
DALY_INTERVAL.derivation

# %%
CHECKPOINT_INTERVAL.compare(**saving, failure_rate=rate)

# %% [markdown]
# ## Explore: how often to save
#
# 1. How far can you go from the optimum, to either side, before the loss doubles? (That is why a third off counted as right.)
# 2. Choose the published training. What becomes of the optimum, and of the loss?
# 3. Give it a restart of half an hour. Which way does the curve move? Does the optimum?
# 4. Where do the two curves part, and why is the simple estimate the higher one?

# %%
interval_explorer(checkpoint_interval=two_hours, **cluster, **saving, **month)

# %% [markdown]
# ## The same run again?
#
# After the restart the loss goes on from where it was. Does it, to the last bit? Two things stand in the way, and only one of them
# is a bug.
#
# The first: **a sum depends on its order.** Computers round after each addition, so

# %% tags=["definition"]
left_first, right_first = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
left_first - right_first

# %% [markdown]
# That is exactly one step between neighbouring numbers of the format:

# %%
fp64 = FORMATS["fp64"].only(FLOAT_SPACING)
judge(abs(np.subtract(left_first, right_first)), FLOAT_SPACING(**fp64, binade=-1), within=0)

# %% [markdown]
# An all-reduce over eight ranks adds in another order than one over sixteen (chapter 5). How far apart can two orders be? A term is
# rounded again with every addition that follows:

# %%
ORDER_GAP.derivation

# %% [markdown]
# In a tree, halves added to halves, a term is rounded once a level only. So libraries differ, too:

# %%
ORDER_GAP.compare(**FORMATS["fp32"].only(ORDER_GAP), num_terms=512)

# %% [markdown]
# Sum the same numbers as one rank, two, four, … would, each its own part first. Then the worst gap between two of them, held
# against the bound: the larger of both should be the bound.


# %% tags=["definition"]
def summed(numbers, ranks):
    """The sum as that many ranks add it: each its own part, then one part after the other."""
    parts = [one_by_one(part) for part in numbers.chunk(ranks)]
    return one_by_one(parts)


def one_by_one(numbers):
    total = torch.zeros(())
    for number in numbers:
        total = total + number
    return total


def widest_gap(sums, numbers):
    """The largest difference between two of the sums, over the sum of sizes."""
    return float((max(sums) - min(sums)) / numbers.abs().sum())


# %%
chance = torch.Generator().manual_seed(15)
gradients = torch.rand(512, generator=chance)
sums = {ranks: summed(gradients, ranks) for ranks in (1, 2, 4, 8, 16, 32)}
{ranks: f"{total.item():.6f}" for ranks, total in sums.items()}

# %%
fp32 = FORMATS["fp32"].only(ORDER_GAP)
gap, bound = widest_gap(sums.values(), gradients), ORDER_GAP(**fp32, num_terms=512)
display(judge(max(gap, bound), bound, within=0), f"widest gap seen: {gap:.2g}")

# %% [markdown]
# The bound holds, with much room: it is made for numbers chosen with malice. But the bits differ, and nothing is wrong.
# Training amplifies such differences, as weather amplifies the flap of a wing; what one may ask for on another number of cards
# is that the *curves* agree. On the same number of cards, with deterministic kernels (`torch.use_deterministic_algorithms`),
# one may ask for equal bits.
#
# The second thing is the bug: **a checkpoint that forgets.** Here is a small training with dropout. It saves in the middle, and
# goes on in a new process, which has drawn other random numbers by then.


# %% tags=["definition"]
def train(first, last, saved=None, leave_out=()):
    """Losses of steps `first` to `last`, and a checkpoint of the end; `leave_out` says what of `saved` is not taken up."""
    torch.manual_seed(first)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    taken_up = {"model": model.load_state_dict, "optimizer": optimizer.load_state_dict, "random state": torch.set_rng_state}
    for name in saved or ():
        if name not in leave_out:
            taken_up[name](saved[name])
    losses = [step(model, optimizer, number) for number in range(first, last)]
    return losses, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random state": torch.get_rng_state()}


def step(model, optimizer, number):
    batch = torch.rand(4, 8, generator=torch.Generator().manual_seed(number))  # the data depend on the step alone
    loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def alike(losses, others):
    return sum(one == other for one, other in zip(losses, others, strict=True))


# %%
undisturbed, _ = train(0, 12)
before, saved = train(0, 6)
resumed, _ = train(6, 12, saved)
judge(alike(undisturbed, [*before, *resumed]), len(undisturbed), within=0)

# %% [markdown]
# All losses alike, to the bit. **Guess first.** How many of the twelve are alike if the optimizer's state is left out of the
# checkpoint? And if only the random state is?

# %%
guess = None

without = {name: alike(undisturbed, [*before, *train(6, 12, saved, [name])[0]]) for name in saved}
guess and judge(guess, without["optimizer"], within=0)

# %%
without

# %% [markdown]
# Without the model not one of the later losses is right, and without the random state neither, since dropout strikes elsewhere.
# Without the optimizer the first one still is: its state only matters from the next update on. Such bugs hide behind a curve
# that looks continuous. Not on the list, since here they depend on the step alone, are the *data*: where in the shuffled stream
# was the run? A checkpoint without the answer trains on some documents twice and on others never, and no loss will ever tell.
#
# ## Wrong numbers, no error
#
# A cosmic ray, or an ageing card, may flip a bit. Nothing stops; that is the problem. In a number, bits are not equal:


# %% tags=["definition"]
def flipped(number, bit):
    """The fp32 number with one of its bits turned over."""
    return (torch.tensor([number]).view(torch.int32) ^ (1 << bit)).view(torch.float32).item()


def checksum(tensor):
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()[:8]


# %%
{bit: flipped(0.5, bit) for bit in (0, 12, 22, 24, 30)}

# %% [markdown]
# A low bit nobody will notice, ever. A high bit turns up in the gradient's norm at once, which is why one logs it. In between
# lies what only a comparison finds. Replicas must hold *the same* weights, so let them compare checksums, say at every
# checkpoint:

# %%
weights = torch.rand(64, generator=chance)
replica = weights.clone()
replica[7] = flipped(replica[7].item(), bit=3)
checksum(weights), checksum(replica)

# %% [markdown]
# Which of the two is right, a checksum does not say; three replicas vote, or a suspect card is given a computation whose result is
# known.
#
# ## The loss jumps
#
# It is three in the morning, and the loss is up. Look first at what is logged anyway, last at what takes machines:
#
# 1. **The logs.** Did the gradient's norm rise before the loss? Did the learning rate or the loss scale change? Was there a
#    restart?
# 2. **The batch.** Print it. A spike from one broken document is a spike about data.
# 3. **The numerics.** Infinities, norms by layer, attention logits (chapter 2).
# 4. **The step again**, from the last checkpoint: once on the same cards, once on others. The same spike on both is data or
#    model; a spike on one is hardware.
#
# If the loss comes back by itself, note the step and go on. If not, go back to a checkpoint *before the cause*, which may be older
# than the last one (so keep several), skip the batches around it, and perhaps lower the learning rate. The seat belt meanwhile is
# clipping: a gradient longer than a limit is shortened to it.

# %%
CLIP_FACTOR.derivation

# %%
weight = torch.zeros(4, requires_grad=True)
weight.grad = torch.full((4,), 6.0)
norm = torch.nn.utils.clip_grad_norm_([weight], max_norm=1)
judge(torch.div(weight.grad[0], 6).item(), CLIP_FACTOR(grad_norm=norm.item(), max_norm=1), within=0.0001)

# %% [markdown]
# It keeps the direction and bounds the length. (It does not help Adam much *within* one step, which divides by the gradient's own
# size; it keeps one absurd gradient from spoiling the moments for the next thousand.)
#
# ## The decision, made

# %%
answer(**job)

# %% [markdown]
# A failure needs a restart as well. And your log may tell another story than the one you were told. The same job at the published
# rate:

# %%
grim = {"num_gpus": cluster["num_gpus"], "gpu_failure_rate": observed}
both = Claim(
    "Stops every {mtbf:h}; saved every {checkpoint_interval:min}, it loses {least_checkpoint_overhead:%}, with restarts of {restart_time}."
)
display(*(both(**one, **saving, failure_rate=FAILURE_RATE(**one), restart_time=600) for one in (cluster, grim)))

# %% [markdown]
# You do not know yet which of the two is yours. Half an hour is a good beginning under either; that is what a flat minimum is
# good for:

# %%
at_first = Claim("{checkpoint_interval:min}: {checkpoint_overhead:%} lost.")
half_hour = {**saving, "checkpoint_interval": "1800", "restart_time": 600}
display(*(at_first(**half_hour, failure_rate=FAILURE_RATE(**one)) for one in (cluster, grim)))

# %% [markdown]
# So begin with that, measure both $\delta$ and $\lambda$ in the first week, and set the interval by them. Set the alarm at
# about twice the loss computed, not at a round percentage. Write sharded checkpoints, to a temporary name, renamed when
# complete; keep several generations; read one back every day. Have spare nodes, and rehearse: kill a rank on purpose, and take
# the time. The [lab on checkpoints](../labs/notebooks/checkpoint.ipynb) does just that.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E000-TF10", "en")` or `"zh"`.

# %%
ask("E000-TF10").form()

# %%
ask("E003-Q13").form()

# %%
ask("E000-DS02").form()

# %% [markdown]
# ## What people get wrong
#
# **"Save once a day."** It is the most quoted answer to this very question, and what it costs is

# %%
often = Claim("every {checkpoint_interval:h}: {exact_checkpoint_overhead:%}")
display(*(often(**job, checkpoint_interval=each) for each in (best, two_hours, day)))

# %% [markdown]
# It comes of a rate in one unit of time and a checkpoint in another. The rate per *hour* and seconds to save, without a word about
# units, give this:

# %%
per_hour = 0.0246  # failures of the job
judge(CHECKPOINT_INTERVAL(**saving, failure_rate=per_hour), best, unit=SECOND)

# %% [markdown]
# The *figure* is the right one and its unit is not: the factor is the root of the seconds in an hour. By such a coincidence one
# may be wrong for years. Carry the unit with the number.
#
# **"A checkpoint holds everything, sixteen bytes a parameter."** Gradients are thrown away at the next step; they need not be
# saved. The bandwidth, on the other hand, is hardly ever said:

# %%
CHECKPOINT_TIME.compare(num_params="7B", storage_bandwidth="2_000_000_000")

# %% [markdown]
# **"Our cards fail three times in a million hours."** Perhaps. Others found several times that. It is a quantity to be measured,
# which is why the explorer has a slider for it.
#
# **"The plan has failed when more than such and such a share is lost."** A threshold needs the figure it is a threshold for. With
# the right interval the loss is far below the one that circulates, and an alarm set by it rings late.
#
# **"Same code, same data, same random numbers: same losses."** On the same number of cards, perhaps. You have summed it.
#
# ## What else is said about this

# %%
claims(chapter=15, verdict="wrong")

# %%
claims(chapter=15, verdict="convention")

# %%
claims(chapter=15, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How often do you save?"* Two costs, one derivative, the root of $2\delta/\lambda$ with one unit of time; the number for their
#    cluster; that the minimum is flat; that copying to memory first shrinks $\delta$.
# 2. *"A run was resumed and looks different. Bug?"* Same number of cards? Then demand equal bits under deterministic kernels,
#    and if they differ list what a checkpoint holds: model, optimizer, random state, position in the data, learning-rate
#    schedule. Other number of cards? Then compare curves.
# 3. *"The loss jumped. What do you do?"* The order of looking, cheap first; what tells data from hardware; when to go on, when to
#    go back, and how far.
#
# **Next.** [Chapter 16](16_capstone.ipynb) asks you for three whole plans, this one among them.
