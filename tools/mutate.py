"""Would a wrong formula be noticed? Changes every formula in small ways and looks whether a witness of it fails.

    python -m tools.mutate                  every formula and every part of a ledger
    python -m tools.mutate --module zero    those of one subject
    python -m tools.mutate --sample 30      one change to each of so many formulas, always the same ones

A change is put in place of the expression, so that neither the derivation nor the units stand in its way: only the tests
marked as witnesses of that formula can. Changes that make no difference to any value are not counted; those that no witness
can tell apart, and why, are in tests/data/equivalent_mutants.yaml.
"""

import argparse
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import sympy as sp
import yaml
from _pytest.runner import runtestprotocol

from formulary import FORMULAS, SUBJECTS, Formula, Ledger, UnitError, load_all
from formulary.derivation import draw_value
from formulary.quantity import unit_of
from formulary.units import ANY, BASE_UNITS, PURE, dimension, without_units

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "tests" / "data" / "equivalent_mutants.yaml"
ENOUGH = 0.95
PATIENCE = 300  # seconds a witness may take before the change counts as noticed; longer than any waits for a process of its own
PROBES = 24  # points at which a change must differ somewhere
MOST = 80  # changes tried of one formula


# --- changes ---------------------------------------------------------------------------------------------------------


def changes(expr, inputs):
    """(what, changed expression) for every small change at every place."""
    for rule in RULES:
        yield from rule(expr, inputs)
    for place, part in enumerate(expr.args):
        for what, changed in changes(part, inputs):
            yield what, expr.func(*expr.args[:place], changed, *expr.args[place + 1 :])


def _number(expr, _):
    if expr.is_Rational:
        yield from ((f"{expr} -> {other}", other) for other in (expr + 1, expr - 1, -expr))


def _symbol(expr, inputs):
    if not expr.is_Symbol or expr in BASE_UNITS:
        return
    alike = [other for other in inputs if unit_of(other) == unit_of(expr)]
    after = alike[(alike.index(expr) + 1) % len(alike)]
    others = [after, 2 * expr, expr**2, *((expr + 1, expr - 1) if expr.is_integer else ())]
    yield from ((f"{expr} -> {other}", other) for other in others)


def _term(expr, _):
    for term in expr.args if expr.is_Add else ():
        yield f"{term} dropped", expr - term
        yield f"{term} negated", expr - 2 * term


def _factor(expr, _):
    for factor in expr.args if expr.is_Mul else ():
        if not factor.is_number and dimension(factor, unit_of) == PURE:
            yield f"{factor} dropped", expr / factor


TWINS = {sp.ceiling: sp.floor, sp.floor: sp.ceiling, sp.Max: sp.Min, sp.Min: sp.Max, sp.Ge: sp.Gt, sp.Le: sp.Lt, sp.Gt: sp.Ge, sp.Lt: sp.Le}


def _twin(expr, _):
    if expr.func in TWINS:
        yield f"{expr.func.__name__} -> {TWINS[expr.func].__name__}", TWINS[expr.func](*expr.args)


def _unrounded(expr, _):
    if expr.func in (sp.ceiling, sp.floor):
        yield f"{expr.func.__name__} dropped", expr.args[0]


RULES = (_number, _symbol, _term, _factor, _twin, _unrounded)


def mutants(formula):
    """{what: changed expression}, each in the formula's unit and different from it and from one another in value.

    The longest formulas have hundreds; of those MOST are drawn, always the same ones.
    """
    found, values, draw = {}, _values(formula, formula.expr), random.Random(formula.name)
    made = list(changes(formula.expr, [q.symbol for q in formula.inputs.values()]))
    for what, changed in draw.sample(made, len(made)):
        if changed not in found.values() and _in_unit(changed, formula.unit) and _values(formula, changed) != values:
            found[_unused(what, found)] = changed
        if len(found) == MOST:
            break
    return found


def _values(formula, expr):
    """The values at points at which derivations are checked, to ten digits; None where there is none."""
    draw, function = random.Random(16), sp.lambdify(list(formula.inputs), without_units(expr), modules="math")
    return [_value(function, [float(draw_value(q.symbol, draw)) for q in formula.inputs.values()]) for _ in range(PROBES)]


def _value(function, point):
    try:
        return f"{float(function(*point)):.10g}"
    except (ArithmeticError, ValueError, TypeError):
        return None


def _unused(what, found):
    """The same change may be made at several places: the second is called `…, 2`."""
    count = sum(1 for name in found if name == what or name.startswith(f"{what}, "))
    return f"{what}, {count + 1}" if count else what


def _in_unit(expr, unit):
    if expr.has(sp.nan, sp.zoo, sp.oo, sp.S.NegativeInfinity):
        return False
    try:
        return dimension(expr, unit_of) in (ANY, unit)
    except UnitError:
        return False


# --- what is changed, and who would notice ---------------------------------------------------------------------------


def targets(module=None):
    """{(name, name of witnesses): Formula}: the catalogue, and the parts of ledgers that are not in it."""
    load_all()
    subjects = [importlib.import_module(f"formulary.{name}") for name in ([module] if module else SUBJECTS)]
    parts = [p for subject in subjects for v in vars(subject).values() if isinstance(v, Ledger) for p in v.parts.values()]
    mine = [v for subject in subjects for v in vars(subject).values() if isinstance(v, Formula)] if module else FORMULAS.values()
    listed = {f.name: f for f in mine if FORMULAS.get(f.name) is f}
    unlisted = {p.name: p for p in parts if FORMULAS.get(p.name) is not p}
    return {name: (f, name) for name, f in listed.items()} | {name: (f, f.result.name) for name, f in unlisted.items()}


