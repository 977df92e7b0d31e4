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
# # 3 · Activations and checkpointing
#
# **What you will be able to decide.** Which activations to keep, which to compute again, at which batch and sequence
# length that becomes necessary, and what it costs in computation.
#
# **How long it takes.** About 50 minutes, without a GPU. Every number below is computed as the notebook runs.

# %%
import weakref
from functools import partial

import numpy as np
import torch
from matplotlib import pyplot as plt
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from autograder import ask
from explorers import activation_explorer, mountain_explorer, recompute_explorer
from formulary import Claim, amounts, judge
from formulary.attention import (
    ACTIVATION,
    ACTIVATION_LEDGER,
    BEST_SEGMENTS,
    CHECKPOINT_PEAK,
    CROSSOVER_LENGTH,
    DOUBLING_GROWTH,
    FULL_RECOMPUTE_PEAK,
    KEPT_INPUT,
    LAYER_ACTIVATION,
    LINEAR_ACTIVATION,
    LOGITS,
    RECOMPUTE_GROWTH,
    SCORE_ACTIVATION,
    SCORE_SHARE,
    SEGMENTED_PEAK,
    SELECTIVE_OVERHEAD,
    SWIGLU_ACTIVATION,
    UNIT_COST_SEGMENTS,
)
from formulary.claims import claims
from formulary.hardware import GPUS
from formulary.memory import ZERO_HEADROOM
from formulary.shapes import MODELS
from formulary.units import BYTE

# %% [markdown]
# ## The decision
#
# A model of the size of the smallest LLaMA is to be trained on eight large cards, its gradients and optimizer states
# shared among them (ZeRO stage 2; chapter 1 has the ledger). The model states leave room:

# %%
card, model = GPUS["A100 80GB"], MODELS["LLaMA 7B"]
cluster = {"num_params": "7B", "world_size": 8, "stage": 2}
room = ZERO_HEADROOM(memory_capacity=card["memory_capacity"], **cluster)
Claim("Of {memory_capacity} the model states take {zero_state_bytes}, so {zero_headroom_bytes} are free.")(**card, **cluster)

# %% [markdown]
# Each card is to work on four sequences at a time, of two thousand tokens each: a *micro-batch*. What remains to be
# paid are the **activations**, the intermediate results that the forward pass leaves lying about because the backward
# pass will want them. Do they fit? And when the colleague from chapter 1 comes back and asks for sequences four times
# as long?
#
# **Guess first.** How much do the activations of that micro-batch weigh, if attention is written out the simple way,
# with a table of scores of every token against every other? Put your guess in place of `None`, a number and its unit in
# quotes.

# %%
guess = None

batch = {"micro_batch": 4, "seq_length": "2048"}
shape = model.only(ACTIVATION)
known_slips = {
    "one layer": LAYER_ACTIVATION(**model.only(LAYER_ACTIVATION), **batch),
    "no scores": LINEAR_ACTIVATION(**model.only(LINEAR_ACTIVATION), **batch),
}
hints = {"one layer": "that is one layer; every layer keeps its own", "no scores": "that is everything but the attention scores"}
guess and judge(ACTIVATION.quantity.accept(guess), ACTIVATION(**shape, **batch), unit=BYTE, within=0.2, mistakes=known_slips, hints=hints)

# %% [markdown]
# ## Pebbles on the way up
#
# Think of a training step as a walk up a mountain and down again. On the way up, the forward pass, the walker drops a
# pebble at every turn; on the way down, the backward pass, each pebble tells which way to go, and is picked up. The
# *last* pebble is needed first, and the first one last. So at the summit, where the loss is computed, all pebbles lie on
# the mountain at once. That is why activations are a sum over all layers and not the need of a single one.
#
# What is a pebble? The gradient of a product needs both of its factors, so a matrix product keeps its input; a GELU
# needs to know where on its curve it was; dropout needs its mask. Walk through one Transformer layer of *width* $h$
# (numbers per token), with a micro-batch of $b$ sequences of $s$ tokens, and write down each pebble. Every tensor of
# the main road has $s\,b\,h$ elements. With 16-bit activations an element takes two bytes, a dropout mask one; the
# inner layer of the *MLP* (the two matrices after attention) is four times as wide. ($s$ carries the unit token, so the
# constants are bytes *per* token; that is the word below the line. The last step adds up all $L$ layers.)

