"""Every quantity of the book, once. One word for one idea; the letter lives here and nowhere else.

Letters are not reused: parameters are Psi, ranks are k (never N, which sources use for both). Data tables only.
"""

import math

from .quantity import quantity
from .units import BYTE, DOLLAR, FLOP, JOULE, PURE, SECOND, TOKEN

# The model
num_params = quantity("num_params", r"\Psi", PURE, "number of parameters", (10**8, 2 * 10**11), integer=True)
num_layers = quantity("num_layers", "L", PURE, "Transformer layers", (1, 128), integer=True)
hidden_size = quantity("hidden_size", "h", PURE, "width of the residual stream", (256, 20480), integer=True)
num_heads = quantity("num_heads", "a", PURE, "attention heads", (1, 160), integer=True)
num_kv_heads = quantity("num_kv_heads", r"a_{\mathrm{kv}}", PURE, "key-value heads", (1, 160), integer=True)
head_dim = quantity("head_dim", "d", PURE, "width of one attention head", (32, 256), integer=True)
ffn_size = quantity("ffn_size", "f", PURE, "width of the feed-forward layer", (1024, 65536), integer=True)
vocab_size = quantity("vocab_size", "v", PURE, "vocabulary size", (1000, 300_000), integer=True)

# The batch
seq_length = quantity("seq_length", "s", TOKEN, "tokens of one sequence", (512, 131072), integer=True)
micro_batch = quantity("micro_batch", "b", PURE, "sequences of one micro-batch", (1, 64), integer=True)
accumulation_steps = quantity("accumulation_steps", "K", PURE, "micro-batches accumulated per optimizer step", (1, 64), integer=True)
global_batch = quantity("global_batch", "B", PURE, "sequences per optimizer step", (1, 8192), integer=True)

# The machine and how it is divided
num_gpus = quantity("num_gpus", "n", PURE, "GPUs in all", (1, 16384), integer=True)
world_size = quantity("world_size", "k", PURE, "data-parallel ranks", (1, 1024), integer=True)
tensor_parallel = quantity("tensor_parallel", "t", PURE, "tensor-parallel ranks", (1, 16), integer=True)
num_stages = quantity("num_stages", "P", PURE, "pipeline stages", (1, 64), integer=True)
num_micro_batches = quantity("num_micro_batches", "M", PURE, "micro-batches in one pipeline step", (1, 256), integer=True)
chunks_per_stage = quantity("chunks_per_stage", "V", PURE, "model chunks per stage (interleaving)", (1, 8), integer=True)
context_parallel = quantity("context_parallel", "c", PURE, "context-parallel ranks", (1, 64), integer=True)
memory_capacity = quantity("memory_capacity", "C", BYTE, "memory of one card", (16 * 10**9, 192 * 10**9))
peak_flop_per_s = quantity("peak_flop_per_s", "F", FLOP / SECOND, "dense peak of one card", (10**13, 3 * 10**15))
bandwidth = quantity("bandwidth", r"\beta", BYTE / SECOND, "bandwidth per rank and direction", (10**9, 10**12))
latency = quantity("latency", r"\alpha", SECOND, "time before a message's first byte", (10**-6, 10**-4))
message_bytes = quantity("message_bytes", "S", BYTE, "bytes of the whole message", (10**3, 10**11))

# Bytes per parameter
_PER_PARAM = {"span": (0, 8), "most": 64}
bytes_per_weight = quantity("bytes_per_weight", "b_w", BYTE, "bytes of one working weight", **_PER_PARAM)
bytes_per_grad = quantity("bytes_per_grad", "b_g", BYTE, "bytes of one gradient, all its copies", **_PER_PARAM)
bytes_per_master = quantity("bytes_per_master", r"b_{\mathrm{master}}", BYTE, "bytes of one master weight", **_PER_PARAM)
bytes_per_momentum = quantity("bytes_per_momentum", "b_m", BYTE, "bytes of one first moment", **_PER_PARAM)
bytes_per_variance = quantity("bytes_per_variance", "b_v", BYTE, "bytes of one second moment", **_PER_PARAM)

# Model states
weight_bytes = quantity("weight_bytes", "M_w", BYTE, "memory of the working weights", (0, 10**12))
grad_bytes = quantity("grad_bytes", "M_g", BYTE, "memory of the gradients", (0, 10**12))
master_bytes = quantity("master_bytes", r"M_{\mathrm{master}}", BYTE, "memory of the master weights", (0, 10**12))
momentum_bytes = quantity("momentum_bytes", "M_m", BYTE, "memory of Adam's first moments", (0, 10**12))
variance_bytes = quantity("variance_bytes", "M_v", BYTE, "memory of Adam's second moments", (0, 10**12))
param_state_bytes = quantity("param_state_bytes", r"b_{\mathrm{state}}", BYTE, "model states of one parameter", (0, 20))
state_bytes = quantity("state_bytes", r"M_{\mathrm{state}}", BYTE, "model states of one replica", (0, 10**13))
optimizer_share = quantity("optimizer_share", r"\rho", PURE, "share of the model states that is optimizer state, master included")

# ZeRO
stage = quantity("stage", "z", PURE, "ZeRO stage", (0, 3), integer=True, least=0, choices=(0, 1, 2, 3))
zero_state_bytes = quantity("zero_state_bytes", "M_z", BYTE, "model states of one rank under ZeRO", (0, 10**13))
zero_headroom_bytes = quantity(
    "zero_headroom_bytes",
    r"\Delta M_z",
    BYTE,
    "memory of a card that the model states of its rank leave free",
    (0, 2 * 10**11),
    least=-math.inf,
)
zero_weight_bytes = quantity("zero_weight_bytes", "M_{w,z}", BYTE, "working weights of one rank under ZeRO", (0, 10**12))
zero_grad_bytes = quantity("zero_grad_bytes", "M_{g,z}", BYTE, "gradients of one rank under ZeRO", (0, 10**12))
zero_master_bytes = quantity("zero_master_bytes", r"M_{\mathrm{master},z}", BYTE, "master weights of one rank under ZeRO", (0, 10**12))
zero_momentum_bytes = quantity("zero_momentum_bytes", "M_{m,z}", BYTE, "first moments of one rank under ZeRO", (0, 10**12))
zero_variance_bytes = quantity("zero_variance_bytes", "M_{v,z}", BYTE, "second moments of one rank under ZeRO", (0, 10**12))

# Activations
bytes_per_score = quantity("bytes_per_score", r"b_{\mathrm{score}}", BYTE, "bytes kept for one attention score", (0, 5), choices=(0, 2, 5))
saved_tensor_bytes = quantity("saved_tensor_bytes", "M_i", BYTE, "memory of one kind of saved tensor", (0, 10**12))
linear_activation_bytes = quantity(
    "linear_activation_bytes", r"M_{\mathrm{lin}}", BYTE, "activations that grow with the sequence", (0, 10**12)
)
score_activation_bytes = quantity(
    "score_activation_bytes", r"M_{\mathrm{score}}", BYTE, "activations that grow with the sequence squared", (0, 10**12)
)
activation_bytes = quantity("activation_bytes", r"M_{\mathrm{act}}", BYTE, "activations of one micro-batch", (0, 10**12))