@dataclass(frozen=True)
class Trial:
    """One formula's changes, or one of them; run in a process of its own, which is thrown away."""

    name: str
    formula: Formula
    witnesses: list
    only_one: bool = False

    def run(self):
        """[(change, name of the witness that noticed, or None)]; first asked is who is quick and has noticed much so far."""
        seconds, noticed, result = {item: self._seconds(item) for item in self.witnesses}, Counter(), []
        for what, expr in self._changed():
            by = self._noticed_by(expr, sorted(seconds, key=lambda item: seconds[item] / (1 + noticed[item])))
            noticed[by] += 1
            result.append((what, by and by.nodeid))
        return result

    def _changed(self):
        found = list(mutants(self.formula).items())
        return [random.Random(self.name).choice(found)] if self.only_one and found else found

    def _seconds(self, item):
        start = time.perf_counter()
        if not _passes(item):
            raise RuntimeError(f"{item.nodeid} fails without any change")
        return time.perf_counter() - start

    def _noticed_by(self, expr, items):
        object.__setattr__(self.formula, "expr", expr)
        for view in ("_python", "_numpy", "_rounds", "javascript"):
            vars(self.formula).pop(view, None)
        return next((item for item in items if not _passes(item)), None)


def _passes(item):
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return all(report.passed for report in runtestprotocol(item, nextitem=None, log=False))
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_long(*_):
    raise TimeoutError


class Mutation:
    """A pytest plugin that runs the trials in place of the tests."""

    def __init__(self, module=None, formula=None, sample=None, jobs=2):
        self.module, self.formula, self.sample, self.jobs = module, formula, sample, jobs
        self.results = {}  # name -> [(change, noticed by)]

    def pytest_runtestloop(self, session):
        signal.signal(signal.SIGALRM, _too_long)
        trials = self._trials(_by_name(session.items))
        with multiprocessing.get_context("fork").Pool(self.jobs, initializer=_hold, initargs=(trials,), maxtasksperchild=1) as pool:
            for name, result in pool.imap_unordered(_run, range(len(trials))):
                self.results[name] = result
                print(f"{name}: {sum(by is not None for _, by in result)} of {len(result)}", file=sys.stderr, flush=True)
        return True

    def _trials(self, witnesses):
        wanted = {n: pair for n, pair in targets(self.module).items() if self.formula is None or n in self.formula}
        names = sorted(wanted) if self.sample is None else random.Random(16).sample(sorted(wanted), self.sample)
        called = {name: wanted[name][1] for name in names}
        return [Trial(name, wanted[name][0], witnesses.get(called[name], []), self.sample is not None) for name in names]


def _by_name(items):
    """Witness tests by the name of what they confirm."""
    found = {}
    for item in items:
        for name in {name for mark in item.iter_markers("witness") for name in mark.args}:
            found.setdefault(name, []).append(item)
    return found


TRIALS = []


def _hold(trials):
    TRIALS[:] = trials


def _run(index):
    return TRIALS[index].name, TRIALS[index].run()


# --- the report ------------------------------------------------------------------------------------------------------


def documented():
    """{(formula, change): why no witness can notice it}."""
    return {(row["formula"], row["change"]): row["why"] for row in yaml.safe_load(EQUIVALENT.read_text())}


def summary(results, why):
    """Counts, and the changes that nobody noticed: those that `why` explains, and the rest."""
    tried = [(name, what, by) for name, found in sorted(results.items()) for what, by in found]
    missed = [(name, what) for name, what, by in tried if by is None]
    explained = {key: why[key] for key in missed if key in why}
    counted = len(tried) - len(explained)
    return {
        "formulas": len(results),
        "changes": counted,
        "noticed": counted - len(missed) + len(explained),
        "share": (counted - len(missed) + len(explained)) / counted if counted else 0.0,
        "unnoticed": [list(key) for key in missed if key not in why],
        "equivalent": [[*key, reason] for key, reason in explained.items()],
        "noticed_after_all": [list(key) for key in why if key in {(name, what) for name, what, by in tried if by}],
    }


def mutate(**options):
    """Summary of a run; raises RuntimeError if the witnesses could not be collected."""
    os.environ["OMP_NUM_THREADS"] = "1"  # a forked process can't use its parent's threads
    plugin = Mutation(**options)
    quick = ["-s", "--assert=plain", "--tb=native", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*quick, str(ROOT / "tests" / "witnesses")], plugins=[plugin])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"the witnesses could not be run (pytest ended with {status!r}); `pytest tests/witnesses` says why")
    return summary(plugin.results, documented())


def _write(said):
    lines = [f"NOT NOTICED  {name}: {what}" for name, what in said["unnoticed"]]
    lines += [f"equivalent   {name}: {what} ({why})" for name, what, why in said["equivalent"]]
    lines += [f"NO LONGER    {name}: {what} is noticed; take it out of {EQUIVALENT.name}" for name, what in said["noticed_after_all"]]
    total = f"{said['noticed']} of {said['changes']} changes of {said['formulas']} formulas are noticed: {said['share']:.2%}"
    return "\n".join([*lines, total])


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__.partition("\n")[0])
    parser.add_argument("--module", choices=SUBJECTS)
    parser.add_argument("--formula", nargs="+", metavar="NAME")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args(argv))
    as_json = options.pop("json")
    said = mutate(**options)
    print(json.dumps(said, indent=2, ensure_ascii=False) if as_json else _write(said))
    return 0 if said["share"] >= ENOUGH and not said["noticed_after_all"] else 1


if __name__ == "__main__":
    sys.exit(main())
