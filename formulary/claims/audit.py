"""A claim in circulation, held against the formulary: what is said, what is computed, the verdict and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .. import formula
from ..quantity import InputError
from ..reckon import Amount, Calculation, say
from ..spelling import nearest
from ..units import BYTE, UnitError
from .stated import BOUNDS, Stated, read_stated

# verdict: how a reader is told; from the best to the worst that may be said of a claim's figures
VERDICTS = {
    "true": "true",
    "true_with_rounding": "true, with rounding",
    "empirical": "has to be measured",
    "convention": "depends on the convention",
    "unit_slip": "unit slip",
    "wrong": "wrong",
}
PREFIXES = {1: "KiB", 2: "MiB", 3: "GiB", 4: "TiB"}


@dataclass(frozen=True)
class Figure:
    """A number that a claim states, and the calculation that gives the right one.

    of: what it is, where the sentence has no blank for it.
    otherwise: calculations that other conventions make of it, by what they count.
    slip: the calculation that gives the claimed number, by the slip that it is.
    """

    claimed: str
    computed: str = ""
    of: str = ""
    otherwise: Mapping = field(default_factory=dict)
    slip: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What became of one figure: the verdict, the computed amount as text, and a note on where the claimed one comes from."""

    figure: Figure
    verdict: str
    computed: str = ""
    note: str = ""

    @property
    def told(self):
        """The computed amount; with what it is and what was made of the claim, where the sentence has no number for it."""
        of = self.figure.of
        return f"{of}: {self.computed} (read as {self.figure.claimed})" if of else self.computed


@dataclass(frozen=True)
class AuditedClaim:
    """Something that is said, with its numbers left out of the sentence, and the verdict on it.

    says: the sentence; each `{}` is the next figure, every other blank a calculation at the `given` values.
    ruled: the verdict that was expected, which stands where nothing can be computed; `differs` notes why the computed one is another.
    measure: what would have to be measured, where no calculation can tell.
    """

    id: str
    chapter: int
    says: str
    ruled: str
    why: str = ""
    measure: str = ""
    differs: str = ""
    rulings: tuple = ()
    figures: tuple = ()
    given: Mapping = field(default_factory=dict)

    @cached_property
    def findings(self):
        """A Finding for every figure, in order."""
        return tuple(_find(figure, self.given) for figure in self.figures)

    @property
    def verdict(self):
        """The computed verdict, the worst of all figures; the ruled one where there is nothing to compute."""
        found = [finding.verdict for finding in self.findings if finding.computed]
        if self.measure or not found:
            return self.ruled
        return max(found, key=list(VERDICTS).index)

    @property
    def basis(self):
        """What the verdict rests on: "computed", "demonstrated" (a ruling in words, with figures), "measurement" or "qualitative"."""
        if self.measure:
            return "measurement"
        if any(finding.computed for finding in self.findings):
            return "computed"
        return "demonstrated" if "{" in self.why else "qualitative"

    @property
    def sentence(self):
        """What is said, with the numbers as they are said."""
        words = self.says
        for figure in self.figures:
            words = words if figure.of else words.replace("{}", figure.claimed, 1)
        return say(words, self.given)

    @property
    def computed(self):
        """The right numbers, in the units of the claimed ones."""
        return "; ".join(finding.told for finding in self.findings if finding.computed)

    @property
    def reason(self):
        """Why the verdict is what it is."""
        notes = [finding.note for finding in self.findings if finding.note]
        measure = f"To be measured: {self.measure}." if self.measure else ""
        said = [say(self.why, self.given), measure, *dict.fromkeys(notes)]
        return " ".join(filter(None, said)) or f"Follows from {', '.join(self._formulas())}."

    def _formulas(self):
        called = [call.name for f in self.figures if f.computed for call, *_ in Calculation(f.computed, self.given).calls.values()]
        return list(dict.fromkeys(called)) or ["arithmetic"]

    def row(self):
        """The claim as plain data."""
        return {
            "id": self.id,
            "chapter": self.chapter,
            "rulings": list(self.rulings),
            "said": self.sentence,
            "computed": self.computed,
            "verdict": self.verdict,
            "basis": self.basis,
            "why": self.reason,
        }

    def _repr_markdown_(self):
        return Claims([self])._repr_markdown_()


