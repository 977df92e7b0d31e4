"""Adam's two moments, in full or in one byte each, of all parameters in one flat tensor."""

import torch

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Full:
    """Both moments in fp32."""

    def __init__(self, like, block):
        self.first, self.second = torch.zeros_like(like), torch.zeros_like(like)

    def read(self):
        return self.first, self.second

    def write(self, first, second):
        self.first, self.second = first, second

    def held(self):
        return {"first moments": self.first, "second moments": self.second}


class EightBit:
    """Both moments as one byte for each parameter, and for each block of parameters the largest size in it, in fp32.

    A code stands for a power of the share of that size, so that small numbers keep some of their digits.
    """

    SIGNED, UNSIGNED = (torch.int8, 127, 3), (torch.uint8, 255, 4)  # type, largest code, power

    def __init__(self, like, block):
        self.block, self.count = block, like.numel()
        self.write(torch.zeros_like(like), torch.zeros_like(like))

    def read(self):
        return (self._decode(codes, scales, kind) for codes, scales, kind in zip(self.codes, self.scales, self._kinds(), strict=True))

    def write(self, first, second):
        coded = [self._encode(moment, kind) for moment, kind in zip((first, second), self._kinds(), strict=True)]
        self.codes = [codes for codes, _ in coded]
        self.scales = torch.stack([scales for _, scales in coded])

    def held(self):
        return {"first moments": self.codes[0], "second moments": self.codes[1], "scales": self.scales}

    def _kinds(self):
        return self.SIGNED, self.UNSIGNED

    def _blocks(self, flat):
        """In rows of one block, the last one filled up with zeros."""
        return torch.nn.functional.pad(flat, (0, -self.count % self.block)).view(-1, self.block)

    def _encode(self, moment, kind):
        dtype, most, power = kind
        blocks = self._blocks(moment)
        scales = blocks.abs().amax(1)
        share = (blocks.abs() / scales.clamp_min(torch.finfo(torch.float32).tiny)[:, None]) ** (1 / power)
        # a second moment must not become zero, or its update would be without bounds: round it up
        codes = (share * most).ceil() if dtype is torch.uint8 else (share * most).round() * blocks.sign()
        return codes.clamp(-most, most).to(dtype).flatten()[: self.count].clone(), scales

    def _decode(self, codes, scales, kind):
        _, most, power = kind
        blocks = self._blocks(codes.float())
        return ((blocks.abs() / most) ** power * blocks.sign() * scales[:, None]).flatten()[: self.count]


def adam(moments, grad, step):
    """The direction of Adam's update number `step` (from 1), per unit of learning rate; the moments are kept up."""
    first, second = moments.read()
    first = BETAS[0] * first + (1 - BETAS[0]) * grad
    second = BETAS[1] * second + (1 - BETAS[1]) * grad.square()
    moments.write(first, second)
    return first / (1 - BETAS[0] ** step) / ((second / (1 - BETAS[1] ** step)).sqrt() + EPSILON)
