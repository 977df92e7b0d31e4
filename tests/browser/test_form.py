"""Questions as forms in a narrow JupyterLab: what is typed can be seen, and labels and options are read whole."""

ASKED = ("E002-Q45", "E002-Q14", "E004-Q05")  # long labels; verdicts and reasons; six options
FIELDS = ".psi-field > :is(input, select, textarea)"
NARROW = "(fields) => fields.filter((e) => e.clientWidth < 12 * parseFloat(getComputedStyle(e).fontSize)).map((e) => e.outerHTML)"
CUT = "(labels) => labels.filter((e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight).map((e) => e.textContent)"


def test_fields_are_wide_and_labels_whole(lab, open_page, tmp_path):
    lab.write("forms.ipynb", f"from autograder import ask\ndisplay(*(ask(name).form() for name in {ASKED}))")
    page = open_page(700)
    lab.open(page, "forms.ipynb")
    lab.run_all(page)
    page.get_by_role("button", name="Check").nth(len(ASKED) - 1).wait_for()
    page.screenshot(path=tmp_path / "forms.png")
    fields, labels = page.locator(FIELDS), page.locator(".psi-field label, label.psi-field, .psi-field span")
    assert fields.count() == 14 and page.get_by_role("checkbox", checked=False).count() == 6
    assert (fields.evaluate_all(NARROW), labels.evaluate_all(CUT)) == ([], [])
    lab.close(page)
