"""The pages that no chapter holds: the front page, all formulas, all symbols, all claims. {path in the site: markdown}."""

import html
import re

import yaml

from formulary import FORMULAS, load_all
from formulary.claims import VERDICTS, claims
from formulary.derivation import legend
from formulary.quantity import GLOSSARY
from formulary.units import PURE, spell

INDEX = """# {title}

{opening}

{parts}

```{{toctree}}
:hidden:
:caption: Look up

formulas
symbols
claims
```
"""
TREE = """```{{toctree}}
:hidden:
:caption: {caption}

{entries}
```"""
NO_CHAPTER = "Without a chapter"


def pages(root, lessons):
    """All of them, as {path: markdown}; `lessons` are the notebooks of the site, as paths in it."""
    table = yaml.safe_load((root / "chapters/contents.yaml").read_text())
    titles = {chapter["number"]: chapter["title"] for part in table["parts"] for chapter in part["chapters"]}
    load_all()
    return {"index.md": _index(table, lessons), "formulas.md": _formulas(titles), "symbols.md": _symbols(), "claims.md": _claims(titles)}


# --- the front page ------------------------------------------------------------------------------------------------------


def _index(table, lessons):
    written = {int(path.name[:2]): path for path in lessons if path.parts[0] == "chapters"}
    labs = [path for path in lessons if path.parts[0] == "labs"]
    parts = [_part(part, written) for part in table["parts"]]
    trees = [*parts, *([_tree("Labs", labs)] if labs else [])]
    return INDEX.format(title=table["title"], opening=table["opening"].strip(), parts="\n\n".join(trees))


def _part(part, written):
    cards = "\n".join(_card(chapter, written.get(chapter["number"])) for chapter in part["chapters"])
    paths = [written[chapter["number"]] for chapter in part["chapters"] if chapter["number"] in written]
    tree = _tree(part["title"], paths) if paths else ""
    return f'## {part["title"]}\n\n<div class="psi-cards">\n{cards}\n</div>\n\n{tree}'


def _card(chapter, path):
    title, decide = html.escape(f"{chapter['number']} · {chapter['title']}"), html.escape(chapter["decide"])
    picture = f'<img class="dark-light" alt="" src="_static/pictures/{chapter["picture"]}.svg">'
    if path is None:
        return f'<div class="psi-card psi-planned">{picture}<p>{title} (planned)</p><p>After it you can decide {decide}.</p></div>'
    link = f'<a href="{path.with_suffix(".html").as_posix()}">{picture}<p><b>{title}</b></p></a>'
    return f'<div class="psi-card">{link}<p>After it you can decide {decide}. <i>{chapter["minutes"]} minutes</i></p></div>'


def _tree(caption, paths):
    return TREE.format(caption=caption, entries="\n".join(path.with_suffix("").as_posix() for path in paths))


# --- what can be looked up -------------------------------------------------------------------------------------------------


def _formulas(titles):
    chapters = sorted({formula.chapter for formula in FORMULAS.values()}, key=lambda number: (number is None, number or 0))
    parts = [_formulas_of(number, titles) for number in chapters]
    return "\n\n".join(["# Formulas", "Every formula of the book, by chapter. `psi formula show NAME` derives it and says more.", *parts])


def _formulas_of(number, titles):
    heading = f"## {number} · {titles[number]}" if number in titles else f"## {NO_CHAPTER}"
    return "\n\n".join([heading, *(_formula(formula) for formula in FORMULAS.values() if formula.chapter == number)])


def _formula(formula):
    unit = "" if formula.unit == PURE else f", in {spell(formula.unit)}"
    lines = [f"({_anchor(formula.name)})=", f"### {_words(formula.name)}", f"`{formula.name}`: {formula.quantity.meaning}{unit}."]
    assumed = f" Assumes: {'; '.join(map(str, formula.assumptions))}." if formula.assumptions else ""
    return "\n\n".join([*lines, f"$$\n{formula.latex}\n$$", legend(formula.inputs.values()), f"{formula.source}.{assumed}"])


def _anchor(name):
    return f"formula-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"


def _words(name):
    return name.replace("_", " ").capitalize()


def _symbols():
    rows = [f"| ${q.tex}$ | `{name}` | {spell(q.unit)} | {_cell(q.meaning)} |" for name, q in sorted(GLOSSARY.items(), key=_by_letter)]
    head = ["| letter | name | unit | meaning |", "|---|---|---|---|"]
    return "\n".join(
        ["# Symbols and words", "", "One word for one idea, one letter for one quantity, the whole book through.", "", *head, *rows]
    )


def _by_letter(item):
    """By the letter itself, Greek by its name, whatever is written around it."""
    name, quantity = item
    return re.sub(r"\\(?:mathrm|tilde|Delta|partial)|[^A-Za-z]", "", quantity.tex).lower(), name


def _claims(titles):
    heading = ["# Folklore, checked", "What is said about distributed training, with the figure as it is told and as it computes."]
    numbers = sorted({claim.chapter for claim in claims()})
    counts = ", ".join(f"{count} {VERDICTS[verdict]}" for verdict, count in claims().counts().items() if count)
    parts = [f"## {number} · {titles[number]}\n\n{_claim_rows(number)}" for number in numbers]
    return "\n\n".join([*heading, f"{len(claims())} claims: {counts}.", *parts])


def _claim_rows(number):
    rows = [f"| {_cell(c.sentence)} | {_cell(c.computed)} | {VERDICTS[c.verdict]} | {_cell(c.reason)} |" for c in claims(chapter=number)]
    return "\n".join(["| what is said | computed | verdict | why |", "|---|---|---|---|", *rows])


def _cell(text):
    """A text in one cell of a markdown table, taken as it is written."""
    return re.sub(r"([|*_$`<>\[\]])", r"\\\1", " ".join(text.split()))