# Tensors dealt out to ranks
num_positions = quantity(
    "num_positions", r"s_{\mathrm{max}}", PURE, "rows of a learned position table, 0 without one", (64, 8192), integer=True, least=0
)
num_rows = quantity("num_rows", r"n_{\mathrm{row}}", PURE, "rows of a tensor (its dimension 0)", (1, 300_000), integer=True)
chunk_rows = quantity("chunk_rows", r"n_{\mathrm{chunk}}", PURE, "rows of a full shard", (1, 300_000), integer=True)
rank_index = quantity("rank_index", "i", PURE, "which rank, counted from 0", (0, 1023), integer=True, least=0)
shard_rows = quantity("shard_rows", r"n_i", PURE, "rows of a tensor that one rank holds", (0, 300_000), integer=True, least=0)
num_tensors = quantity("num_tensors", r"n_{\mathrm{tensor}}", PURE, "tensors of a model", (1, 1000), integer=True)
gpt_params = quantity(
    "gpt_params", r"\Psi_{\mathrm{GPT}}", PURE, "parameters of a GPT with biases and an untied head", (10**5, 10**12), integer=True
)
gpt_tensors = quantity("gpt_tensors", r"n_{\mathrm{GPT}}", PURE, "parameter tensors of that GPT", (21, 3000), integer=True)
gpt_shard_params = quantity(
    "gpt_shard_params", r"\Psi_i", PURE, "parameters of that GPT on one rank, cut by rows", (0, 10**12), integer=True, least=0
)
gpt_buffer_params = quantity(
    "gpt_buffer_params", r"\Psi_{\mathrm{pad}}", PURE, "elements of the buffers they lie in", (0, 10**12), integer=True
)
gpt_padded_params = quantity(
    "gpt_padded_params",
    r"\Psi_{\mathrm{moved}}",
    PURE,
    "elements of that GPT that collectives move, padding included",
    (0, 10**12),
    integer=True,
)
step_bytes = quantity("step_bytes", r"M_{\mathrm{step}}", BYTE, "memory of Adam's step counters", (0, 10**5))
padding_bytes = quantity("padding_bytes", r"M_{\mathrm{pad}}", BYTE, "memory that pads short shards to full ones", (0, 10**9))
layer_activation_bytes = quantity("layer_activation_bytes", "A", BYTE, "activations of one layer and micro-batch", (0, 10**11))
swiglu_activation_bytes = quantity(
    "swiglu_activation_bytes", r"M_{\mathrm{swiglu}}", BYTE, "activations of layers with a SwiGLU MLP, no dropout, no scores", (0, 10**12)
)
score_share = quantity("score_share", r"p_{\mathrm{score}}", PURE, "share of the activations that is attention scores", most=1)
doubled_score_share = quantity("doubled_score_share", r"p'_{\mathrm{score}}", PURE, "that share at twice the sequence length", most=1)
doubling_growth = quantity("doubling_growth", r"G_{2s}", PURE, "growth of the activations when the sequence doubles", (2, 4))
crossover_length = quantity("crossover_length", r"s_{=}", TOKEN, "sequence length at which scores weigh as much as the rest", (100, 10000))
attention_statistics_bytes = quantity(
    "attention_statistics_bytes", r"M_{\mathrm{lse}}", BYTE, "log-sum-exp of every score row, all layers", (0, 10**10)
)
bytes_per_logit = quantity("bytes_per_logit", r"b_{\mathrm{logit}}", BYTE, "bytes kept for one logit", (2, 10))
logits_bytes = quantity("logits_bytes", r"M_{\mathrm{logits}}", BYTE, "logits of one micro-batch", (0, 10**11))

# Checkpointed activations
num_segments = quantity("num_segments", "g", PURE, "segments whose input is checkpointed", (1, 128), integer=True)
best_segments = quantity("best_segments", "g^*", PURE, "number of segments with the smallest peak", (1, 128))
checkpoint_peak_bytes = quantity("checkpoint_peak_bytes", "M(g)", BYTE, "checkpoints and one rebuilt segment", (0, 10**12))
kept_input_bytes = quantity("kept_input_bytes", r"M_{\mathrm{kept}}", BYTE, "layer inputs kept when every layer is recomputed", (0, 10**12))
full_recompute_peak_bytes = quantity(
    "full_recompute_peak_bytes", r"M_{\mathrm{full}}", BYTE, "layer inputs and one rebuilt layer", (0, 10**12)
)
activation_headroom_bytes = quantity(
    "activation_headroom_bytes",
    r"\Delta M_{\mathrm{act}}",
    BYTE,
    "memory that neither model states nor activations need",
    (0, 2 * 10**11),
    least=-math.inf,
)
recomputed_share = quantity("recomputed_share", r"\varphi", PURE, "share of the forward pass that is computed again", most=1)
recompute_growth = quantity("recompute_growth", r"C/C_0", PURE, "growth of a step's FLOP through recomputation", (1, 4 / 3))
selective_overhead = quantity("selective_overhead", r"\varphi_{\mathrm{sel}}", PURE, "extra FLOP of a step that rebuilds only the scores")

# What blocks hold during a step
bytes_per_saved = quantity("bytes_per_saved", r"b_{\mathrm{saved}}", BYTE, "bytes of one saved activation", (2, 4), most=8)
bytes_per_statistic = quantity("bytes_per_statistic", r"b_{\mathrm{stat}}", BYTE, "bytes of a norm's mean or deviation", (2, 4), most=8)
norm_statistics_bytes = quantity("norm_statistics_bytes", r"M_{\mathrm{stat}}", BYTE, "means and deviations that norms keep", (0, 10**10))
block_saved_bytes = quantity("block_saved_bytes", r"M_{\mathrm{saved}}", BYTE, "all that blocks save, at any width", (0, 10**12))
blocks_done = quantity("blocks_done", r"n_{\mathrm{back}}", PURE, "blocks whose backward pass is done", (0, 127), integer=True, least=0)
step_peak_bytes = quantity(
    "step_peak_bytes", r"M_{\mathrm{step,peak}}", BYTE, "held at a moment of a step, beyond what was there", (0, 10**12)
)

# What attention reads and writes, per head and forward pass
sram_elements = quantity("sram_elements", r"M_{\mathrm{sram}}", PURE, "elements that fit on chip", (2**12, 2**18))
standard_accesses = quantity("standard_accesses", r"Q_{\mathrm{std}}", PURE, "elements a stored score matrix moves", (10**6, 10**10))
flash_accesses = quantity("flash_accesses", r"Q_{\mathrm{flash}}", PURE, "elements tiled attention moves", (10**6, 10**10))
flash_accesses_order = quantity("flash_accesses_order", r"Q_{\Theta}", PURE, "those accesses without constants", (10**5, 10**9))
least_accesses = quantity("least_accesses", r"Q_{\min}", PURE, "elements attention must move, each once", (10**5, 10**8))
attention_intensity = quantity(
    "attention_intensity", r"I_{\mathrm{att}}", FLOP / BYTE, "FLOP that attention does for each byte moved", (1, 10**4)
)
access_saving = quantity("access_saving", r"Q_{\mathrm{std}}/Q_{\mathrm{flash}}", PURE, "accesses saved by tiling", (1, 20))
row_max = quantity("row_max", "m", PURE, "largest score of the row so far", (-50, 50), least=-1e6)
block_max = quantity("block_max", r"\tilde m", PURE, "largest score of the row in the next block", (-50, 50), least=-1e6)
row_sum = quantity("row_sum", r"\ell", PURE, "sum of exp(score - maximum) so far", (0, 1000))
block_sum = quantity("block_sum", r"\tilde\ell", PURE, "that sum over the next block", (0, 1000))
merged_row_sum = quantity("merged_row_sum", r"\ell'", PURE, "that sum over both", (0, 1000))
row_output = quantity("row_output", "O", PURE, "weighted mean of the values so far", (-10, 10), least=-1e6)
block_output = quantity("block_output", r"\tilde O", PURE, "unnormalised weighted sum of the next block's values", (-10, 10), least=-1e9)
merged_output = quantity("merged_output", "O'", PURE, "weighted mean over both", (-10, 10), least=-1e6)