# %%
LINEAR_ACTIVATION.derivation

# %% [markdown]
# So much for everything that grows in step with the sequence. Attention adds something else. Each of its $a$ *heads*
# compares every token with every other, which makes a square table of *scores*, and three versions of that table want
# to be remembered: the softmax's output, the dropout mask, and what the dropout let through. Together they take
# $b_{\mathrm{score}}$ bytes a score:

# %%
SCORE_ACTIVATION.derivation

# %%
ACTIVATION.by_convention()

# %% [markdown]
# What the sum takes for granted is worth reading once; another architecture has another constant, but the same two
# shapes:

# %%
print(*ACTIVATION.assumptions, sep="\n")

# %% [markdown]
# ## Do real tensors agree?
#
# PyTorch tells us what it keeps: `saved_tensors_hooks` calls us with every tensor that autograd puts aside. We note the
# *storage* behind it, because several tensors may be views of one piece of memory, and leave out what is no activation:
# the parameters themselves, and the statistics, a number or two per token, that a norm or a fused attention keeps.


# %% tags=["definition"]
class Kept:
    """Bytes that autograd holds for the backward pass: now (`live`) and after every change (`history`)."""

    def __init__(self, module):
        self.weights = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
        self.holders, self.live, self.history = {}, 0, [0]
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.put_aside, lambda held: held.tensor)

    def put_aside(self, tensor):
        held, storage = Held(tensor), tensor.untyped_storage()
        if storage.data_ptr() not in self.weights and tensor.dtype != torch.float32 and tensor.shape[-1] > 1:
            self.change(storage.data_ptr(), storage.nbytes(), +1)
            weakref.finalize(held, self.change, storage.data_ptr(), storage.nbytes(), -1)
        return held

    def change(self, storage, size, step):
        before = self.holders.get(storage, 0)
        self.holders[storage] = before + step
        self.live += size if before == 0 else -size if before + step == 0 else 0
        self.history.append(self.live)


class Held:
    """What autograd carries instead of the tensor; when it lets go of it, the memory is free."""

    def __init__(self, tensor):
        self.tensor = tensor


# %% [markdown]
# And a layer, written out so that its tensors are those of the list above. `explicit` attention builds the table of
# scores; otherwise PyTorch's fused attention is called, which is a FlashAttention and builds none.


# %% tags=["definition"]
class Layer(nn.Module):
    def __init__(self, width, heads, explicit=True):
        super().__init__()
        self.heads, self.explicit = heads, explicit
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = x + dropped(self.out(self.attend(self.norm_1(x))))
        return x + dropped(self.down(F.gelu(self.up(self.norm_2(x)))))

    def attend(self, x):
        query, key, value = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        if self.explicit:
            scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
            mixed = dropped(scores.softmax(-1)) @ value
        else:
            mixed = F.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).flatten(2)


def dropped(x):
    return torch.native_dropout(x, 0.1, True)[0]


# %% [markdown]
# Three layers, a forward pass, and the count held against the formula:

# %%
small = {"micro_batch": 2, "seq_length": 48, "hidden_size": 64, "num_heads": 4, "num_layers": 3}
stack = nn.Sequential(*(Layer(64, heads=4) for _ in range(3))).bfloat16()
x = torch.randn(2, 48, 64, dtype=torch.bfloat16, requires_grad=True)
with (kept := Kept(stack)).hooks:
    output = stack(x)

judge(kept.live, ACTIVATION(**small), within=0, unit=BYTE)

# %% [markdown]
# To the byte. The same with fused attention: the term with the square is gone, and nothing else has changed.

# %%
fused = nn.Sequential(*(Layer(64, heads=4, explicit=False) for _ in range(3))).bfloat16()
with (kept_fused := Kept(fused)).hooks:
    output_fused = fused(x)

judge(kept_fused.live, ACTIVATION(**small, bytes_per_score=0), within=0, unit=BYTE)

# %% [markdown]
# (A FlashAttention keeps one small number for each row of scores instead of the row. Chapter 4 shows how it gets by
# with that.)
#
# ## Where the bytes lie
#
# Now at full size, the micro-batch of the decision:

# %%
ACTIVATION_LEDGER.at(**shape, **batch)

# %% [markdown]
# Most of it are scores. Without them, that is, with FlashAttention:

