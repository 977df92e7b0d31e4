"""A small table of texts, for print and for readers whose page shows no widgets."""

import html


class Table:
    """A table of texts, its first column naming the row: shows itself as markdown, HTML or plain text."""

    def __init__(self, title, head, rows):
        self.title, self.head, self.rows = title, list(head), [list(row) for row in rows]

    def __str__(self):
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        pad = lambda line: "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        return "\n".join([self.title, *(pad(line).rstrip() for line in lines)])

    def _repr_markdown_(self):
        rule = ["---", *["--:"] * (len(self.head) - 1)]
        return "\n".join([f"**{self.title}**\n", *("| " + " | ".join(line) + " |" for line in (self.head, rule, *self.rows))])

    def _repr_html_(self):
        cells = lambda tag, line: "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line)
        rows = "".join(f"<tr><th scope='row'>{html.escape(row[0])}</th>{cells('td', row[1:])}</tr>" for row in self.rows)
        head = f"<thead><tr>{cells('th', self.head)}</tr></thead>"
        return f"<table><caption>{html.escape(self.title)}</caption>{head}<tbody>{rows}</tbody></table>"
