"""Build the lesson notebooks from their sources: `python -m tools.notebooks [--check]`.

A lesson source is a jupytext percent file that matches LESSONS; beside it lies the built .ipynb, without outputs.
Built files are never edited: the same source always gives the same bytes.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ("chapters/[0-9][0-9]_*.py", "labs/notebooks/*.py")
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def sources(root=ROOT):
    """The lesson sources under `root`, in reading order."""
    return sorted(path for pattern in LESSONS for path in root.glob(pattern))


def build(source):
    """The text of the notebook that belongs to the lesson `source`."""
    lesson = jupytext.read(source, fmt="py:percent")
    cells = [_cell(position, cell) for position, cell in enumerate(lesson.cells)]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=METADATA)) + "\n"


def _cell(position, cell):
    """The cell with an id that changes only when its place or its words do, and with no outputs."""
    identity = hashlib.sha256(f"{position}\0{cell.cell_type}\0{cell.source}".encode()).hexdigest()[:12]
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell, "raw": nbformat.v4.new_raw_cell}[cell.cell_type]
    tags = cell.metadata.get("tags")
    hidden = {"jupyter": {"source_hidden": True}} if "hide-input" in (tags or ()) else {}
    metadata = {"tags": tags, **hidden} if tags else {}
    return make(cell.source, id=identity, metadata=metadata)


def stale(root=ROOT):
    """The sources whose built notebook is missing or differs, and the notebooks that have lost their source."""
    built = {source.with_suffix(".ipynb"): source for source in sources(root)}
    orphans = [path for pattern in LESSONS for path in root.glob(pattern.removesuffix(".py") + ".ipynb") if path not in built]
    return [source for path, source in built.items() if not path.exists() or path.read_text() != build(source)] + orphans


def main(argv=None):
    """Write every stale notebook, or with --check only name them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a notebook is not what its source says")
    check = parser.parse_args(argv).check
    for path in (found := stale()):
        orphan = path.suffix == ".ipynb"
        print(f"{path.relative_to(ROOT)}: {'has no source' if orphan else 'is not built' if check else 'built'}")
        if not orphan and not check:
            path.with_suffix(".ipynb").write_text(build(path))
    broken = found if check else [path for path in found if path.suffix == ".ipynb"]
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
