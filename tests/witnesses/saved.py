"""What a forward pass of torch really keeps for the backward pass."""

import weakref

import torch


class SavedTensors:
    """Bytes of the storages that autograd holds, now and at most; parameters and row statistics are left out.

    Use as a context manager around forward (and backward, where layers are rebuilt).
    """

    def __init__(self, module, tokens):
        self._ignored = {p.untyped_storage().data_ptr() for p in module.parameters()}
        self._tokens = tokens
        self._held = {}
        self.statistics = 0
        self.live = self.peak = 0
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda held: held.tensor)

    def __enter__(self):
        self._hooks.__enter__()
        return self

    def __exit__(self, *error):
        return self._hooks.__exit__(*error)

    def _pack(self, tensor):
        held = _Held(tensor)
        key = tensor.untyped_storage().data_ptr()
        if key in self._ignored or tensor.dtype == torch.int64:
            return held
        if tensor.numel() == self._tokens or tensor.dtype == torch.float32:
            self.statistics += tensor.numel() * tensor.element_size()
            return held
        self._take(key, tensor.untyped_storage().nbytes())
        weakref.finalize(held, self._release, key)
        return held

    def _take(self, key, size):
        count, _ = self._held.get(key, (0, size))
        self._held[key] = (count + 1, size)
        self.live += size if count == 0 else 0
        self.peak = max(self.peak, self.live)

    def _release(self, key):
        count, size = self._held.pop(key)
        if count > 1:
            self._held[key] = (count - 1, size)
        else:
            self.live -= size


class _Held:
    def __init__(self, tensor):
        self.tensor = tensor
