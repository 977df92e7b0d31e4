"""How exercises are marked. `autograder.ask("E004-Q02")` asks one in a notebook, `autograder.drill()` what is due."""

import importlib

# name: the module that has it
LAZY = {"ask": ".question", "drill": ".drills.panel"}


def __getattr__(name):  # loaded when asked for: parts of the package are also used where there is no bank
    if name in LAZY:
        return getattr(importlib.import_module(LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
