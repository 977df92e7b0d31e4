"""Arithmetic over named values, read from a syntax tree and never evaluated as Python: numbers, names, + - * / ** and calls named by us."""

import ast
import math
import operator

EXPRESSION = 2_000  # characters of an expression
TERMS = 400  # nodes of its syntax tree
BITS = 1_000  # of a whole number, which stays within what a float can hold
BASE, EXPONENT = 10**6, 64  # of a power

OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda base, exponent: _power(base, exponent),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


class NotArithmetic(ValueError):
    """A text or a syntax tree that is not bounded arithmetic."""


def parse(text):
    """The syntax tree of an expression. Raises NotArithmetic if it is too long or not Python's arithmetic."""
    if len(text) > EXPRESSION:
        raise NotArithmetic(f"longer than {EXPRESSION} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotArithmetic(f"{text.strip()[:60]!r} is not arithmetic") from None


def compute(node, names=None, functions=None):
    """The value of a tree, with `names` standing for values (numbers or sympy symbols) and `functions` for calls.

    Raises NotArithmetic for anything else than arithmetic, and for results that are not finite.
    """
    if sum(1 for _ in ast.walk(node)) > TERMS:
        raise NotArithmetic(f"more than {TERMS} terms")
    try:
        value = _value(node, names or {}, functions or {})
    except (ZeroDivisionError, OverflowError, RecursionError) as error:
        raise NotArithmetic(f"the arithmetic has no finite value ({error})") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise NotArithmetic("the arithmetic has no finite value")
    return value


def _value(node, names, functions):
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return _bounded(node.value)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in OPERATIONS:
        operands = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        return _bounded(OPERATIONS[type(node.op)](*(_number(operand, names, functions) for operand in operands)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions and not node.keywords:
        return functions[node.func.id](*(_number(argument, names, functions) for argument in node.args))
    raise NotArithmetic(f"{_shown(node)} is not a number or a known name")


def _number(node, names, functions):
    """A value that may enter a calculation: a name may also stand for a text, which may not."""
    value = _value(node, names, functions)
    if isinstance(value, str | bool | list | tuple | type(None)):
        raise NotArithmetic(f"{_shown(node)} is not a number")
    return value


def _shown(node):
    """What was written, cut short."""
    try:
        return repr(ast.unparse(node)[:60])
    except ValueError:  # a whole number with more digits than Python writes
        return "that"


def _power(base, exponent):
    if not isinstance(base, int | float) or not isinstance(exponent, int) or abs(base) > BASE or abs(exponent) > EXPONENT:
        raise NotArithmetic(f"powers need a base up to {BASE} and a whole exponent up to {EXPONENT}")
    return base**exponent


def _bounded(value):
    if isinstance(value, int) and value.bit_length() > BITS:
        raise NotArithmetic(f"a whole number of more than {BITS} bits")
    return value
