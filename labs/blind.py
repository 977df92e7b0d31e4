"""A blind test of the peak under FSDP2: configurations fixed and predicted before any of them was run, then measured once.

    python -m labs.blind predict      writes what the formulas say, where nothing is predicted yet
    python -m labs.blind measure      runs what was predicted and not measured yet, and writes what came out

The file beside this one holds both, and its history which came first. A miss stays in it.
"""

import json
import sys
from pathlib import Path

from . import load
from .paper_cluster import PEAK, peak_moment
from .peak_memory import peak_of_fsdp

FILE = Path(__file__).parent / "measurements" / "blind_fsdp_peak.json"


def configurations():
    """Each as it stands in the file: lab, nproc, conditions, and once they are known moment, predicted and measured (bytes)."""
    return json.loads(FILE.read_text())


def predicted(configuration):
    """(moment, bytes) by the formulas as they are now."""
    known = _lab(configuration).under(configuration["nproc"], **configuration["conditions"])
    name, parts = (peak_moment if configuration["lab"] == "paper_cluster" else peak_of_fsdp)(known)
    return name, parts.total


def measured(configuration):
    """Bytes that rank 0 holds at most, by running the lab."""
    report = _lab(configuration).run(configuration["nproc"], timeout=600, **configuration["conditions"])
    if not report.measurement:
        raise SystemExit(report.failure)
    peak = [x.measured for x in report.lines if x.variant == PEAK or x.key == "fsdp/0/peak"]
    return sum(peak)


def _lab(configuration):
    return load(configuration["lab"])


def predict(configuration):
    if "predicted" not in configuration:
        configuration["moment"], configuration["predicted"] = predicted(configuration)


def measure(configuration):
    if "measured" not in configuration:
        configuration["measured"] = measured(configuration)


def main(verb):
    """Fill in what the verb is for."""
    known = configurations()
    for configuration in known:
        {"predict": predict, "measure": measure}[verb](configuration)
        print(json.dumps(configuration), flush=True)
    FILE.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
