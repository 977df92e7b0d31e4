"""The private names that labs/collectives.py stands on: known to this torch, and counted as they should be."""

import os
import subprocess
import sys

import pytest
import torch

from labs.collectives import KIND_OF, KINDS, Call, plain
from labs.launch import ROOT

COUNT = """
import torch
import torch.distributed as dist
from labs import paper
from labs.collectives import Collectives
with paper.cluster(4) as mesh:
    half = dist.new_group([0, 1])
    part, whole = torch.ones(3), torch.ones(12)
    with Collectives() as moved:
        dist.all_reduce(whole)
        dist.broadcast(whole, 0)
        dist.all_gather_into_tensor(whole, part)
        dist.all_gather([part.clone() for _ in range(4)], part)
        dist.reduce_scatter_tensor(part, whole)
        dist.all_reduce(whole, group=half)
        dist.barrier()
    assert [(c.kind, c.nbytes, c.num_ranks) for c in moved.calls] == [
        ("all-reduce", 48, 4), ("broadcast", 48, 4), ("all-gather", 48, 4), ("all-gather", 48, 4), ("reduce-scatter", 48, 4),
        ("all-reduce", 48, 2),
    ], moved.calls
    assert moved.count("all-gather") == 2 and moved.sent()["all-gather"] == 2 * 36
    try:
        with Collectives():
            dist.all_to_all_single(whole.clone(), whole)
    except RuntimeError as error:
        assert "has no rule for" in str(error)
    else:
        raise AssertionError("an unknown collective went by uncounted")
"""


def test_it_counts_every_kind_and_refuses_others():
    """In a process of its own, since it takes the process group."""
    words = [sys.executable, "-W", "ignore", "-c", COUNT]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_this_torch_has_the_names(kind):
    known = {name for name in KIND_OF if hasattr(getattr(torch.ops, name.split("::")[0]), name.split("::")[1])}
    assert any(KIND_OF[name] == kind and name.startswith("c10d::") for name in known)
    assert any(KIND_OF[name] == kind and name.startswith("_c10d_functional::") for name in known)


def test_rings():
    assert [Call(kind, 40, 4).sent for kind in ("all-reduce", "all-gather", "reduce-scatter", "broadcast")] == [60, 30, 30, 30]
    assert Call("all-reduce", 40, 1).sent == 0


def test_thirds_of_bytes_add_up_exactly():
    assert plain([Call("broadcast", 100, 3).sent] * 30) == 2000 and isinstance(plain([Call("broadcast", 3, 3).sent]), int)
    assert plain([Call("broadcast", 1, 3).sent]) == pytest.approx(2 / 3) and plain([]) == 0
