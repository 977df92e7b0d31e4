"""`psi bench reasons`: measure the marker of free-text reasons. `psi bench grade` is next door, in `grading`."""

import argparse
import json
import sys

import yaml

from autograder.reasons.bench import DEVELOPING_FILE, GROUPS, AnswersError, fitted, leave_one_out, load_answers, marked, report

COLUMNS = {
    "answers": "answers",
    "kappa": "kappa",
    "kappa_sure": "kappa, sure",
    "exact_share": "exact",
    "queue_share": "queue",
    "confident_wrong_share": "sure, wrong by 2",
}
WIDTH = 18


def main(argv):
    """Run `psi bench reasons …` or `psi bench grade …`; returns the exit status."""
    if argv[1:2] == ["grade"]:
        from autograder.grading import bench

        return bench.main(argv)
    options = _options(argv)
    try:
        answers = load_answers(options.file or DEVELOPING_FILE)
    except (AnswersError, OSError, UnicodeDecodeError) as why:
        print(f"psi bench reasons: {why}", file=sys.stderr)
        return 2
    if options.fit:
        print(yaml.safe_dump(_fit(answers), allow_unicode=True, sort_keys=False))
        return 0
    results = _results(answers, options)
    print(json.dumps(_only(results), indent=2) if options.json else _text(results))
    return 0


def _options(argv):
    parser = argparse.ArgumentParser(prog="psi bench", description="Measure how well free-text reasons are marked, or how fast a class is.")
    parser.add_argument("what", choices=["reasons", "grade"], help="of reasons, or of a class's grading (psi bench grade --help)")
    parser.add_argument(
        "file", nargs="?", help="JSON lines with q (1-10), lang, tag, reason, reason_points; else the project's own paraphrases"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--cross-validate", action="store_true", help="fit settings on nine questions, mark the tenth (always so without FILE)"
    )
    parser.add_argument("--fit", action="store_true", help="print the settings fitted to all answers")
    return parser.parse_args(argv[1:])


def _fit(answers):
    chosen = fitted(answers)
    return {name: chosen[name] for name in ("list_share", "near", "subjects", "sure", "evidence")}


def _results(answers, options):
    """Per set of answers its report: one for a file; for the project's own the tuned part and the part kept apart."""
    if options.file:
        return {"answers": report(leave_one_out(answers) if options.cross_validate else marked(answers))}
    by_part = {part: [answer for answer in answers if answer.part == part] for part in sorted({answer.part for answer in answers})}
    return {part: report(leave_one_out(group)) for part, group in by_part.items()}


def _only(results):
    """The one report there is, or all by their names."""
    return results if len(results) > 1 else next(iter(results.values()))


def _text(results):
    return "\n\n".join("\n".join(_lines(name, result)) for name, result in results.items())


def _lines(name, result):
    yield f"{name:<24}" + "".join(f"{title:>{WIDTH}}" for title in COLUMNS.values())
    yield _row("all", result)
    for group in GROUPS:
        yield group.replace("_", " ")
        yield from (_row(f"  {value}", figures) for value, figures in result[group].items())


def _row(title, figures):
    return f"{title:<24}" + "".join(_cell(figures[name]) for name in COLUMNS)


def _cell(value):
    return f"{value:>{WIDTH}.3f}" if isinstance(value, float) else f"{value:>{WIDTH}}"
