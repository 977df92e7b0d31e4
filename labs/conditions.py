"""The conditions each lab runs under unless told otherwise. Read by the job and by its predictions; data only."""

MODEL_STATES = {
    "variants": "ddp,zero1,fsdp2",
    "vocab_size": 502,
    "hidden_size": 128,
    "ffn_size": 512,
    "num_layers": 4,
    "num_heads": 4,
    "num_positions": 64,
    "micro_batch": 2,
    "steps": 3,
    "device": "cpu",
}

# The cluster is on paper: one process stands for rank 0 of `ranks`. `model` is one of the LLaMA family in formulary.shapes.
PAPER_CLUSTER = {
    "model": "Llama 2 7B",
    "num_layers": 8,
    "ranks": 8,
    "seq_length": 4096,
    "micro_batch": 1,
    "device": "cpu",
}

TENSOR_PARALLEL = {
    "plans": "naive,prepared,sequence",
    "hidden_size": 128,
    "ffn_size": 512,
    "num_layers": 3,
    "num_heads": 8,
    "seq_length": 64,
    "micro_batch": 2,
    "device": "cpu",
}

# Every rank dies in turn, at steps that `draw` decides; a checkpoint is written `every` so many steps.
CHECKPOINT = {
    "vocab_size": 502,
    "hidden_size": 64,
    "ffn_size": 256,
    "num_layers": 2,
    "num_heads": 4,
    "num_positions": 32,
    "global_batch": 8,
    "steps": 12,
    "every": 4,
    "kills": 2,
    "draw": 0,
    "device": "cpu",
}
