"""Small Transformer blocks of torch, written out so that every saved tensor is the textbook's."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """One GPT layer without biases: `kernel` is "explicit" or "fused" attention, `mlp` is "gelu" or "swiglu"."""

    def __init__(self, width, heads, ffn, *, kernel="explicit", mlp="gelu", dropout=True, affine=True):
        super().__init__()
        self.heads, self.kernel, self.dropout = heads, kernel, dropout
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.norm_attention, self.norm_mlp = (nn.LayerNorm(width, elementwise_affine=affine) for _ in range(2))
        self.query, self.key, self.value, self.out = (linear(width, width) for _ in range(4))
        self.up, self.down = linear(width, ffn), linear(ffn, width)
        self.gate = linear(width, ffn) if mlp == "swiglu" else None

    def forward(self, x):
        x = x + self._drop(self.out(self._attend(self.norm_attention(x))))
        return x + self._drop(self._mlp(self.norm_mlp(x)))

    def _attend(self, x):
        query, key, value = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        if self.kernel == "fused":
            mixed = F.scaled_dot_product_attention(query, key, value)
        else:
            scores = (query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5
            mixed = self._drop(scores.softmax(-1)) @ value
        return mixed.transpose(1, 2).flatten(2)

    def _mlp(self, x):
        hidden = F.gelu(self.up(x)) if self.gate is None else F.silu(self.gate(x)) * self.up(x)
        return self.down(hidden)

    def _drop(self, x):
        return torch.native_dropout(x, 0.1, True)[0] if self.dropout else x


class TinyGPT(nn.Module):
    """Embedding, blocks and an untied head, no parameter outside a matrix."""

    def __init__(self, layers, width, heads, vocab, *, rebuild=()):
        super().__init__()
        self.rebuild = set(rebuild)
        self.embedding = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, dropout=False, affine=False) for _ in range(layers))
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for index, block in enumerate(self.blocks):
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True) if index in self.rebuild else block(x)
        return self.head(x)
