"""The private parts of torch that labs/paper.py stands on: present, of the pinned version, and counting what they should."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from labs import paper
from labs.launch import ROOT

REQUIREMENTS = Path(ROOT, "requirements.txt")


def test_it_is_written_for_the_torch_that_is_pinned_and_installed():
    pinned = next(line for line in REQUIREMENTS.read_text().splitlines() if line.startswith("torch=="))
    assert pinned == f"torch=={paper.TORCH}", "torch was pinned anew: see whether labs/paper.py still holds, then set its TORCH"
    installed = version("torch").partition("+")[0]
    assert installed == paper.TORCH, f"install torch=={paper.TORCH}; this is torch {installed}"


def test_another_torch_is_refused_by_name():
    with pytest.raises(paper.OtherTorch, match=rf"torch {paper.TORCH} and this is torch 2\.99\.0\+cpu; install torch=={paper.TORCH}"):
        paper.require("2.99.0+cpu")
    paper.require(f"{paper.TORCH}+cu128")


@pytest.mark.parametrize("use", [lambda: paper.cluster(2).__enter__(), lambda: paper.peak(None, None, (), None)])
def test_every_use_asks_first(monkeypatch, use):
    monkeypatch.setattr(paper, "TORCH", "1.0.0")
    with pytest.raises(paper.OtherTorch, match=r"private parts of torch 1\.0\.0"):
        use()


COUNT = """
import torch
from torch.distributed.fsdp import fully_shard
from labs import paper
with paper.cluster(4) as mesh:
    assert torch.distributed.get_world_size() == 4
    layer = torch.nn.Linear(1024, 4096, bias=False)
    fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(layer.parameters())
    held = paper.peak(layer, optimizer, (torch.ones(8, 1024),), lambda x: layer(x).sum().backward())
    assert held["Sharded Param"] == layer.weight.to_local().nbytes == 4 * 1024 * 1024, held
    assert held["Inputs"] == 4 * 8 * 1024, held
    assert paper.storage_bytes([layer.weight.to_local(), layer.weight.to_local()]) == held["Sharded Param"]
assert not torch.distributed.is_initialized()
"""


def test_it_counts_a_layer_of_four_ranks():
    """In a process of its own, since it takes the process group."""
    ran = subprocess.run([sys.executable, "-c", COUNT], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_nothing_else_touches_private_parts():
    own = [path for path in Path(ROOT, "labs").rglob("*.py") if path.name != "paper.py"]
    assert own
    private = ("torch.testing._internal", "torch.distributed._tools", "torch._subclasses")
    assert [path.name for path in own for name in private if name in path.read_text()] == []
