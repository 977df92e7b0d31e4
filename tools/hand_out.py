"""Put the released assignments where a learner works: `python -m tools.hand_out`. Files that are there already stay as they are."""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASED = "exercises/course/release"
YOURS = "assignments"


def hand_out(root=ROOT):
    """Copy each released file that the learner does not have yet; returns the new ones."""
    released = [path for path in sorted((root / RELEASED).rglob("*")) if path.is_file()]
    missing = [path for path in released if not _yours(path, root).exists()]
    for path in missing:
        _yours(path, root).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, _yours(path, root))
    return [_yours(path, root) for path in missing]


def _yours(path, root):
    return root / YOURS / path.relative_to(root / RELEASED)


def main():
    """Hand out and say what is new; returns the exit status."""
    for path in hand_out():
        print(f"{path.relative_to(ROOT)}: handed out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