# Communication
ring_round = quantity("ring_round", r"r_{\mathrm{round}}", PURE, "round of a collective", (1, 64), integer=True)
message_elements = quantity("message_elements", "E", PURE, "elements of the whole message", (10**3, 10**11), integer=True)
reduce_scatter_bytes = quantity("reduce_scatter_bytes", r"V_{\mathrm{RS}}", BYTE, "bytes one rank sends in a reduce-scatter", (0, 10**11))
all_gather_bytes = quantity("all_gather_bytes", r"V_{\mathrm{AG}}", BYTE, "bytes one rank sends in an all-gather", (0, 10**11))
ring_all_reduce_bytes = quantity("ring_all_reduce_bytes", r"V_{\mathrm{AR}}", BYTE, "bytes a rank sends in a ring all-reduce", (0, 10**11))
all_reduce_elements = quantity("all_reduce_elements", r"E_{\mathrm{AR}}", PURE, "elements one rank sends in a ring all-reduce", (0, 10**11))
all_reduce_min_bytes = quantity(
    "all_reduce_min_bytes", r"V_{\mathrm{min}}", BYTE, "bytes a rank must send if the ranks do the adding", (0, 10**11)
)
switch_all_reduce_bytes = quantity(
    "switch_all_reduce_bytes", r"V_{\mathrm{switch}}", BYTE, "bytes one rank sends when the switches add", (0, 10**11)
)
all_to_all_bytes = quantity("all_to_all_bytes", r"V_{\mathrm{A2A}}", BYTE, "bytes one rank sends in an all-to-all", (0, 10**11))
reduce_scatter_time = quantity("reduce_scatter_time", r"t_{\mathrm{RS}}", SECOND, "time of a ring reduce-scatter", (0, 10))
all_gather_time = quantity("all_gather_time", r"t_{\mathrm{AG}}", SECOND, "time of a ring all-gather", (0, 10))
ring_all_reduce_time = quantity("ring_all_reduce_time", r"t_{\mathrm{AR}}", SECOND, "time of a ring all-reduce", (0, 10))
halving_all_reduce_time = quantity(
    "halving_all_reduce_time", r"t_{\mathrm{halving}}", SECOND, "time of an all-reduce by recursive halving and doubling", (0, 10)
)
tree_all_reduce_time = quantity("tree_all_reduce_time", r"t_{\mathrm{tree}}", SECOND, "time of an all-reduce up and down a tree", (0, 10))
equal_cost_bytes = quantity("equal_cost_bytes", "S^*", BYTE, "message whose ring time is half latency, half bandwidth", (10**3, 10**9))
num_buckets = quantity("num_buckets", r"n_{\mathrm{bucket}}", PURE, "buckets the gradients are sent in", (1, 1000), integer=True)
bucketed_all_reduce_time = quantity("bucketed_all_reduce_time", r"t_{\mathrm{buckets}}", SECOND, "time of a bucketed all-reduce", (0, 10))
ring_round_time = quantity("ring_round_time", r"t_{\mathrm{round}}", SECOND, "time of one round of a ring", (0, 10))
bucket_all_reduce_time = quantity("bucket_all_reduce_time", r"t_{\mathrm{bucket}}", SECOND, "time of one bucket's all-reduce", (0, 10))
collective_time = quantity("collective_time", r"t_{\mathrm{coll}}", SECOND, "measured time of a collective", (10**-5, 10))
algorithm_bandwidth = quantity("algorithm_bandwidth", r"\beta_{\mathrm{alg}}", BYTE / SECOND, "message size over time", (10**9, 10**12))
all_reduce_bus_bandwidth = quantity(
    "all_reduce_bus_bandwidth", r"\beta_{\mathrm{bus,AR}}", BYTE / SECOND, "link bandwidth that an all-reduce makes use of", (10**9, 10**12)
)
all_gather_bus_bandwidth = quantity(
    "all_gather_bus_bandwidth",
    r"\beta_{\mathrm{bus,AG}}",
    BYTE / SECOND,
    "link bandwidth that an all-gather, reduce-scatter or all-to-all makes use of",
    (10**9, 10**12),
)
broadcast_bus_bandwidth = quantity(
    "broadcast_bus_bandwidth", r"\beta_{\mathrm{bus,B}}", BYTE / SECOND, "link bandwidth that a broadcast or reduce uses", (10**9, 10**12)
)
ranks_per_node = quantity("ranks_per_node", r"k_{\mathrm{node}}", PURE, "ranks of one node", (1, 72), integer=True)
num_nodes = quantity("num_nodes", r"n_{\mathrm{node}}", PURE, "nodes", (1, 2048), integer=True)
intra_node_bytes = quantity("intra_node_bytes", r"V_{\mathrm{intra}}", BYTE, "bytes one rank sends to its own node", (0, 10**11))
inter_node_bytes = quantity("inter_node_bytes", r"V_{\mathrm{inter}}", BYTE, "bytes one rank sends to other nodes", (0, 10**11))
hierarchical_all_reduce_bytes = quantity(
    "hierarchical_all_reduce_bytes", r"V_{\mathrm{hier}}", BYTE, "bytes one rank sends in a hierarchical all-reduce", (0, 10**11)
)

# Data parallelism
bytes_per_reduced_grad = quantity(
    "bytes_per_reduced_grad", r"b_{\mathrm{red}}", BYTE, "bytes of one gradient as it travels", (2, 4), most=64
)
ddp_gradient_bytes = quantity("ddp_gradient_bytes", r"V_{\mathrm{DDP}}", BYTE, "bytes one rank sends to average its gradients", (0, 10**11))
ddp_gradient_time = quantity("ddp_gradient_time", r"t_{\mathrm{DDP}}", SECOND, "time to average the gradients, not overlapped", (0, 10))
forward_time = quantity("forward_time", r"t_{\mathrm{fwd}}", SECOND, "forward pass of a step", (0, 10))
backward_time = quantity("backward_time", r"t_{\mathrm{bwd}}", SECOND, "backward pass of a step", (0, 10))
bucket_backward_time = quantity("bucket_backward_time", r"t_{\mathrm{fill}}", SECOND, "time in which backward fills one bucket", (0, 10))
comm_time = quantity("comm_time", r"t_{\mathrm{comm}}", SECOND, "all communication of a step, on its own", (0, 10))
overlapped_step_time = quantity("overlapped_step_time", r"t_{\mathrm{step}}", SECOND, "step with communication behind backward", (0, 10))
exposed_comm_time = quantity("exposed_comm_time", r"t_{\mathrm{exposed}}", SECOND, "communication that no computation hides", (0, 10))
bucket = quantity("bucket", r"i_{\mathrm{bucket}}", PURE, "bucket, in the order in which backward fills them", (1, 1000), integer=True)
bucket_bytes = quantity("bucket_bytes", r"S_{\mathrm{bucket}}", BYTE, "bytes that a bucket holds", (10**6, 10**9))
num_workers = quantity("num_workers", "w", PURE, "workers of a parameter server", (1, 1024), integer=True)
num_servers = quantity("num_servers", "q", PURE, "parameter servers that share the parameters", (1, 1024), integer=True)
server_bytes = quantity("server_bytes", r"V_{\mathrm{server}}", BYTE, "bytes one parameter server sends", (0, 10**13))
worker_bytes = quantity("worker_bytes", r"V_{\mathrm{worker}}", BYTE, "bytes one worker of a parameter server sends", (0, 10**11))
tokens_first = quantity("tokens_first", "n_1", TOKEN, "tokens of the first micro-batch that count in the loss", (1, 10**5), integer=True)
tokens_second = quantity("tokens_second", "n_2", TOKEN, "tokens of the second micro-batch that count in the loss", (1, 10**5), integer=True)
_GRADIENT = {"span": (-10, 10), "least": -math.inf}
grad_sum_first = quantity("grad_sum_first", "G_1", TOKEN, "sum of the first micro-batch's gradients over its tokens", **_GRADIENT)
grad_sum_second = quantity("grad_sum_second", "G_2", TOKEN, "sum of the second micro-batch's gradients over its tokens", **_GRADIENT)
mean_grad_first = quantity("mean_grad_first", r"\bar g_1", PURE, "mean gradient of the first micro-batch", **_GRADIENT)
mean_grad_second = quantity("mean_grad_second", r"\bar g_2", PURE, "mean gradient of the second micro-batch", **_GRADIENT)
accumulated_grad = quantity("accumulated_grad", r"\bar g", PURE, "gradient accumulated over two micro-batches", **_GRADIENT)
accumulation_bias = quantity("accumulation_bias", r"\Delta\bar g", PURE, "error of averaging the micro-batches' means", **_GRADIENT)

