"""What several tests share: the programs they drive, and a life without the network."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import sync_playwright

from tools import machine

BROWSER_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
OFFLINE = Path(__file__).parent / "offline"

# how long a call takes on a busy machine says nothing about what it returns
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


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
