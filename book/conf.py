"""Sphinx's settings for the site. `book.build` gives the address of the repository, if there is one."""

import os

project = "Sixteen Psi"
html_title = "Sixteen Psi"
author = copyright = "the authors of Sixteen Psi"
extensions = ["myst_nb", "book.mathml"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # book.lessons runs the notebooks, so that it can make their widgets into parts of the page
nb_render_markdown_format = "myst"
nb_mime_priority_overrides = [("html", "text/markdown", 0)]  # before HTML, in which nobody sets formulas
nb_merge_streams = True
suppress_warnings = ["misc.highlighting_failure"]  # a cell with %matplotlib is no Python to the highlighter
html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_favicon = "_static/pictures/ledger.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_js_files = [("amounts.js", {"defer": "defer"}), ("bare.js", {"defer": "defer"}), ("site.js", {"defer": "defer"})]
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
templates_path = []
exclude_patterns = []
language = "en"

_repository, _branch = os.environ.get("BOOK_REPOSITORY", ""), os.environ.get("BOOK_BRANCH", "main")
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
}
if _repository:  # without an address there is nothing that Binder or Colab could open
    html_theme_options |= {
        "repository_url": _repository,
        "repository_branch": _branch,
        "path_to_docs": "",
        "use_repository_button": True,
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        },
    }