# Floating-point formats
mantissa_bits = quantity("mantissa_bits", "p", PURE, "stored mantissa bits", (1, 52), integer=True, most=112)
exponent_bits = quantity("exponent_bits", r"e_{\mathrm{bits}}", PURE, "exponent bits", (2, 11), integer=True, least=2, most=11)
max_exponent = quantity("max_exponent", r"e_{\max}", PURE, "largest exponent of a finite number", (1, 1023), integer=True, most=1023)
reserved_codes = quantity(
    "reserved_codes",
    r"n_{\mathrm{NaN}}",
    PURE,
    "codes of the largest exponent that are no numbers",
    (0, 1),
    integer=True,
    least=0,
    choices=(0, 1),
)
exponent_bias = quantity("exponent_bias", r"e_{\mathrm{bias}}", PURE, "what is taken off the stored exponent", (1, 1023), integer=True)
binade = quantity("binade", "e", PURE, "exponent of a number, 2^e <= |w| < 2^(e+1)", (-20, 20), integer=True, least=-1100, most=1023)
largest_float = quantity("largest_float", r"x_{\max}", PURE, "largest finite number", (1, 1e38))
smallest_normal = quantity("smallest_normal", r"x_{\min}", PURE, "smallest number with a full mantissa", (0, 1))
smallest_subnormal = quantity("smallest_subnormal", r"x_{\mathrm{sub}}", PURE, "smallest number above zero", (0, 1))
float_spacing = quantity("float_spacing", r"\mathrm{ulp}", PURE, "distance between neighbouring numbers of a binade", (0, 1))
machine_epsilon = quantity("machine_epsilon", r"\varepsilon", PURE, "distance from 1 to the next larger number", (0, 1))
unit_roundoff = quantity("unit_roundoff", "u", PURE, "largest relative error of rounding to nearest", (0, 1))
spacing_halvings = quantity(
    "spacing_halvings", r"n_{1/2}", PURE, "1 where the spacing on the side moved to is half", integer=True, least=0, choices=(0, 1)
)
swallow_threshold = quantity(
    "swallow_threshold", r"\lvert\Delta w\rvert_{\min}", PURE, "updates below this leave the weight as it was", (0, 1)
)
loss_scale = quantity("loss_scale", r"s_{\mathrm{loss}}", PURE, "factor on the loss", (1, 2**24))
growth_interval = quantity("growth_interval", r"n_{\mathrm{grow}}", PURE, "clean steps before the scale doubles", (1, 4000), integer=True)
rescued_gradient = quantity("rescued_gradient", r"g_{\min}", PURE, "smallest gradient that survives with loss scaling", (0, 1))
overflow_gradient = quantity("overflow_gradient", r"g_{\max}", PURE, "largest gradient that does not overflow", (0, 1e5))
skipped_share = quantity("skipped_share", r"p_{\mathrm{skip}}", PURE, "share of steps skipped for overflow", most=1)
grad_norm = quantity("grad_norm", r"\lVert g\rVert", PURE, "norm of the whole gradient", (0, 10))
max_norm = quantity("max_norm", r"g_{\mathrm{clip}}", PURE, "norm a gradient is clipped to", (0.1, 10))
clip_factor = quantity("clip_factor", r"f_{\mathrm{clip}}", PURE, "factor on a clipped gradient", most=1)
sharded_square_sum = quantity(
    "sharded_square_sum", r"q_{\mathrm{shard}}", PURE, "squares of sharded gradients, mean over the ranks", (0, 10)
)
replicated_square_sum = quantity("replicated_square_sum", r"q_{\mathrm{rep}}", PURE, "squares of gradients every rank holds", (0, 10))
num_terms = quantity("num_terms", r"n_{\mathrm{sum}}", PURE, "numbers that are added", (2, 10**6), integer=True, least=2)
order_gap = quantity(
    "order_gap", r"\Delta_{\mathrm{order}}", PURE, "largest gap between two orders of adding, over the sum of sizes", (0, 1)
)
quantizer_block = quantity("quantizer_block", r"q_{\mathrm{block}}", PURE, "numbers that share one scale", (32, 4096), integer=True)
moment_saving_bytes = quantity("moment_saving_bytes", r"\Delta M_{8}", BYTE, "memory that one-byte moments save", (0, 10**12))
moment_saving_share = quantity("moment_saving_share", r"\rho_8", PURE, "share of the model states that one-byte moments save", most=1)
update_size = quantity("update_size", r"\Delta w", PURE, "size of one update of a weight", (0, 0.1))
num_updates = quantity("num_updates", r"n_{\mathrm{upd}}", PURE, "updates of that size", (1, 1000), integer=True)
weight_drift = quantity("weight_drift", r"w_n - w_0", PURE, "how far the updates have moved the weight", (0, 100))
moment_scale_bytes = quantity("moment_scale_bytes", r"M_{\mathrm{scale}}", BYTE, "fp32 scales of one-byte moments", (0, 10**10))

# Sharded data parallelism
bytes_per_gathered_weight = quantity(
    "bytes_per_gathered_weight", r"b_{\mathrm{gat}}", BYTE, "bytes of one weight as it travels", (1, 4), most=64
)
weight_gathers = quantity("weight_gathers", r"n_{\mathrm{AG}}", PURE, "times all weights are gathered per optimizer step", (0, 128))
grad_passes = quantity("grad_passes", r"n_{\mathrm{RS}}", PURE, "ring passes over the gradients per optimizer step", (0, 128))
zero_gather_bytes = quantity("zero_gather_bytes", r"V_{w,z}", BYTE, "bytes one rank sends to gather weights under ZeRO", (0, 10**13))
zero_reduce_bytes = quantity("zero_reduce_bytes", r"V_{g,z}", BYTE, "bytes one rank sends to reduce gradients under ZeRO", (0, 10**13))
zero_traffic_bytes = quantity("zero_traffic_bytes", "V_z", BYTE, "bytes one rank sends per optimizer step under ZeRO", (0, 10**13))
zero_traffic_elements = quantity("zero_traffic_elements", "E_z", PURE, "elements one rank sends per step under ZeRO", (0, 10**12))
zero_traffic_ratio = quantity("zero_traffic_ratio", r"V_z/V_{\mathrm{DDP}}", PURE, "traffic under ZeRO over that of DDP", (1, 100))
accumulation_comm_ratio = quantity(
    "accumulation_comm_ratio", r"\rho_K", PURE, "communication per computation with K micro-batches over that with one", (0, 1)
)
zero2_state_bytes = quantity("zero2_state_bytes", "M_2", BYTE, "model states of one rank under ZeRO-2", (0, 10**13))
whole_bytes_per_param = quantity(
    "whole_bytes_per_param", r"b_{\mathrm{whole}}", BYTE, "bytes of a parameter that every rank holds", (0, 20)
)
cut_bytes_per_param = quantity("cut_bytes_per_param", r"b_{\mathrm{cut}}", BYTE, "bytes of a parameter that one rank holds", (0, 20))
flat_shard_params = quantity(
    "flat_shard_params", r"\Psi_{\mathrm{flat}}", PURE, "elements of one rank's flat shard", (1, 10**12), integer=True
)
unit_params = quantity("unit_params", r"\Psi_u", PURE, "parameters of the largest FSDP unit", (10**5, 10**10), integer=True)
root_params = quantity("root_params", r"\Psi_{\mathrm{root}}", PURE, "parameters of FSDP's root unit", (0, 10**10), integer=True, least=0)
kept_params = quantity(
    "kept_params",
    r"\Psi_{\mathrm{kept}}",
    PURE,
    "parameters that stay whole from the forward to the backward pass",
    (0, 10**10),
    integer=True,
    least=0,
)
gather_buffers = quantity(
    "gather_buffers", r"n_{\mathrm{gat}}", PURE, "units whose weights are gathered at once", (1, 3), integer=True, least=0
)
reduce_buffers = quantity(
    "reduce_buffers", r"n_{\mathrm{red}}", PURE, "units whose gradients are whole at once", (1, 2), integer=True, least=0
)
working_bytes = quantity(
    "working_bytes", r"A_{\mathrm{work}}", BYTE, "what one unit's backward pass needs beside what is saved", (0, 10**11)
)
fsdp_gathered_bytes = quantity("fsdp_gathered_bytes", r"M_{\mathrm{gat}}", BYTE, "gathered weights of FSDP units", (0, 10**11))
fsdp_root_bytes = quantity("fsdp_root_bytes", r"M_{\mathrm{root}}", BYTE, "gathered weights of FSDP's root unit", (0, 10**11))
fsdp_grad_bytes = quantity("fsdp_grad_bytes", r"M_{\mathrm{red}}", BYTE, "whole gradients of FSDP units", (0, 10**11))
fsdp_activation_bytes = quantity(
    "fsdp_activation_bytes", r"M_{\mathrm{act,peak}}", BYTE, "saved activations and a working set", (0, 10**12)
)
fsdp_peak_bytes = quantity("fsdp_peak_bytes", r"M_{\mathrm{peak}}", BYTE, "largest memory of a rank during an FSDP step", (0, 10**12))
shard_params = quantity(
    "shard_params", r"\Psi_{\mathrm{shard}}", PURE, "elements of some tensors' shards on one rank", (0, 10**11), integer=True, least=0
)
reduced_units = quantity(
    "reduced_units", r"n_{\mathrm{done}}", PURE, "blocks whose gradients are reduced already", (0, 127), integer=True, least=0
)
fsdp_adam_bytes = quantity(
    "fsdp_adam_bytes", r"M_{\mathrm{Adam}}", BYTE, "Adam's moments and step counters of one rank's shards", (0, 10**12)
)
hsdp_state_bytes = quantity(
    "hsdp_state_bytes", r"M_{\mathrm{HSDP}}", BYTE, "model states of one rank, sharded within its node", (0, 10**12)
)
hsdp_intra_bytes = quantity("hsdp_intra_bytes", r"V_{\mathrm{HSDP,intra}}", BYTE, "bytes one rank sends within its node", (0, 10**12))
hsdp_inter_bytes = quantity("hsdp_inter_bytes", r"V_{\mathrm{HSDP,inter}}", BYTE, "bytes one rank sends to other nodes", (0, 10**12))
hsdp_egress_bytes = quantity("hsdp_egress_bytes", r"X_{\mathrm{HSDP}}", BYTE, "bytes that leave a node under hybrid sharding", (0, 10**12))
full_shard_egress_bytes = quantity(
    "full_shard_egress_bytes", r"X_{\mathrm{FSDP}}", BYTE, "bytes that leave a node when all ranks share one ring", (0, 10**12)
)
hpz_state_bytes = quantity(
    "hpz_state_bytes", r"M_{\mathrm{hpZ}}", BYTE, "model states of one rank with a second shard in the node", (0, 10**12)
)
hpz_egress_bytes = quantity("hpz_egress_bytes", r"X_{\mathrm{hpZ}}", BYTE, "bytes that leave a node with a second shard in it", (0, 10**12))
inside_time = quantity("inside_time", r"t_{\mathrm{inside}}", SECOND, "time on the links of a node", (0, 100))
crossing_time = quantity("crossing_time", r"t_{\mathrm{cross}}", SECOND, "time on the network between nodes", (0, 100))

