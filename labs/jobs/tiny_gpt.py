"""A GPT small enough for a laptop: pre-norm, biases, learned positions, an output head of its own. Random weights, random data."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention. Shapes: (batch, tokens, hidden) to the same."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden_size, hidden_size) for _ in range(4))

    def forward(self, x):
        heads = (project(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for project in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """One Transformer layer. Shapes: (batch, tokens, hidden) to the same."""

    def __init__(self, hidden_size, ffn_size, num_heads):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.attention = Attention(hidden_size, num_heads)
        self.up, self.down = nn.Linear(hidden_size, ffn_size), nn.Linear(ffn_size, hidden_size)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x))))


class TinyGPT(nn.Module):
    """Token ids (batch, tokens) to logits (batch, tokens, vocabulary)."""

    def __init__(self, *, vocab_size, hidden_size, ffn_size, num_layers, num_heads, num_positions):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, hidden_size), nn.Embedding(num_positions, hidden_size)
        self.blocks = nn.ModuleList(Block(hidden_size, ffn_size, num_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


SHAPE = ("vocab_size", "hidden_size", "ffn_size", "num_layers", "num_heads", "num_positions")


def build(conditions, device):
    """The model that `conditions` describe, alike on every rank."""
    torch.manual_seed(0)
    return TinyGPT(**{name: conditions[name] for name in SHAPE}).to(device)


def random_batch(conditions, device):
    """Token ids (micro_batch, num_positions + 1), alike on every rank."""
    torch.manual_seed(1)
    return torch.randint(conditions["vocab_size"], (conditions["micro_batch"], conditions["num_positions"] + 1)).to(device)


def next_token_loss(model, ids):
    """Mean cross-entropy of predicting each token from those before it."""
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