# %%
flash = ACTIVATION.under("flash_attention")
both_units = Claim("{flash:GB}, or {flash:GiB} as a tool would print it", flash=flash)
both_units(**model, **batch)

# %% [markdown]
# Mind the second unit. The batch, the width and the number of layers multiply to a round power of two here, so the
# figure in GiB looks like the coefficient of the formula, and it is quoted as GB all over the place. It must be
# converted before it is added to model states in GB.
#
# ## What a longer sequence does
#
# Everything grows with the sequence, but the scores grow with its square. Their share $p$ decides how steeply the whole
# grows:

# %%
SCORE_SHARE.by_convention()

# %%
DOUBLING_GROWTH.derivation

# %%
gpt3 = MODELS["GPT-3"]
share = SCORE_SHARE(**gpt3.only(SCORE_SHARE), seq_length="2048")
doubled = Claim(
    "In GPT-3 scores are {share:%} of the activations. A doubled sequence needs {doubling_growth} times the memory, "
    "and scores are {doubled_score_share:%} of it.",
    share=SCORE_SHARE,
)
doubled(**gpt3, seq_length="2048", score_share=share)

# %% [markdown]
# Doubled by doubling real tensors, once more with the small stack:

# %%
longer = torch.randn(2, 96, 64, dtype=torch.bfloat16, requires_grad=True)
with (kept_longer := Kept(stack)).hooks:
    output_longer = stack(longer)

small_share = SCORE_SHARE(**{name: small[name] for name in ("seq_length", "hidden_size", "num_heads")})
judge(np.divide(kept_longer.live, kept.live), DOUBLING_GROWTH(score_share=small_share))

# %% [markdown]
# From which length on do the scores outweigh the rest? Batch and layers cancel:

# %%
CROSSOVER_LENGTH.derivation

# %%
crossing = Claim(
    "Scores weigh as much as everything else from {crossover_length} on; with one copy of the scores, from {one_copy}.",
    one_copy=CROSSOVER_LENGTH.under("one_score_copy"),
)
crossing(**model)

# %% [markdown]
# That is short by today's standards, and the reason why nobody stores scores any more.
#
# ## Explore
#
# **Guess first.** With everything else as it is, how long may the sequences be until the activations of your
# micro-batch outgrow the room, with FlashAttention? Then move the slider.

# %%
guess = None

longest = flash.solve_for("seq_length")
limit = longest(activation_bytes=room, **model.only(longest), micro_batch=4)
guess and judge(longest.quantity.accept(guess), limit, unit=longest.unit, within=0.2)

# %% [markdown]
# 1. Choose GPT-3 from the presets and a single sequence. Do its activations fit on any card you know?
# 2. Raise the sequence length step by step. Which bar grows evenly, which one runs away?
# 3. Halve the batch, double the sequence. What stays the same with FlashAttention, and why not without it?

# %%
activation_explorer(bytes_per_score=0, zero_headroom_bytes=room)

# %% [markdown]
# ## The mountain
#
# Now let us watch the pebbles: the bytes that autograd holds, after every tensor it puts aside or lets go, over one
# whole step of a stack of six layers.

# %%
tall = nn.Sequential(*(Layer(64, heads=4, explicit=False) for _ in range(6))).bfloat16()
with (plain := Kept(tall)).hooks:
    tall(x).sum().backward()

# %% [markdown]
# And once more with **checkpointing** (also called recomputation): each layer keeps its input and nothing else. When
# backward reaches the layer, its forward pass is run again from that input, and only then are its pebbles there, one
# layer's at a time.


# %% tags=["definition"]
def rebuilt(layers, x):
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=True)
    return x


# %%
with (lean := Kept(tall)).hooks:
    rebuilt(tall, x).sum().backward()

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(plain.history, label="everything kept")
axes.plot(lean.history, label="a layer rebuilt at a time")
axes.set(xlabel="tensors put aside or let go, from the start of the step to its end", ylabel="bytes held")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# The mountain becomes a saw on a low ridge. Both summits are formulas. The ridge are the inputs of all layers:

# %%
KEPT_INPUT.derivation

# %% [markdown]
# and on top of it stands the one layer that is being rebuilt:

# %%
FULL_RECOMPUTE_PEAK.by_convention()

