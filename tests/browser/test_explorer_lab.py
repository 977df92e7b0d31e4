"""The memory explorer in JupyterLab: keys, other widgets, Python, themes."""

import pytest

NOTEBOOK = [
    """
from explorers import memory_explorer
explorer = memory_explorer(num_params="7B", world_size=8, stage=1, memory_capacity="80GB")
seen = []
explorer.observe(lambda change: seen.append((change.new, explorer.zero_state_bytes)), "num_params")
explorer
""",
    """
from ipywidgets import IntSlider, jslink
slider = IntSlider(min=1, max=64, value=8)
jslink((slider, "value"), (explorer, "world_size"))
slider
""",
    "print('last cell')",
]


@pytest.fixture
def page(lab, open_page):
    page = open_page(1200)
    lab.write("explorer.ipynb", *NOTEBOOK)
    lab.open(page, "explorer.ipynb")
    lab.run_all(page)
    page.wait_for_selector(".psi-explorer svg")
    yield page
    lab.close(page)


def ask(page, lab, code):
    """What the notebook's kernel prints for `code`, run in a new last cell."""
    page.locator(".jp-Notebook-footer").click()
    page.keyboard.press("Enter")  # to edit it
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    output = page.locator(".jp-CodeCell").last.locator(".jp-OutputArea-output")
    output.wait_for()
    return output.text_content().strip()


def test_in_jupyterlab(page, lab, accessibility, tmp_path):
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    slider, headline, picture = (
        page.get_by_role("slider", name="Parameters"),
        page.locator(".psi-headline"),
        page.locator(".psi-picture svg"),
    )
    before = picture.inner_html()

    slider.press("ArrowRight")
    assert headline.text_content() == "41.25 GB"
    assert picture.inner_html() != before

    for key in ("d", "d", "x"):  # JupyterLab would delete the cell
        slider.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert slider.is_visible()

    page.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('[aria-label=\"GPUs, typed\"]').value === '9'")

    page.get_by_label("ZeRO stage").select_option(value="3")
    assert accessibility(page, ".psi-explorer") == []
    page.locator(".psi-explorer").screenshot(path=tmp_path / "light.png")
    lab.theme(page, "JupyterLab Dark")
    ink = page.locator(".psi-headline").evaluate("(e) => getComputedStyle(e).color")
    page.locator(".psi-explorer").screenshot(path=tmp_path / "dark.png")
    lab.theme(page, "JupyterLab Light")
    assert page.locator(".psi-headline").evaluate("(e) => getComputedStyle(e).color") != ink

    found = ask(page, lab, "print(seen, explorer.world_size, explorer.stage, explorer.zero_state_bytes == 16 * 7.5e9 / 9)")
    assert found == "[(7500000000, 41250000000.0)] 9 3 True"
    ask(page, lab, "explorer.num_params = '70B'; print('moved')")
    page.wait_for_function("() => document.querySelector('.psi-headline').textContent === '124.4 GB'")
