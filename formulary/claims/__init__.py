"""What is said about distributed training, each claim with a computed verdict: `claims(chapter=1)`, `claims(verdict="wrong")`.

The claims are data, a file a chapter: only what is said is typed there, what is right is computed. `rulings.toml` says what
holds where several claims contradict each other.
"""

import tomllib
from functools import cache
from importlib.resources import files

from .. import load_all
from ..hardware import FORMATS, GPUS, NETWORKS, PCIE
from ..quantity import InputError
from ..reckon import say
from ..shapes import MODELS, RUNS
from ..spelling import nearest
from .audit import VERDICTS, AuditedClaim, Claims, Figure, Finding, Rulings

BUNDLES = {**MODELS, **GPUS, **NETWORKS, **PCIE, **FORMATS, **RUNS}
BASES = ("computed", "demonstrated", "measurement", "qualitative")


def claims(chapter=None, verdict=None, ruling=None, basis=None):
    """The claims of a chapter, with a verdict, under a ruling, on a basis; all of them if nothing is asked for.

    Raises InputError for a verdict, ruling or basis that there is not.
    """
    for asked, known in ((verdict, VERDICTS), (ruling, rulings()), (basis, BASES)):
        if asked is not None and asked not in known:
            raise InputError(f"no claim has {asked!r}{nearest(asked, known)} (there is {', '.join(known)})")
    chosen = [c for c in _all().values() if chapter in (None, c.chapter) and (ruling is None or ruling in c.rulings)]
    return Claims(c for c in chosen if verdict in (None, c.verdict) and basis in (None, c.basis))


def claim(name):
    """The claim of that id. Raises InputError with the nearest ids if there is none."""
    if name not in _all():
        raise InputError(f"no claim is called {name!r}{nearest(name, _all())}")
    return _all()[name]


@cache
def rulings():
    """What holds where claims contradict each other or are plainly wrong, by id."""
    load_all()
    texts = tomllib.loads(files(__package__).joinpath("rulings.toml").read_text(encoding="utf-8"))
    return Rulings({name: say(text, {}) for name, text in texts.items()})


@cache
def _all():
    load_all()
    paths = sorted((path for path in files(__package__).iterdir() if path.name[:2].isdigit()), key=lambda path: path.name)
    made = [_made(int(path.name[:2]), *row) for path in paths for row in tomllib.loads(path.read_text(encoding="utf-8")).items()]
    return {c.id: c for c in made}


def _made(chapter, name, row):
    """An AuditedClaim of a table of the data: `on` names bundles of facts, whose values count as given."""
    row = dict(row)
    bundled = {name: value for title in row.pop("on", ()) for name, value in BUNDLES[title].items()}
    figures = tuple(Figure(**figure) for figure in row.pop("figures", ()))
    given = {**bundled, **row.pop("given", {})}
    return AuditedClaim(name, chapter, ruled=row.pop("verdict"), rulings=tuple(row.pop("rulings", ())), figures=figures, given=given, **row)


__all__ = ["BASES", "VERDICTS", "AuditedClaim", "Claims", "Figure", "Finding", "claim", "claims", "rulings"]
