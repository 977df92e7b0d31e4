"""A blind test of the peak under FSDP2: configurations fixed and predicted before any of them was run, then measured once.

    python -m labs.blind predict      writes what the formulas say, where nothing is predicted yet
    python -m labs.blind measure      runs what was predicted and not measured yet, and writes what came out

The file beside this one holds both, and its history which came first. A miss stays in it.
"""

import json
import sys
from pathlib import Path

from formulary.units import BYTE

from . import load
from .paper_cluster import PEAK, peak_moment
from .peak_memory import peak_of_fsdp
from .report import exact
from .table import pipes

FILE = Path(__file__).parent / "measurements" / "blind_fsdp_peak.json"


def configurations():
    """Each as it stands in the file: lab, nproc, conditions, and once they are known moment, predicted and measured (bytes)."""
    return json.loads(FILE.read_text())


def predicted(configuration):
    """(moment, bytes) by the formulas as they are now."""
    known = _lab(configuration).under(configuration["nproc"], **configuration["conditions"])
    if configuration["lab"] == "peak_memory":
        return peak_of_fsdp(known)
    name, parts = peak_moment(known)
    return name, parts.total


def measured(configuration):
    """Bytes that rank 0 holds at most, by running the lab."""
    report = _lab(configuration).run(configuration["nproc"], timeout=600, **configuration["conditions"])
    if not report.measurement:
        raise SystemExit(report.failure)
    peak = [x.measured for x in report.lines if x.variant == PEAK or x.key == "fsdp/peak"]
    return sum(peak)


def _lab(configuration):
    return load(configuration["lab"])


def predict(configuration):
    if "predicted" not in configuration:
        configuration["moment"], configuration["predicted"] = predicted(configuration)


def measure(configuration):
    if "measured" not in configuration:
        configuration["measured"] = measured(configuration)


class Outcome:
    """All configurations as a table that shows itself: predicted, measured, and what the misses were."""

    def _repr_markdown_(self):
        head = [pipes(("configuration", "moment", "predicted", "measured", "")), "|---|---|--:|--:|---|"]
        misses = [f"\nMissed: {each['missed']}." for each in configurations() if "missed" in each]
        return "\n".join([*head, *(pipes(_row(each)) for each in configurations()), *misses])


def _row(configuration):
    conditions = {name: value for name, value in configuration["conditions"].items() if name != "parts"}
    processes = {} if configuration["nproc"] == 1 else {"processes": configuration["nproc"]}
    where = ", ".join(f"{name} {value}" for name, value in {**processes, **conditions}.items())
    figures = [exact(configuration[name], BYTE) if name in configuration else "" for name in ("predicted", "measured")]
    return (where, configuration["moment"], *figures, "missed" if "missed" in configuration else "")


def main(verb):
    """Fill in what the verb is for."""
    known = configurations()
    for configuration in known:
        {"predict": predict, "measure": measure}[verb](configuration)
        print(json.dumps(configuration), flush=True)
    FILE.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
