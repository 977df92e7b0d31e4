"""Find world numbers outside formulary/facts.py and formulas outside formulary: `python -m tools.stray_numbers`.

The rules, each with the reason it gives:

- In code, a number of at least a thousand, one in scientific notation, or a power of 2, 10, 1000 or 1024 is fact-sized.
  It belongs to a Fact, or to ALLOWED with a reason why it is none. So does a text that is an amount (`"80GiB"`).
- In lessons, text with a number and a unit (`80 GB`, `7B parameters`, `3 hours`) was typed where a Claim should
  compute it. The first cell may say how many minutes the lesson takes. A bare count such as `num_params="7B"` in
  code is a question the reader asks, not a fact.
- In lessons, `def`, `class` and `lambda` need a cell tagged `definition` (the definition is the lesson), and arithmetic
  is a formula, except on what a definition calculates with and the glossary does not name: tensors.
- In explorers, autograder and labs, multiplying, dividing or raising something named like a quantity of the glossary
  is a formula. Jobs of labs are exempt: they are the real thing, which the formulas are held against.
"""

import ast
import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from formulary import GLOSSARY, load_all
from formulary.amounts import ATOMS, COUNTS, AmountError, read
from formulary.hardware import GPUS
from formulary.shapes import MODELS
from formulary.units import PURE, UnitError

ROOT = Path(__file__).resolve().parent.parent
BIG = 1000
ROUND_BASES = (2, 10, 1000, 1024)
SCALING = (ast.Mult, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult)
ARITHMETIC = (*SCALING, ast.Mod, ast.Sub)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

# (file pattern, the number as it is written, why it is no fact about the world)
ALLOWED = [
    ("autograder/cli.py", "2000", "how much of another program's complaint is repeated"),
    ("labs/launch.py", "65536", "how many ports a machine has"),
    ("labs/launch.py", "2**14", "the ports that a job is given begin here"),
    ("labs/launch.py", "2**15", "the ports that the system gives to anybody begin here"),
    ("labs/launch.py", "2**20", "bytes left on a disk that counts as full"),
    ("labs/gpu.py", "1024", "sizes of a small model: the learner's to change"),
    ("labs/gpu.py", "4096", "sizes of a small model: the learner's to change"),
    ("labs/gpu.py", "32000", "sizes of a small model: the learner's to change"),
    ("labs/conditions.py", "4096", "tokens of a sequence on the paper cluster: the learner's to change"),
    ("labs/conditions.py", "960_000", "elements of a message: the learner's to change"),
    ("explorers/*.js", "2000", "the year in the name of the SVG namespace"),
    ("explorers/plan.py", "40_000", "how many blocks a browser still draws at once"),
    ("explorers/blocks.py", "3000", "how many tiles a slider can step through"),
    ("explorers/timeline.py", "1e-9", "what rounding leaves of a sum"),
    ("explorers/static/timeline.js", "1e-9", "what rounding leaves of a sum"),
    ("formulary/arithmetic.py", "2_000", "how long an expression may be"),
    ("formulary/arithmetic.py", "1_000", "how many bits a number in an expression may have"),
    ("formulary/arithmetic.py", "10**6", "how large the base of a power may be"),
    ("formulary/cli.py", "10**8", "where a figure is too long to be read digit by digit"),
    ("formulary/formula.py", "1e4", "where a figure is too long to be read digit by digit"),
    ("formulary/formula.py", "10**6", "how fine a fraction a float may stand for"),
    ("formulary/planner.py", "10**9", "what a plan leaves to context and buffers: the reader's to change"),
    ("explorers/planner.py", "1024", "how many cards a slider may search through"),
    ("explorers/planner.py", "4096", "tokens of a sequence at the start: the reader's to change"),
    ("formulary/judge.py", "1e-9", "room for rounding at the end of a tolerance"),
]

