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
    "draw": 7,
    "device": "cpu",
}

# Every pass through a stage, or through a chunk of it, takes slots of that many milliseconds: forward one, backward two. Of the
# steps the quickest counts: what else a machine does can only make one longer.
PIPELINE = {
    "schedules": "gpipe,1f1b,interleaved,zero_bubble",
    "num_micro_batches": 8,
    "chunks_per_stage": 2,
    "slot_ms": 100,
    "steps": 2,
    "device": "cpu",
}

# `ring` is a file with an all_reduce of one's own; HSDP makes nodes of `ranks_per_node` ranks where these divide the ranks there are.
TRAFFIC = {
    "variants": "ddp,ddp_every_pass,ddp_no_sync,zero1,fsdp,fsdp_kept,fsdp_bf16,fsdp_every_pass,fsdp_no_sync,hsdp,tp,sp",
    "vocab_size": 502,
    "hidden_size": 64,
    "ffn_size": 256,
    "num_layers": 3,
    "num_heads": 8,
    "num_positions": 32,
    "micro_batch": 2,
    "accumulation_steps": 4,
    "ranks_per_node": 2,
    "message_elements": 960_000,
    "ring": "",
    "device": "cpu",
}

# `model` is tiny or one of the LLaMA family in formulary.shapes; 0 layers are all it has; `card` is one whose memory must be enough.
QLORA = {
    "model": "tiny",
    "num_layers": 0,
    "quantizers": "nf4,nf4_double_quant",
    "lora_rank": 8,
    "seq_length": 32,
    "micro_batch": 2,
    "steps": 8,
    "card": "",
    "device": "cpu",
}

# Updates are counted in spacings of bf16 above 1; a step of training adds the usual ones of Adam.
NUMERICS = {
    "variants": "fp32,bf16,master,stochastic,kahan,adam8",
    "vocab_size": 101,
    "hidden_size": 64,
    "ffn_size": 256,
    "num_layers": 2,
    "num_heads": 4,
    "num_positions": 32,
    "micro_batch": 4,
    "steps": 150,
    "learning_rate": 0.00003,
    "small_update": 0.25,
    "large_update": 0.75,
    "num_updates": 120,
    "loss_scale": 512,
    "growth_interval": 10,
    "quantizer_block": 256,
    "device": "cpu",
}

# `parts`: what blocks save (saved), what a step of them holds at most (steps), what recomputing costs (flop), and, on at least two
# processes, the most that a step of FSDP2 holds (fsdp). `precision` is that of the steps: bf16 or fp32.
PEAK_MEMORY = {
    "parts": "saved,steps,flop,fsdp",
    "num_layers": 4,
    "seq_length": 128,
    "micro_batch": 4,
    "hidden_size": 64,
    "num_heads": 4,
    "vocab_size": 512,
    "precision": "bf16",
    "device": "cpu",
}

# Gradients travel in buckets; products of `product_size` squared are taken as the best that the machine can do.
THROUGHPUT = {
    "vocab_size": 502,
    "hidden_size": 128,
    "ffn_size": 512,
    "num_layers": 4,
    "num_heads": 4,
    "num_positions": 64,
    "micro_batch": 2,
    "bucket_mebibytes": 1,
    "product_size": 512,
    "steps": 5,
    "dtype": "float32",
    "device": "cpu",
}
