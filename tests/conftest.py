"""What several tests share: the programs they drive, and a life without the network."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from playwright.sync_api import sync_playwright
from xdist.scheduler import LoadScopeScheduling

from tools import machine

BROWSER_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
OFFLINE = Path(__file__).parent / "offline"
os.environ.setdefault("SIXTEEN_PSI_CACHE", str(Path(__file__).parents[1] / "build" / "cache"))  # not the user's own

# how long a call takes on a busy machine says nothing about what it returns
UNHURRIED = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])
# by default each test draws the same examples every time; new ones are drawn with --hypothesis-profile search
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.register_profile("search", UNHURRIED, max_examples=2000)
settings.load_profile("same")


# folders whose files share what is slow to make: a graded course, a JupyterLab server
TOGETHER = ("nbgrader", "browser")
FIRST = (*TOGETHER, "labs", "chapters")  # what takes long comes first, or at the end one process works while others wait


def pytest_collection_modifyitems(items):
    """Slow folders first, else the order of the names."""
    items.sort(key=lambda item: FIRST.index(item.path.parent.name) if item.path.parent.name in FIRST else len(FIRST))


class Together(LoadScopeScheduling):
    """Tests of a file, or of a folder that shares something, run in one process; lessons, each a kernel of its own, anywhere."""

    def _split_scope(self, nodeid):
        path = Path(nodeid.partition("::")[0])
        return nodeid if "lesson_runs" in nodeid else path.parent.name if path.parent.name in TOGETHER else str(path)


def pytest_xdist_make_scheduler(config, log):
    # not --dist loadgroup, whose groups are lost on pytest 9.2 (pytest-xdist 3.8)
    config.option.loadscopereorder = False  # keep our order
    return Together(config, log)


@pytest.fixture(scope="session", autouse=True)
def same_examples():
    """Hypothesis also draws numbers that stand in the modules loaded so far, and which these are depends on the tests before."""
    with pytest.MonkeyPatch.context() as patch:
        if settings.default.derandomize:
            patch.setattr(providers, "_get_local_constants", providers.Constants)
        yield


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium; where there is none the test fails and says how to install it."""
    return machine.program("chromium")


@pytest.fixture(scope="session")
def browser(chromium):
    """Chromium, one for all tests (a process drives only one Playwright); every page gets a context of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def node():
    """The path of Node; where there is none the test fails and says how to install it."""
    return machine.program("node")


@pytest.fixture
def offline(monkeypatch):
    """Python processes started by the test reach nothing but this machine."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")])))


@pytest.fixture
def in_node(node, tmp_path):
    """`in_node(module, body, data)`: what async function `body` over `(widget, data)` returns, `widget` being the ES module's exports."""

    def run(module, body, data):
        (tmp_path / "widget.mjs").write_text(module)
        (tmp_path / "data.json").write_text(json.dumps(data))
        (tmp_path / "main.mjs").write_text(MAIN % body)
        done = subprocess.run([node, "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
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
