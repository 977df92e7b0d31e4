"""The GPU of this machine, if it has one, and conditions under which a lab fits it.

on_gpu(lab)     # in a notebook: the report of a run on one GPU, or why there is none
"""

from dataclasses import dataclass

from formulary.hardware import GPUS

from .measurement import kept

# What a lab runs under on a card as small as Colab's, by lab; what is left out is as usual.
SMALL = {
    "model_states": {"vocab_size": 32000, "hidden_size": 1024, "ffn_size": 4096, "num_layers": 8, "num_heads": 16, "num_positions": 512},
    "peak_memory": {"vocab_size": 32000, "hidden_size": 1024, "num_layers": 4, "num_heads": 16, "seq_length": 1024, "micro_batch": 2},
    "qlora": {"model": "Llama 2 7B", "num_layers": 4, "seq_length": 256},
    "numerics": {},
    "throughput": {
        "vocab_size": 32000,
        "hidden_size": 1024,
        "ffn_size": 4096,
        "num_layers": 8,
        "num_heads": 16,
        "num_positions": 512,
        "micro_batch": 4,
        "product_size": 4096,
        "dtype": "bfloat16",
    },
}
# The same where bf16 is emulated.
FP32 = {"peak_memory": {"precision": "fp32"}, "throughput": {"dtype": "float32"}}
# The rest runs under the conditions of the measurement that comes with the book, on any card with the memory of this one.
LARGE = GPUS["A100 80GB"]["memory_capacity"]
NOT_OF_THE_LAB = ("world_size", "backend")
PATIENCE = 600  # seconds


@dataclass(frozen=True)
class Gpu:
    """A card: its name, compute capability (major, minor) and bytes of memory."""

    name: str
    capability: tuple
    memory: int

    @property
    def has_bf16(self):
        """Whether it multiplies in bf16. Older cards say so too and emulate it, so what they are tells, not what they say."""
        return self.capability >= (8, 0)

    def __str__(self):
        bf16 = "bf16" if self.has_bf16 else "bf16 only emulated, so that fp32 takes its place"
        return f"{self.name}, compute capability {'.'.join(map(str, self.capability))}: {bf16}"


def found():
    """The first GPU that torch sees, or None."""
    import torch  # here, since it takes seconds

    if not torch.cuda.is_available():
        return None
    seen = torch.cuda.get_device_properties(0)
    return Gpu(seen.name, (seen.major, seen.minor), seen.total_memory)


def fitting(name, gpu):
    """Conditions under which the lab `name` fits the `gpu`; none of its own, the usual ones, where that is None."""
    if gpu is None:
        return {}
    if gpu.has_bf16 and gpu.memory >= LARGE:
        return {key: value for key, value in kept(f"{name}-h200").conditions.items() if key not in NOT_OF_THE_LAB}
    return {**SMALL[name], **({} if gpu.has_bf16 else FP32.get(name, {})), "device": "cuda"}


@dataclass(frozen=True)
class OnGpu:
    """A lab's report on a GPU, with what the GPU is; without one, what to do."""

    gpu: Gpu | None
    report: object = None

    def _repr_markdown_(self):
        if self.gpu is None:
            return (
                "torch sees no GPU here, so this part has not run; everything else needs none. In Colab, *Runtime → Change runtime "
                "type* gives one. The figures below come with the book."
            )
        return f"{self.gpu}\n\n{self.report._repr_markdown_()}"


def on_gpu(lab):
    """Run the lab on the GPU of this machine, on one process and at a size that fits; returns an OnGpu."""
    gpu = found()
    return OnGpu(gpu, lab.run(1, timeout=PATIENCE, **fitting(lab.name, gpu)) if gpu else None)
