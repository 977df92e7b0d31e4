"""Answer cells read from their syntax tree: an assignment of something literal is an answer, and nothing is run to get it."""

import ast
import re
import warnings
from collections import Counter
from itertools import chain

from formulary.arithmetic import BITS, NotArithmetic, compute

from . import limits
from .answer import VERDICTS, Unread, is_blank
from .exercise import Text

NO_PYTHON = Text(en="the cell is not valid Python there: {error}", zh="该处不是合法的 Python：{error}")


def read_cell(source, names, known=None):
    """Answers by name from a cell whose assignments are all literal, or None if it would have to be run.

    `names` may be {name: type of its part}: then what is clear without quotes is also read where they were forgotten.
    `known` holds what earlier cells assigned and is added to. Where the cell is no Python, each answer that can be
    told apart is read alone and the others are Unread.
    """
    known, found = {} if known is None else known, {}
    tree = _parse(source)
    if tree is None:
        return _salvage(source, names)
    for statement in tree.body:
        if not _read(statement, _types(names), known, found):
            return None
    return {name: _text_of(found[name], source) for name in names if name in found}


def plain_answers(source, names, wanted):
    """Those of the answers `wanted` that can be read from a cell of code: assigned there, and not mentioned again."""
    tree, found = _parse(source), {}
    if tree is None:
        return {}
    for statement in tree.body:
        _read(statement, _types(names), {}, found)
    mentioned = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name: _text_of(found[name], source) for name in wanted if mentioned[name] == 1 and not is_blank(found.get(name))}


def _types(names):
    return names if isinstance(names, dict) else {}


def _read(statement, types, known, found):
    """Whether a statement could be read: what it assigns is entered into `known` and `found`."""
    return _unquoted(statement, types, known, found) or _assign(statement, known, found)


def _parse(source):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source) if len(source) <= limits.CELL else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _unquoted(statement, types, known, found):
    """Whether a statement gives an answer in words without quotes that mean nothing to Python; it is entered into `found`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    read = UNQUOTED.get(types.get(target.id)) if isinstance(target, ast.Name) else None
    if not read or (answer := read(statement.value, known)) is None:
        return False
    found[target.id] = answer
    return True


def _formula(value, known):
    """The tree of a formula in letters, or None."""
    if not all(isinstance(node, FORMULA) for node in ast.walk(value)):
        return None
    letters = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return value if letters and not all(isinstance(known.get(letter), str) for letter in letters) else None


def _letters(value, known):
    """The letters of a choice, or None."""
    items = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
    letters = [item.id for item in items if isinstance(item, ast.Name) and re.fullmatch("[A-Ha-h]", item.id) and item.id not in known]
    return letters if letters and len(letters) == len(items) else None


def _word(value, known):
    """The word of a verdict, or None."""
    is_word = isinstance(value, ast.Name) and value.id not in known and value.id.lower() in chain(*VERDICTS.values())
    return value.id if is_word else None


# by the type of a part, what reads an answer without quotes
UNQUOTED = {"expression": _formula, "choice": _letters, "verdict": _word}


def _text_of(answer, source):
    """An answer, as text where it is a tree: told last, since to find it takes as long as the cell is."""
    return ast.get_source_segment(source, answer) if isinstance(answer, ast.AST) else answer


# what a formula without quotes is made of; anything else is code
FORMULA = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.expr_context)


def _assign(statement, known, found):
    """Whether a statement is a literal assignment (entered into `known` and `found`) or does nothing."""
    if isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or value is None or not all(isinstance(t, ast.Name) for t in targets):
        return False
    try:
        literal = _literal(value, known)
    except NotArithmetic:
        return False
    for target in targets:
        known[target.id] = found[target.id] = literal
    return True


def _literal(node, known):
    if isinstance(node, ast.Constant) and (isinstance(node.value, str | bool) or node.value is None or node.value is ...):
        return _writable(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and all(_is_plain(item) for item in node.elts):
        return [_writable(item.value) for item in node.elts]
    return compute(node, known)


def _is_plain(node):
    return isinstance(node, ast.Constant) and (isinstance(node.value, str | float | None) or _is_short(node.value))


def _is_short(value):
    """Whether a value is a whole number, True or False that can be written down."""
    return isinstance(value, int) and value.bit_length() <= BITS


def _writable(value):
    """A value without halves of letters, which could not be written down."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


QUOTES = {"“": "”", "‘": "’", "「": "」", '"': '"', "'": "'"}


def _salvage(source, names):
    """Answers of a cell that is no Python: each `name = …` up to the next one, read alone, also from typographic quotes."""
    if len(source) > limits.CELL:
        why = Text(en=f"the cell has more than {limits.CELL:,} characters", zh=f"单元格超过 {limits.CELL:,} 个字符")
        return {name: Unread(why) for name in names}
    starts = [*re.finditer(rf"^({'|'.join(map(re.escape, names))})[ \t]*[=＝]", source, re.MULTILINE)]
    ends = [*(match.start() for match in starts[1:]), len(source)][: len(starts)]
    found = {
        match[1]: _alone(match[1], source[match.end() : end], _types(names).get(match[1]) in WITHOUT_QUOTES)
        for match, end in zip(starts, ends, strict=True)
    }
    return {name: found[name] if name in found else _lost(source) for name in names}


WITHOUT_QUOTES = ("expression", "number", "choice", "verdict")  # what is understood without them


def _alone(name, raw, bare=False):
    tree = _parse(f"{name} = {raw.strip()}")
    found = {}
    if tree and all(_assign(statement, {}, found) for statement in tree.body) and name in found:
        return found[name]
    raw = re.sub(r"\n#.*", "", raw).strip()
    if len(raw) > 1 and QUOTES.get(raw[0]) == raw[-1]:
        return raw[1:-1][: limits.TEXT]
    if bare and raw and "\n" not in raw and raw[0] not in QUOTES:
        return raw.partition("#")[0].strip()[: limits.TEXT]
    return _lost(f"{name} = {raw}")


def _lost(raw):
    return Unread(NO_PYTHON.map(lambda words: words.format(error=_syntax_error(raw))), raw[: limits.TEXT])


def _syntax_error(source):
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return getattr(error, "msg", None) or type(error).__name__
    return "the statement can't be told apart from the rest"
