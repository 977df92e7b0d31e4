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
# # 2 · Number formats and mixed precision
#
# **What you will be able to decide.** Which tensors of a training run may be stored in fewer bits, which must not, and
# which remedy belongs to which trouble.
#
# **How long it takes.** About 50 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import numpy as np
import torch
from matplotlib import pyplot as plt

from autograder import ask
from explorers import bits_explorer, loss_scale_explorer, spacing_explorer, update_explorer
from explorers.table import Table
from formulary import Claim, amounts, judge
from formulary.claims import claims
from formulary.hardware import FORMATS
from formulary.memory import PARAM_STATE, STATE_LEDGER
from formulary.precision import (
    CLIP_FACTOR,
    EXPONENT_BIAS,
    FLOAT_SPACING,
    FORMAT_DRIFT,
    GLOBAL_GRAD_NORM,
    KEPT_DRIFT,
    LARGEST_FLOAT,
    MACHINE_EPSILON,
    MOMENT_SAVING,
    MOMENT_SCALE,
    NUMBER_FORMAT,
    OVERFLOW_GRADIENT,
    RESCUED_GRADIENT,
    ROUNDED_DRIFT,
    SKIPPED_SHARE,
    SMALLEST_NORMAL,
    SMALLEST_SUBNORMAL,
    SWALLOW_THRESHOLD,
    UNIT_ROUNDOFF,
)
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# A colleague has read that bf16, a sixteen-bit number format, has the range of fp32. So why keep fp32 **master
# weights** beside the bf16 ones? Without them the model states shrink by a quarter:

# %%
no_master, eight_bit = PARAM_STATE.under("no_master_adam"), PARAM_STATE.under("mixed_adam_8bit")
proposal = Claim("A parameter costs {with_master} with a master, {without} without.", with_master=PARAM_STATE, without=no_master)
proposal()

# %% [markdown]
# The run starts, the loss falls for an hour, and then it stays where it is. Nothing overflows, nothing is *nan*. What
# happened?
#
# **Guess first.** A weight of exactly one is stored in bf16. What is the smallest update that changes it at all? Put a
# number in place of `None`.

# %%
guess = None

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]
threshold, finer = (SWALLOW_THRESHOLD(binade=0, mantissa_bits=bits["mantissa_bits"]) for bits in (bf16, fp16))
known = {"spacing": MACHINE_EPSILON(mantissa_bits=bf16["mantissa_bits"]), "fp16": finer}
hints = {
    "spacing": "that is the distance to the next number; whatever is more than half of it is rounded up",
    "fp16": "that is the update that fp16 notices; bf16 has fewer digits",
}
guess and judge(guess, threshold, within=0.3, mistakes=known, hints=hints)

# %% [markdown]
# ## A ruler with doubling yards
#
# A floating-point number is a position on a strange ruler. Its yards double in length: from one to two, from two to
# four, from four to eight. And every yard, long or short, has the same number of ticks. The **exponent** says in which
# yard you are, the **mantissa** at which tick. Give the exponent more bits, and the ruler gets longer at both ends:
# that is *range*. Give the mantissa more bits, and every yard gets more ticks: that is *precision*. A format with
# sixteen bits must choose.
#
# A yard is called a *binade*. The distance between two ticks in it:

# %%
FLOAT_SPACING.derivation

# %%
MACHINE_EPSILON.derivation

# %% [markdown]
# The exponent is stored with an offset, so that it needs no sign of its own:

# %%
EXPONENT_BIAS.derivation

# %% [markdown]
# From it the lower end of the ruler follows. Below the smallest *normal* number the yards stop shrinking: the last one
# is as long as the one before and reaches down to zero with ticks of equal distance. Its numbers are called
# *subnormal*.

# %%
SMALLEST_NORMAL.derivation

# %%
SMALLEST_SUBNORMAL.derivation

# %% [markdown]
# And the upper end:

# %%
LARGEST_FLOAT.derivation

# %% [markdown]
# Five formats matter in training. The eight-bit ones are named after their bits of exponent and mantissa:

# %%
NUMBER_FORMAT

# %%
columns = [LARGEST_FLOAT, SMALLEST_NORMAL, SMALLEST_SUBNORMAL, MACHINE_EPSILON, UNIT_ROUNDOFF]
rows = [[title, *(made.amount(**bits.only(made)) for made in columns)] for title, bits in FORMATS.items()]
Table("What a format reaches", ["format", "largest", "smallest normal", "smallest", "step above one", "rounding error"], rows)