TIMES = "second|seconds|minute|minutes|min|hour|hours|day|days|week|weeks|year|years|ms|us"
UNITS = "|".join(sorted(map(re.escape, {*ATOMS, *COUNTS} - {"1", "x", "$", ""}), key=len, reverse=True))
AMOUNT_IN_TEXT = re.compile(
    rf"(?<![\w.-])\$?\d[\d.,_]*(?:[eE][+-]?\d+)?[ \u00a0~]?(?:{UNITS}|{TIMES}|GPUs?|parameters?|params?|\\?Psi|Ψ|×|\\times|x)(?![\w-])"
)
COUNT = re.compile(rf"[\d.,_]+ ?(?:{'|'.join(COUNTS)})?")
LESSON_TAKES = re.compile(r"\b\d+ minutes\b")
NUMBER_IN_JS = re.compile(r"(?<![\w.#-])(?:\d{4,}|\d[\d.]*[eE][+-]?\d+)(?!\w)")

TYPED = "a number typed in prose: let a Claim or a Formula say it"
FACT_SIZED = "a fact-sized number: make it a Fact, or allow it in tools/stray_numbers.py with a reason"
A_FORMULA = "arithmetic outside formulary: define a Formula and evaluate it"
A_DEFINITION = "a definition in a lesson: move it to a package, or tag the cell `definition` if it is the lesson"


@dataclass(frozen=True)
class Stray:
    """A number or formula in the wrong place."""

    path: str
    line: int
    text: str
    why: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}: {self.why}"


def strays(root=ROOT):
    """Every stray under `root`, the allowed ones left out."""
    return [stray for stray in _all(root) if not any(_allows(entry, stray) for entry in ALLOWED)]


def unused_allowances(root=ROOT):
    """The entries of ALLOWED that allow nothing any more."""
    found = _all(root)
    return [entry for entry in ALLOWED if not any(_allows(entry, stray) for stray in found)]


def _allows(entry, stray):
    pattern, text, _ = entry
    return fnmatch(stray.path, pattern) and text == stray.text


def _all(root):
    load_all()
    return [
        Stray(path.relative_to(root).as_posix(), line, text, why)
        for pattern, check in WHERE
        for path in sorted(root.glob(pattern))
        if path.relative_to(root).as_posix() not in HOMES
        for line, text, why in check(path.read_text())
    ]


def in_formulary(source):
    """Strays (line, text, why) of a module of the formulary, which may calculate but not know the world."""
    return list(_big_numbers(ast.parse(source), source))


def in_engine(source):
    """Strays of a module of the engine, which may do neither."""
    tree = ast.parse(source)
    return [*_big_numbers(tree, source), *_amounts(tree), *_scaled_quantities(tree)]


def in_javascript(source):
    """Strays of hand-written JavaScript: formulas reach it as generated expressions only."""
    names = "|".join(GLOSSARY)
    formula = re.compile(rf"\b(?:{names})\b\s*(?:\*|/(?!/)|%)|(?:\*|(?<!/)/|%)\s*(?:\w+\.)*\b(?:{names})\b")
    rules = ((NUMBER_IN_JS, FACT_SIZED), (formula, A_FORMULA))
    lines = enumerate(source.splitlines(), 1)
    return [(line, match.group(), why) for line, text in lines for rule, why in rules for match in rule.finditer(text)]


def in_lesson(source):
    """Strays of a lesson's source, code and prose."""
    tree = ast.parse(source)
    code = [*_big_numbers(tree, source), *_typed_in_strings(tree), *_arithmetic(tree, source), *_definitions(tree, source)]
    return [*code, *_typed_in_prose(source)]


def _big_numbers(tree, source):
    for node in ast.walk(tree):
        if _is_number(node) or _is_round(node):
            text = ast.get_source_segment(source, node)
            if _is_round(node) or abs(node.value) >= BIG or re.match(r"[\d._]+[eE]", text):
                yield node.lineno, text, FACT_SIZED


def _is_round(node):
    """Whether it is a number written as a power, such as `2**30` or `1 << 30`."""
    if not (isinstance(node, ast.BinOp) and _is_number(node.left) and _is_number(node.right)):
        return False
    return isinstance(node.op, ast.LShift) or (isinstance(node.op, ast.Pow) and node.left.value in ROUND_BASES)


