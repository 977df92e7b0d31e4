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
# # 14 · Debugging memory
#
# **What you will be able to decide.** Whether a run that dies of memory has a leak, a fragmented allocator, or simply too much to
# hold, and what to do about each.
#
# **How long it takes.** About 40 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import gc
from itertools import pairwise

import torch
from IPython.display import display
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from autograder import ask
from explorers import allocator_explorer
from formulary import Claim, judge
from formulary.amounts import read
from formulary.attention import ACTIVATION, LOGITS
from formulary.capacity import BLOCK_BYTES, FRAGMENTATION, FREE_SHARE, SAFETY_FACTOR
from formulary.claims import claims
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# Step four hundred. The run that had been fine all night is dead, and the last line of its log reads much like this:

# %%
held = {"reserved_bytes": "76_000_000_000", "allocated_bytes": "57_000_000_000"}
died = {**held, "memory_capacity": "80_000_000_000", "tensor_bytes": "8_000_000_000"}

message = Claim(
    "CUDA out of memory. Tried to allocate {tensor_bytes:GiB}. The GPU has a total capacity of {memory_capacity:GiB}, of which "
    "{allocated_bytes:GiB} is allocated by PyTorch; {reserved_bytes:GiB} are reserved."
)
message(**died)

# %% [markdown]
# Three colleagues look over your shoulder. "You have a leak," says the first. "Fragmentation," says the second, "set that
# variable." "Buy larger cards," says the third. Each has been right before. How do you find out who is right now?
#
# **Guess first.** Which share of the memory that PyTorch holds does no tensor use at this moment? A number such as `"…%"`.

# %%
guess = None

guess and judge(read(guess), FRAGMENTATION(**held), within=0.02)

# %% [markdown]
# ## The tenant in between
#
# Asking the driver for memory is slow, and it makes the GPU wait. So PyTorch does what a haulier does who needs space every
# day: it rents whole halls from the landlord and manages them itself. A hall is a **segment**. When a pallet leaves, the hall
# stays rented, and the next pallet goes to the free spot where it fits best. That is the **caching allocator**, and it has two
# books:
#
# - `torch.cuda.memory_allocated()`: what pallets occupy, the bytes of live tensors;
# - `torch.cuda.memory_reserved()`: what halls are rented, live tensors *and* free spots.
#
# `nvidia-smi` shows a third number, what the landlord has let to the process, and that includes the CUDA context and whatever
# libraries have rented past PyTorch. Reserved is never below allocated, and the difference is what *may* be wasted:

# %%
FRAGMENTATION.derivation

# %% [markdown]
# An upper bound: a free spot that suits the next pallet is no waste at all. Pallets come in standard sizes, by the way, so that
# spots can be used again:

# %%
BLOCK_BYTES.derivation

# %%
BLOCK_BYTES.compare(tensor_bytes=700)

# %% [markdown]
# ## Write one
#
# An allocator is a page of Python. It takes the smallest free block that is large enough, and splits it; what comes back is
# joined with free neighbours *in the same segment*; and only when nothing fits does it ask for another segment.


