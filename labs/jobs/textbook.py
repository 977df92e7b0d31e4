"""A Transformer block written out so that each tensor it saves is one of the textbook's: no biases, attention explicit or fused."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

DROPPED = 0.1


class Dropout(nn.Module):
    """Keeps a mask of one byte an element, where a CPU's F.dropout would keep one as wide as its input. Any shape."""

    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        return torch.native_dropout(x, self.share, True)[0] if self.share else x


class Scores(nn.Module):
    """Attention with its score matrix stored. Shapes: three of (batch, heads, tokens, width of a head) to one of them."""

    def __init__(self, dropped):
        super().__init__()
        self.dropout = Dropout(dropped)

    def forward(self, query, key, value):
        scale = query.shape[-1] ** -0.5
        # no name for the scores: a name would hold them until the end of this function
        return self.dropout((query @ key.transpose(-1, -2) * scale).softmax(-1)) @ value


class Fused(nn.Module):
    """Attention in one kernel, in flash's where there is one for the type. Shapes as Scores."""

    def __init__(self, dropped):
        super().__init__()

    def forward(self, query, key, value):
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            return F.scaled_dot_product_attention(query, key, value)


ATTENTION = {"standard": Scores, "fused": Fused}


class Block(nn.Module):
    """One layer. Shapes: (batch, tokens, hidden) to the same. `rebuild_scores` recomputes the attention itself in the backward pass."""

    def __init__(self, hidden_size, num_heads, attention="standard", dropped=DROPPED, rebuild_scores=False):
        super().__init__()
        linear = partial(nn.Linear, bias=False)
        self.num_heads, self.rebuild_scores = num_heads, rebuild_scores
        self.attention_norm, self.mlp_norm = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.query, self.key, self.value, self.out = (linear(hidden_size, hidden_size) for _ in range(4))
        self.attend, self.attention_dropout = ATTENTION[attention](dropped), Dropout(dropped)
        self.up, self.gelu, self.down = linear(hidden_size, 4 * hidden_size), nn.GELU(), linear(4 * hidden_size, hidden_size)
        self.mlp_dropout = Dropout(dropped)

    def forward(self, x):
        x = x + self.attention_dropout(self.out(self._mixed(self.attention_norm(x))))
        return x + self.mlp_dropout(self.down(self.gelu(self.up(self.mlp_norm(x)))))

    def _mixed(self, x):
        heads = [project(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for project in (self.query, self.key, self.value)]
        mixed = checkpoint(self.attend, *heads, use_reentrant=False) if self.rebuild_scores else self.attend(*heads)
        return mixed.transpose(1, 2).flatten(2)


class Stack(nn.Module):
    """Blocks one after the other; `recompute` is none, selective (the attention itself) or full (every block). Shapes as Block."""

    def __init__(self, num_layers, hidden_size, num_heads, *, recompute="none", **options):
        super().__init__()
        self.recompute = recompute
        options["rebuild_scores"] = recompute == "selective"
        self.blocks = nn.ModuleList(Block(hidden_size, num_heads, **options) for _ in range(num_layers))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute == "full" else block(x)
        return x