# %%
six = {"micro_batch": 2, "seq_length": 48, "hidden_size": 64, "num_heads": 4, "num_layers": 6, "bytes_per_score": 0}
judge(max(plain.history), ACTIVATION(**six), within=0, unit=BYTE)

# %%
one_layer = {name: size for name, size in six.items() if name != "num_layers"}
other_inputs = KEPT_INPUT(num_layers=5, micro_batch=2, seq_length=48, hidden_size=64)
judge(max(lean.history), other_inputs + LAYER_ACTIVATION(**one_layer), within=0, unit=BYTE)

# %% [markdown]
# That is five checkpoints and a layer. The formula says six and a layer: it counts the input of the rebuilt layer
# twice, once as a checkpoint and once as that layer's first pebble, where PyTorch lets the two share their memory. For
# a model of many layers it makes no difference. GPT-3, for example:

# %%
one_sequence = {"micro_batch": 1, "seq_length": "2048"}
saving = Claim(
    "GPT-3, one sequence: {activation_bytes} with stored scores, {flash} with FlashAttention. Layer inputs alone: {kept_input_bytes}; "
    "with one layer rebuilt at a time the peak is {peak}.",
    flash=flash,
    peak=FULL_RECOMPUTE_PEAK.under("flash_attention"),
)
saving(**gpt3, **one_sequence)

# %% [markdown]
# ## Explore
#
# The mountain of a whole model, drawn by the same rules and counted in the picture. Its clock is not a measured one: a
# layer's forward pass takes one tick, drawn as a millisecond, and its backward pass two.
#
# **Guess first.** LLaMA's smallest model keeps only the inputs of eight segments of four layers, and attention stores
# its scores. Which share of the summit is left? A number with its percent sign, in quotes.

# %%
guess = None

one = {"micro_batch": 1, "seq_length": "2048"}
left = np.divide(SEGMENTED_PEAK(num_segments=8, **shape, **one), ACTIVATION(**shape, **one))
slip = {"whole layers": float(np.divide(8, shape["num_layers"]))}
hint = {"whole layers": "as if each segment kept one whole layer; it keeps that layer's input, a single tensor"}
guess and judge(amounts.read(guess), float(left), within=0.1, mistakes=slip, hints=hint)

# %%
mountain_explorer(recompute="segments")

# %% [markdown]
# 1. Let forward leave everything. At which moment is the summit, and what does the card do then?
# 2. With segments: what are the teeth, what is the ridge below them, and why does the ridge fall from left to right?
# 3. Raise the number of segments from one to as many as there are layers. Where is the summit lowest?

# %% [markdown]
# ## What it costs
#
# Computing again is work. A forward pass takes two FLOP (floating-point operations, a multiplication or an addition)
# for each parameter and token, a backward pass four: it multiplies once for the gradient of the input and once for that
# of the weights. Whoever repeats the share $\varphi$ of the forward pass pays:

# %%
RECOMPUTE_GROWTH.derivation

# %%
Claim("Everything recomputed: {recompute_growth} times the FLOP of a step.")(recomputed_share=1)

# %% [markdown]
# PyTorch can count FLOP. The step with and without checkpoints, on linear layers, where FLOP are all there is:

# %%
towers = nn.Sequential(*(nn.Linear(16, 16, bias=False) for _ in range(6)))
y = torch.randn(3, 16, requires_grad=True)
with FlopCounterMode(display=False) as once:
    towers(y).sum().backward()
with FlopCounterMode(display=False) as again:
    rebuilt(towers, y).sum().backward()

judge(np.divide(again.get_total_flops(), once.get_total_flops()), RECOMPUTE_GROWTH(recomputed_share=1))

# %% [markdown]
# And does it change the result? Rebuilding is not approximating: from the same input, weights and random numbers the
# same pebbles come. (PyTorch stores the state of the random numbers for that, so that dropout drops the same elements.)

# %%
gradients = []
for run in (tall, partial(rebuilt, tall)):
    torch.manual_seed(16)
    tall.zero_grad()
    run(x).sum().backward()
    gradients.append([weight.grad.clone() for weight in tall.parameters()])

all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))

# %% [markdown]
# ## How many checkpoints?
#
# A checkpoint for each layer is not the only choice. Cut the $L$ layers into $g$ *segments*, keep the input of each,
# and rebuild a segment at a time. Fewer checkpoints make a lower ridge and a higher tooth. $A$ is what one layer keeps
# when nothing is thrown away:

