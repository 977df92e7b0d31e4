"""Build the static site: `python -m book.build [--out build/book] [--only 01 05] [--repository ADDRESS]`.

The chapters are run, their widgets made into parts of the page, and Sphinx does the rest; a warning is an error. What comes
out needs no network: a plain file server is enough.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import matplotlib
import nbformat
from sphinx.cmd.build import main as sphinx

from explorers import frontend
from formulary import amounts
from formulary.units import PURE
from tools.contents import PICTURES

from . import lessons
from . import pages as made

ROOT = Path(__file__).resolve().parent.parent
MATH_FONT = "DejaVuSerif.ttf"
CHAPTERS, LABS = "chapters/[0-9][0-9]_*.ipynb", "labs/notebooks/*.ipynb"


def build(out, chapters, repository=""):
    """Write the site of these chapters' notebooks, and of all labs, to `out`; returns Sphinx's exit status."""
    source, cache, trees = (out.parent / f"{out.name}_{kind}" for kind in ("source", "cache", "trees"))
    for folder in (source, trees, out):
        shutil.rmtree(folder, ignore_errors=True)
    pages = {Path("chapters") / path.name: (path, _timed(path, lambda path=path: lessons.page(path, cache))) for path in chapters}
    # several processes, minutes of work: labs are read here and run at home
    pages |= {path.relative_to(ROOT): (path, nbformat.read(path, as_version=4)) for path in sorted(ROOT.glob(LABS))}
    for place, (path, notebook) in pages.items():
        _write(source / place, path.parent, notebook, repository)
    _assemble(source, list(pages))
    os.environ |= {"BOOK_REPOSITORY": repository}
    status = sphinx(["-W", "--keep-going", "-q", "-d", str(trees), "-b", "html", str(source), str(out)])
    for path in out.rglob("*.map"):  # for those who debug the theme's scripts
        path.unlink()
    return status


def _timed(path, work):
    start = time.monotonic()
    made = work()
    print(f"{path.name}: {time.monotonic() - start:.1f} s", flush=True)
    return made


def _write(place, folder, notebook, repository):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda match: _link(folder, match, repository), cell.source)
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place)


LINK = re.compile(r"\[([^\]]*)\]\((\.{1,2}/[^)\s]+|[\w/]+\.\w+)\)")


def _link(folder, match, repository):
    """A link to a file of the repository that is no page of the site: to the place it is published at, or its words alone."""
    words, target = match.groups()
    path = (folder / target).resolve()
    if path.suffix == ".ipynb" or not path.is_relative_to(ROOT):
        return match[0]
    return f"[{words}]({repository}/blob/HEAD/{path.relative_to(ROOT).as_posix()})" if repository else words


def _assemble(source, paths):
    """The pages and files beside the lessons."""
    for name, text in made.pages(ROOT, paths).items():
        (source / name).write_text(text)
    shutil.copy(ROOT / "book/conf.py", source)
    shutil.copytree(ROOT / "book/static", source / "_static")
    shutil.copytree(ROOT / PICTURES, source / "_static/pictures")
    shutil.copy(Path(matplotlib.get_data_path()) / "fonts/ttf" / MATH_FONT, source / "_static")  # it has a table for formulas
    (source / "_static/amounts.js").write_text(frontend.formatting([*amounts.SCALES, PURE]))
    (source / "_static/bare.js").write_text(frontend.static("bare.js"))


def address():
    """Where this copy is published, from its git remote, or nothing."""
    remote = subprocess.run(["git", "remote", "get-url", "origin"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    match = re.search(r"github\.com[:/]([^/]+/[^/]+?)(?:\.git)?/?$", remote)
    return f"https://github.com/{match[1]}" if match else ""


def main(argv=None):
    """Build, and say how large it is; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m book.build", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/book", help="where the site goes")
    parser.add_argument("--only", nargs="*", default=(), metavar="NN", help="numbers of the chapters to take; all if left out")
    parser.add_argument(
        "--repository", default=address(), help="address on GitHub that Binder and Colab open; the git remote's if left out"
    )
    asked = parser.parse_args(argv)
    chapters = [path for path in sorted(ROOT.glob(CHAPTERS)) if not asked.only or path.name[:2] in asked.only]
    status = build(asked.out.resolve(), chapters, asked.repository)
    size = sum(path.stat().st_size for path in asked.out.rglob("*") if path.is_file())
    print(
        f"{asked.out}: {size / amounts.DECIMAL['M']:.1f} MB"
        + ("" if asked.repository else "; no Binder and Colab links, since there is no address")
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
