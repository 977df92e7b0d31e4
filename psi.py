"""`psi`: the project's one command. Each first word belongs to a package, which is imported only when it is called."""

import importlib
import os
import sys

# first word: (module with main(argv), what it does)
COMMANDS = {
    "formula": ("formulary.cli", "list, show and evaluate the formulas"),
    "claims": ("formulary.claims.cli", "what is said, what is computed, and who is right"),
    "course": ("autograder.cli", "build assignments for nbgrader from the bank"),
    "bank": ("autograder.cli", "check and show the exercises"),
    "grade": ("autograder.grading.cli", "mark a class, report on it, export its scores; say what this machine locks code in with"),
    "bench": ("autograder.reasons.cli", "measure the markers"),
    "drill": ("autograder.drills.cli", "practise for an interview, what you forget first"),
    "lab": ("labs.cli", "predict, run a real job, compare"),
}


def main(argv=None):
    """Hand `argv` to the command it names; returns the exit status."""
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("psi: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` say, has seen enough; Python would complain again when it closes the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(argv):
    if not argv or argv[0] in ("-h", "--help"):
        print(_help())
        return 0
    if argv[0] not in COMMANDS:
        from formulary.spelling import nearest  # here, since it brings sympy with it

        print(f"psi: no command {argv[0]!r}{nearest(argv[0], COMMANDS)}\n\n{_help()}", file=sys.stderr)
        return 2
    return importlib.import_module(COMMANDS[argv[0]][0]).main(argv)


def _help():
    rows = [f"  {name:<10}{what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(["usage: psi COMMAND …        (psi COMMAND --help says more)", "", *rows])


if __name__ == "__main__":
    sys.exit(main())
