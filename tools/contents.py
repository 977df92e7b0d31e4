"""Build contents.md and its pictures from chapters/contents.yaml and the files present: `python -m tools.contents [--check]`."""

import argparse
import html
import sys
from pathlib import Path

import yaml

from . import notebooks
from .pictures import picture

ROOT = Path(__file__).resolve().parent.parent
PAGE = "contents.md"
PICTURES = "chapters/pictures"
COLUMNS = 3
PLANNED = "color:#808080"


def build(root=ROOT):
    """What the table of contents says, as {path under `root`: text}: the page and a picture for each chapter."""
    table = yaml.safe_load((root / "chapters/contents.yaml").read_text())
    chapters = [chapter for part in table["parts"] for chapter in part["chapters"]]
    pictures = {f"{PICTURES}/{c['picture']}.svg": picture(c["picture"], planned=not _path(c, root)) for c in chapters}
    return {PAGE: _page(table, root), **pictures}


def _page(table, root):
    parts = [f"## {part['title']}\n\n{_grid([_card(c, root) for c in part['chapters']])}" for part in table["parts"]]
    return "\n\n".join([f"# {table['title']}", table["opening"].strip(), *parts, *_lists(root)]) + "\n"


def _path(chapter, root):
    """The chapter's notebook, as a path from the root; nothing if it is not written yet."""
    source = next(root.glob(f"chapters/{chapter['number']:02}_*.py"), None)
    return source and source.with_suffix(".ipynb").relative_to(root).as_posix()


def _card(chapter, root):
    path = _path(chapter, root)
    title = html.escape(f"{chapter['number']}. {chapter['title']}")
    image = f'<img src="{PICTURES}/{chapter["picture"]}.svg" alt="" width="200">'
    after = f"After it you can decide {html.escape(chapter['decide'])}."
    if not path:
        return f'{image}<br><span style="{PLANNED}">{title} <i>(planned)</i><br>{after}</span>'
    return f'<a href="{path}">{image}<br><b>{title}</b></a><br>{after} <i>{chapter["minutes"]} minutes</i>'


def _grid(cards):
    rows = [cards[start : start + COLUMNS] for start in range(0, len(cards), COLUMNS)]
    cell = '<td width="33%" valign="top" style="vertical-align:top">{}</td>'.format
    return "\n".join(["<table>", *("<tr>\n" + "\n".join(map(cell, row)) + "\n</tr>" for row in rows), "</table>"])


def _lists(root):
    """The sections below the chapters, each only if there is something in it."""
    labs = [path for path in notebooks.sources(root) if "labs" in path.parts]
    yield from [_section("Labs", [f"[{_title(path)}]({_built(path, root)})" for path in labs])] if labs else []
    sets = [yaml.safe_load(path.read_text()) for path in sorted(root.glob("exercises/course/assignments/*.yaml"))]
    if sets:
        items = [f"[{each['title']['en']}](assignments/{each['id']}/{each['id']}.ipynb) · {each['title']['zh']}" for each in sets]
        yield _section("Exercises", items) + "\n\nThese are your own copies: nothing overwrites them."


def _section(title, items):
    return "\n".join([f"## {title}", "", *(f"- {item}" for item in items)])


def _title(path):
    """The first heading of a lesson source."""
    heading = next(line for line in path.read_text().splitlines() if line.startswith("# # "))
    return heading.removeprefix("# # ").strip()


def _built(path, root):
    return path.with_suffix(".ipynb").relative_to(root).as_posix()


def stale(root=ROOT):
    """What is missing or not as built, as {path: text}."""
    return {path: text for path, text in build(root).items() if not (root / path).exists() or (root / path).read_text() != text}


def main(argv=None):
    """Write what is stale, or with --check only name it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.contents", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is not as built")
    check = parser.parse_args(argv).check
    found = stale()
    for path, text in found.items():
        print(f"{path}: {'is not built' if check else 'built'}")
        if not check:
            (ROOT / path).parent.mkdir(exist_ok=True)
            (ROOT / path).write_text(text)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
