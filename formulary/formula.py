"""A formula: one sympy expression for one quantity. Its TeX, number, JavaScript and worked line are views of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property

import sympy as sp

from . import amounts
from .convention import Comparison, Counted
from .derivation import Derivation, DerivationError, limit, same, tex
from .javascript import CLOSE, javascript
from .quantity import InputError, Quantity, is_array, look_up, unit_of
from .spelling import nearest
from .units import ANY, UnitError, dimension, spell, without_units


@dataclass(frozen=True, eq=False)
class Formula:
    """`result` equals `expr`, according to `source`, under `assumptions`.

    expr: sympy expression over glossary symbols; may be left out when a `derivation` ends in it.
    conventions: the choices its value depends on; each one's first alternative fills inputs not given.
    empirical: why there is no derivation, where the formula is a fit and not a consequence.
    valid: what inputs must obey together, as (relation, words) such as `(stage <= stages, "a stage is one of the pipeline's")`.
    Raises UnitError if the two sides differ in dimension, DerivationError if the derivation ends elsewhere.
    """

    result: sp.Symbol
    expr: sp.Expr = None
    source: str = ""
    name: str = ""
    assumptions: tuple = ()
    conventions: tuple = ()
    derivation: Derivation | None = None
    empirical: str = ""
    valid: tuple = ()
    covers: tuple = ()
    chapter: int | None = None
    fixed: Mapping = field(default_factory=dict)
    quantity: Quantity = None

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)
        put("quantity", self.quantity or look_up(self.result))
        put("name", self.name or self.quantity.name)
        put("expr", sp.sympify(self.derivation.expr if self.expr is None else self.expr))
        if self.derivation is not None and not same(self.derivation.expr, self.expr):
            raise DerivationError(f"{self.name}: the derivation ends in {self.derivation.expr}, not in {self.expr}")
        found = dimension(self.expr, unit_of)
        if found not in (ANY, self.unit):
            raise UnitError(f"{self.name} is in {spell(self.unit)}, but its expression is in {spell(found)}")
        for relation, _ in self.valid:
            dimension(sp.Max(relation.lhs, relation.rhs, evaluate=False), unit_of)

    @property
    def unit(self):
        return self.quantity.unit

    @cached_property
    def inputs(self):
        """The quantities the expression needs, by name, in alphabetical order."""
        symbols = without_units(self.expr).free_symbols
        return {s.name: look_up(s) for s in sorted(symbols, key=str)}

    @cached_property
    def defaults(self):
        """Values of inputs that a convention supplies when the caller does not."""
        values = {k: v for convention in self.conventions for k, v in convention.default.values.items()}
        return {k: v for k, v in values.items() if k in self.inputs}

    # --- as a number -------------------------------------------------------------------------------------------

    def __call__(self, **values):
        """The value in base units (bytes, seconds, FLOP, …): int or float, or a float64 array if an input is one."""
        values = self.accept(values)
        return self._elementwise(values) if any(map(is_array, values.values())) else self._finite(values)

    def accept(self, values, *, extra=False):
        """`values` checked and completed by the conventions' defaults. With `extra`, other names are let through."""
        for name in () if extra else values:
            self._input(name)
        values = {**self.defaults, **{k: v for k, v in values.items() if k in self.inputs}}
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise InputError(f"{self.name} lacks {', '.join(missing)}; {self._wants()}")
        accepted = {name: quantity.accept(values[name]) for name, quantity in self.inputs.items()}
        self._refuse_nonsense(accepted)
        return accepted

    def _refuse_nonsense(self, values):
        self._refuse_shapes(values)
        for names, holds, words in self._relations:
            given = {name: values[name] for name in names}
            if not _obeyed(holds, given):
                raise self._nonsense(words, given)

    def _nonsense(self, words, values):
        return InputError(f"{self.name}: {words}, but {', '.join(f'{name} is {value}' for name, value in values.items())}")

    def _refuse_shapes(self, values):
        shapes = {name: value.shape for name, value in values.items() if is_array(value)}
        if not shapes:
            return
        from numpy import broadcast_shapes

        try:
            broadcast_shapes(*shapes.values())
        except ValueError:
            raise InputError(f"{self.name}: arrays must have one shape, not {shapes}") from None

    @property
    def _together(self):
        """(relation without units, words) of what inputs must obey together; without the inputs a view has lost."""
        free = ((without_units(relation), words) for relation, words in self.valid)
        return [(relation, words) for relation, words in free if {s.name for s in relation.free_symbols} <= set(self.inputs)]

    @cached_property
    def _relations(self):
        """(inputs, function of them, words) of the same."""
        named = [(sorted(s.name for s in relation.free_symbols), relation, words) for relation, words in self._together]
        return [(names, sp.lambdify(names, relation, modules="math"), words) for names, relation, words in named]

    def _wants(self):
        return f"it takes {', '.join(self.inputs) or 'nothing'}"

    def _finite(self, values):
        try:
            value = (
                _plain(self._python(**{name: _exact(value) for name, value in values.items()})) if self._rounds else self._python(**values)
            )
            if isinstance(value, int) or math.isfinite(value):
                return value
        except (ZeroDivisionError, OverflowError, ValueError, TypeError):
            pass
        raise self._nowhere_finite(values)

    def _elementwise(self, values):
        import numpy as np

        with np.errstate(all="ignore"):
            value = np.broadcast_arrays(np.asarray(self._numpy(**values), float), *values.values())[0]
        if np.isfinite(value).all():
            return value
        where = np.unravel_index(np.argmin(np.isfinite(value)), value.shape)
        raise self._nowhere_finite({name: np.broadcast_to(given, value.shape)[where].item() for name, given in values.items()})

    def _nowhere_finite(self, values):
        return InputError(f"{self.name} has no finite value at {', '.join(f'{name}={value}' for name, value in values.items())}")

    @cached_property
    def _rounds(self):
        return self.expr.has(sp.ceiling, sp.floor)

    @cached_property
    def _python(self):
        return sp.lambdify(list(self.inputs), without_units(self.expr), modules="math")

    @cached_property
    def _numpy(self):
        return sp.lambdify(list(self.inputs), without_units(self.expr), modules=[_rounding(), "numpy"])

    def amount(self, scale=None, digits=4, **values):
        """The value with its unit, as text: `38.5 GB`; `scale="GiB"` shows another unit."""
        return amounts.write(self(**values), self.unit, digits, scale)

    # --- as another formula ------------------------------------------------------------------------------------

    def given(self, **values):
        """The formula with some inputs filled in; units stay with the numbers."""
        known = self._accept_some(values)
        filled = {look_up(name).symbol: sp.nsimplify(value) * look_up(name).unit for name, value in known.items()}
        return self._view(self.expr.subs(filled), fixed={**self.fixed, **known}, valid=self._still_open(filled, known))

    def _still_open(self, filled, known):
        """What the other inputs must still obey; raises InputError for what these already break."""
        left = [(relation.subs(filled), words) for relation, words in self.valid]
        for relation, words in left:
            if relation == sp.false:
                raise self._nonsense(words, known)
        return tuple((relation, words) for relation, words in left if relation != sp.true)

    def _accept_some(self, values):
        inputs = {name: self._input(name) for name in values}
        return {name: inputs[name].accept(value) for name, value in values.items()}

    def under(self, *alternatives):
        """The formula with conventions chosen: `state_bytes.under("fp32_adam")`; an alternative may be another formula."""
        chosen = [self.alternative(name) for name in alternatives]
        base = next((alternative.formula for alternative in chosen if alternative.formula), self)
        return base.given(**{k: v for alternative in chosen for k, v in alternative.values.items() if k in base.inputs})

    def alternative(self, name):
        """The convention's alternative of that name. Raises InputError with the nearest names if there is none."""
        for convention in self.conventions:
            if name in convention:
                return convention[name]
        known = [a.name for convention in self.conventions for a in convention.alternatives]
        raise InputError(f"{self.name} has no convention {name!r}{nearest(name, known)} (it has {', '.join(known) or 'none'})")

    def compare(self, *chosen, **values):
        """The value under every alternative of every convention; `chosen` are marked, the defaults if none are."""
        rows = [self._counted(c.name, a, values) for c in self.conventions for a in c.alternatives]
        return Comparison(tuple(rows), chosen or tuple(c.default.name for c in self.conventions))

    def _counted(self, convention, alternative, values):
        other = alternative.formula or self
        taken = {k: v for k, v in {**values, **alternative.values}.items() if k in other.inputs}
        try:
            return Counted(convention, alternative, other.unit, other(**taken))
        except InputError as error:
            return Counted(convention, alternative, other.unit, None, f"not with these inputs: {error}")

    def by_convention(self):
        """The formula with the book's own conventions filled in."""
        return self.given(**self.defaults) if self.defaults else self

    def bare(self):
        """The formula as far as it computes: without its derivation and other formulas, so that it can be pickled."""
        plain = lambda convention: replace(convention, alternatives=tuple(replace(a, formula=None) for a in convention.alternatives))
        return replace(self, derivation=None, conventions=tuple(map(plain, self.conventions)))

    def __getstate__(self):  # what was made ready to compute with is made anew
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def limit(self, name, to):
        """What the formula tends to as input `name` goes to `to` (a number or `sympy.oo`)."""
        return self._view(limit(self.expr, self._input(name).symbol, to))

    def solve_for(self, name):
        """The formula turned round: input `name` as a function of this formula's result and the other inputs."""
        wanted = self._input(name)
        roots = sp.solve(self.expr - self.quantity.symbol, wanted.symbol)
        if len(roots) != 1:
            raise InputError(f"{self.name} has {len(roots)} solutions for {name}: {roots}")
        return replace(self, result=wanted.symbol, quantity=wanted, expr=roots[0], derivation=None, name=f"{name} from {self.name}")

    def derivative(self, name):
        """How fast the result changes with input `name`."""
        by = self._input(name)
        rate = Quantity(
            sp.Symbol(f"d_{self.name}_d_{name}"),
            rf"\frac{{\partial {self.quantity.tex}}}{{\partial {by.tex}}}",
            self.unit / by.unit,
            f"change of {self.quantity.meaning} per unit of {by.meaning}",
        )
        return replace(self, result=rate.symbol, quantity=rate, expr=self.expr.diff(by.symbol), derivation=None, name=rate.name)

    def _input(self, name):
        if str(name) not in self.inputs:
            raise InputError(f"{self.name} takes no {str(name)!r}{nearest(name, self.inputs)}; {self._wants()}")
        return self.inputs[str(name)]

    def _view(self, expr, **changes):
        return replace(self, expr=expr, derivation=None, **changes)

    # --- as text -----------------------------------------------------------------------------------------------

    @property
    def latex(self):
        return f"{self.quantity.tex} = {tex(self.expr)}"

    def worked(self, **values):
        """TeX of the whole calculation: symbols, then the numbers in their places, then the value with its unit."""
        values = self.accept(values)
        readable = self._readable(values)
        names = {q.symbol: rf"\mathbf{{{_short(values[n])}}}" for n, q in readable.inputs.items()}
        filled = sp.latex(without_units(readable.expr), symbol_names=names, mul_symbol="times")
        return rf"{self.quantity.tex} = {tex(readable.expr)} = {filled} = {_tex_amount(self(**values), self.unit)}"

    def worked_text(self, **values):
        """The same line in plain characters."""
        values = self.accept(values)
        readable = self._readable(values)
        names = {q.symbol: sp.Symbol(_short(values[n])) for n, q in readable.inputs.items()}
        symbolic, numeric = (str(without_units(e)) for e in (readable.expr, without_units(readable.expr).xreplace(names)))
        return f"{self.name} = {symbolic} = {numeric} = {amounts.write(self(**values), self.unit, 6)}"

    def _readable(self, values):
        """The formula with what is no variable of the story (choices, the convention's constants) filled in."""
        settled = {n: values[n] for n, q in self.inputs.items() if q.choices or n in self.defaults}
        return self.given(**settled) if settled else self

    def table(self):
        """Rows (TeX letter, name, unit, meaning) of the inputs."""
        return [(f"${q.tex}$", q.name, spell(q.unit), q.meaning) for q in self.inputs.values()]

    @cached_property
    def javascript(self):
        """A JavaScript expression over the inputs' names, equal to the formula with units weighing 1; NaN for nonsense."""
        value, together = javascript(without_units(self.expr)), [javascript(relation) for relation, _ in self._together]
        return f"({' && '.join(together)} ? {value} : NaN)" if together else value

    def _repr_latex_(self):
        return f"$${self.latex}$$"


