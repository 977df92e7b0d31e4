"""Explorers arrive at the figures that exercises and the literature state."""

import re
from pathlib import Path

import pytest
import yaml

import explorers
from formulary import amounts, formula
from formulary.hardware import FORMATS, GPUS, NETWORKS, PCIE
from formulary.shapes import MODELS

ROWS = yaml.safe_load((Path(__file__).parents[1] / "data/anchors.yaml").read_text(encoding="utf-8"))
BUNDLES = {**MODELS, **GPUS, **NETWORKS, **PCIE, **FORMATS}


def moved(explorer, preset=None, **settings):
    """The explorer with its controls moved: by a bundle of facts, then one by one."""
    known = {name: value for name, value in BUNDLES[preset].items() if name in explorer.controls} if preset else {}
    explorer.set(**{**known, **settings})
    return explorer


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['chapter']}-{row['result']}-{row['reads']}".replace(" ", "_"))
def test_anchor(row):
    explorer = moved(getattr(explorers, row["explorer"])(), row.get("preset"), **row.get("set", {}))
    value = explorer.evaluate(row["result"], **row.get("among", {}))
    scale = re.fullmatch(r"[\d.,e+-]+ ?(.*)", row["reads"])[1]
    assert amounts.write(value, formula(row["result"]).unit, row.get("digits", 4), scale) == row["reads"]


def test_links_of_the_offload_explorers():
    links = {option["label"]: option["sets"] for preset in explorers.copies_explorer().spec["presets"] for option in preset["options"]}
    assert amounts.write(links["PCIe 4.0 x16"]["host_bandwidth"], formula("pcie_bandwidth").unit, 3) == "31.5 GB/s"


def test_explorers_with_anchors_are_the_packages():
    assert {row["explorer"] for row in ROWS} <= set(explorers.__all__)
