"""The static site behind a plain file server, with the network blocked: explorers move, questions are marked, formulas are set."""

import functools
import http.server
import threading

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from autograder import ask
from book import build
from formulary import formula

LESSON = [
    ("markdown", "# A lesson\n\nIt holds $\\frac{a}{b}$, and [a lab](../labs/notebooks/model_states.ipynb)."),
    ("code", "from autograder import ask\nfrom formulary import formula"),
    ("code", "from explorers import Dashboard, memory_explorer, pipeline_explorer, sharding_explorer"),
    ("code", "formula('pipeline_bubble')"),
    ("code", "formula('pipeline_bubble').derivation"),
    ("code", "from explorers.table import Table\nTable('Letters', ['letter', 'meaning'], [['$P$', 'stages']])"),
    ("code", "memory_explorer(num_params='7B', world_size=8, stage=1, memory_capacity='80GB')"),
    ("code", "pipeline_explorer(4, 8)"),
    ("code", "Dashboard({'states': memory_explorer('7B'), 'ranks': sharding_explorer('7B')})"),
    ("code", "ask('E004-Q05', 'en').form()"),
    ("code", "ask('E002-Q02').form()"),
    ("code", "ask('E000-TF01', 'en').form()"),
    ("code", "import ipywidgets\n_ = ipywidgets.interact(lambda x: print('drawn', x), x=(1, 9))"),
]
ALL_SHOWN = "document.querySelectorAll('.psi-mount svg').length === 4"
PROSE = """() => {
  const article = document.querySelector(".bd-article").cloneNode(true);
  article.querySelectorAll("pre, code, script, noscript").forEach((node) => node.remove());
  return article.textContent;
}"""
ADDRESS = "https://github.com/example/sixteen-psi"
# the theme's own: its search button is named otherwise than it reads
THEIRS = {"label-content-name-mismatch"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a small site: one lesson, the labs, and the pages to look things up in."""
    folder = tmp_path_factory.mktemp("site")
    cells = [(nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell)(text) for kind, text in LESSON]
    lesson = folder / "01_lesson.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), lesson)
    assert build.build(folder / "out", [lesson], ADDRESS) == 0, "Sphinx warned"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder / "out"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def open_at(site, open_page):
    """`open_at(path)`: a page of the site. A request to anywhere else is an error."""

    def open_at(path, width=1300):
        page, outside = open_page(width), []
        page.route(lambda address: not address.startswith(site), lambda route: (outside.append(route.request.url), route.abort()))
        page.goto(f"{site}/{path}")
        page.wait_for_load_state("networkidle")
        assert [address for address in outside if not address.startswith("blob:")] == []
        return page

    return open_at


@pytest.fixture
def lesson(open_at):
    page = open_at("chapters/01_lesson.html")
    page.wait_for_function(ALL_SHOWN)
    return page


def test_an_explorers_first_slider_moves_number_and_picture(lesson):
    for mount in lesson.locator(".psi-mount").all():
        number, picture = (mount.locator(".psi-headline").text_content(), mount.locator("svg").inner_html())
        mount.locator("input[type=range]").first.press("ArrowRight")
        assert mount.locator(".psi-headline").text_content() != number
        assert mount.locator("svg").inner_html() != picture


def test_what_a_dashboard_links_moves_together(lesson, site, open_at):
    on = lambda page, number: page.locator(f"#explorer-{number}")
    box = lambda page, number: on(page, number).get_by_label("Parameters, typed")
    alone = box(lesson, 1).input_value()
    before = on(lesson, 4).locator("svg").inner_html()
    box(lesson, 3).fill("13B")
    box(lesson, 3).press("Enter")
    assert (box(lesson, 4).input_value(), box(lesson, 1).input_value()) == ("13B", alone)
    assert on(lesson, 4).locator("svg").inner_html() != before
    box(lesson, 4).fill("30B")
    box(lesson, 4).press("Enter")
    assert box(lesson, 3).input_value() == "30B"
    on(lesson, 4).get_by_role("button", name="Link to this state").click()
    shared = open_at(lesson.url.removeprefix(site))
    shared.wait_for_function(ALL_SHOWN)
    assert box(shared, 3).input_value() == "30B"


def test_a_state_has_an_address(lesson, site, open_at):
    mount = lesson.locator(".psi-mount").first
    mount.get_by_label("ZeRO stage").select_option(value="3")
    mount.get_by_role("button", name="Link to this state").click()
    shared = open_at(lesson.url.removeprefix(site))
    assert shared.locator("#explorer-1 .psi-headline").text_content() == "14 GB"
    assert shared.locator("#explorer-1").get_by_label("ZeRO stage").input_value() == "3"


def test_a_state_that_cannot_be_is_not_taken(open_at):
    page = open_at('chapters/01_lesson.html#explorer-1:stage=9&world_size=-1&num_params="<b>"')
    assert page.locator("#explorer-1 .psi-headline").text_content() == "38.5 GB"


def told(form, part):
    return form.locator(f"fieldset[data-part={part}] .psi-told").text_content()


def test_choices_and_amounts_are_marked_with_the_hint_that_fits(lesson):
    several, ledger, verdict = lesson.locator(".psi-form").all()
    exercise = ask("E004-Q05").exercise
    for key in exercise.part("answer").answer:
        several.locator(f"input[value={key}]").check()
    several.get_by_role("button", name="Check").click()
    assert told(several, "answer") == "✓ right"
    several.locator("input[value=B]").check()
    several.get_by_role("button", name="Check").click()
    assert exercise.part("answer").mistakes[0].hint.en in told(several, "answer")

    ledger.locator("fieldset[data-part=standard] input").fill("120 GB")
    ledger.get_by_role("button", name="Check").click()
    assert "The standard ledger has one more item." in told(ledger, "standard")
    assert "not answered" in told(ledger, "missing_bytes")
    ledger.locator("fieldset[data-part=standard] input").fill("160 GB")
    ledger.locator("fieldset[data-part=missing_bytes] input").fill("many")
    ledger.get_by_role("button", name="Check").click()
    assert told(ledger, "standard").startswith("✓") and told(ledger, "missing_bytes").endswith("1.5 GB")

    verdict.locator("input[value=False]").check()
    verdict.get_by_role("button", name="Check").click()
    assert told(verdict, "verdict").startswith("✗ not right →")
    assert "needs Python" in verdict.locator("fieldset[data-part=reason]").text_content()


def test_formulas_are_set_and_other_widgets_show_what_they_drew(lesson):
    assert lesson.locator(".bd-article math").count() >= 2
    assert lesson.locator(".bd-article li .psi-math").count() == len(formula("pipeline_bubble").derivation.steps)
    assert lesson.locator(".psi-needs-kernel").count() == 1
    assert "drawn 5" in lesson.locator(".bd-article").text_content()


def test_no_formula_shows_its_dollars(lesson):
    shown = lesson.evaluate(PROSE)
    assert "pipeline stages" in shown and [line for line in shown.splitlines() if "$" in line] == []


def test_binder_and_colab_open_this_page(lesson):
    links = [link.get_attribute("href") for link in lesson.locator(".dropdown-launch-buttons a").all()]
    assert any("mybinder.org/v2/gh/example/sixteen-psi/main" in link and "chapters/01_lesson.ipynb" in link for link in links)
    assert any("colab.research.google.com/github/example/sixteen-psi/blob/main/chapters/01_lesson.ipynb" in link for link in links)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("formulas.html", "Pipeline bubble"),
        ("symbols.html", "pipeline stages"),
        ("claims.html", "Folklore, checked"),
        ("index.html", "A lesson"),
    ],
)
def test_what_can_be_looked_up(open_at, path, words):
    assert words in open_at(path).locator("body").text_content()


def test_the_search_finds_a_formula(open_at):
    page = open_at("search.html?q=bubble")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() > 1


@pytest.mark.parametrize(
    ("path", "theme"),
    [("index.html", "light"), ("search.html", "light"), ("chapters/01_lesson.html", "light"), ("chapters/01_lesson.html", "dark")],
)
def test_no_serious_fault_of_accessibility(open_at, path, theme, tmp_path):
    page = open_at(path)
    page.add_style_tag(content="* { transition: none !important }")  # the theme's colours change over time
    page.evaluate(f"document.documentElement.dataset.theme = document.documentElement.dataset.mode = '{theme}'")
    page.screenshot(path=tmp_path / f"{theme}.png")
    found = {(rule["id"], rule["impact"]) for rule in Axe().run(page).response["violations"]}
    assert {rule for rule, impact in found if impact in ("serious", "critical")} - THEIRS == set()
