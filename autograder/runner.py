"""Run by `sandbox.py` in a process of its own: executes a notebook's cells and writes down the answers as plain data.

Standard library only, and nothing of the project: it knows no key. argv: the cells (JSON), where to write (JSON),
and how many characters of a text and bits of a whole number to hand back.
"""

import contextlib
import io
import json
import numbers
import sys


def main(cells_path, answers_path, max_text, max_bits):
    """Each cell is [source, names or null]; the output has, for each cell with names, what they held after it ran."""
    with open(cells_path, encoding="utf-8") as file:
        cells = json.load(file)
    space, answers = {"__name__": "__main__"}, []
    for source, names in cells:
        error = execute(source, space)
        if names is not None:
            answers.append({name: plain(space[name], int(max_text), int(max_bits)) for name in names if name in space} | {"error": error})
            for name in names:  # the next exercise may use the same name
                space.pop(name, None)
        with open(answers_path, "w", encoding="utf-8") as file:  # after each cell: what comes later can't take it back
            json.dump(answers, file)


def execute(source, space):
    """The error a cell ends in, as a text, or None. Lines for IPython alone are left out."""
    source = "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.splitlines())
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(source, "<cell>", "exec"), space)
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def plain(value, max_text, max_bits):
    """A value as JSON can hold it: {"value": …} or {"type": …} for what is no answer."""
    if isinstance(value, str):
        return {"value": value[:max_text]}
    if value is None or value is ... or isinstance(value, bool):
        return {"value": None if value is ... else value}
    if isinstance(value, numbers.Integral) and int(value).bit_length() <= max_bits:
        return {"value": int(value)}
    if isinstance(value, numbers.Real):
        return {"value": float(value)}
    if isinstance(value, list | tuple | set) and all(isinstance(item, str) for item in value):
        return {"value": sorted(item[:100] for item in value)[:100]}
    return {"type": type(value).__name__}


if __name__ == "__main__":
    main(*sys.argv[1:])
