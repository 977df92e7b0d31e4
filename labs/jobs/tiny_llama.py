"""A model shaped like LLaMA: RMSNorm, gated MLP, grouped key-value heads, no biases, an output head of its own.

It has no rotary embedding, which has no parameters and leaves the number of saved tensors as it is.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

EPSILON = 1e-6


class _Normed(torch.autograd.Function):
    """RMSNorm that saves what a fused kernel saves: its input, and one fp32 number for each token."""

    @staticmethod
    def forward(ctx, x, scale):
        inverse = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + EPSILON)
        ctx.save_for_backward(x, scale, inverse)
        return (x * inverse).to(x.dtype) * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale, inverse = ctx.saved_tensors
        unit = x * inverse
        scaled = grad * scale
        along = (scaled * unit).mean(-1, keepdim=True)
        return ((scaled - unit * along) * inverse).to(x.dtype), (grad * unit).sum(tuple(range(x.dim() - 1))).to(scale.dtype)


class Norm(nn.Module):
    """Shapes: (batch, tokens, hidden) to the same."""

    def __init__(self, hidden_size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        return _Normed.apply(x, self.scale)


def linear(num_in, num_out):
    return nn.Linear(num_in, num_out, bias=False)


class Attention(nn.Module):
    """Causal attention whose key-value heads are each shared by several query heads. Shapes as Norm."""

    def __init__(self, hidden_size, num_heads, num_kv_heads, head_dim):
        super().__init__()
        self.head_dim, self.shared_by = head_dim, num_heads // num_kv_heads
        wide, narrow = num_heads * head_dim, num_kv_heads * head_dim
        self.query, self.key, self.value = linear(hidden_size, wide), linear(hidden_size, narrow), linear(hidden_size, narrow)
        self.out = linear(wide, hidden_size)

    def forward(self, x):
        query, key, value = (
            project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        if self.shared_by > 1:
            key, value = (kept.repeat_interleave(self.shared_by, 1) for kept in (key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """One layer. Shapes as Norm."""

    def __init__(self, hidden_size, ffn_size, **heads):
        super().__init__()
        self.attention_norm, self.ffn_norm = Norm(hidden_size), Norm(hidden_size)
        self.attention = Attention(hidden_size, **heads)
        self.gate, self.up, self.down = linear(hidden_size, ffn_size), linear(hidden_size, ffn_size), linear(ffn_size, hidden_size)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        wide = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(wide)) * self.up(wide))


class TinyLlama(nn.Module):
    """Token ids (batch, tokens) to logits (batch, tokens, vocabulary); every block is recomputed in the backward pass."""

    def __init__(self, *, vocab_size, hidden_size, ffn_size, num_layers, **heads):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, hidden_size)
        self.blocks = nn.ModuleList(Block(hidden_size, ffn_size, **heads) for _ in range(num_layers))
        self.norm, self.head = Norm(hidden_size), linear(hidden_size, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))


def next_token_loss(model, ids, targets):
    """Mean cross-entropy, in fp32, of predicting `targets` (tokens of the whole batch in one row) from `ids`."""
    return F.cross_entropy(model(ids).flatten(0, 1).float(), targets)
