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