# Tensor, context and expert parallelism
bytes_per_activation = quantity("bytes_per_activation", r"b_{\mathrm{act}}", BYTE, "bytes of one activation as it travels", (1, 4), most=64)
passes_per_layer = quantity(
    "passes_per_layer",
    r"n_{\mathrm{pass}}",
    PURE,
    "ring passes over a layer's boundary tensor per micro-batch",
    (4, 12),
    integer=True,
    least=0,
)
boundary_bytes = quantity("boundary_bytes", r"S_{\mathrm{act}}", BYTE, "activations between two layers, of one micro-batch", (0, 10**10))
row_cuts = quantity("row_cuts", r"n_{\mathrm{rows\,cut}}", PURE, "row-cut matrices of a layer", (0, 4), integer=True, least=0)
column_inputs = quantity(
    "column_inputs",
    r"n_{\mathrm{in}}",
    PURE,
    "times column-cut matrices of a layer take in activations of their own",
    (0, 8),
    integer=True,
    least=0,
)
collective_calls = quantity("collective_calls", r"n_{\mathrm{call}}", PURE, "collectives called in one pass through the layers", (0, 1000))
tp_vector_params = quantity(
    "tp_vector_params", r"\Psi_{\mathrm{vec},t}", PURE, "biases and norms of one layer on one tensor-parallel rank", (10**3, 10**6)
)
sums_per_step = quantity(
    "sums_per_step", r"n_{\mathrm{sum/step}}", PURE, "times a gradient is added up over the ranks", (1, 3), integer=True
)
norm_grad_bytes = quantity("norm_grad_bytes", r"V_{\mathrm{norm}}", BYTE, "bytes one rank sends to add up the norms' gradients", (0, 10**9))
tp_layer_bytes = quantity("tp_layer_bytes", r"V_{\mathrm{TP}}", BYTE, "bytes one tensor-parallel rank sends per layer", (0, 10**11))
tp_model_bytes = quantity("tp_model_bytes", r"V_{\mathrm{TP},L}", BYTE, "bytes one tensor-parallel rank sends for all layers", (0, 10**12))
mlp_matrices = quantity(
    "mlp_matrices", r"n_{\mathrm{mlp}}", PURE, "matrices of the feed-forward layer", (2, 3), integer=True, choices=(2, 3)
)
tp_mlp_params = quantity("tp_mlp_params", r"\Psi_{\mathrm{mlp},t}", PURE, "feed-forward parameters of one rank and layer", (0, 10**10))
tp_attention_params = quantity(
    "tp_attention_params", r"\Psi_{\mathrm{attn},t}", PURE, "attention parameters of one rank and layer", (0, 10**10)
)
tp_activation_bytes = quantity(
    "tp_activation_bytes", r"A_{\mathrm{TP}}", BYTE, "activations of one layer on one tensor-parallel rank", (0, 10**11)
)
sp_activation_bytes = quantity("sp_activation_bytes", r"A_{\mathrm{SP}}", BYTE, "those with sequence parallelism", (0, 10**11))
kv_passes = quantity(
    "kv_passes", r"n_{\mathrm{kv}}", PURE, "ring passes over a layer's keys and values per micro-batch", (2, 6), integer=True
)
cp_layer_bytes = quantity("cp_layer_bytes", r"V_{\mathrm{CP}}", BYTE, "bytes one context-parallel rank sends per layer", (0, 10**11))
ulysses_layer_bytes = quantity(
    "ulysses_layer_bytes", r"V_{\mathrm{Ulysses}}", BYTE, "bytes one rank sends per layer under Ulysses", (0, 10**11)
)
expert_parallel = quantity("expert_parallel", r"k_{\mathrm{ep}}", PURE, "expert-parallel ranks", (1, 64), integer=True)
experts_per_token = quantity("experts_per_token", r"k_{\mathrm{top}}", PURE, "experts that see a token", (1, 16), integer=True)
ep_layer_bytes = quantity("ep_layer_bytes", r"V_{\mathrm{EP}}", BYTE, "bytes one expert-parallel rank sends per expert layer", (0, 10**11))

# Pipeline
stage_forward_time = quantity("stage_forward_time", "t_F", SECOND, "forward pass of one micro-batch on one stage", (0, 1))
stage_backward_time = quantity("stage_backward_time", "t_B", SECOND, "backward pass of one micro-batch on one stage", (0, 1))
input_grad_time = quantity("input_grad_time", "t_X", SECOND, "part of that backward pass that computes the input's gradient", (0, 1))
weight_grad_time = quantity("weight_grad_time", "t_W", SECOND, "part of that backward pass that computes the weights' gradients", (0, 1))
stage_index = quantity("stage_index", "j", PURE, "pipeline stage, counted from 1", (1, 64), integer=True)
pipeline_step_time = quantity("pipeline_step_time", r"t_{\mathrm{pipe}}", SECOND, "step of a pipeline", (0, 100))
pipeline_bubble = quantity("pipeline_bubble", r"\phi", PURE, "share of a pipeline's time in which a stage idles", (0, 1), most=1)
bubble_ratio = quantity("bubble_ratio", r"\phi/(1-\phi)", PURE, "idle time of a stage over its working time", (0, 10))
interleaved_bubble = quantity("interleaved_bubble", r"\phi_V", PURE, "that share with several chunks per stage", (0, 1), most=1)
interleaved_bubble_ratio = quantity(
    "interleaved_bubble_ratio", r"\phi_V/(1-\phi_V)", PURE, "that ratio with several chunks per stage", (0, 10)
)
zb_h1_bubble_time = quantity("zb_h1_bubble_time", r"t_{\mathrm{H1}}", SECOND, "idle time of a stage under ZB-H1", (0, 10))
zb_h2_bubble_time = quantity("zb_h2_bubble_time", r"t_{\mathrm{H2}}", SECOND, "idle time of a stage under ZB-H2", (0, 10))
zb_h1_bubble = quantity("zb_h1_bubble", r"\phi_{\mathrm{H1}}", PURE, "share of the time in which a stage idles under ZB-H1", (0, 1), most=1)
chunk_boundaries = quantity(
    "chunk_boundaries", r"n_{\mathrm{cut}}", PURE, "places where a micro-batch changes cards", (0, 500), integer=True, least=0
)
gpipe_in_flight = quantity("gpipe_in_flight", r"L_{\mathrm{GPipe}}", PURE, "layer-activations alive on a card under GPipe", (0, 10**4))
in_flight = quantity("in_flight", r"L_{\mathrm{1F1B}}", PURE, "layer-activations alive on a card under 1F1B", (0, 10**3))
interleaved_in_flight = quantity(
    "interleaved_in_flight", r"L_{\mathrm{1F1B},V}", PURE, "layer-activations alive on a card under interleaved 1F1B", (0, 10**3)
)
zb_h2_in_flight = quantity("zb_h2_in_flight", r"L_{\mathrm{H2}}", PURE, "layer-activations alive on a card under ZB-H2", (0, 10**3))
interleaved_zero_bubble = quantity(
    "interleaved_zero_bubble",
    r"\phi_{\mathrm{H1},V}",
    PURE,
    "that share with several chunks per stage and backward in two halves",
    (0, 1),
    most=1,
)
interleaved_zero_in_flight = quantity(
    "interleaved_zero_in_flight",
    r"L_{\mathrm{H1},V}",
    PURE,
    "layer-activations alive on a card under interleaved 1F1B with backward in two halves",
    (0, 10**3),
)
backward_parts = quantity(
    "backward_parts",
    r"n_{\mathrm{bwd}}",
    PURE,
    "passes that a backward pass is made in: 2 if it is split",
    (1, 2),
    integer=True,
    choices=(1, 2),
)
stage_operations = quantity(
    "stage_operations", r"n_{\mathrm{op}}", PURE, "forward and backward passes of a card in a step", (2, 10**4), integer=True
)
pipeline_p2p_bytes = quantity("pipeline_p2p_bytes", r"V_{\mathrm{PP}}", BYTE, "bytes an inner stage sends per step", (0, 10**12))

