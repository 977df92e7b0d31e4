"""The bank: one YAML file an exercise, read with errors that name file, line and field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import yaml
from pydantic import ValidationError

from formulary import InputError, nearest

from . import kept
from .exercise import Exercise

ROOT = Path(__file__).resolve().parent.parent / "exercises"


class BankError(ValueError):
    """Something in the bank is not as it should be; each line of the message names file, line and field."""


@dataclass(frozen=True)
class Header:
    """What can be told of an exercise without working it out."""

    kind: str
    chapter: int
    difficulty: int


HEADER_BYTES = 200
HEADER = re.compile(r"^(kind|chapter|difficulty): *(\w+)$", re.MULTILINE)


class Bank(Mapping):
    """Exercises by id, read from `root/<chapter>/<id>.yaml` when they are first asked for."""

    def __init__(self, root=ROOT / "bank"):
        self.root = Path(root)
        self._read = {}

    @cached_property
    def files(self):
        """Path of each exercise, by id."""
        return {path.stem: path for path in sorted(self.root.glob("*/*.yaml"), key=lambda path: path.stem)}

    @cached_property
    def headers(self):
        """Header of each exercise, by id: all files in a hundredth of a second."""
        return {name: _header(path) for name, path in self.files.items()}

    def __getitem__(self, name):
        if name not in self.files:
            raise InputError(f"no exercise {name!r} in {self.root}{nearest(name, self.files)}; `psi bank list` shows them all")
        if name not in self._read:
            path = self.files[name]
            self._read[name] = _once(path, path.stat().st_mtime_ns)
        return self._read[name]

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)


def _header(path):
    with path.open("rb") as file:
        found = dict(HEADER.findall(file.read(HEADER_BYTES).decode(errors="replace")))
    try:
        return Header(found["kind"], int(found["chapter"]), int(found["difficulty"]))
    except (KeyError, ValueError) as error:
        raise BankError(f"{path}:1: kind, chapter and difficulty must stand at the top of the file: {error}") from None


@cache
def _once(path, changed):
    """The exercise in a file as it was last `changed`: read once for all banks."""
    return kept.read(path, lambda path: load(path).worked_out())


def load(path):
    """The exercise in a file, its blanks filled. Raises BankError naming file, line and field of all that is wrong."""
    return read_model(Exercise, path).filled()


def read_model(model, path):
    """A YAML file as a pydantic `model`; its `faults()`, if it has any, count as errors too."""
    node, data = _parse(path)
    try:
        read = model.model_validate(data)
    except ValidationError as error:
        raise BankError("\n".join(_at(path, node, fault["loc"], fault["msg"]) for fault in error.errors())) from None
    faults = [_at(path, node, where, what) for where, what in read.faults()]
    if faults:
        raise BankError("\n".join(faults))
    return read


def located(path, where, what):
    """`what`, with the file, line and field it is about."""
    return _at(path, _parse(path)[0], where, what)


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same ten times as fast, where libyaml is there


def _parse(path):
    try:
        loader = LOADER(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        _no_key_twice(path, node)
        return node, loader.construct_document(node) if node else None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        mark = getattr(error, "problem_mark", None)
        raise BankError(f"{path}:{mark.line + 1 if mark else 1}: not readable as YAML: {getattr(error, 'problem', error)}") from None


def _no_key_twice(path, node):
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    keys = [key.value for key, _ in pairs]
    for index, (key, _) in enumerate(pairs):
        if key.value in keys[:index]:
            raise BankError(f"{path}:{key.start_mark.line + 1}: {key.value}: given twice")
    children = [value for _, value in pairs] if pairs else getattr(node, "value", [])
    for child in children if isinstance(children, list) else []:
        _no_key_twice(path, child)


def _at(path, node, where, what):
    line, field = _line(node, where)
    return f"{path}:{line}: {'.'.join(field) or 'exercise'}: {what}"


def _line(node, where):
    """The line of the deepest node that `where` leads to, and the names met; a name that isn't in the file (a missing one) ends it."""
    line, field = (node.start_mark.line + 1 if node else 1), []
    for step in where:
        found = _child(node, step)
        if found is not None:
            node, line = found
        if found is not None or isinstance(step, int) or step == where[-1]:
            field.append(str(step))
    return line, field


def _child(node, step):
    if isinstance(node, yaml.MappingNode):
        return next(((value, key.start_mark.line + 1) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    return None