# %%
CHECKPOINT_PEAK.derivation

# %% [markdown]
# The lowest peak is where one more checkpoint costs as much as it takes off the tooth. The second line is the root of
# $A L$ over the bytes of one input, with its units spelled out; in the last all units are gone:

# %%
BEST_SEGMENTS.derivation

# %% [markdown]
# Read that result twice, because the literature is full of another one. The classic rule, the square root of the number
# of layers, comes from letting a checkpoint weigh as much as all that a layer keeps:

# %%
UNIT_COST_SEGMENTS.derivation

# %% [markdown]
# But a Transformer layer keeps many tensors and its checkpoint is only one of them, so more checkpoints pay. With
# FlashAttention:

# %%
segments = Claim(
    "{num_layers} layers: by the classic rule {unit_cost_segments} segments, by bytes {best}.", best=BEST_SEGMENTS.under("flash_attention")
)
segments(**gpt3, seq_length="2048")

# %% [markdown]
# In practice take a whole number near it that divides the layers. A model of few layers would like more segments than it
# has layers; then take one a layer.
#
# **Selective** recomputation takes the other way: throw away only what is large and cheap to rebuild. Scores are just
# that, large because of the square, cheap because the two products around them are small beside the layer's matrices.
# Those have twelve $h^2$ weights, four in attention and eight in the MLP, each good for a multiplication and an addition
# per token; and a whole step is three forward passes:

# %%
SELECTIVE_OVERHEAD.derivation

# %%
Claim("For GPT-3 it frees {freed:%} of the activations and adds {selective_overhead:%} to the step.", freed=SCORE_SHARE)(
    **gpt3, seq_length="2048"
)

# %% [markdown]
# FlashAttention does this inside its kernel; whoever uses it has selective recomputation already.
#
# ## Explore
#
# Four ways over the length of the sequence, against the room beside the model states: keep all, rebuild the scores
# (selective), rebuild a segment at a time, rebuild a layer at a time.
#
# 1. Where does each curve leave the room? By which factor do the outer two differ there?
# 2. Set the number of segments to the number of layers. Which curve does "segments rebuilt" meet, and why exactly?
# 3. Which curves bend when sequences become long? Switch to FlashAttention and look again.

# %%
recompute_explorer(zero_headroom_bytes=room)

# %% [markdown]
# ## What the formula leaves out
#
# **Another MLP.** LLaMA's layers have three matrices and a SwiGLU instead of two and a GELU, and no dropout. Their own
# ledger, with $f$ for the width inside the MLP:

# %%
SWIGLU_ACTIVATION.derivation

# %%
Claim("By its own ledger that LLaMA keeps {swiglu_activation_bytes}, by GELU's {flash}.", flash=flash)(**model, **batch)

# %% [markdown]
# **The end of the model.** Every token gets a score, a *logit*, for each of the $v$ words of the vocabulary, in fp32.
# Logits are no layer's and in no layer formula, and they are there at the very summit. With a large vocabulary they
# weigh more than all that is left of the layers once these are rebuilt one at a time:

# %%
LOGITS.by_convention()

# %%
Claim("Logits of the micro-batch: {old} with LLaMA's vocabulary.", old=LOGITS)(**model, **batch)

# %%
Claim("With Llama 3's: {logits_bytes}.")(**MODELS["Llama 3 8B"], **batch)

# %% [markdown]
# ## The decision, made
#
# Room, and what each way needs of it. First the sequences of the question:

# %%
plan = Claim(
    "{micro_batch} × {seq_length}, beside {room}: stored scores {activation_bytes}, FlashAttention {flash}, every layer rebuilt {peak}.",
    flash=flash,
    peak=FULL_RECOMPUTE_PEAK.under("flash_attention"),
    room=ZERO_HEADROOM,
)
plan(**model, **batch, **cluster, **card)

# %% [markdown]
# So: FlashAttention, and nothing recomputed. Now four times as long:

# %%
plan(**model, **cluster, **card, micro_batch=4, seq_length="8192")

# %% [markdown]
# FlashAttention alone no longer fits. Before paying a third more computation, try what is free: one sequence at a time,
# and the global batch restored by *accumulating* gradients over four micro-batches (chapter 6):

