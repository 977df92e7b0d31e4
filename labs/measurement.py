"""A measurement: what a job gave, with all that is needed to judge it or to take it again. Kept as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

KEPT = Path(__file__).parent / "measurements"


class MeasurementError(ValueError):
    """A file that is no measurement, or not one of this lab."""


@dataclass(frozen=True)
class Measurement:
    """`numbers` by name, in base units, taken at `taken` (UTC) on `machine` under `conditions`."""

    lab: str
    taken: str
    seconds: float
    machine: Mapping
    versions: Mapping
    commit: str
    conditions: Mapping
    numbers: Mapping

    @classmethod
    def of(cls, data, where="the measurement"):
        """From the JSON a job printed. Raises MeasurementError naming what is missing or too much."""
        wanted, given = {f.name for f in fields(cls)}, set(data) if isinstance(data, dict) else set()
        if wanted != given:
            raise MeasurementError(f"{where} lacks {sorted(wanted - given)} and has {sorted(given - wanted)} too much; run the lab again")
        return cls(**data)

    @classmethod
    def load(cls, file):
        """From a file. Raises MeasurementError if it is none."""
        try:
            return cls.of(json.loads(Path(file).read_text()), str(file))
        except (OSError, ValueError) as error:
            raise MeasurementError(f"{file} is no measurement: {error}") from None

    def save(self, folder):
        """Write it into `folder` under a name that says lab, processes, device and time; returns the path."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        stamp = self.taken.replace(":", "").replace("-", "")
        path = folder / f"{self.lab}-{self.conditions['world_size']}-{self.conditions['device']}-{stamp}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")
        return path

    def __str__(self):
        machine = ", ".join(str(value) for value in (self.machine.get("gpu"), self.machine["processor"]) if value)
        versions = " ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{machine}, {self.machine['cores']} cores; {versions}; commit {self.commit or 'unknown'}; {self.taken}"


def kept(name):
    """A measurement that comes with the book, of a run that takes long."""
    return Measurement.load(KEPT / f"{name}.json")
