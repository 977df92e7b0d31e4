"""A sympy expression as a JavaScript expression over its symbols' names, by one rule table.

Front ends compute with what is written here, so a node without a rule is an error and never a guess. The order of
operations is Python's own, so both languages round alike; and where Python raises, on a division by zero or the logarithm
of one, the result is NaN and not an infinity that a later division could turn into a figure.
"""

import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

_WORDS = """
arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function
if implements import in instanceof interface let new null package private protected public return static super switch this throw true try
typeof var void while with yield Infinity Math NaN undefined
"""
RESERVED = frozenset(_WORDS.split())
# Relative distance within which a double stands for a whole number. A share of N things, N / k, is at least 1 / k away from one
# if it is none, so that all is told apart up to 2^44 of them; and a chain of operations on decimals stays well within it.
CLOSE = 2.0**-44


class JavaScriptError(TypeError):
    """An expression that no rule can write in JavaScript."""


def javascript(expr):
    """`expr` as JavaScript text, compound terms in parentheses. Raises JavaScriptError for a node without a rule."""
    for kinds, rule in RULES:
        if isinstance(expr, kinds):
            return rule(expr)
    raise JavaScriptError(f"no JavaScript rule for {type(expr).__name__} in {expr}; add one to formulary.javascript.RULES")


def _symbol(expr):
    if not expr.name.isidentifier() or not expr.name.isascii() or expr.name in RESERVED:
        raise JavaScriptError(f"{expr.name!r} cannot name a variable in JavaScript")
    return expr.name


def _infix(operator, parts):
    return "(" + f" {operator} ".join(map(javascript, parts)) + ")" if len(parts) > 1 else javascript(parts[0])


def _joined(operator):
    return lambda expr: _infix(operator, expr.as_ordered_terms() if expr.is_Add else sorted(expr.args, key=str))


def _product(expr):
    below = [part for part in expr.args if part.is_Pow and part.exp.is_Rational and part.exp.is_negative]
    above = [part for part in expr.args if part not in below] or [sp.Integer(1)]
    product = _infix("*", above)
    return f"({product} / {_not_zero(sp.Mul(*[1 / part for part in below]))})" if below else product


def _not_zero(expr):
    return javascript(expr) if expr.is_number else f"({javascript(expr)} || NaN)"


def _power(expr):
    if expr.exp.is_Rational and expr.exp.is_negative:
        return f"(1 / {_not_zero(1 / expr)})"
    if expr.exp == sp.Rational(1, 2):
        return f"Math.sqrt({javascript(expr.base)})"
    return _call("pow")(expr)


def _call(name):
    return lambda expr: f"Math.{name}({', '.join(map(javascript, expr.args))})"


def _rounded(name):
    """A value this close to a whole number is that one: 0.95 * 7 / 0.05 is 133, whatever its last bits."""
    one = f"((x) => Math.abs(x - Math.round(x)) <= {CLOSE} * Math.abs(x) ? Math.round(x) : Math.{name}(x))"
    return lambda expr: f"{one}({javascript(expr.args[0])})"


def _remainder(expr):
    """Of the divisor's sign, as in Python; JavaScript's own % takes the dividend's."""
    value, by = map(javascript, expr.args)
    return f"({value} % {by})" if all(part.is_nonnegative for part in expr.args) else f"((({value} % {by}) + {by}) % {by})"


def _branches(expr):
    text = "NaN"
    for value, condition in reversed(expr.args):
        text = javascript(value) if condition == sp.true else f"({javascript(condition)} ? {javascript(value)} : {text})"
    return text


def _comparison(expr):
    return f"({javascript(expr.lhs)} {COMPARISONS.get(expr.rel_op, expr.rel_op)} {javascript(expr.rhs)})"


COMPARISONS = {"==": "===", "!=": "!=="}

RULES = [
    (sp.Symbol, _symbol),
    (sp.Integer, lambda expr: str(expr) if expr >= 0 else f"({expr})"),
    (sp.Rational, lambda expr: f"({expr.p} / {expr.q})"),
    (sp.Float, lambda expr: repr(float(expr))),
    (sp.NumberSymbol, lambda expr: repr(float(expr))),
    ((sp.core.numbers.Infinity, sp.core.numbers.NegativeInfinity), lambda expr: "Infinity" if expr > 0 else "(-Infinity)"),
    (sp.Add, _joined("+")),
    (sp.Mul, _product),
    (sp.exp, _call("exp")),
    (sp.Pow, _power),
    (sp.log, lambda expr: f"Math.log({_not_zero(expr.args[0])})"),
    (sp.Max, _call("max")),
    (sp.Min, _call("min")),
    (sp.Abs, _call("abs")),
    (sp.ceiling, _rounded("ceil")),
    (sp.floor, _rounded("floor")),
    (sp.Mod, _remainder),
    (sp.Piecewise, _branches),
    (Relational, _comparison),
    (sp.And, _joined("&&")),
    (sp.Or, _joined("||")),
    (sp.Not, lambda expr: f"(!{javascript(expr.args[0])})"),
    ((BooleanTrue, BooleanFalse), lambda expr: str(expr).lower()),
]