# %%
plan(**model, **cluster, **card, micro_batch=1, seq_length="8192")

# %% [markdown]
# It has the size of the first case: with FlashAttention only the number of tokens counts, not how they are cut into
# sequences. Recomputation is for the case in which a single sequence no longer fits, or in which the larger micro-batch
# is worth more than the third it costs.
#
# ## Check yourself
#
# Answer, press *check*, and read the hint that fits. For one language only: `ask("E002-Q04", "en")` or `"zh"`.

# %%
ask("E000-TF09").form()

# %%
ask("E002-Q03").form()

# %%
ask("E002-Q04").form()

# %%
ask("E002-Q24").form()

# %%
ask("E002-Q06").form()

# %%
ask("E003-Q10").form()

# %%
ask("E002-Q44").form()

# %%
ask("E002-Q26").form()

# %% [markdown]
# ## What people get wrong
#
# **"One layer runs after the other, so memory never exceeds what one of them needs."** The walker needs the last pebble
# first; at the summit all of them lie there:

# %%
Claim("One layer of GPT-3 keeps {one}; at the summit {activation_bytes} are alive.", one=LAYER_ACTIVATION)(**gpt3, **one_sequence)

# %% [markdown]
# **"Recomputation costs a third of a forward pass."** It costs a whole one, which is a third of the *step*. Figures of
# a fifth or less belong to partial schemes, or to wall-clock time in which something else was waited for:

# %%
Claim(
    "All layers rebuilt: the step grows to {all:%}. Every second layer: to {half:%}.",
    all=RECOMPUTE_GROWTH.given(recomputed_share=1),
    half=RECOMPUTE_GROWTH.given(recomputed_share=0.5),
)()

# %% [markdown]
# **"Checkpointing makes the model fit."** It rebuilds activations. A weight, a gradient, a moment of Adam cannot be
# rebuilt from a layer's input, so model states stay where they are. Attack the larger of the two halves.
#
# **"The input of a GPT-3 layer is some megabytes, so all of them are under a gigabyte."** The width enters once, but it
# is large:

# %%
Claim("One input {boundary_bytes}, all of them {kept_input_bytes}.")(**gpt3, **one_sequence)

# %% [markdown]
# **"MB is MB."** Tables of activations are full of figures in powers of two with the unit of powers of ten. The scores
# of GPT-3, in one 16-bit copy:

# %%
Claim("{copy:GB} or {copy:GiB}", copy=SCORE_ACTIVATION.under("one_score_copy"))(**gpt3, **one_sequence)

# %% [markdown]
# ## What else is said about this
#
# Claims in circulation, with the figure as it is told and the figure as it computes. There are many, so read the first
# column only, and stop where you would have agreed. The wrong ones first:

# %%
claims(chapter=3, verdict="wrong").first("C002-009", "C002-033", "C002-070", "C002-075", "C002-076")

# %% [markdown]
# The slips of unit, which you corrected in chapter 0:

# %%
claims(chapter=3, verdict="unit_slip")

# %% [markdown]
# And those that are right under a convention of their own. Nearly all of them hang on one of two questions: are scores
# counted, and how many copies? Which part is recomputed?

# %%
claims(chapter=3, verdict="convention").first("C000-048", "C002-008", "C002-069", "C002-010")

# %% [markdown]
# ## Interview lens
#
# Three questions that are asked most, and what a strong answer contains:
#
# 1. *"How much memory do activations take?"* Batch, sequence, width and layers multiplied, the constant and what it
#    assumes (precision, MLP, dropout), the scores apart with their square, and what removes them. Then the logits.
# 2. *"What does checkpointing cost and save?"* It keeps layer inputs and rebuilds a layer at a time: a ridge and one
#    tooth. One more forward pass, a third of the step's FLOP. It leaves model states alone, and gradients are the same
#    to the bit.
# 3. *"You run out of memory when the sequence doubles. What do you do, in which order?"* FlashAttention if it is not
#    on; a smaller micro-batch with accumulation; selective, then full recomputation; then split the sequence over cards
#    (chapter 9).
#
# **Next.** See the mountain of a real training run, and hold its summit against the prediction, in the lab [peak
# memory](../labs/notebooks/peak_memory.ipynb). Then chapter 4: how attention gets by without its scores.
