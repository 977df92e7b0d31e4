"""`psi claims`: what is said about distributed training, held against the formulas."""

import argparse
import json
import sys

from ..quantity import InputError
from . import BASES, VERDICTS, Claims, claim, claims

COLUMNS = ("verdict", "basis", "chapter")


def main(argv):
    """Run `psi claims …`; returns the exit status: 0, or 2 with one line on stderr when the request makes no sense."""
    options = _parser().parse_args(argv[1:])
    try:
        chosen = _chosen(options)
    except InputError as error:
        print(f"psi claims: {error}", file=sys.stderr)
        return 2
    print(json.dumps(_data(chosen), ensure_ascii=False, indent=2) if options.json else _text(chosen))
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="psi claims", description="What is said about distributed training, and what is computed.")
    parser.add_argument("ask", nargs="*", metavar="show ID", help="show these claims, as in: show C000-010")
    parser.add_argument("--chapter", type=int, metavar="N", help="of one chapter")
    parser.add_argument("--verdict", metavar="V", help=", ".join(VERDICTS))
    parser.add_argument("--ruling", metavar="X", help="the claims that one ruling settles, as in X12")
    parser.add_argument("--basis", metavar="B", help=", ".join(BASES))
    parser.add_argument("--json", action="store_true", help="print rows and counts as JSON")
    return parser


def _chosen(options):
    if not options.ask:
        return claims(options.chapter, options.verdict, options.ruling, options.basis)
    verb, *names = options.ask
    if verb != "show" or not names:
        raise InputError(f"{' '.join(options.ask)!r} asks for nothing; write for example show C000-010")
    return Claims(map(claim, names))


def _data(chosen):
    return {"claims": chosen.rows, "summary": {"total": len(chosen), **{f"by_{column}": chosen.counts(column) for column in COLUMNS}}}


def _text(chosen):
    counts = ", ".join(f"{number} {VERDICTS[verdict]}" for verdict, number in chosen.counts().items() if number)
    return "\n\n".join([*map(_lines, chosen.rows), f"{len(chosen)} claims: {counts or 'none'}"])


def _lines(row):
    parts = (("said", row["said"]), ("computed", row["computed"]), ("verdict", VERDICTS[row["verdict"]]), ("why", row["why"]))
    return "\n".join([f"{row['id']}  chapter {row['chapter']}", *(f"  {name:<9} {text}" for name, text in parts if text)])
