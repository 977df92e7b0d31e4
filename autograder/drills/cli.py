"""`psi drill`: practise, estimate, sit a paper or an interview, and look after the progress that is kept of it."""

import argparse
import contextlib
import json
import sys
from pathlib import Path

from formulary import InputError

from ..bank import Bank, BankError
from ..exercise import KINDS, LANGUAGES
from . import progress, sitting
from .deck import Deck, Wanted
from .folding import lines
from .store import Store, StoreError
from .terminal import Terminal

with contextlib.suppress(ImportError):  # Windows has none
    import readline  # noqa: F401  so that lines can be edited, and be longer than the 4096 characters a terminal takes


def main(argv):
    """Run `psi drill …`; returns 0, or 2 where the request makes no sense."""
    options = _parser().parse_args([*argv[1:]] if _names_a_verb(argv[1:]) else ["practice", *argv[1:]])
    try:
        return options.run(options) or 0
    except OSError as error:
        print(f"psi drill: {error.filename}: {error.strerror}; name another file", file=sys.stderr)
        return 2
    except (InputError, BankError, StoreError) as error:
        print(f"psi drill: {error}", file=sys.stderr)
        return 2


def _names_a_verb(words):
    return bool(words) and (not words[0].startswith("-") or words[0] in ("-h", "--help"))


def _parser():
    parser = argparse.ArgumentParser(prog="psi drill", description=__doc__.partition(": ")[2] + " Without a word: practice.")
    verbs = parser.add_subparsers(required=True, metavar="|".join(VERBS))
    for name, (help_, run, add) in VERBS.items():
        verb = verbs.add_parser(name, help=help_, description=help_)
        verb.add_argument("--store", type=Path, metavar="FILE", help="the file of progress; your own data folder's if not said")
        add(verb)
        verb.set_defaults(run=run)
    return parser


def _with_choice(verb):
    verb.add_argument("--chapter", type=int, nargs="+", default=(), metavar="N")
    verb.add_argument("--kind", nargs="+", default=(), choices=tuple(KINDS))
    verb.add_argument("--difficulty", type=int, nargs="+", default=(), choices=range(1, 6), metavar="1-5")


def _with_language(verb):
    verb.add_argument("--lang", choices=(*LANGUAGES, "both"), default="en", help="en, zh or both")


def _with_cards(verb):
    _with_choice(verb)
    _with_language(verb)
    verb.add_argument("--cards", type=_count, default=10, metavar="N", help="how many to ask")


def _with_minutes(default):
    def add(verb):
        _with_language(verb)
        verb.add_argument("--minutes", type=_count, default=default, metavar="N")
        verb.add_argument("--new", action="store_true", help="begin a new one even if the last was not finished")

    return add


def _with_interview(verb):
    _with_choice(verb)
    _with_minutes(30)(verb)


def _with_file(verb):
    verb.add_argument("file", type=Path)


def _with_anki(verb):
    _with_file(verb)
    _with_language(verb)


def _with_stats(verb):
    _with_language(verb)
    verb.add_argument("--json", action="store_true", help="print as JSON")
    verb.add_argument("--picture", type=_drawing, metavar="FILE", help="also draw it, as PNG or SVG")


def _count(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a whole number above 0 is wanted, not {text!r}")
    return int(text)


def _drawing(text):
    if Path(text).suffix not in (".png", ".svg"):
        raise argparse.ArgumentTypeError(f"a name that ends in .png or .svg is wanted, not {text!r}")
    return Path(text)


def _deck(options):
    return Deck(Bank(), Store(options.store))


def _languages(options):
    return LANGUAGES if options.lang == "both" else (options.lang,)


def _wanted(options):
    return Wanted(tuple(options.chapter), tuple(options.kind), tuple(options.difficulty))


def _practice(options):
    Terminal(_deck(options), _languages(options)).practice(_wanted(options), options.cards)


def _rapid(options):
    Terminal(_deck(options), _languages(options)).rapid(_wanted(options), options.cards)


def _paper(options):
    deck = _deck(options)
    terminal = Terminal(deck, _languages(options))
    sat = _begun(terminal, options, "paper", lambda: sitting.draw_paper(deck, options.minutes))
    names = [row["exercise"] for row in sat.body["questions"]]
    most = f"{sum(deck.bank[name].points for name in names):g}"
    terminal.say("paper", count=len(names), most=most, minutes=sat.body["minutes"])
    terminal.paper(sat)


def _interview(options):
    deck = _deck(options)
    terminal = Terminal(deck, _languages(options))
    sat = _begun(terminal, options, "interview", lambda: sitting.draw_interview(deck, options.minutes, _wanted(options)))
    terminal.say("interview", count=len(sat.body["questions"]), minutes=sat.body["minutes"])
    terminal.interview(sat)


def _begun(terminal, options, kind, draw):
    """The sitting that was left unfinished, or a new one."""
    left = None if options.new else sitting.unfinished(terminal.deck.store, kind)
    if not left:
        return draw()
    terminal.say("resumed")
    left, gone = sitting.still_asked(terminal.deck, left)
    if gone:
        terminal.say("gone", names=", ".join(gone))
    return left


def _stats(options):
    said = progress.statistics(_deck(options))
    print(json.dumps(said, ensure_ascii=False, indent=2) if options.json else lines("\n".join(progress.write(said, _languages(options)))))
    if options.picture:
        progress.picture(said).savefig(options.picture)


def _export(options):
    options.file.write_text(json.dumps(Store(options.store).export(), ensure_ascii=False), encoding="utf-8")


def _import(options):
    try:
        data = json.loads(options.file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{options.file} is not JSON: {error}") from None
    print(f"{Store(options.store).merge(data)} new answers")


def _anki(options):
    from .anki import write_package  # here, since nobody else needs what it imports

    print(f"{write_package(Bank(), _languages(options), options.file)} notes in {options.file}")


VERBS = {
    "practice": ("exercises with fresh numbers, what is due first", _practice, _with_cards),
    "rapid": ("estimates against the clock", _rapid, _with_cards),
    "paper": ("a mock paper: drawn, timed, marked and kept", _paper, _with_minutes(90)),
    "interview": ("a mock interview that asks on", _interview, _with_interview),
    "stats": ("how far you are", _stats, _with_stats),
    "export": ("write your progress as JSON", _export, _with_file),
    "import": ("add progress that was exported", _import, _with_file),
    "anki": ("write the whole bank as an Anki package", _anki, _with_anki),
}
