"""requirements.txt is what the tests ran with, and everything the project imports; the bootstrap refuses what it must."""

import importlib.metadata
import re
import runpy
import sys

import pytest

from tools import machine
from tools.notebooks import ROOT

CODE = ("formulary", "explorers", "autograder", "labs", "chapters", "book", "tools", "tests")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    """Version of each requirement, by canonical name."""
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    return {canonical(name): version for name, version in (line.split("==") for line in lines if line)}


def imported():
    """The top-level names of everything that the project's Python files import at the left margin or further in."""
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    return {name for path in files for name in re.findall(r"^\s*(?:import|from) ([a-zA-Z]\w*)", path.read_text(), re.MULTILINE)}


def test_pins_are_what_is_installed():
    # torch's version ends in the kind of build, such as +cpu
    installed = {name: importlib.metadata.version(name).split("+")[0] for name in pins()}
    assert installed == pins()


def test_every_import_is_required():
    owners = importlib.metadata.packages_distributions()
    foreign = {name: {canonical(owner) for owner in owners[name]} for name in imported() if name in owners}
    assert {name for name, distributions in foreign.items() if not distributions & {*pins(), "sixteen-psi"}} == set()
    assert {"sympy", "torch", "yaml", "pytest"} <= set(foreign)


def test_binder_reads_the_same_list():
    assert (ROOT / "binder/requirements.txt").read_text() == "-r ../requirements.txt\n"


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 14), (2, 7)])
def test_another_python_is_refused(monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    with pytest.raises(SystemExit, match=rf"found Python {version[0]}\.{version[1]}, need 3\.11 to 3\.13; .*PYTHON="):
        runpy.run_path(str(ROOT / "tools/check_python.py"))


def test_a_missing_program_fails_with_an_instruction(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(machine.MissingProgram, match=r"chromium is not installed, .*apt-get install chromium"):
        machine.program("chromium")
    assert machine.main() == 1
    assert "apt-get install nodejs" in capsys.readouterr().err


def test_programs_are_found(chromium, node):
    assert machine.main() == 0
