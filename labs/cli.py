"""`psi lab`: list the labs, show one's predictions, run one, report on measurements taken elsewhere."""

import argparse
import json
import re
import sys

from formulary import InputError, Outcome

from . import LABS, everything, load
from .launch import DEVICES, LAUNCHERS, LaunchError
from .measurement import Measurement, MeasurementError

STATUS = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.BROKEN: 3}
BAD_REQUEST = 2
CONDITION = re.compile(r"[a-z]\w*=.*")
CONDITIONS = "Conditions are written name=value anywhere after the lab's name, such as vocab_size=512 or variants=fsdp2."


def main(argv):
    """Run `psi lab …`; returns 0 if predictions came true, 1 if one was off, 3 if the lab broke, 2 if the request makes no sense."""
    conditions = [word for word in argv[1:] if CONDITION.fullmatch(word)]
    options = _parser().parse_args([word for word in argv[1:] if word not in conditions])
    options.conditions = dict(word.split("=", 1) for word in conditions)
    try:
        return options.verb(options)
    except (InputError, LaunchError, MeasurementError) as error:
        print(f"psi lab: {error}", file=sys.stderr)
        return BAD_REQUEST


def _parser():
    parser = argparse.ArgumentParser(prog="psi lab", description="Predict, run a real job on several processes, compare.")
    verbs = parser.add_subparsers(required=True, metavar="list|show|run|report")
    _verb(verbs, "list", "name every lab", _list)
    show = _verb(verbs, "show", "a lab's conditions and predictions, before it runs", _show, CONDITIONS)
    run = _verb(verbs, "run", "run a lab and hold what it measures against the predictions", _run, CONDITIONS)
    show.add_argument("name")
    which = run.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?")
    which.add_argument("--all", action="store_true", help="every lab in turn, and one table")
    for verb in (show, run):
        verb.add_argument("--nproc", type=int, help="processes (default: as many as is usual for the lab)")
    run.add_argument("--device", choices=DEVICES, help="cpu, or cuda with one GPU for each process")
    run.add_argument(
        "--launcher", choices=LAUNCHERS, default="auto", help="how processes start (default: fork on a Linux CPU, else torchrun)"
    )
    run.add_argument(
        "--timeout",
        type=float,
        default=120,
        metavar="SECONDS",
        help="how long a job may take before it counts as hanging and is stopped (default 120); give a slow machine or a large model more",
    )
    run.add_argument("--port", type=int, help="where ranks meet (default: a free port)")
    run.add_argument("--save", metavar="DIR", help="also write the measurement into this folder")
    report = _verb(verbs, "report", "report on measurements taken elsewhere", _report)
    report.add_argument("files", nargs="+", metavar="FILE")
    return parser


def _verb(verbs, name, help_, run, more=""):
    verb = verbs.add_parser(name, help=help_, description=help_, epilog=more)
    verb.add_argument("--json", action="store_true", help="print figures as JSON")
    verb.set_defaults(verb=run)
    return verb


def _print(options, data, text):
    print(json.dumps(data, ensure_ascii=False, indent=2) if options.json else text)


def _list(options):
    titles = {name: load(name).title for name in LABS}
    _print(options, titles, "\n".join(f"{name:<16}{title}" for name, title in titles.items()))
    return 0


def _show(options):
    chosen, given = load(options.name), options.conditions
    conditions = chosen.under(options.nproc, **given)
    predictions = chosen.predictions(options.nproc, **given)
    data = {"lab": chosen.name, "conditions": conditions, "predictions": {p.key: p.estimate() for p in predictions}}
    rows = predictions.rows()
    wide = max((len(key) for key, _, _ in rows), default=0)
    lines = [f"  {key:<{wide}}{value:>18}   {worked}" for key, value, worked in rows]
    _print(options, data, "\n".join([chosen.title, *(f"  {k} = {v}" for k, v in conditions.items()), "predicted:", *lines]))
    return 0


def _run(options):
    given = options.conditions | ({"device": options.device} if options.device else {})
    how = {"launcher": options.launcher, "timeout": options.timeout, "port": options.port}
    save = (lambda measurement: print(f"saved {measurement.save(options.save)}", file=sys.stderr)) if options.save else None
    if options.all:
        return _run_all(options, given, save, how)
    report = load(options.name).run(options.nproc, **how, **given)
    if save and report.measurement:
        save(report.measurement)
    _print(options, report.as_json(), report)
    return STATUS[report.outcome]


def _run_all(options, given, save, how):
    """A row for each lab as soon as it is done; the status of the worst."""
    rows = []
    if not options.json:
        print(everything.heading(), flush=True)
    for row in everything.run(LABS, options.nproc, given, save, **how):
        rows.append(row)
        if not options.json:
            print(row, flush=True)
    if options.json:
        print(json.dumps([row.as_json() for row in rows], ensure_ascii=False, indent=2))
    return max(STATUS[row.outcome] for row in rows)


def _report(options):
    measurements = [Measurement.load(file) for file in options.files]
    reports = [load(m.lab).report(m) for m in measurements]
    _print(options, [report.as_json() for report in reports], "\n\n".join(map(str, reports)))
    return max(STATUS[report.outcome] for report in reports)
