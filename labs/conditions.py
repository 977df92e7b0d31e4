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
