"""How quickly the formulary starts and answers: `python -m benchmarks.formulary_speed`.

Starting is measured in fresh processes, in seconds of processor time, since other work on the machine moves the clock. Answering is
the time of one slider's whole range of 1000 points at once, and of a single point. The machine's load is printed with the figures.
"""

import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np

from formulary import InputError, load_all

STARTS, REPEATS, POINTS = 5, 30, 1000
BUDGET_IMPORT_S, BUDGET_ANSWER_MS = 0.6, 1.0
CPU = "import time; before = time.process_time(); {}; print(time.process_time() - before)"


def start(statement):
    """Median seconds of processor time a statement takes in a fresh process."""
    run = lambda: float(subprocess.run([sys.executable, "-c", CPU.format(statement)], capture_output=True, text=True, check=True).stdout)
    return statistics.median(run() for _ in range(STARTS))


def middle(quantity):
    """A value near the middle of what the quantity may be."""
    if quantity.choices:
        return quantity.choices[len(quantity.choices) // 2]
    low, high = (min(max(float(end), quantity.least), quantity.most) for end in quantity.span)
    value = (low * high) ** 0.5 if low > 0 else (low + high) / 2
    return max(1, round(value)) if quantity.symbol.is_integer else value


def best(call):
    """Least milliseconds of many calls, after one that may still have to compile."""
    call()
    times = []
    for _ in range(REPEATS):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return min(times) * 1000


def ranges(made):
    """One slider's whole range for each input that has one, the others in the middle; ranges in which a value is missing are left out."""
    values = {name: middle(quantity) for name, quantity in made.inputs.items()}
    for name, quantity in made.inputs.items():
        low, high = (min(max(float(end), quantity.least), quantity.most) for end in quantity.span)
        if quantity.choices or low == high:
            continue
        points = np.linspace(low, high, POINTS)
        yield name, {**values, name: np.rint(points) if quantity.symbol.is_integer else points}


def answers(made):
    """Milliseconds of each of the formula's ranges that has a value everywhere."""
    for name, values in ranges(made):
        try:
            yield best(lambda values=values: made(**values)), f"{made.name} over {name}"
        except InputError:
            continue


def main():
    """Print the figures; returns 1 if one of them is over its budget."""
    load, catalogue = os.getloadavg()[0], load_all()
    importing, loading = start("import formulary"), start("import formulary; formulary.load_all()")
    arrays = sorted(pair for made in catalogue.values() for pair in answers(made))
    print(f"{platform.python_version()}, {os.cpu_count()} CPUs, load {load:.1f}")
    print(f"import formulary        {importing:.2f} s of processor time (median of {STARTS} fresh processes)")
    print(f"and all {len(catalogue)} formulas    {loading:.2f} s")
    print(f"{len(arrays)} ranges of {POINTS} points: median {statistics.median(a for a, _ in arrays):.3f} ms, slowest:")
    print("\n".join(f"  {taken:.3f} ms  {what}" for taken, what in arrays[-5:][::-1]))
    return int(importing > BUDGET_IMPORT_S or arrays[-1][0] > BUDGET_ANSWER_MS)


if __name__ == "__main__":
    sys.exit(main())
