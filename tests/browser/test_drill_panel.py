"""The drill panel in JupyterLab: ten cards answered by hand, the wrong one back first."""

import re

from autograder.assignment import solution
from autograder.bank import Bank
from autograder.drills.store import Store

BANK = Bank()
CHAPTER = 2
DRAW = "00000000"  # the same numbers each time, so that the test knows the answers
ID = re.compile(r"\((E\d{3}-[A-Z]+\d+), ")
PANEL = ".jp-OutputArea-output .widget-vbox"


def fill(page, exercise, part, value):
    box = page.get_by_label(part.label.en, exact=True)
    if part.type in ("verdict", "choice"):
        box.select_option(label=str(value)) if part.type == "verdict" else box.select_option(index=ord(value) - ord("A") + 1)
    else:
        box.fill(str(value))
        box.blur()


def answer(page, exercise, right):
    for part in exercise.parts if right else ():
        fill(page, exercise, part, solution(exercise, "en")[part.name])
    page.get_by_role("button", name="Check", exact=True).click()
    keep, back = page.get_by_role("button", name="Keep my marks"), page.get_by_text("comes back in")
    keep.or_(back).first.wait_for()
    if keep.count():
        keep.click()
    back.wait_for()


def test_ten_cards_in_jupyterlab_bring_the_wrong_one_back_first(lab, open_page, tmp_path):
    path, order = tmp_path / "drills.sqlite", []
    fixed = f"import secrets\nsecrets.token_hex = lambda size: {DRAW!r}"
    lab.write("drill.ipynb", f"{fixed}\nfrom autograder import drill\ndrill(chapter={CHAPTER}, store={str(path)!r})")
    page = open_page(1200)
    lab.open(page, "drill.ipynb")
    lab.run_all(page)
    for number in range(10):
        heading = page.locator(f"{PANEL} strong", has_text=ID, has_not_text=order[-1] if order else None)  # never the same twice
        order.append(ID.search(heading.first.inner_text())[1])
        answer(page, BANK[order[-1]].variant(DRAW), right=number != 1)
        if number == 9:
            break
        page.get_by_role("button", name="Next", exact=True).click()
        page.get_by_text("comes back in").wait_for(state="detached")
    again = [name for number, name in enumerate(order) if name in order[:number]]
    assert again[0] == order[1], "the one that was wrong"
    assert len([review for review in Store(path).reviews() if "/" not in review.card]) == 10
    lab.close(page)