# %% [markdown]
# ## A number, bit by bit
#
# One tenth is a harmless number that no binary format can hold: its expansion never ends, so what is stored is a
# neighbour.
#
# **Guess first.** How many of the first digits of one tenth does bf16 get right? A whole number in place of `None`.
# Then look.

# %%
guess = None

nearest = torch.tensor(0.1, dtype=torch.bfloat16).item()
right = next(digits for digits in range(1, 9) if round(nearest, digits + 1) != 0.1)
guess and judge(guess, right, within=0)

# %%
bits_explorer(number=0.1)

# %% [markdown]
# 1. Double the number. Which bits change, and which stay? Why do the mantissas of all formats begin alike, and why may the
#    last bit of a short one differ?
# 2. Type a number that bf16 can hold and fp16 cannot. Which row gives up first as the number grows, which as it
#    shrinks?
# 3. Find a number that all five formats hold exactly.

# %% [markdown]
# ## Do real numbers agree?
#
# A sixteen-bit format has few enough numbers to look at every single one. We take all bit patterns, let PyTorch read
# them as numbers, and look for the largest, the smallest, and the distance from one to the next.


# %% tags=["definition"]
def every_number(dtype, codes):
    """All positive finite numbers of a format, in order, from all of its bit patterns."""
    patterns = torch.arange(torch.iinfo(codes).min, torch.iinfo(codes).max + 1, dtype=torch.int32).to(codes)
    numbers = patterns.view(dtype).double()
    return numbers[torch.isfinite(numbers) & (numbers > 0)].unique()


# %%
every_half = every_number(torch.float16, torch.int16)
judge(every_half.max().item(), LARGEST_FLOAT(**fp16.only(LARGEST_FLOAT)), within=0)

# %%
judge(every_half.min().item(), SMALLEST_SUBNORMAL(**fp16.only(SMALLEST_SUBNORMAL)), within=0)

# %%
every_brain = every_number(torch.bfloat16, torch.int16)
after_one = every_brain[torch.searchsorted(every_brain, 1, right=True)]
judge(after_one.sub(1).item(), MACHINE_EPSILON(**bf16.only(MACHINE_EPSILON)), within=0)

# %% [markdown]
# E4M3 has a peculiarity: it gives up its infinities to reach further, and keeps a single code for *nan*, the one that
# would have been its largest number.

# %%
every_eighth = every_number(torch.float8_e4m3fn, torch.uint8)
judge(every_eighth.max().item(), LARGEST_FLOAT(**FORMATS["E4M3"].only(LARGEST_FLOAT)), within=0)

# %% [markdown]
# ## Explore
#
# Each line is a format; the higher it lies, the coarser its ticks at that place of the ruler. (Where a format ends, the line
# does not say; the table above does.)
#
# 1. bf16 lies above fp16 wherever both have numbers. By which factor? What did it get in exchange?
# 2. Move the number up by one binade. What happens to the ticks, and why do all formats share that slope?
# 3. Which two formats are the coarsest, and for which tensors would you trust them?

# %%
spacing_explorer()

# %% [markdown]
# ## Swallowed updates
#
# Now the colleague's run. An update is added to a weight, and the sum must be put on a tick. If the update is shorter
# than half the distance to the next tick, the sum is rounded back to where it was:

# %%
SWALLOW_THRESHOLD.derivation

# %% [markdown]
# The second step is a corner case that is worth one look: just below a power of two the ticks lie twice as close, so
# from there a move toward zero is noticed earlier.

# %%
SWALLOW_THRESHOLD.compare(binade=0, mantissa_bits=bf16["mantissa_bits"])

# %% [markdown]
# At a weight of one, bf16 ignores everything below about four thousandths. Updates are the learning rate times
# something of the size of one: late in a training they are far smaller. And rounding has no memory. The second update
# does not find a remainder of the first; it is ignored for the same reason, and so is the thousandth.

# %%
ROUNDED_DRIFT.derivation

# %% [markdown]
# Against what should have happened:

# %%
drift = Claim("After {num_updates} updates of {update_size}: {rounded} in bf16, {kept_drift} with a master.", rounded=FORMAT_DRIFT)
drift(num_updates=999, update_size=0.0001, binade=0, **bf16)

