"""Transformer blocks cut across ranks, forward and backward, with every collective run on a counting network.

A block is a list of local functions, one per rank, whose results add up; torch differentiates each rank's own part and
nothing else. No formula here.
"""

import numpy as np
import torch

from . import collectives as c


def mlp_parts(up, down, ranks):
    """Columns of `up` (h × f) and the same rows of `down` (f × h): (weights of each rank, its function of x)."""
    cuts = zip(up.chunk(ranks, dim=1), down.chunk(ranks, dim=0), strict=True)
    return [((a, b), lambda x, a=a, b=b: torch.nn.functional.gelu(x @ a) @ b) for a, b in cuts]


def attention(x, query, key, value, output, heads, kv_heads, batch):
    """Causal attention of (sequence·batch, h) tokens; queries of several heads may share a key-value head."""
    split = lambda t, n: t.reshape(-1, batch, n, t.shape[1] // n).permute(1, 2, 0, 3)
    q, k, v = split(x @ query, heads), split(x @ key, kv_heads), split(x @ value, kv_heads)
    k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
    seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return seen.permute(2, 0, 1, 3).reshape(x.shape[0], -1) @ output


def attention_parts(query, key, value, output, heads, kv_heads, batch, ranks):
    """Every rank gets its heads' columns of query, key and value and rows of output; too few key-value heads are copied."""
    copies = max(1, ranks // kv_heads)
    wide = lambda t: t.reshape(t.shape[0], kv_heads, -1).repeat_interleave(copies, dim=1).reshape(t.shape[0], -1)
    cuts = zip(query.chunk(ranks, 1), wide(key).chunk(ranks, 1), wide(value).chunk(ranks, 1), output.chunk(ranks, 0), strict=True)
    local = {"heads": heads // ranks, "kv_heads": max(1, kv_heads // ranks), "batch": batch}
    return [(weights, lambda x, weights=weights: attention(x, *weights, **local)) for weights in cuts]


def with_gradient(function, x, grad):
    """function(x), and the gradient by x when `grad` arrives at the result."""
    x = x.detach().requires_grad_()
    y = function(x)
    return y.detach(), torch.autograd.grad(y, x, grad)[0]


def _all_reduce(network, tensors):
    shape = tensors[0].shape
    return [torch.from_numpy(total).reshape(shape) for total in c.ring_all_reduce(network, [t.numpy().ravel() for t in tensors])]


def tensor_parallel_block(network, parts, x, grad, *, recompute=False):
    """Every rank has all of x; results and the gradients by x are summed over the ranks. Returns (y, gradient) of rank 0.

    With `recompute` the forward pass, its sum included, is done once more before the backward pass.
    """
    partial = [with_gradient(function, x, grad) for _, function in parts]
    for _ in range(2 if recompute else 1):
        y = _all_reduce(network, [forward for forward, _ in partial])
    dx = _all_reduce(network, [backward for _, backward in partial])
    return y[0], dx[0]


def sequence_parallel_block(network, parts, x, grad):
    """Every rank keeps its rows of x, of the result and of their gradients; x is gathered anew for the backward pass."""
    _gather_rows(network, x)
    partial = [with_gradient(function, x, grad) for _, function in parts]
    y = _scatter_rows(network, [forward for forward, _ in partial])
    _gather_rows(network, grad)
    _gather_rows(network, x)
    return y, _scatter_rows(network, [backward for _, backward in partial])


def _gather_rows(network, x):
    ranks = len(network.sent)
    rows = [c.blocks(x.numpy().ravel(), ranks) for _ in range(ranks)]
    held = [[block if i == (rank + 1) % ranks else np.zeros_like(block) for i, block in enumerate(row)] for rank, row in enumerate(rows)]
    for row in c.ring_all_gather(network, held):
        np.testing.assert_array_equal(np.concatenate(row), x.numpy().ravel())


def _scatter_rows(network, tensors):
    """The summed rows of all ranks, put together again without counting."""
    ranks = len(tensors)
    held = c.ring_reduce_scatter(network, [t.numpy().ravel() for t in tensors])
    return torch.from_numpy(np.concatenate([held[(block - 1) % ranks][block] for block in range(ranks)])).reshape(tensors[0].shape)


def gathered_attention(network, query, keys_values, batch, heads, grad):
    """Context parallelism: every rank keeps its queries and gathers everyone's keys and values; forward and backward.

    query: (sequence·batch, h); keys_values: (2, sequence·batch, h_kv). Returns the result and the gradient by keys and values.
    """
    ranks, whole = len(network.sent), keys_values.detach().requires_grad_()
    _gather_rows(network, keys_values)
    outputs, gradients = [], []
    for rows in torch.arange(len(query)).chunk(ranks):
        y = _attend(query[rows], whole, batch, heads)
        outputs.append(y.detach())
        gradients.append(torch.autograd.grad(y, whole, grad[rows], retain_graph=True)[0])
    _gather_rows(network, keys_values)
    return torch.cat(outputs), _scatter_rows(network, gradients)


def _attend(query, keys_values, batch, heads):
    width = query.shape[1] // heads
    kv_heads = keys_values.shape[2] // width
    split = lambda t, n: t.reshape(-1, batch, n, width).permute(1, 2, 0, 3)
    k, v = (split(t, kv_heads).repeat_interleave(heads // kv_heads, dim=1) for t in keys_values)
    return torch.nn.functional.scaled_dot_product_attention(split(query, heads), k, v).permute(2, 0, 1, 3).reshape(query.shape)


def swap_tokens_for_heads(network, tensor):
    """Ulysses' all-to-all of a (tokens, heads, width) tensor whose tokens lie on the ranks: afterwards the heads do."""
    ranks = len(network.sent)
    _, heads, width = tensor.shape
    rows = [shard.transpose(1, 0, 2).ravel() for shard in np.split(tensor, ranks)]
    for rank, got in enumerate(c.all_to_all(network, rows)):
        here = np.concatenate([part.reshape(heads // ranks, -1, width) for part in got], axis=1)
        np.testing.assert_array_equal(here, np.split(tensor, ranks, axis=1)[rank].transpose(1, 0, 2))


def route(network, tokens, experts_per_token):
    """Every rank sends each token to as many experts as said, spread evenly over the ranks, and gets the results back."""
    ranks = len(network.sent)
    for forward in (True, False):
        for shift in range(ranks):
            chosen = [[t for i, t in enumerate(mine) for e in range(experts_per_token) if (i + e) % ranks == shift] for mine in tokens]
            outward = [(rank, (rank + shift) % ranks, np.array(chosen[rank])) for rank in range(ranks) if shift]
            if outward:
                network.round(outward if forward else [(receiver, sender, array) for sender, receiver, array in outward])