# Adapters and quantised weights
lora_rank = quantity("lora_rank", "r", PURE, "rank of an adapter", (1, 256), integer=True)
in_features = quantity("in_features", r"d_{\mathrm{in}}", PURE, "columns of a weight matrix", (256, 65536), integer=True)
out_features = quantity("out_features", r"d_{\mathrm{out}}", PURE, "rows of a weight matrix", (256, 65536), integer=True)
_SWITCH = {"integer": True, "least": 0, "choices": (0, 1)}
adapts_query = quantity("adapts_query", r"\tau_q", PURE, "1 if the query projection has an adapter", **_SWITCH)
adapts_key = quantity("adapts_key", r"\tau_k", PURE, "1 if the key projection has an adapter", **_SWITCH)
adapts_value = quantity("adapts_value", r"\tau_v", PURE, "1 if the value projection has an adapter", **_SWITCH)
adapts_output = quantity("adapts_output", r"\tau_o", PURE, "1 if the output projection has an adapter", **_SWITCH)
adapts_mlp = quantity("adapts_mlp", r"\tau_{\mathrm{mlp}}", PURE, "1 if the three MLP matrices have adapters", **_SWITCH)
lora_matrix_params = quantity("lora_matrix_params", r"\Psi_{BA}", PURE, "parameters of one adapter", (10**3, 10**7))
dora_matrix_params = quantity(
    "dora_matrix_params", r"\Psi_{\mathrm{DoRA}}", PURE, "parameters of one adapter with magnitudes", (10**3, 10**7)
)
break_even_rank = quantity("break_even_rank", r"r_{=}", PURE, "rank at which an adapter has as many parameters as its matrix", (1, 10**4))
lora_projection_params = quantity(
    "lora_projection_params", r"\Psi_{\mathrm{proj}}", PURE, "adapter parameters of one projection, all layers"
)
lora_params = quantity("lora_params", r"\Psi_{\mathrm{LoRA}}", PURE, "adapter parameters of the whole model", (10**5, 10**9), integer=True)
lora_share = quantity("lora_share", r"\rho_{\mathrm{LoRA}}", PURE, "trainable share of the parameters", most=1)
lora_state_bytes = quantity("lora_state_bytes", r"M_{\mathrm{LoRA}}", BYTE, "model states of the adapters", (0, 10**10))
bytes_per_frozen = quantity("bytes_per_frozen", r"b_{\mathrm{frozen}}", BYTE, "bytes of one frozen weight", **_PER_PARAM)
lora_memory_bytes = quantity("lora_memory_bytes", r"M_{\mathrm{frozen+LoRA}}", BYTE, "frozen weights and the adapters' states", (0, 10**12))
lora_flop_per_token = quantity("lora_flop_per_token", r"C_{\mathrm{LoRA}}", FLOP / TOKEN, "FLOP of a LoRA step per token", (10**9, 10**12))
lora_alpha = quantity("lora_alpha", r"\alpha_{\mathrm{LoRA}}", PURE, "LoRA's alpha", (1, 256))
rank_scale = quantity("rank_scale", r"\gamma", PURE, "factor on an adapter's product", (0, 64))
learning_rate = quantity("learning_rate", r"\eta_{\mathrm{lr}}", PURE, "learning rate", (0, 1))
output_gradient = quantity("output_gradient", r"g_{\mathrm{out}}", PURE, "gradient at an adapter's output", (0, 1))
bytes_per_code = quantity("bytes_per_code", r"b_{\mathrm{code}}", BYTE, "bytes of one quantised weight", (0, 1), most=8)
bytes_per_scale = quantity("bytes_per_scale", r"b_{\mathrm{scale}}", BYTE, "bytes of one block's scale", (0, 4), most=8)
bytes_per_group_scale = quantity("bytes_per_group_scale", r"b_{\mathrm{group}}", BYTE, "bytes of one scale of scales", (0, 4), most=8)
scale_group = quantity("scale_group", r"q_{\mathrm{group}}", PURE, "scales that share one scale of their own", (64, 1024), integer=True)
quantized_weight_bytes = quantity(
    "quantized_weight_bytes", r"b_{\mathrm{quant}}", BYTE, "a quantised weight with its share of scales", (0, 1)
)
quantized_params = quantity(
    "quantized_params", r"\Psi_{\mathrm{quant}}", PURE, "parameters in quantised matrices", (10**8, 10**11), integer=True
)
unquantized_params = quantity(
    "unquantized_params", r"\Psi_{\mathrm{rest}}", PURE, "embeddings, head, norms", (10**6, 10**10), integer=True, least=0
)
bytes_per_unquantized = quantity("bytes_per_unquantized", r"b_{\mathrm{rest}}", BYTE, "bytes of a weight left unquantised", **_PER_PARAM)
qlora_base_bytes = quantity("qlora_base_bytes", r"M_{\mathrm{base}}", BYTE, "the frozen, quantised model", (0, 10**12))
qlora_memory_bytes = quantity(
    "qlora_memory_bytes", r"M_{\mathrm{QLoRA}}", BYTE, "the quantised model and the adapters' states", (0, 10**12)
)
double_quant_saving = quantity(
    "double_quant_saving", r"\Delta b_{\mathrm{DQ}}", BYTE, "what quantising the scales saves per weight", (0, 1)
)
dequantized_bytes = quantity("dequantized_bytes", r"M_{\mathrm{deq}}", BYTE, "a matrix dequantised for its product", (0, 10**10))