def _is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _strings(tree):
    """The texts in `tree`; how a figure is formatted, such as the `02d` of an f-string, is none."""
    layouts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec
        for part in ast.walk(node.format_spec)
    }
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node for node in texts if id(node) not in layouts]


def _amounts(tree):
    """Texts that are an amount of anything but a plain count."""
    return [(node.lineno, node.value, FACT_SIZED) for node in _strings(tree) if _is_amount(node.value)]


def _is_amount(text):
    try:
        read(text, PURE)
    except UnitError:
        return True
    except AmountError:
        pass
    return False


def _scaled_quantities(tree):
    """Multiplications, divisions and powers in which something named like a quantity takes part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, SCALING):
            parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            repeated = any(isinstance(part, ast.List | ast.Tuple) or _is_text(part) for part in parts)
            if not repeated and any(name in GLOSSARY for part in parts for name in _names(part)):
                yield node.lineno, ast.unparse(node), A_FORMULA


def _names(node):
    """What an operand is called: `world_size`, `self.world_size`, `values["world_size"]`, signs and sums of those."""
    if isinstance(node, ast.Name | ast.Attribute):
        return [node.id if isinstance(node, ast.Name) else node.attr]
    if isinstance(node, ast.Subscript):
        return [node.slice.value] if isinstance(node.slice, ast.Constant) else _names(node.value)
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return [name for part in ast.iter_child_nodes(node) for name in _names(part)]
    return []


def _typed_in_strings(tree):
    names = {*GPUS, *MODELS}  # what a card or a model is called may look like an amount
    said = [node for node in _strings(tree) if not COUNT.fullmatch(node.value) and node.value not in names]
    return [(node.lineno, match, TYPED) for node in said for match in _typed(node.value)]


def _typed(text):
    return [match.group() for match in AMOUNT_IN_TEXT.finditer(text)]


def _arithmetic(tree, source):
    tagged = _tagged(source)
    yield from ((line, text, why) for line, text, why in _scaled_quantities(tree) if line in tagged)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC) and not _is_text(node.left) and node.lineno not in tagged:
            yield node.lineno, ast.unparse(node), A_FORMULA


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _definitions(tree, source):
    tagged = _tagged(source)
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and node.lineno not in tagged:
            yield node.lineno, getattr(node, "name", "lambda"), A_DEFINITION


def _tagged(source):
    """The lines of the cells in which the definition is the lesson."""
    return {line for line, _, _, header in _lines_by_cell(source) if re.search(r"tags=.*definition", header)}


def _typed_in_prose(source):
    for line, text, cell, header in _lines_by_cell(source):
        if "[markdown]" in header and text.startswith("#") and text != header:
            prose = LESSON_TAKES.sub("", text) if cell == 1 else text
            yield from ((line, match, TYPED) for match in _typed(prose))


def _lines_by_cell(source):
    """(line number, line, number of its cell, header of its cell) for each line of a percent file."""
    cell, header = 0, ""
    for number, line in enumerate(source.splitlines(), 1):
        if line.startswith("# %%"):
            cell, header = cell + 1, line
        yield number, line, cell, header


# The homes of numbers: facts, the unit tables, the spans in which a quantity plausibly lives, and what marking allows an answer.
HOMES = (
    *(f"formulary/{name}.py" for name in ("facts", "amounts", "glossary", "hardware", "shapes")),
    "autograder/limits.py",
)
WHERE = (
    ("formulary/*.py", in_formulary),
    ("explorers/*.py", in_engine),
    ("explorers/**/*.js", in_javascript),
    ("autograder/*.py", in_engine),
    ("labs/*.py", in_engine),
    ("psi.py", in_engine),
    ("chapters/[0-9][0-9]_*.py", in_lesson),
    ("labs/notebooks/*.py", in_lesson),
)


def main():
    """Print every stray; returns the exit status."""
    found = strays()
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
