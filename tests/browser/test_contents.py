"""The contents page as `make study` opens it: rendered, with its pictures, without offers in the way, and with links that open."""

import shutil

import pytest

from tests.browser.jupyterlab import ROOT, Lab
from tools import contents, notebooks

CARD = ".jp-MarkdownViewer td"
DRAWN = "() => [...document.querySelectorAll('.jp-MarkdownViewer img')].every((image) => image.complete && image.naturalWidth > 0)"


def kernels(study, page):
    """What the kernels of the server are doing."""
    return [session["kernel"]["execution_state"] for session in page.request.get(study.address("api/sessions")).json()]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """JupyterLab with the book's own settings, over a copy of the contents page and what it links to."""
    folder = tmp_path_factory.mktemp("study")
    shutil.copytree(ROOT / "tools/jupyter", folder / "config")
    lab = Lab(folder)
    built = [path.with_suffix(".ipynb").relative_to(ROOT) for path in notebooks.sources()]
    for path in [*contents.build(), *built]:
        (folder / "notebooks" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / "notebooks" / path)
    yield lab
    lab.stop()


@pytest.fixture
def page(study, open_page):
    # what an earlier page left open would be there at once, and covered again when the contents page comes
    shutil.rmtree(study.folder / "config/lab/workspaces", ignore_errors=True)
    page = open_page()
    page.goto(study.address(""))
    page.wait_for_selector(CARD)
    return page


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_opens_rendered_with_every_picture(study, page, theme):
    study.theme(page, theme)
    page.wait_for_function(DRAWN)
    assert page.locator(f"{CARD} img").count() == len(contents.build()) - 1
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0


def test_chapters_open_from_it(study, page):
    page.locator(f"{CARD} a").first.click()
    first = next(path for path in notebooks.sources() if path.parent.name == "chapters").with_suffix(".ipynb").name
    page.locator(".lm-TabBar-tab.jp-mod-current", has_text=first).first.wait_for()
    page.locator(".jp-NotebookPanel .jp-Cell").nth(1).wait_for()
    for _ in range(300):  # a server that is ended while it starts a kernel would not end
        if kernels(study, page) == ["idle"]:
            break
        page.wait_for_timeout(200)
    study.close(page)