# Work and speed
forward_flop_per_token = quantity(
    "forward_flop_per_token", r"C_{\mathrm{fwd}}", FLOP / TOKEN, "FLOP of a forward pass per token", (10**9, 10**12)
)
flop_per_token = quantity("flop_per_token", r"C_{\mathrm{tok}}", FLOP / TOKEN, "FLOP of a training step per token", (10**9, 10**13))
attention_flop_per_token = quantity(
    "attention_flop_per_token", r"C_{\mathrm{att}}", FLOP / TOKEN, "FLOP of the attention scores per token", (10**8, 10**12)
)
causal_share = quantity("causal_share", r"p_{\mathrm{causal}}", PURE, "share of the score matrix that is counted", (0.5, 1), most=1)
step_flop = quantity("step_flop", r"C_{\mathrm{step}}", FLOP, "FLOP of a training step", (10**15, 10**19))
part_flop = quantity("part_flop", r"C_i", FLOP, "FLOP of one part of a training step", (10**12, 10**19))
step_time = quantity("step_time", r"t_{\mathrm{wall}}", SECOND, "wall-clock time of a training step", (0, 60))
tokens_per_step = quantity("tokens_per_step", r"D_{\mathrm{step}}", TOKEN, "tokens of one step", (10**5, 10**8))
tokens_per_s = quantity("tokens_per_s", "R", TOKEN / SECOND, "tokens per second of the whole cluster", (10**3, 10**7))
peak_factor = quantity(
    "peak_factor", r"f_{\mathrm{peak}}", PURE, "peak that is meant, over the dense peak", (1, 2), integer=True, choices=(1, 2)
)
mfu = quantity("mfu", r"\mathrm{MFU}", PURE, "model FLOP utilisation", most=1)
hfu = quantity("hfu", r"\mathrm{HFU}", PURE, "hardware FLOP utilisation", most=1)
kernel_efficiency = quantity("kernel_efficiency", r"\eta", PURE, "share of the peak that the kernels reach", most=1)
num_tokens = quantity("num_tokens", "D", TOKEN, "tokens of the whole training", (10**9, 10**14))
training_time = quantity("training_time", r"t_{\mathrm{train}}", SECOND, "time of the whole training", (10**4, 10**8))
gpu_time = quantity("gpu_time", r"T_{\mathrm{GPU}}", SECOND, "time of all GPUs together", (10**6, 10**11))
gpu_price = quantity("gpu_price", r"\pi_{\mathrm{GPU}}", DOLLAR / SECOND, "price of one GPU", (0, 10 / 3600))
training_dollars = quantity("training_dollars", r"\pi_{\mathrm{train}}", DOLLAR, "price of the training", (10**3, 10**9))
gpu_power = quantity("gpu_power", r"w_{\mathrm{GPU}}", JOULE / SECOND, "power of one GPU", (100, 1200))
power_overhead = quantity(
    "power_overhead", r"f_{\mathrm{PUE}}", PURE, "power of the data centre over that of its machines", (1, 2), least=1
)
training_energy = quantity("training_energy", r"W_{\mathrm{train}}", JOULE, "energy of the training", (10**6, 10**14))

# Scaling
one_gpu_step_time = quantity("one_gpu_step_time", "t_1", SECOND, "time of a step on one GPU", (0, 100))
one_gpu_tokens_per_s = quantity("one_gpu_tokens_per_s", "R_1", TOKEN / SECOND, "tokens per second of one GPU", (10, 10**5))
scaling_efficiency = quantity("scaling_efficiency", r"E_n", PURE, "speed-up per GPU", most=1)
exposed_growth = quantity("exposed_growth", r"G_{\mathrm{exposed}}", PURE, "factor by which exposed time may grow", (0, 100))
compute_time = quantity("compute_time", r"t_{\mathrm{comp}}", SECOND, "time the kernels of a step take", (0, 60))
comm_bytes = quantity("comm_bytes", r"V_{\mathrm{rank}}", BYTE, "bytes one rank sends per step", (10**6, 10**12))
critical_gpus = quantity("critical_gpus", r"n_{=}", PURE, "GPUs at which communication takes as long as computation", (1, 10**5))
hiding_gpus = quantity("hiding_gpus", r"n_{\mathrm{hide}}", PURE, "GPUs up to which backward hides all communication", (1, 10**5))
hiding_tokens = quantity(
    "hiding_tokens", r"D_{\mathrm{hide}}", TOKEN, "tokens per GPU and step that hide the gradients' all-reduce", (10**2, 10**5)
)
machine_balance = quantity("machine_balance", r"I_{=}", FLOP / BYTE, "FLOP a machine can do for each byte it moves", (1, 10**5))

# Offload
offload_down_bytes = quantity("offload_down_bytes", r"V_{\downarrow}", BYTE, "bytes one rank copies to its host per step", (0, 10**12))
offload_up_bytes = quantity("offload_up_bytes", r"V_{\uparrow}", BYTE, "bytes one rank copies from its host per step", (0, 10**12))
host_bandwidth = quantity(
    "host_bandwidth", r"\beta_{\mathrm{PCIe}}", BYTE / SECOND, "bandwidth to the host, per direction", (8 * 10**9, 64 * 10**9)
)
offload_time = quantity("offload_time", r"t_{\mathrm{offload}}", SECOND, "time of the copies of a step", (0, 60))
host_adam_time = quantity(
    "host_adam_time", r"t_{\mathrm{Adam}}", SECOND, "time the hosts take for Adam's update of all parameters", (0, 10)
)
layer_backward_time = quantity("layer_backward_time", r"t_{\mathrm{bwd},1}", SECOND, "backward pass of one layer", (0, 1))
layer_down_time = quantity("layer_down_time", r"t_{\downarrow,1}", SECOND, "time to copy one layer's gradients to the host", (0, 1))
layer_adam_time = quantity("layer_adam_time", r"t_{\mathrm{Adam},1}", SECOND, "time of Adam's update of one layer on the host", (0, 1))
layer_up_time = quantity("layer_up_time", r"t_{\uparrow,1}", SECOND, "time to copy one layer's weights from the host", (0, 1))
offload_step_time = quantity("offload_step_time", r"t_{\mathrm{off}}", SECOND, "step with optimizer offload, layer by layer", (0, 60))
host_state_bytes = quantity("host_state_bytes", r"M_{\mathrm{host}}", BYTE, "host memory for offloaded states, all ranks", (0, 10**13))
storage_bandwidth = quantity(
    "storage_bandwidth", r"\beta_{\mathrm{store}}", BYTE / SECOND, "bandwidth of the storage all ranks share", (10**9, 10**12)
)
nvme_time = quantity("nvme_time", r"t_{\mathrm{NVMe}}", SECOND, "time to read and write the optimizer states once", (0, 1000))
num_lanes = quantity("num_lanes", r"n_{\mathrm{lane}}", PURE, "lanes of a link", (1, 16), integer=True)
transfers_per_s = quantity(
    "transfers_per_s", r"\nu_{\mathrm{lane}}", 1 / SECOND, "transfers of one lane per second", (2.5 * 10**9, 64 * 10**9)
)
pcie_bandwidth = quantity(
    "pcie_bandwidth", r"\beta_{\mathrm{link}}", BYTE / SECOND, "bandwidth of a PCIe link, per direction", (10**9, 10**11)
)
step_time_growth = quantity("step_time_growth", r"G_t", PURE, "factor by which a step takes longer", (1, 4), least=1)
throughput_loss = quantity("throughput_loss", r"\Delta R/R", PURE, "share of the throughput that is lost", most=1)
moved_bytes = quantity("moved_bytes", r"V_{\mathrm{moved}}", BYTE, "activations moved to the host per micro-batch", (10**6, 10**11))
exposed_offload_time = quantity("exposed_offload_time", r"t_{\mathrm{wait}}", SECOND, "time that waits for copies", (0, 10))
hiding_bandwidth = quantity("hiding_bandwidth", r"\beta_{\mathrm{hide}}", BYTE / SECOND, "bandwidth that hides the copies", (10**8, 10**11))

# Failures and checkpoints
gpu_failure_rate = quantity("gpu_failure_rate", r"\lambda_1", 1 / SECOND, "failures of one GPU per second", (10**-11, 10**-7))
failure_rate = quantity("failure_rate", r"\lambda", 1 / SECOND, "failures of the job per second", (10**-7, 10**-4))
mtbf = quantity("mtbf", r"\mathrm{MTBF}", SECOND, "mean time between failures of the job", (10**3, 10**7))
expected_stops = quantity("expected_stops", r"n_{\mathrm{stop}}", PURE, "failures expected during the training", (0, 1000))
checkpoint_time = quantity("checkpoint_time", r"\delta", SECOND, "time training waits for a checkpoint", (1, 600))
restart_time = quantity("restart_time", r"t_{\mathrm{restart}}", SECOND, "time from a failure to training again", (0, 3600))
checkpoint_interval = quantity("checkpoint_interval", r"\tau", SECOND, "training time between checkpoints", (60, 86400))
checkpoint_overhead = quantity(
    "checkpoint_overhead", r"\phi_{\mathrm{ckpt}}", PURE, "share of time lost to checkpoints and failures", most=1
)
segment_time = quantity(
    "segment_time", r"t_{\mathrm{seg}}", SECOND, "expected time to get through one interval and its checkpoint", (60, 10**6)
)
goodput = quantity("goodput", r"\Gamma", PURE, "share of time that is training kept", most=1)
checkpoint_param_bytes = quantity(
    "checkpoint_param_bytes", r"b_{\mathrm{ckpt}}", BYTE, "bytes of one parameter in a checkpoint", **_PER_PARAM
)
checkpoint_bytes = quantity("checkpoint_bytes", r"M_{\mathrm{ckpt}}", BYTE, "size of a checkpoint", (10**9, 10**13))