# %% tags=["definition"]
class CachingAllocator:
    """Segments are lists of blocks [bytes, tensor or None], in the order of their addresses."""

    def __init__(self, card):
        self.card, self.segments = card, []

    def blocks(self, free):
        return [block for segment in self.segments for block in segment if (block[1] is None) == free]

    def reserved(self):
        return sum(size for segment in self.segments for size, _ in segment)

    def allocated(self):
        return sum(size for size, _ in self.blocks(free=False))

    def take(self, tensor, size):
        size = -(-size // 512) * 512  # whole units
        if not any(block[0] >= size for block in self.blocks(free=True)):
            self.open(size)
        hole = min((block for block in self.blocks(free=True) if block[0] >= size), key=lambda block: block[0])
        segment = next(segment for segment in self.segments if any(block is hole for block in segment))
        place = next(i for i, block in enumerate(segment) if block is hole)
        rest = [[hole[0] - size, None]] if hole[0] > size else []
        segment[place : place + 1] = [[size, tensor], *rest]

    def open(self, size):
        if self.reserved() + size > self.card:
            raise MemoryError(
                f"asked for {size}: {self.card - self.reserved()} on the card, {self.reserved() - self.allocated()} held and free"
            )
        self.segments.append([[size, None]])

    def give(self, tensor):
        for segment in self.segments:
            joined = []
            for size, owner in segment:
                owner = None if owner == tensor else owner
                if joined and owner is None and joined[-1][1] is None:
                    joined[-1][0] += size
                else:
                    joined.append([size, owner])
            segment[:] = joined


# %% [markdown]
# Now a step of fine-tuning on a small card of two dozen pages. Weights come first; three layers leave activations; in the backward
# pass each layer's activations go and its gradients come, and *stay*.


# %% tags=["definition"]
PAGE = 512
allocator = CachingAllocator(card=24 * PAGE)
forward = [("weights", 6), ("activations 1", 5), ("activations 2", 5), ("activations 3", 5)]
for tensor, pages in forward:
    allocator.take(tensor, pages * PAGE)
for layer in (3, 2, 1):
    allocator.give(f"activations {layer}")
    allocator.take(f"gradients {layer}", 3 * PAGE)
pages_of = lambda size: size // PAGE

# %%
book = {"reserved_bytes": allocator.reserved(), "allocated_bytes": allocator.allocated()}
Claim("Reserved {reserved_bytes}, allocated {allocated_bytes}: {fragmentation:%} is in no tensor.")(**book)

# %% [markdown]
# Count the free blocks one by one, and hold them against the formula; and hold a block against what was asked for:


# %% tags=["definition"]
free_share = sum(size for size, _ in allocator.blocks(free=True)) / allocator.reserved()
small = CachingAllocator(card=24 * PAGE)
small.take("a few numbers", 700)

# %%
display(
    judge(free_share, FRAGMENTATION(**book), within=0),
    judge(small.allocated(), BLOCK_BYTES(tensor_bytes=700, allocation_unit=512), within=0, unit=BYTE),
)

# %% [markdown]
# Next step: the sequences are of another length, and the first layer wants five pages and a half. **Guess first.** There are
# nine free pages, six held and three on the card. Does the request succeed? Write `True` or `False`.

# %%
guess = None


# %% tags=["definition"]
try:
    allocator.take("longer activations", 11 * PAGE // 2)
    succeeds = True
except MemoryError as error:
    succeeds = False
    print(error)
guess is not None and judge(float(guess), float(succeeds), within=0)

# %% [markdown]
# That is **fragmentation**: free memory in pieces, none of them large enough. Nothing can be moved together, since tensors are
# addressed by kernels that know nothing of any move. Nor can a segment go back to the driver while one tensor lies in it: a single
# pallet keeps the hall.
#
# ## Explore: an allocator at work
#
# Each row is a segment, each cell a page. The top row is what is asked for. Play the events.
#
# 1. Which request is refused, and how many pages are free at that moment?
# 2. Switch to *expandable segments*, and play again. Why is there room now? Did any tensor move?
# 3. Choose the training with steady shapes. When does the allocator stop asking the driver for anything?
# 4. Choose the leak, with either kind of segments. Who helps?

# %%
allocator_explorer(script="changing", event=10)

# %% [markdown]
# Your allocator and the picture's should agree on that step, page by page:

# %%
picture = allocator_explorer(script="changing", event=10)
judge(sum(pages_of(size) for size, _ in allocator.blocks(free=True)), picture.scene()["figure"], within=0)

# %% [markdown]
# ## Segments that grow
#
# An address is one thing, the memory behind it another; the GPU, like the CPU, translates. With `expandable_segments:True` (in the
# environment variable `PYTORCH_ALLOC_CONF`) PyTorch reserves a long stretch of *addresses* first, and puts pages behind them as
# needed. One segment grows, instead of many that each have their size for ever. If a request does not fit, pages that lie under
# nothing are taken from one place and put behind another. Tensors stay where they are.
#
# So it *prevents* most fragmentation between segments. It does not move tensors together, does not make them smaller, and does not
# sweep out a leak. It is not on by default. Two older remedies still work: shapes that do not change (pad, or sort sequences
# into buckets), and asking for the largest shapes first, so that later ones find room in their holes.
#
# ## Leaks
#
# In Python nothing is freed that somebody still refers to. A leak is a reference you forgot. Here are four training loops, each
# with an innocent line at its end. Each step saves activations for its backward pass; we count what is still alive when the
# step is over.


# %% tags=["definition"]
def live_bytes():
    """Bytes of all tensors alive, those included that a graph has saved for backward."""
    tensors = [each for each in gc.get_objects() if type(each) in (torch.Tensor, nn.Parameter)]
    return sum({each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}.values())


def keep_loss(model, batch, kept):
    loss = model(batch).square().mean()
    loss.backward()
    kept.append(loss)


def keep_graph(model, batch, kept):
    loss = model(batch).square().mean()
    loss.backward(retain_graph=True)
    kept.append(loss)


def evaluate(model, batch, kept):
    kept.append(model(batch).mean())


def keep_for_a_plot(model, batch, kept):
    hidden = model[:2](batch)
    model[2](hidden).square().mean().backward()
    kept.append(hidden)


def growth(loop, steps=4):
    """By how many bytes a loop's tensors grow in each step after the first."""
    model, batch, kept, levels = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1)), torch.rand(32, 64), [], []
    with saved_tensors_hooks(torch.Tensor.detach, lambda saved: saved):  # so that saved tensors are objects that can be counted
        for _ in range(steps):
            loop(model, batch, kept)
            model.zero_grad()
            levels.append(live_bytes())
    return [after - before for before, after in pairwise(levels)]


