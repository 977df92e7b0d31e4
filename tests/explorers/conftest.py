"""Evaluate the explorers' generated JavaScript in Node."""

import json
import subprocess

import pytest


@pytest.fixture
def in_node(node, tmp_path):
    """`in_node(module, body, data)`: what async function `body` over `(widget, data)` returns, `widget` being the ES module's exports."""

    def run(module, body, data):
        (tmp_path / "widget.mjs").write_text(module)
        (tmp_path / "data.json").write_text(json.dumps(data))
        (tmp_path / "main.mjs").write_text(MAIN % body)
        done = subprocess.run([node, "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


MAIN = """
import { readFileSync } from "node:fs";
import * as widget from "./widget.mjs";
const data = JSON.parse(readFileSync("data.json", "utf8"));
const body = %s;
process.stdout.write(JSON.stringify(await body(widget, data)));
"""
