"""Layers point one way, and functions stay short: read off the sources, without importing them."""

import ast
import statistics
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# package: the project's packages it may import. Chapters and exercises may use everything below them.
MAY_IMPORT = {
    "formulary": set(),
    "explorers": {"formulary"},
    "autograder": {"formulary"},
    "labs": {"formulary"},
    "chapters": {"formulary", "explorers", "autograder", "labs"},
    "exercises": {"formulary", "explorers", "autograder", "labs"},
}
FORMULARY_NEEDS = {"sympy", "numpy"}
LONGEST = 40


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(source):
    """The top-level names of every absolute import in `source`, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "import_module", "__import__"):
            yield from (arg.value.split(".")[0] for arg in node.args[:1] if isinstance(arg, ast.Constant))


def too_high(package, source):
    """The project's packages that `source` imports although `package` lies below or beside them."""
    return sorted(set(imported(source)) & set(MAY_IMPORT) - MAY_IMPORT[package] - {package})


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_down(package):
    found = {path.relative_to(ROOT).as_posix(): too_high(package, path.read_text()) for path in modules(package)}
    assert {path: names for path, names in found.items() if names} == {}


def test_formulary_needs_only_sympy_and_numpy():
    allowed = FORMULARY_NEEDS | sys.stdlib_module_names | {"formulary"}
    found = {path.name: sorted(set(imported(path.read_text())) - allowed) for path in modules("formulary")}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("package", "source", "names"),
    [
        ("formulary", "import labs.lab", ["labs"]),
        ("autograder", "def f():\n    from labs import lab", ["labs"]),
        ("labs", "import importlib\nimportlib.import_module('autograder.bank')", ["autograder"]),
        ("explorers", "from formulary import formula", []),
        ("labs", "from .lab import run", []),
    ],
)
def test_a_wrong_import_is_seen(package, source, names):
    assert too_high(package, source) == names


def lengths(source):
    """(name, lines) of every function in `source`, its docstring and what follows inside it aside."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield node.name, (body[-1].end_lineno - body[0].lineno + 1 if body else 0)


def test_functions_are_short(record_property, capsys):
    code = [*(path for package in MAY_IMPORT for path in modules(package)), *modules("tools"), *modules("book"), ROOT / "psi.py"]
    found = [(path.relative_to(ROOT).as_posix(), *function) for path in code for function in lengths(path.read_text())]
    with capsys.disabled():
        print(f"\n{len(found)} functions, median length {statistics.median(lines for *_, lines in found):g} lines")
    assert [entry for entry in found if entry[-1] > LONGEST] == []


def test_a_long_function_is_seen():
    body = "    x = 1\n" * (LONGEST + 1)
    assert list(lengths(f'def f():\n    """Says\n    what."""\n{body}')) == [("f", LONGEST + 1)]