# %% [markdown]
# Let a real bf16 weight take that walk, beside three remedies. A **master** is a copy in fp32 to which the updates are
# added, and of which bf16 gets a rounded print. **Kahan summation** keeps what rounding took in a second bf16 number
# and adds it to the next update. **Stochastic rounding** rounds up with a probability as large as the way to the upper
# tick: wrong every time, right on average.


# %% tags=["definition"]
def walk(update, steps):
    """Four weights that start at one and take the same updates: {remedy: positions}."""
    coarse, fine = torch.ones((), dtype=torch.bfloat16), torch.ones(())
    kahan, lost, lucky = coarse.clone(), torch.zeros((), dtype=torch.bfloat16), coarse.clone()
    paths = {"nearest": [], "master": [], "Kahan": [], "stochastic": []}
    for _ in range(steps):
        coarse = coarse + update
        fine = fine + update
        wanted = update + lost
        moved = kahan + wanted
        kahan, lost = moved, wanted - (moved - kahan)
        lucky = stochastically(lucky.float() + update)
        for path, weight in zip(paths.values(), (coarse, fine.bfloat16(), kahan, lucky), strict=True):
            path.append(weight.item())
    return paths


def stochastically(exact):
    """One of the two bf16 numbers around `exact`, the nearer one more often."""
    nearest = exact.bfloat16()
    beyond = torch.nextafter(nearest, torch.full_like(nearest, torch.inf if exact > nearest else -torch.inf))
    share = (exact - nearest) / (beyond.float() - nearest)
    return beyond if torch.rand(()) < share else nearest


# %%
torch.manual_seed(16)
paths = walk(torch.tensor(0.0001, dtype=torch.bfloat16), steps=999)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for remedy, path in paths.items():
    axes.plot(path, label=remedy)
axes.set(xlabel="updates", ylabel="weight")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# The first one never moved. In numbers, against the formulas:

# %%
start = {"update_size": 0.0001, "num_updates": 999}
judge(np.subtract(paths["nearest"][-1], 1), FORMAT_DRIFT(binade=0, mantissa_bits=bf16["mantissa_bits"], **start), within=0)

# %%
judge(np.subtract(paths["Kahan"][-1], 1), KEPT_DRIFT(**start), within=0.05)

# %% [markdown]
# So the master is there for the *mantissa*, not for the range, and bf16 needs it more than fp16, which has three bits
# of mantissa more:

# %%
coarse, fine = (UNIT_ROUNDOFF.given(**bits.only(UNIT_ROUNDOFF)) for bits in (bf16, fp16))
both = Claim("Added to a power of two, less than {coarse:%} of it vanishes in bf16, less than {fine:%} in fp16.", coarse=coarse, fine=fine)
both()

# %% [markdown]
# ## Explore
#
# How far a thousand updates move a weight, over the size of one update.
#
# 1. Where does the lower curve begin? Why does it go up in stairs, and why do the stairs vanish to the right?
# 2. Switch to fp16 and to fp32. How much smaller may the updates be?
# 3. Take a larger weight. Which way does the first stair move?

# %%
update_explorer()

# %% [markdown]
# ## The other trouble: range
#
# fp16 has the ticks, but its ruler is short. Gradients are small numbers, and many of them lie below its last tick:
# they become zero before the optimizer ever sees them. This has nothing to do with rounding sums, and a master copy
# does not help. What helps is to move all gradients up the ruler: gradients are linear in the loss, so multiply the
# **loss** by a factor, and divide the gradients by it afterwards, in fp32.

# %%
RESCUED_GRADIENT.derivation

# %%
OVERFLOW_GRADIENT.derivation

# %%
window = Claim("Scaled by {loss_scale}, fp16 carries gradients from {rescued_gradient} to {overflow_gradient}.")
window(loss_scale=1, **fp16)

# %%
window(loss_scale="1024", **fp16)

# %% [markdown]
# See it happen. A gradient too small for fp16, without and with the factor:

# %%
scale = 512.0
tiny = RESCUED_GRADIENT(loss_scale=64, **fp16.only(RESCUED_GRADIENT))
small = torch.tensor(tiny, dtype=torch.float64)
print("as it is:", small.half().item())
judge(small.mul(scale).half().double().div(scale).item(), tiny, within=0)

