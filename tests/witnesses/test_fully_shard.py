"""The moments of a step under fully_shard, counted tensor by tensor while torch takes it: nothing here is made from the formulas.

The models are cut short. The first three were predicted before they were first run. The fourth corrected the root's formula, which
had missed that a gradient is still referred to while the reduced shards are made; the corrected one then held on 3 and 5 ranks.
The fifth meets the loss with more than one sequence, the sixth the root on an odd number of ranks.
"""

import pytest

from labs import load

BLOCK, LOSS, ROOT = "block", "loss", "root"
# which moment holds most there, and the conditions
CONFIGURATIONS = [
    (BLOCK, {"model": "Mistral 7B", "num_layers": 5, "ranks": 24, "seq_length": 8192}),
    (BLOCK, {"model": "Llama 2 7B", "num_layers": 4, "ranks": 3, "seq_length": 2048, "micro_batch": 2}),
    (LOSS, {"model": "Llama 3 8B", "num_layers": 5, "ranks": 7}),
    (ROOT, {"model": "Llama 3 8B", "num_layers": 8, "ranks": 2, "seq_length": 2048, "micro_batch": 2}),
    (LOSS, {"model": "Llama 3 8B", "num_layers": 5, "ranks": 7, "seq_length": 4096, "micro_batch": 2}),
    (ROOT, {"model": "Llama 3 8B", "num_layers": 8, "ranks": 3, "seq_length": 4128}),
]


@pytest.mark.witness("fp32_shard_bytes", "fsdp_adam_bytes", "gathered_shards_bytes", "reduce_input_bytes")
@pytest.mark.witness("saved_at_loss_bytes", "working_at_loss_bytes", "saved_at_block_bytes", "working_at_block_bytes")
@pytest.mark.witness("saved_at_root_bytes", "working_at_root_bytes")
@pytest.mark.parametrize(("moment", "conditions"), CONFIGURATIONS)
def test_every_category_is_counted_as_predicted(moment, conditions):
    found = load("paper_cluster").run(timeout=300, **conditions)
    assert found.measurement, found.failure
    used = {x.estimate.formula.name for x in found.predictions}
    assert {f"saved_at_{moment}_bytes", f"working_at_{moment}_bytes"} <= used
    assert {x.key: x.measured for x in found.lines} == {x.key: x.predicted for x in found.lines}
    assert {x.part for x in found.lines if x.measured} >= {
        "weights",
        "gradients",
        "optimizer state",
        "saved activations",
        "working tensors",
    }
