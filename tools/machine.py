"""The programs that the tests need beside Python, and how to get them: `python -m tools.machine` names the missing ones."""

import shutil
import sys

# what it is for us: (its names, how to install it)
PROGRAMS = {
    "chromium": (
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
        "apt-get install chromium (Debian), brew install --cask chromium (macOS)",
    ),
    "node": (("node", "nodejs"), "apt-get install nodejs (Debian), brew install node (macOS)"),
}


class MissingProgram(RuntimeError):
    """A program the tests cannot do without."""


def program(name):
    """The path of a program. Raises MissingProgram, which says how to install it."""
    names, install = PROGRAMS[name]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise MissingProgram(f"{name} is not installed, and the tests need it: {install}")
    return found


def main():
    """Name what is missing; returns the exit status."""
    missing = 0
    for name in PROGRAMS:
        try:
            program(name)
        except MissingProgram as error:
            missing += 1
            print(error, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