# %% [markdown]
# Which factor? As large as possible without overflow, and that changes during a training. **Dynamic loss scaling**
# tries: double the factor after so many clean steps; if a gradient becomes infinite, skip that step and halve the
# factor. What does the trying cost?

# %%
SKIPPED_SHARE.derivation

# %% [markdown]
# The loop is short enough to write down. The gradients here would overflow at twice the starting scale, so the scaler
# runs into that wall again and again:


# %% tags=["definition"]
def scaled_steps(gradient, factor, patience, steps):
    """Steps that a dynamic scaler has to skip, when the true gradient is always the same."""
    clean = skipped = 0
    for _ in range(steps):
        if torch.isfinite(torch.tensor(gradient * factor).half()):
            clean += 1
        else:
            skipped, clean, factor = skipped + 1, 0, factor / 2
        if clean == patience:
            clean, factor = 0, factor * 2
    return skipped


# %%
skipped = scaled_steps(gradient=80.0, factor=800.0, patience=9, steps=500)
judge(np.divide(skipped, 500), SKIPPED_SHARE(growth_interval=9), within=0.01)

# %% [markdown]
# With the two thousand clean steps that `torch.amp.GradScaler` waits, the skipped steps are not worth a thought. And
# bf16 needs none of this: its ruler is as long as fp32's.

# %%
brain, half = (SMALLEST_NORMAL.given(**bits.only(SMALLEST_NORMAL)) for bits in (bf16, fp16))
ends = Claim("Smallest normal number: {half} in fp16, {brain} in bf16.", half=half, brain=brain)
ends()

# %% [markdown]
# ## Explore
#
# Between the two lines is what fp16 can carry.
#
# 1. A run's gradients lie between a hundred-millionth and one. Which loss scales serve it?
# 2. What does doubling the scale do to the distance between the lines?
# 3. Choose bf16. Who would want to scale there?

# %%
loss_scale_explorer()

# %% [markdown]
# ## Clip after you unscale
#
# **Gradient clipping** shortens the gradient, all tensors together, if its norm exceeds a limit; its direction stays.

# %%
CLIP_FACTOR.derivation

# %%
parameter = torch.zeros(2, requires_grad=True)
parameter.grad = torch.tensor([2.4, 3.2])
torch.nn.utils.clip_grad_norm_([parameter], max_norm=1.0)
judge(np.divide(parameter.grad[0].item(), 2.4), CLIP_FACTOR(grad_norm=4, max_norm=1))

# %% [markdown]
# A scaled gradient has a scaled norm. Whoever clips before unscaling shortens by the factor of the loss scale as well,
# and the update all but vanishes. The same gradient, both ways round:

# %%
after, before = (CLIP_FACTOR.given(grad_norm=norm, max_norm=1) for norm in ("4", "4096"))
orders = Claim("Clipped after unscaling it keeps {after:%} of its length, before it {before:%}.", after=after, before=before)
orders()

# %% [markdown]
# The norm is that of the *whole* gradient. When ranks hold parts of it (chapter 9), each adds up its squares; a
# parameter that all of them hold must be counted once:

# %%
GLOBAL_GRAD_NORM.derivation

# %% [markdown]
# ## Eight bits for the moments
#
# Adam's two running means need neither many ticks nor to be summed up from tiny updates: each step replaces a part of
# them. So they may be stored in a byte each, if large and small ones do not have to share a ruler: cut them into
# **blocks**, give every block its own scale.

# %%
MOMENT_SAVING.derivation

# %%
MOMENT_SCALE.derivation


# %% tags=["definition"]
def quantized(moments, block):
    """(one-byte codes, fp32 scales): each block relative to its largest member."""
    blocks = moments.reshape(-1, block)
    scales = blocks.abs().amax(1, keepdim=True)
    return (blocks / scales * 127).round().to(torch.int8), scales


def restored(codes, scales):
    return (codes / 127 * scales).reshape(-1)


# %%
moments = [torch.randn(4, 256).flatten(), torch.rand(4, 256).flatten()]
codes = [quantized(moment, block=256)[0] for moment in moments]
before, after = (sum(tensor.nbytes for tensor in tensors) for tensors in (moments, codes))
judge(before, after + MOMENT_SAVING(num_params=moments[0].numel()), within=0, unit=BYTE)

# %% [markdown]
# Why blocks? Let one number be a thousand times as large as the others, and look at what is left of the rest, once with
# a scale for all and once with a scale for each block:

