"""A Sphinx extension that writes formulas as MathML, which browsers set by themselves: no script, no font, nothing to load."""

import re

from docutils import nodes
from latex2mathml.converter import convert

# what the book's formulas use and the converter does not know
SPELLINGS = [(r"\\operatorname\{(\w+)\}", r"\\mathrm{\1}"), (r"\\tfrac|\\dfrac", r"\\frac"), (r"\\limits", "")]


def mathml(tex, display="inline"):
    """The MathML of a TeX formula. Raises ValueError, naming the formula, where there is none."""
    plain = tex.strip()
    for pattern, known in SPELLINGS:
        plain = re.sub(pattern, known, plain)
    try:
        return convert(plain, display=display)
    except Exception as error:
        raise ValueError(f"{tex!r} cannot be written as MathML: {type(error).__name__} {error}") from error


def _inline(translator, node):
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<div class="psi-math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
