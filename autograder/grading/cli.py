"""`psi grade`: mark a class, report on it, export its scores. Everything slow is imported only when it is used."""

import argparse
import contextlib
import gc
import os
import sys
from functools import cache
from itertools import islice
from pathlib import Path

VERBS = ("doctor", "report", "export")
COURSE = Path(__file__).resolve().parents[2] / "exercises" / "course"
BAR = "{desc} {percentage:3.0f}%|{bar:24}| {n_fmt}/{total_fmt} [{elapsed}] {postfix}"
SHOWN = 10  # of those who wait for a person


def main(argv):
    """Run `psi grade …`; returns 0, 1 where something could not be marked, or 2 where the request makes no sense."""
    if argv[1:] == ["doctor"]:
        from ..jail import doctor

        return doctor.main(argv)
    sys.modules.setdefault("rfc3987_syntax", None)  # 35 parsers that jsonschema compiles at import, which nothing here needs
    verb = argv[1] if len(argv) > 1 and argv[1] in VERBS else ""
    options = PARSERS[verb]().parse_args(argv[2:] if verb else argv[1:])
    from formulary import InputError

    from ..bank import BankError

    try:
        return RUN[verb](options)
    except (InputError, BankError, OSError) as error:  # a full disk, a folder that is not ours: what is marked by then is kept
        print(f"psi grade: {error}", file=sys.stderr)
        return 2


def _parser(word, description, epilog=None):
    parser = argparse.ArgumentParser(prog=f"psi grade{word}", description=description, epilog=epilog)
    parser.add_argument("assignment", help="as `psi course list` names it")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the nbgrader course's folder")
    return parser


def _grade_parser():
    also = "also: psi grade report ASSIGNMENT, psi grade export ASSIGNMENT --lms canvas|moodle, psi grade doctor"
    parser = _parser("", "Mark what was handed in for an assignment and has changed since it was marked.", also)
    parser.add_argument(
        "--workers", type=_positive, default=os.cpu_count(), metavar="N", help="processes that mark (as many as there are cores)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="mark on the workers of this Dask scheduler; `local` starts some here")
    parser.add_argument("--force", action="store_true", help="mark everything again")
    parser.add_argument("--no-feedback", dest="feedback", action="store_false", help="write no pages of feedback")
    parser.add_argument("--timing", action="store_true", help="say where the time went")
    return parser


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few: at least 1")
    return number


def _report_parser():
    parser = _parser(" report", "Difficulty, discrimination, misconceptions, time and alike answers, as CSV and a notebook.")
    parser.add_argument("--alike", type=float, default=90, metavar="PERCENT", help="from which likeness on two answers are named (90)")
    return parser


def _export_parser():
    parser = _parser(" export", "Write the scores as a CSV that a learning management system imports.")
    parser.add_argument("--lms", choices=("canvas", "moodle"), required=True)
    parser.add_argument("--to", type=Path, metavar="FILE", help="where to (reports/ASSIGNMENT-LMS.csv in the course's folder)")
    return parser


PARSERS = {"": _grade_parser, "report": _report_parser, "export": _export_parser}


def _grade(options):
    gc.disable()  # what is loaded now stays; `grade` turns it on again
    from tqdm import tqdm

    from .run import Options, grade

    chosen = Options(options.workers, options.dask, options.force, options.feedback)
    with contextlib.ExitStack() as stack:
        # not before there is something to show, and nowhere but in a terminal
        told = {"desc": options.assignment, "bar_format": BAR, "mininterval": 0.2, "disable": None}
        bar = cache(lambda total: stack.enter_context(tqdm(total=total, **told)))
        tally = grade(options.course, options.assignment, chosen, lambda tally, total: total and _show(bar(total), tally))
    print("\n".join(_told(tally, options)))
    return 1 if tally.faults or tally.left_out else 0


def _show(bar, tally):
    bar.n = tally.graded + tally.waiting + tally.broken
    bar.set_postfix_str(_counts(tally), refresh=False)
    bar.refresh() if bar.n == bar.total else bar.update(0)


def _counts(tally):
    return f"{tally.graded} graded, {tally.waiting} need a person, {tally.broken} broken"


def _told(tally, options):
    total = tally.graded + tally.waiting + tally.broken
    yield f"{total} submissions: {_counts(tally)}; {tally.unchanged} unchanged, {tally.lines} lines marked, {tally.pages} pages of feedback"
    yield from (f"  BROKEN {student}: {why}" for student, why in sorted(tally.faults.items()))
    yield from (f"  NOT GRADED {student}: {why}" for student, why in sorted(tally.left_out.items()))
    yield from (f"  {student}: {why}" for student, why in sorted(tally.doubts.items()))
    yield from _waits(tally.waits, options.assignment)
    if not total:
        yield "  nothing is handed in: students' folders are looked for in `submitted/`, in each of them one of the assignment's name"
    if options.timing:
        yield "  " + ", ".join(f"{what} {seconds:.2f} s" for what, seconds in tally.seconds.items())


def _waits(waits, assignment):
    """Who waits for a person, and for what; of many only the first."""
    yield from (f"  WAITS {student}: {why}" for student, why in islice(waits.items(), SHOWN))
    if len(waits) > SHOWN:
        yield f"  and {len(waits) - SHOWN} more: `psi grade report {assignment}` writes them all into reports/{assignment}-students.csv"


def _report(options):
    from .report import write_report

    paths, waits = write_report(options.course, options.assignment, options.alike)
    print("\n".join([*map(str, paths), *_waits(waits, options.assignment)]))
    return 0


def _export(options):
    from .lms import export

    path, waiting = export(options.course, options.assignment, options.lms, options.to)
    print(path)
    if waiting:
        print(f"{waiting} submissions still wait for a person: their scores are not final", file=sys.stderr)
    return 0


RUN = {"": _grade, "report": _report, "export": _export}