class Claims(tuple):
    """Audited claims; show themselves as a table."""

    __slots__ = ()

    @property
    def rows(self):
        """The claims as plain data."""
        return [claim.row() for claim in self]

    def counts(self, of="verdict"):
        """How many there are of each "verdict", "basis" or "chapter"."""
        values = [getattr(claim, of) for claim in self]
        known = list(VERDICTS) if of == "verdict" else sorted(set(values))
        return {value: values.count(value) for value in known}

    def first(self, *names):
        """The claims of these ids, and the others folded away below them. Raises InputError for an id that is not among them."""
        known = {claim.id: claim for claim in self}
        for name in names:
            if name not in known:
                raise InputError(f"no claim {name!r} here{nearest(name, known)}")
        return Folded(Claims(known[name] for name in names), Claims(claim for claim in self if claim.id not in names))

    def _repr_markdown_(self):
        rows = ["| what is said | computed | verdict | why |", "|---|---|---|---|"]
        return "\n".join([*rows, *(f"| {c.sentence} | {c.computed} | {VERDICTS[c.verdict]} | {c.reason} |" for c in self)])


@dataclass(frozen=True)
class Folded:
    """Some claims that show themselves as a table, and others that do so when they are asked for."""

    shown: Claims
    others: Claims

    def _repr_markdown_(self):
        others = f"<details><summary>{len(self.others)} more</summary>\n\n{self.others._repr_markdown_()}\n\n</details>"
        return f"{self.shown._repr_markdown_()}\n\n{others}"


class Rulings(dict):
    """What holds, by the ruling's id; shows itself as a table."""

    def among(self, first, last):
        """Those from `first` to `last`, both by number."""
        return Rulings({name: text for name, text in self.items() if first <= int(name.removeprefix("X")) <= last})

    def _repr_markdown_(self):
        return "\n".join(["| ruling | what holds |", "|---|---|", *(f"| {name} | {text} |" for name, text in self.items())])


# --- the verdict on a figure ---------------------------------------------------------------------------------------------


def _find(figure, given):
    if not figure.computed:
        return Finding(figure, "")
    calculation = Calculation(figure.computed, given)
    right = calculation.amount()
    stated = read_stated(figure.claimed, right.unit)
    others = {name: Calculation(text, given).amount() for name, text in figure.otherwise.items()}
    for rule in RULES:
        verdict, note = rule(stated, right, calculation, others)
        if verdict:
            return Finding(figure, verdict, right.say(stated.scale), note)
    return Finding(figure, "wrong", right.say(stated.scale), _slips(figure, stated, given))


def _agrees(stated: Stated, right: Amount, calculation, others):
    verdict = stated.borne_out_by(right.value)
    others = {name: other for name, other in others.items() if not stated.borne_out_by(other.value)}
    differing = [f"counting {name} it is {other.say(stated.scale)}" for name, other in others.items()]
    return ("convention", f"But {', '.join(differing)}.") if verdict and differing else (verdict, "")


def _binary(stated, right, calculation, others):
    if right.unit != BYTE or stated.relation in BOUNDS or stated.low != stated.high:
        return None, ""
    for power, name in PREFIXES.items():
        factor = formula("prefix_ratio")(prefix_power=power)
        candidates = [Amount(right.value / factor, BYTE), *calculation.scaled(BYTE, factor)]
        if any(stated.borne_out_by(candidate.value) == "true" for candidate in candidates):
            return "unit_slip", f"A figure in {name} is taken for one in {name.replace('i', '')}."
    return None, ""


def _counted_otherwise(stated, right, calculation, others):
    for name, other in others.items():
        if stated.borne_out_by(other.value):
            return "convention", f"The claimed figure is that of counting {name}."
    return None, ""


def _by_convention(stated, right, calculation, others):
    if stated.relation in BOUNDS or len(calculation.calls) > 1:  # one count of two cannot change alone
        return None, ""
    try:
        for alternative, other in calculation.otherwise():
            if other.unit == right.unit and stated.borne_out_by(other.value) == "true":
                return "convention", f"The claimed figure counts by `{alternative.name}`: {alternative.meaning} ({alternative.who})."
    except (InputError, UnitError):
        pass
    return None, ""


RULES = (_agrees, _binary, _counted_otherwise, _by_convention)


def _slips(figure, stated, given):
    names = [name for name, text in figure.slip.items() if stated.borne_out_by(Calculation(text, given).amount().value)]
    return f"The claimed figure comes of {' and '.join(names)}." if names else ""
