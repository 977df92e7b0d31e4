"""Layers cut by PyTorch itself, on ranks that are only pretended, with every collective counted: nothing here is made from the formulas."""

import json
import subprocess
import sys

import pytest

from formulary import formula
from labs.launch import ROOT

SIZES = {"hidden_size": 16, "ffn_size": 48, "num_layers": 3, "num_heads": 4, "seq_length": 8, "micro_batch": 2}
RANKS = 4
# plan: (row cuts of a layer, times that its column cuts take in activations), told by reading the plan
CUTS = {"naive": (2, 4), "prepared": (2, 2), "sequence": (2, 2)}

COUNT = """
import json, sys
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from labs import paper
from labs.collectives import Collectives, plain
from labs.jobs import tensor_parallel as job

sizes, ranks = json.loads(sys.argv[1]), int(sys.argv[2])
told = {}
with paper.cluster(ranks) as mesh:
    x = job.random_input(sizes, "cpu")
    for plan in job.PLANS:
        stack = job.cut(job.build(sizes, "cpu"), plan, mesh)
        _, _, phases = job.run(stack, job.own(x, plan, mesh))
        told[plan] = {phase: [[c.kind, c.nbytes, plain([c.sent])] for c in moved.calls] for phase, moved in phases.items()}
        told[plan]["params"] = job.params(stack.blocks[0])["biases and norms"]
    for kept in (True, False):
        stack = job.build(sizes, "cpu")
        for block in stack.blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=not kept)
        with Collectives() as moved:
            for _ in range(2):
                stack(x).sum().backward()
        told[f"kept {kept}"] = plain([moved.sent()["all-gather"]])
        told["parameters"] = sum(p.numel() for p in stack.parameters())
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def counted():
    """In a process of its own, since it takes the process group."""
    words = [sys.executable, "-c", COUNT, json.dumps(SIZES), str(RANKS)]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.witness("plan_passes")
@pytest.mark.parametrize("plan", CUTS)
def test_passes_of_a_plan(counted, plan):
    cuts, inputs = CUTS[plan]
    passes = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
    phases = counted[plan]["forward"] + counted[plan]["backward"]
    assert {nbytes for _, nbytes, _ in phases} == {4 * 16 * 8 * 2}  # all of them over the whole boundary in fp32
    assert sum(passes[kind] for kind, _, _ in phases) == 3 * formula("plan_passes")(row_cuts=cuts, column_inputs=inputs)


@pytest.mark.witness("row_cut_calls", "column_input_calls")
@pytest.mark.parametrize("plan", CUTS)
def test_calls_of_a_plan(counted, plan):
    cuts, inputs = CUTS[plan]
    found = sorted(len(counted[plan][phase]) for phase in ("forward", "backward"))
    row, column = formula("row_cut_calls")(num_layers=3, row_cuts=cuts), formula("column_input_calls")(num_layers=3, column_inputs=inputs)
    assert found == ([row + column] * 2 if plan == "sequence" else [row, column])


@pytest.mark.witness("norm_grad_bytes")
def test_norms_of_ranks_with_their_own_tokens(counted):
    """Twelve vectors of sixteen numbers, added up three times by an all-reduce that sends twice three quarters of each."""
    sent = sum(sent for _, _, sent in counted["sequence"]["optimizer step"])
    assert sent == 12 * 3 * 2 * 64 * 3 / 4
    values = {"hidden_size": 16, "num_layers": 3, "norm_vectors": 2, "tensor_parallel": RANKS, "bytes_per_reduced_grad": 4}
    assert formula("norm_grad_bytes").under("summed_in_adam")(**values) == sent
    assert counted["naive"]["optimizer step"] == counted["prepared"]["optimizer step"] == []


@pytest.mark.witness("tp_vector_params")
@pytest.mark.parametrize("plan", CUTS)
def test_vectors_of_a_layer(counted, plan):
    assert formula("tp_vector_params")(hidden_size=16, ffn_size=48, tensor_parallel=RANKS) == counted[plan]["params"]


@pytest.mark.witness("fsdp_gather_bytes")
@pytest.mark.parametrize("kept", [True, False])
def test_weights_kept_or_gathered_again(counted, kept):
    values = {"num_params": counted["parameters"], "world_size": RANKS, "bytes_per_gathered_weight": 4, "accumulation_steps": 2}
    whole = counted["parameters"] if kept else 0
    assert formula("fsdp_gather_bytes")(kept_params=whole, **values) == counted[f"kept {kept}"]
