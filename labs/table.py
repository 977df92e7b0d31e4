"""The table of a report, as markdown, HTML and plain text. Rows are texts, one for each of COLUMNS."""

import html

# heading: the side its cells are aligned to
COLUMNS = {
    "": "left",
    "rank": "left",
    "predicted": "right",
    "measured": "right",
    "ratio": "right",
    "verdict": "left",
    "on paper": "right",
    "what makes the difference": "left",
}
ALIGNED = {"left": str.ljust, "right": str.rjust}
DASHES = {"left": "---", "right": "--:"}


def pipes(cells):
    """One line of a markdown table."""
    return f"| {' | '.join(cells)} |"


def as_markdown(rows):
    return "\n".join([pipes(COLUMNS), pipes(DASHES[side] for side in COLUMNS.values()), *map(pipes, rows)])


def as_html(rows, caption, stands_out):
    """A table; rows for which `stands_out(row)` holds are bold."""
    head = _cells("th", COLUMNS)
    bold = {True: ' style="font-weight: bold"', False: ""}
    body = [f"<tr{bold[stands_out(row)]}>{_cells('td', row)}</tr>" for row in rows]
    return f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _cells(tag, texts):
    sides = COLUMNS.values()
    return "".join(f'<{tag} style="text-align: {side}">{html.escape(text)}</{tag}>' for text, side in zip(texts, sides, strict=True))


def as_text(rows):
    table = [list(COLUMNS), *rows]
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    sides = [ALIGNED[side] for side in COLUMNS.values()]
    return "\n".join("  ".join(align(cell, w) for align, cell, w in zip(sides, row, wide, strict=True)).rstrip() for row in table)