# %% [markdown]
# **Guess first.** Which of the four leak? Put their names into the list.

# %%
guess = None  # such as ["keep_loss", "evaluate"]

loops = (keep_loss, keep_graph, evaluate, keep_for_a_plot)
grown = {loop.__name__: growth(loop) for loop in loops}
leaking = [name for name, bytes_by_step in grown.items() if min(bytes_by_step) >= 100]
guess and judge(len(set(guess) ^ set(leaking)), 0, within=0)

# %%
grown

# %% [markdown]
# The first one is the leak that everybody warns of, and it is none: `backward()` frees what the graph has saved, and
# the loss that is kept is a single number with an empty graph behind it. The others grow by the same number of bytes in every step:

# %%
display(*(judge(grown[name][-1], grown[name][0], within=0, unit=BYTE) for name in leaking))

# %% [markdown]
# Each has its fix: say what you want to keep, and keep only that.


# %% tags=["definition"]
def drop_graph(model, batch, kept):
    loss = model(batch).square().mean()
    loss.backward()
    kept.append(loss.item())


def evaluate_without_graph(model, batch, kept):
    with torch.no_grad():
        kept.append(model(batch).mean().item())


def keep_what_is_plotted(model, batch, kept):
    hidden = model[:2](batch)
    model[2](hidden).square().mean().backward()
    kept.append(hidden.detach().mean().item())


# %%
fixed = (drop_graph, evaluate_without_graph, keep_what_is_plotted)
display(*(judge(max(growth(loop)), 0, within=0, unit=BYTE) for loop in fixed))

# %% [markdown]
# ## The detective
#
# Now the other way round: from the symptom to the cause. Read both books at the *same point of every step*, say after the
# optimizer's, and look at which one climbs. Here are three logs.


# %% tags=["definition"]
def log(lengths, forgets=False):
    """(allocated, reserved) in pages after each step with activations of these lengths."""
    allocator, pages = CachingAllocator(card=200 * PAGE), []
    allocator.take("weights", 6 * PAGE)
    for step, length in enumerate(lengths):
        allocator.take(f"activations {step}", length * PAGE)
        if not forgets:
            allocator.give(f"activations {step}")
        pages.append((pages_of(allocator.allocated()), pages_of(allocator.reserved())))
    return pages


logs = {"A": log([4] * 6, forgets=True), "B": log([4, 5, 6, 7, 8, 9]), "C": log([4] * 6)}
logs

# %% [markdown]
# **Guess first.** Which letter is the leak? Put it in quotes.

# %%
guess = None

guess and judge(float("ABC".find(guess)), float("ABC".find("A")), within=0)

# %% [markdown]
# A is the leak: *allocated* climbs, and reserved follows because it must. B is fragmentation: allocated is where it was,
# *reserved* climbs, here because every step is a little longer than any hole. C is healthy. If neither climbs and `nvidia-smi`
# still does, look outside PyTorch: libraries, communicators, another process.
#
# For the name of the culprit take two **snapshots**, some steps apart: `torch.cuda.memory._record_memory_history()` before, and
# `torch.cuda.memory._dump_snapshot("before.pickle")` at each point. PyTorch's page *memory_viz* draws them, with the line of
# code that asked for each block. What is in the second and not in the first, and older than a step, is your leak.
#
# ## Too much
#
# And if it dies in the *first* step, or always at the same place in a step? Then there is no bug. There is a ledger (chapters
# 1, 3 and 7), and it is too long. A model on eight cards, plain data parallelism, everything kept:

# %%
shape = MODELS["LLaMA 13B"]
eight = {"num_params": "13B", "world_size": 8, **shape.only(ACTIVATION), "seq_length": "2048", "micro_batch": 1}
ledger = Claim("States {state_bytes}, activations {activation_bytes}.")
ledger(**eight)

# %% [markdown]
# What would each measure save, if taken alone?