def _exact(value):
    """A number as the simple fraction that its double stands for, so that 3 / 0.2 is not a little more than 15 and rounded up to 16."""
    simple = Fraction(value).limit_denominator(SIMPLE)
    return simple if simple == value or float(simple) == value else Fraction(repr(value))


SIMPLE = 10**6  # denominators up to here: decimals of six places, and shares such as 1 / 87


def _rounding():
    """Rounding of float64s, where one that is CLOSE to a whole number is that one, as its decimals meant."""
    import numpy as np

    near = lambda value: np.abs(value - np.rint(value)) <= CLOSE * np.abs(value)
    like = lambda rounded: lambda value: np.where(near(value), np.rint(value), rounded(value))
    return {"ceil": like(np.ceil), "floor": like(np.floor)}


def _plain(value):
    """A fraction as int where it is one, else float."""
    if not isinstance(value, Fraction):
        return value
    return value.numerator if value.denominator == 1 else float(value)


def _short(value):
    return amounts.number(value).replace(",", "") if abs(value) < 1e4 else f"{value:.6g}".replace("e+", "e").replace("e0", "e")


def _tex_amount(value, unit):
    text = amounts.write(value, unit, 6)
    figure, _, name = text.partition(" ")
    return figure.replace(",", "{,}") + (rf"\,\mathrm{{{name}}}" if name else "")


FORMULAS: dict[str, Formula] = {}


def define(result=None, expr=None, **details):
    """Make a Formula and enter it into the catalogue under its name. Raises ValueError if the name is taken."""
    made = Formula(result, expr, **details)
    if made.name in FORMULAS:
        raise ValueError(f"formula {made.name!r} is already defined")
    if not made.source:
        raise ValueError(f"formula {made.name!r} has no source")
    FORMULAS[made.name] = made
    return made


def _obeyed(holds, given):
    """Whether the values obey a relation; where its sides cannot even be worked out, they do not."""
    try:
        held = holds(**given)
    except ArithmeticError:
        return False
    return held.all() if is_array(held) else held
