"""Each lab that runs on a GPU does so at a size that fits the one there is."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from formulary.hardware import GPUS
from formulary.units import BYTE
from labs import LABS, gpu, load

T4 = gpu.Gpu("Tesla T4", (7, 5), int(GPUS["T4"]["memory_capacity"]))
L4 = gpu.Gpu("NVIDIA L4", (8, 9), 2 * T4.memory)
A100 = gpu.Gpu("NVIDIA A100-SXM4-80GB", (8, 0), int(GPUS["A100 80GB"]["memory_capacity"]))


@pytest.mark.parametrize("card", [T4, L4, A100], ids=str)
@pytest.mark.parametrize("name", gpu.SMALL)
def test_conditions_fit_the_card(name, card):
    """The lab takes them, and nothing it predicts is more than the memory there is."""
    lab, conditions = load(name), gpu.fitting(name, card)
    assert conditions["device"] == "cuda"
    predicted = [p.estimate() for p in lab.predictions(1, **conditions) if p.estimate.unit == BYTE]
    assert max(predicted, default=0) < card.memory


def test_a_card_that_emulates_bf16_runs_in_fp32():
    assert not T4.has_bf16 and "7.5: bf16 only emulated" in str(T4)
    assert gpu.fitting("throughput", T4)["dtype"] == "float32" and gpu.fitting("peak_memory", T4)["precision"] == "fp32"
    assert gpu.fitting("throughput", L4)["dtype"] == "bfloat16" and "precision" not in gpu.fitting("peak_memory", L4)


def test_a_large_card_repeats_the_run_that_comes_with_the_book():
    large, small = (gpu.fitting("throughput", card)["num_layers"] for card in (A100, L4))
    assert large > small


def test_without_a_gpu_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.fitting("throughput", gpu.found()) == {}
    assert "torch sees no GPU here" in gpu.on_gpu(load("throughput"))._repr_markdown_()


def test_with_a_gpu_it_runs_there(monkeypatch):
    asked = {}
    seen = SimpleNamespace(name=T4.name, major=7, minor=5, total_memory=T4.memory)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: seen)
    report = SimpleNamespace(_repr_markdown_=lambda: "a table")
    lab = SimpleNamespace(name="throughput", run=lambda nproc, **given: asked.update(given, nproc=nproc) or report)
    assert gpu.on_gpu(lab)._repr_markdown_() == f"{T4}\n\na table"
    assert (asked["nproc"], asked["device"], asked["dtype"]) == (1, "cuda", "float32")


def test_the_readme_says_which_labs_ran_on_a_gpu_and_names_every_lab():
    folder = Path(gpu.__file__).parent
    said = dict(re.findall(r"^\| (`.+) \| (.+) \|$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    ran = {lab for labs, where in said.items() for lab in re.findall(r"`(\w+)`", labs) if where.startswith("on ")}
    assert ran == {file.name.removesuffix("-h200.json") for file in folder.glob("measurements/*-h200.json")}
    assert {lab for labs in said for lab in re.findall(r"`(\w+)`", labs)} == set(LABS)