# %%
measures = [
    Claim("ZeRO-3 leaves {zero_state_bytes} of states, and sends half as much again."),
    Claim("FlashAttention leaves {linear_activation_bytes} of activations, and is faster."),
    Claim("Recomputing every layer leaves {full_recompute_peak_bytes}, and costs a third more computation."),
    Claim("Half the sequence leaves {half} of activations.", half=ACTIVATION.given(seq_length="1024")),
]
display(*(measure(**eight, stage=3) for measure in measures))

# %% [markdown]
# Here only the first brings a card within its capacity, because states are what does not fit. *Find the largest item
# first; a measure that does not touch it cannot be enough.*
#
# Within a step memory climbs as a mountain does (chapter 3): up with every layer's activations, down with every layer's
# backward pass. At the very top stand the logits, which are easily forgotten, and large where the vocabulary is:

# %%
Claim("{vocab_size} words: {logits_bytes} of logits.")(**shape.only(LOGITS), seq_length="2048", micro_batch=4)

# %% [markdown]
# ## How much room to leave
#
# A plan that fills a card to the brim dies of the first thing it forgot: the context, workspaces, communication buffers,
# fragmentation. People state their margin on two scales, as a factor on the need and as a share that stays free, and take one
# for the other:

# %%
FREE_SHARE.derivation

# %%
SAFETY_FACTOR.derivation

# %%
factor, share = Claim("{safety_factor} times the need: {free_share:%} free."), Claim("{free_share:%} free: {safety_factor} times the need.")
display(*(factor(safety_factor=each) for each in (1.1, 1.3)), *(share(free_share=each) for each in (0.15, 0.3)))

# %% [markdown]
# ## The decision, made
#
# Back to the dead run. Your log has both numbers for every step:
#
# 1. It died in step one, or at the same point of every attempt? *Too much.* Ledger, largest item first.
# 2. Allocated at a fixed point climbs? *Leak.* Two snapshots, compare, remove the reference.
# 3. Only reserved climbs, or much is reserved and not allocated when it dies? *Fragmentation.* Expandable segments, steadier
#    shapes.
# 4. Neither, but the driver's number climbs? *Outside.* Libraries, communicators, neighbours.
#
# And the message itself? What is reserved and in no tensor was

# %%
Claim("{fragmentation:%} of {reserved_bytes}, and {tensor_bytes} were asked for.")(**died)

# %% [markdown]
# More than twice what was asked for lay there free, in pieces. The second colleague is right, this time, *if* allocated was
# flat. One line of the log will say.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q21", "en")` or `"zh"`.

# %%
ask("E002-Q21").form()

# %%
ask("E002-Q40").form()

# %%
ask("E002-Q41").form()

# %%
ask("E002-Q42").form()

# %%
ask("E002-Q20").form()

# %%
ask("E002-Q39").form()

# %%
ask("E002-Q43").form()

# %% [markdown]
# ## What people get wrong
#
# **"Growing reserved memory is a leak, growing allocated memory is fragmentation."** The other way round: your logs A and B.
#
# **"`losses.append(loss)` keeps all activations."** Not after `backward()`. You measured it, per step:

# %%
grown["keep_loss"]

# %% [markdown]
# Sloppy all the same: keep `loss.item()`. What does leak is a graph that was never walked back.
#
# **"expandable_segments defragments."** It moves nothing. It grows, so that there are fewer holes to begin with; and it is younger
# than its legend says, see below.
#
# **"`torch.cuda.empty_cache()` frees memory for my training."** It returns segments without any tensor to the driver, for *other*
# processes. Your own allocator would have used them anyway, and gives them back by itself before it gives up.
#
# **"Thirty percent more than predicted leaves thirty percent free."** Two scales: the factor is on the need, the share on the card.

# %%
factor(safety_factor=1.3)

# %% [markdown]
# ## What else is said about this

# %%
claims(chapter=14, verdict="wrong")

# %%
claims(chapter=14, verdict="convention")

# %%
claims(chapter=14, verdict="empirical")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"Out of memory. What do you do?"* When does it die: first step, or later? Two numbers at a fixed point, over many steps; which
#    climbs says which of the three it is. Then one remedy for that one, not five at random.
# 2. *"Plenty is free, and the allocation fails. How?"* Contiguous addresses, segments that cannot be returned while a tensor
#    lies in them, changing shapes. What expandable segments change and what they do not.
# 3. *"Name a leak in a training loop."* A graph that is kept: evaluation without `no_grad`, `retain_graph`, activations in a
#    list or a hook. And say which famous one is none, and why.
#
# **Next.** The lab on [peak memory](../labs/notebooks/peak_memory.ipynb) measures a real mountain, block by block.
# [Chapter 15](15_reliability.ipynb) is about runs that die of other things.