# Capacity
reserve_bytes = quantity("reserve_bytes", r"M_{\mathrm{reserve}}", BYTE, "context, buffers and fragmentation of one card", (0, 2 * 10**10))
transient_bytes = quantity(
    "transient_bytes", r"M_{\mathrm{trans}}", BYTE, "gathered weights and whole gradients alive at the peak", (0, 2 * 10**10)
)
largest_params = quantity("largest_params", r"\Psi_{\max}", PURE, "parameters of the largest model that fits", (10**8, 10**12))
fewest_gpus = quantity("fewest_gpus", r"n_{\min}", PURE, "fewest cards whose memory the model states fit", (1, 1024), integer=True)
safety_factor = quantity("safety_factor", r"x", PURE, "memory planned for, over memory predicted", (1, 2), least=1)
free_share = quantity("free_share", r"p_{\mathrm{free}}", PURE, "share of the card that stays free", most=1)
prefix_power = quantity(
    "prefix_power", r"n_{\mathrm{prefix}}", PURE, "1 for kilo, 2 for mega, 3 for giga, 4 for tera", (1, 4), integer=True, most=10
)
stated_figure = quantity("stated_figure", r"x_{\mathrm{figure}}", PURE, "figure that stands before a unit", (1, 1000))
decimal_bytes = quantity("decimal_bytes", r"M_{10}", BYTE, "that figure with a decimal prefix, in bytes", (1, 10**15))
binary_bytes = quantity("binary_bytes", r"M_{2}", BYTE, "that figure with a binary prefix, in bytes", (1, 10**15))
decimal_bit_bytes = quantity("decimal_bit_bytes", r"M_{\mathrm{bit}}", BYTE, "that figure with a decimal prefix, in bits", (1, 10**15))
prefix_ratio = quantity("prefix_ratio", r"f_{\mathrm{prefix}}", PURE, "binary unit over the decimal one of that prefix", (1, 1.2))
parallel_state_bytes = quantity("parallel_state_bytes", r"M_{\mathrm{card}}", BYTE, "model states of one card", (0, 10**12))
reserved_bytes = quantity("reserved_bytes", r"M_{\mathrm{reserved}}", BYTE, "memory the allocator holds", (0, 10**11))
allocated_bytes = quantity("allocated_bytes", r"M_{\mathrm{allocated}}", BYTE, "memory of live tensors", (0, 10**11))
fragmentation = quantity("fragmentation", r"p_{\mathrm{frag}}", PURE, "share of the held memory that no tensor uses", most=1)
tensor_bytes = quantity("tensor_bytes", r"M_{\mathrm{tensor}}", BYTE, "memory asked for", (1, 10**9))
block_bytes = quantity("block_bytes", r"M_{\mathrm{block}}", BYTE, "memory given for it", (512, 10**9))
allocation_unit = quantity("allocation_unit", r"b_{\mathrm{alloc}}", BYTE, "what the allocator rounds up to", (1, 4096))

# Parameters of a Transformer, part by part
part_params = quantity(
    "part_params", r"\Psi_{\mathrm{part}}", PURE, "parameters of one part of the model", (0, 10**12), integer=True, least=0
)
active_params = quantity(
    "active_params", r"\Psi_{\mathrm{active}}", PURE, "parameters that work on one token", (10**8, 10**12), integer=True
)
norm_vectors = quantity(
    "norm_vectors", r"n_{\mathrm{vec}}", PURE, "vectors of a norm: 1 for RMSNorm, 2 for LayerNorm", (1, 2), integer=True, choices=(1, 2)
)
extra_norms = quantity("extra_norms", r"n_{\mathrm{extra}}", PURE, "norms beside two a layer and a last one", (0, 2), integer=True, least=0)
qkv_bias = quantity("qkv_bias", r"\beta_{qkv}", PURE, "1 if queries, keys and values have biases", **_SWITCH)
output_bias = quantity("output_bias", r"\beta_o", PURE, "1 if the attention's output has a bias", **_SWITCH)
mlp_bias = quantity("mlp_bias", r"\beta_{\mathrm{mlp}}", PURE, "1 if the MLP's matrices have biases", **_SWITCH)
tied_embeddings = quantity("tied_embeddings", r"\tau_{\mathrm{tied}}", PURE, "1 if the output head is the embedding", **_SWITCH)
num_experts = quantity("num_experts", r"n_{\mathrm{exp}}", PURE, "MLPs of a layer; 1 without a mixture of experts", (1, 256), integer=True)
active_experts = quantity("active_experts", r"n_{\mathrm{act}}", PURE, "experts that work on one token", (1, 16), integer=True)

# Hardware
memory_bandwidth = quantity("memory_bandwidth", r"\beta_{\mathrm{HBM}}", BYTE / SECOND, "bandwidth of a card's memory", (10**11, 10**13))
num_multiprocessors = quantity("num_multiprocessors", r"n_{\mathrm{SM}}", PURE, "multiprocessors of a card", (1, 200), integer=True)
multiprocessor_memory = quantity(
    "multiprocessor_memory", r"M_{\mathrm{SM}}", BYTE, "on-chip memory of one multiprocessor", (64 * 2**10, 256 * 2**10)
)
sparse_flop_per_s = quantity(
    "sparse_flop_per_s", r"F_{\mathrm{sparse}}", FLOP / SECOND, "16-bit peak with 2:4 sparsity", (10**13, 5 * 10**15)
)
fp8_flop_per_s = quantity("fp8_flop_per_s", r"F_{\mathrm{fp8}}", FLOP / SECOND, "dense fp8 peak of one card", (10**14, 5 * 10**15))
tf32_flop_per_s = quantity("tf32_flop_per_s", r"F_{\mathrm{tf32}}", FLOP / SECOND, "dense TF32 peak of one card", (10**13, 2 * 10**15))
fp32_flop_per_s = quantity(
    "fp32_flop_per_s", r"F_{\mathrm{fp32}}", FLOP / SECOND, "fp32 peak of one card outside its matrix units", (10**12, 2 * 10**14)
)
link_bandwidth = quantity(
    "link_bandwidth",
    r"\beta_{\mathrm{GPU}}",
    BYTE / SECOND,
    "bandwidth between the cards of a node, per card and direction",
    (10**10, 10**12),
)

# A plan for a cluster
recomputed = quantity("recomputed", r"\rho_{\mathrm{all}}", PURE, "1 if every layer is rebuilt in the backward pass", **_SWITCH)
plan_activation_bytes = quantity("plan_activation_bytes", r"A_{\mathrm{plan}}", BYTE, "activations of the first stage's card", (0, 10**12))
plan_gathered_bytes = quantity(
    "plan_gathered_bytes", r"M_{\mathrm{layer}}", BYTE, "a layer's whole weights and gradients, for a moment", (0, 10**11)
)
plan_logits_bytes = quantity(
    "plan_logits_bytes", r"A_{\mathrm{logits}}", BYTE, "a card's part of the logits of one micro-batch", (0, 10**11)
)
plan_memory_bytes = quantity("plan_memory_bytes", r"M_{\mathrm{plan}}", BYTE, "memory of the fullest card", (0, 10**13))
plan_compute_time = quantity(
    "plan_compute_time", r"t_{\mathrm{work}}", SECOND, "computation of a step, with what the pipeline idles", (0, 1000)
)
plan_tp_time = quantity("plan_tp_time", r"t_{\mathrm{TP}}", SECOND, "collectives of the layers that a card has, in a step", (0, 1000))
plan_dp_time = quantity("plan_dp_time", r"t_{\mathrm{DP}}", SECOND, "weights and gradients between replicas, in a step", (0, 1000))
plan_hidden_time = quantity("plan_hidden_time", r"t_{\mathrm{hide}}", SECOND, "computation that their traffic can hide behind", (0, 1000))
plan_step_time = quantity("plan_step_time", r"t_{\mathrm{plan}}", SECOND, "time of a step", (0, 1000))
