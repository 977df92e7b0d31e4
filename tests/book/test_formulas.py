"""Formulas in the book's markdown, read by the site's own parser: each is set, and none keeps its dollars."""

import nbformat
import pytest
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from book import build, conf, pages
from formulary import FORMULAS, load_all


@pytest.fixture(scope="module")
def parsed():
    """`parsed(markdown)`: its tokens, those inside paragraphs too."""
    parser = create_md_parser(MdParserConfig(enable_extensions=conf.myst_enable_extensions), RendererHTML)
    return lambda text: [inner for token in parser.parse(text) for inner in (token, *(token.children or ()))]


def unset(tokens):
    """The texts in which a dollar is left."""
    return [token.content for token in tokens if token.type == "text" and "$" in token.content]


def written():
    """(where, markdown) of all that the site is made of, but for what cells show."""
    for place in (build.CHAPTERS, build.LABS):
        for path in sorted(build.ROOT.glob(place)):
            yield from ((path.name, cell.source) for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    yield from pages.pages(build.ROOT, []).items()


def test_every_step_of_every_derivation_is_displayed(parsed):
    load_all()
    for name, formula in FORMULAS.items():
        if formula.derivation:
            tokens = parsed(formula.derivation._repr_markdown_())
            displayed = [token for token in tokens if token.type == "math_block" and token.level == 2]  # in an item of the list
            assert (name, len(displayed), unset(tokens)) == (name, len(formula.derivation.steps), [])


def test_no_formula_in_the_text_keeps_its_dollars(parsed):
    found = [(name, left) for name, text in written() if "$" in text for left in unset(parsed(text))]
    assert found == []
