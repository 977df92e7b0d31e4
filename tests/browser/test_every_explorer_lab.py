"""Every explorer in JupyterLab: its first slider moves number and picture."""

from explorers import EXPLORERS

NOTEBOOK = """
from IPython.display import display
from explorers import EXPLORERS
for make in EXPLORERS.values():
    display(make())
"""
SLIDERS = "input[type=range]"
FIGURES = ".psi-report > :not(.psi-aloud)"  # what is read aloud follows a while after them


def seen(explorer):
    """The number and the picture that it shows."""
    return explorer.locator(FIGURES).all_text_contents(), explorer.locator(".psi-picture svg").inner_html()


def moves(explorer):
    """Whether both change when its first slider does."""
    before, slider = seen(explorer), explorer.locator(SLIDERS).first
    slider.press("ArrowRight")
    if seen(explorer) == before:
        slider.press("ArrowLeft")  # it stood at its end
    return all(now != then for now, then in zip(seen(explorer), before, strict=True))


def test_every_explorers_first_slider_moves_number_and_picture(lab, open_page):
    page = open_page(1400)
    lab.write("every.ipynb", NOTEBOOK)
    lab.open(page, "every.ipynb")
    lab.run_all(page)
    shown = page.locator(".psi-explorer")
    page.wait_for_function(f"() => document.querySelectorAll('.psi-explorer svg').length >= {len(EXPLORERS)}")
    still = [name for index, name in enumerate(EXPLORERS) if not moves(shown.nth(index))]
    lab.close(page)
    assert still == []
