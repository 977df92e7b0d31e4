"""A headless Chromium, explorers on bare pages, and one JupyterLab server for all tests that need it."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from explorers import frontend
from tests.browser.jupyterlab import PATIENCE_MS, Lab

BARE = frontend.static("bare.js")
# JupyterLab's own values, so that an explorer without JupyterLab can be looked at in either theme
VARIABLES = ("--jp-ui-font-color1", "--jp-layout-color0", "--jp-layout-color1", "--jp-border-color1")
THEMES = {"light": ("#000000de", "#fff", "#fff", "#bdbdbd"), "dark": ("#fff", "#111", "#212121", "#616161")}
PAGE = """<!doctype html><html lang="en"><head><title>explorer</title>
<style>:root { %s } body { background: var(--jp-layout-color0); color: var(--jp-ui-font-color1) }</style>
</head><body><main><h1>An explorer</h1><div id="place"></div></main></body></html>"""


@pytest.fixture
def open_page(browser):
    """`open_page(width)`: a fresh page. Anything the page prints as an error fails the test."""
    contexts, complaints = [], []

    def open_page(width=1000):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}))
        contexts[-1].set_default_timeout(PATIENCE_MS)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def bare(open_page):
    """`bare(explorer)`: a page, or the given one, that shows it with no Jupyter around; `window.shown.model` is its model."""

    def bare(explorer, *, width=1000, theme="light", orphan=False, page=None):
        page = page or open_page(width)
        page.set_content(PAGE % "; ".join(map(": ".join, zip(VARIABLES, THEMES[theme], strict=True))))
        page.add_script_tag(content=f"(() => {{ {BARE}\nwindow.show = show; }})()")
        page.evaluate(SHOW, [state_of(explorer), orphan])
        return page

    return bare


SHOW = "async ([state, orphan]) => { window.shown = await show(state, document.getElementById('place'), { orphan }); }"


def state_of(explorer):
    """What the front end's model holds; links to other widgets left out."""
    return {name: value for name, value in explorer.get_state().items() if not str(value).startswith("IPY_MODEL_")}


@pytest.fixture
def accessibility():
    """`accessibility(page, selector)`: the names of the axe rules that the part of the page breaks."""
    return lambda page, selector: [found["id"] for found in Axe().run(page, context=selector).response["violations"]]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab server on a free port of this machine, over an empty folder."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()
