"""Dimensions as sympy monomials: a product of powers of the base units below; `PURE` is a plain number.

Counts (of parameters, GPUs, layers, elements) are pure numbers, so a count only becomes bytes when something in
bytes multiplies it: forgetting the bytes per element is a unit error. A base unit may stand inside an expression
(`16 * BYTE * num_params`); it weighs 1 when the expression is evaluated.
"""

import sympy as sp

BASE_UNITS = BYTE, FLOP, TOKEN, SECOND, DOLLAR, JOULE = sp.symbols("byte flop token second dollar joule", positive=True)
PURE = sp.Integer(1)
ANY = None  # the dimension of an exact zero or infinity: it fits beside every other


class UnitError(TypeError):
    """Two sides of a formula do not measure the same thing."""


def dimension(expr, unit_of):
    """The dimension of `expr`, where `unit_of(symbol)` gives each symbol's own.

    Returns a monomial in `BASE_UNITS`, or `ANY` for an exact 0 or infinity.
    Raises UnitError where terms disagree, and for every kind of node that has no rule here.
    """
    expr = sp.sympify(expr)
    if expr.is_number:
        return ANY if expr.is_zero or expr.is_infinite else PURE
    if expr.is_Symbol:
        return expr if expr in BASE_UNITS else unit_of(expr)
    for kinds, rule in RULES:
        if isinstance(expr, kinds):
            return rule(expr, lambda part: dimension(part, unit_of))
    raise UnitError(f"no unit rule for {type(expr).__name__} in {expr}; add one to formulary.units.RULES")


def _agree(expr, parts, of):
    known = [(part, of(part)) for part in parts]
    known = [(part, unit) for part, unit in known if unit is not ANY]
    for part, unit in known:
        if unit != known[0][1]:
            raise UnitError(
                f"{known[0][0]} is in {spell(known[0][1])}, but {part} is in {spell(unit)}: {type(expr).__name__} needs both alike"
            )
    return known[0][1] if known else ANY


def _all_alike(expr, of):
    return _agree(expr, expr.args, of)


def _product(expr, of):
    units = [of(part) for part in expr.args]
    return ANY if ANY in units else sp.Mul(*units)


def _power(expr, of):
    _must_be_pure(expr, expr.exp, of)
    base = of(expr.base)
    if base in (ANY, PURE):
        return base
    if not expr.exp.is_number:
        raise UnitError(f"{expr.base} is in {spell(base)}, so its exponent {expr.exp} must be a number")
    return base**expr.exp


def _must_be_pure(expr, part, of):
    if of(part) not in (ANY, PURE):
        raise UnitError(f"{type(expr).__name__} needs a pure number, but {part} is in {spell(of(part))}")


def _pure(expr, of):
    for part in expr.args:
        _must_be_pure(expr, part, of)
    return PURE


def _branches(expr, of):
    for _, condition in expr.args:
        for relation in condition.atoms(sp.core.relational.Relational):
            _agree(relation, relation.args, of)
    return _agree(expr, [value for value, _ in expr.args], of)


RULES = [
    (sp.Mul, _product),
    (sp.Pow, _power),
    ((sp.Add, sp.Max, sp.Min, sp.Abs, sp.ceiling, sp.floor, sp.Mod), _all_alike),
    ((sp.log, sp.exp), _pure),
    (sp.Piecewise, _branches),
]


def without_units(expr):
    """`expr` with every base unit weighing 1, ready to be evaluated."""
    return expr.xreplace(dict.fromkeys(BASE_UNITS, PURE))


def spell(unit):
    """A dimension in words: `byte/second`, or `a pure number`."""
    return "a pure number" if unit in (PURE, ANY) else str(unit)