# %%
outlier = moments[0].index_fill(0, torch.tensor(0), 999)
errors = [restored(*quantized(outlier, block))[256:].sub(outlier[256:]).abs().mean().item() for block in (outlier.numel(), 256)]
rows = [["one for all", amounts.write(errors[0])], ["one for each block", amounts.write(errors[1])]]
Table("Mean error away from the outlier", ["scales", "error"], rows)

# %% [markdown]
# (Real eight-bit optimizers use codes that are denser near zero, too.) The saving is a good deal smaller than "eight
# instead of thirty-two bits" sounds, since weights, gradients and master stay:

# %%
saving = Claim(
    "{moment_saving_share:%} of the model states: {num_params:B} parameters save {moment_saving_bytes}, "
    "less {moment_scale_bytes} of scales."
)
saving(num_params="7B", quantizer_block=256)

# %% [markdown]
# ## And FP8?
#
# Eight-bit floats make the *products* faster: inputs of a matrix product are cast to E4M3 (its gradients to E5M2, which
# has the longer ruler) with a scale for each tensor or block. What is stored between steps, master and moments, is
# untouched by that:

# %%
STATE_LEDGER.under("mixed_adam").at(num_params="7B")

# %% [markdown]
# ## The decision, made
#
# Two troubles, two remedies, and they do not stand in for each other:
#
# | trouble | what one sees | format | remedy |
# |---|---|---|---|
# | range | gradients become zero, or infinite | fp16, E4M3 | scale the loss; scale each tensor |
# | mantissa | updates vanish, the loss stands still | bf16 most of all | master weights; stochastic rounding; Kahan summation |
#
# The colleague keeps the masters, and if memory is the matter, shrinks what tolerates it:

# %%
options = Claim("Without a master {without}, with eight-bit moments and the master {eight}.", without=no_master, eight=eight_bit)
options()

# %% [markdown]
# The last one saves even more, and every update arrives.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q35", "en")` or `"zh"`.

# %%
ask("E002-Q35").form()

# %%
ask("E000-TF08").form()

# %%
ask("E003-Q07").form()

# %%
ask("E002-Q37").form()

# %%
ask("E002-Q36").form()

# %% [markdown]
# ## What people get wrong
#
# **"bf16 has the range of fp32, so it needs no master."** The range was never the reason. bf16 has the coarser mantissa
# of the two and needs the master more. Exceptions round stochastically or carry the error along, and say so.
#
# **"fp16 needs a master because it overflows."** Overflow is what loss scaling is for. The threshold at which updates
# vanish lies far inside the range:

# %%
inside = Claim("At a weight of one, updates below {swallow_threshold:%} vanish; the range ends at {largest_float}.")
inside(binade=0, **fp16)

# %% [markdown]
# **"The master weighs as much as the weights."** It is fp32 beside sixteen bits: twice as much.
#
# **"FP8 training halves the memory of the optimizer."** It shrinks what products read. Master and moments stay in fp32
# unless a recipe says otherwise, and then it is the recipe that saves, not FP8.
#
# **"Eight-bit Adam leaves ten bytes untouched."** Ten is what is *left*; untouched are weights, gradients and master:

# %%
STATE_LEDGER.under("mixed_adam_8bit").at(num_params="7B")

# %% [markdown]
# **"1-bit Adam saves memory as well."** It compresses what is sent over the network; both moments stay in full.
#
# ## What else is said about this

# %%
claims(chapter=2, verdict="wrong")

# %%
claims(chapter=2, verdict="convention")

# %%
claims(chapter=2, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"bf16 or fp16?"* Bits of exponent against bits of mantissa; the consequences of each, loss scaling for the one,
#    the master (more urgently) for the other; the hardware at hand.
# 2. *"Why keep fp32 master weights?"* Half a tick: give the threshold relative to the weight, compare with learning
#    rate times a typical update, and name the alternatives that store no master.
# 3. *"Your loss is nan after some thousand steps of fp16. Where do you look?"* The scaler's skipped steps first;
#    whether clipping comes after unscaling; sums in fp16 (softmax, norms, the loss); then the data.
#
# **Next.** Train a small network in each format and watch the stall in the lab
# [numerics](../labs/notebooks/numerics.ipynb). Chapter 3 turns to the other half of the memory, activations.
