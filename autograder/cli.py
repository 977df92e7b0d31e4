"""`psi course` builds assignments for nbgrader; `psi bank` checks, lists and shows the exercises."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from formulary import InputError

from . import students
from .assignment import COURSE, assignments, heading, load_assignment, question
from .bank import ROOT, Bank, BankError
from .exercise import LANGUAGES
from .lint import lint
from .sample import write_class
from .solutions import write_solutions
from .source import write_release, write_source


def main(argv):
    """Run `psi course …` or `psi bank …`; returns 0, 1 where a check fails, or 2 where the request makes no sense."""
    options = _parser(argv[0]).parse_args(argv[1:])
    try:
        status, said = options.run(options)
    except (InputError, BankError) as error:
        print(f"psi {argv[0]}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(said, ensure_ascii=False, indent=2) if options.json else options.write(said))
    return status


def _parser(word):
    parser = argparse.ArgumentParser(prog=f"psi {word}")
    verbs = parser.add_subparsers(required=True, metavar="|".join(VERBS[word]))
    for name, (help_, run, write, add) in VERBS[word].items():
        verb = verbs.add_parser(name, help=help_, description=help_)
        verb.add_argument("--json", action="store_true", help="print as JSON")
        add(verb)
        verb.set_defaults(run=run, write=write)
    return parser


def _with_bank(verb):
    verb.add_argument("--bank", type=_bank_folder, default=ROOT / "bank", metavar="DIR", help="folder of the exercises")


def _bank_folder(text):
    if not any(Path(text).glob("*/*.yaml")):
        raise argparse.ArgumentTypeError(f"there are no exercises in {text!r}; a bank is a folder of <chapter>/<id>.yaml")
    return Path(text)


def _with_course(verb):
    _with_bank(verb)
    verb.add_argument("assignment", nargs="*", help="which ones; all if none is named")
    verb.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the nbgrader course's folder")


def _with_build(verb):
    _with_course(verb)
    verb.add_argument("--lang", choices=LANGUAGES, help="ask in this language alone")
    verb.add_argument("--source-only", action="store_true", help="do not make the learners' version")


def _with_show(verb):
    _with_bank(verb)
    verb.add_argument("exercise")
    verb.add_argument("--lang", choices=LANGUAGES, help="in this language alone")


# --- psi course ------------------------------------------------------------------------------------------------------


def _chosen(options):
    folder = options.course / "assignments"
    return [load_assignment(name, folder) for name in options.assignment or assignments(folder)]


def _build(options):
    bank, built, outdated = Bank(options.bank), [], []
    for assignment in _chosen(options):
        assignment = assignment.model_copy(update={"languages": (options.lang,)}) if options.lang else assignment
        source, changed = write_source(assignment, bank, options.course)
        released = options.course / "release" / assignment.id / source.name
        outdated += [assignment.id] if changed or not released.exists() or not _is_registered(assignment.id, options.course) else []
        built.append((assignment.id, source, released))
    if outdated and not options.source_only:
        _release(outdated, options.course)
    rows = [{"assignment": name, "source": str(source), "release": str(r) if r.exists() else None} for name, source, r in built]
    return 0, rows


def _is_registered(name, course):
    """Whether the gradebook of a course knows the assignment."""
    from .grading.run import Course  # here, since it brings a database's library with it

    try:
        with Course.load(course).book(name):
            return True
    except InputError:
        return False


def _release(names, course):
    """Have stock nbgrader make the learners' versions, solutions and mark schemes taken out: in one run if it is all there are."""
    every = {path.name for path in (course / "source").iterdir()}
    for name in ["*"] if set(names) == every else names:
        _nbgrader(course, "generate_assignment", name, "--force")


def _nbgrader(course, *arguments):
    # nbgrader starts alembic by name, which is beside our Python and not always on the path
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if done.returncode:
        raise BankError(f"nbgrader {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")


def _write_built(rows):
    return "\n".join(f"{row['assignment']}: {row['release'] or row['source']}" for row in rows)


def _list_course(options):
    bank = Bank(options.bank)
    rows = [{"assignment": a.id, "title": a.title.model_dump(), "exercises": list(a.exercises)} for a in _chosen(options)]
    return 0, [row | {"points": sum(bank[name].points for name in row["exercises"])} for row in rows]


def _write_course(rows):
    return "\n".join(
        f"{r['assignment']:<16} {r['points']:>5g} points  {r['title']['en']}\n{'':<29}{', '.join(r['exercises'])}" for r in rows
    )


def _sample(options):
    bank = Bank(options.bank)
    return 0, [str(path) for assignment in _chosen(options) for path in write_class(assignment, bank, options.course)]


def _with_variant(verb):
    _with_bank(verb)
    verb.add_argument("student", help="as nbgrader knows them")
    verb.add_argument("assignment")
    verb.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the nbgrader course's folder")
    verb.add_argument("--write", dest="hand_out", action="store_true", help="also write the notebook to hand to this student")


def _variant(options):
    assignment, bank = load_assignment(options.assignment, options.course / "assignments"), Bank(options.bank)
    if assignment.variants != "per_student":
        raise InputError(f"{assignment.id} asks everyone the same; `variants: per_student` in its YAML gives each their own numbers")
    own = students.bank_for(bank, options.student, assignment, options.course)
    written = str(write_release(assignment, own, options.student, options.course)) if options.hand_out else None
    return 0, {"student": options.student, "notebook": written, "exercises": list(students.numbers(assignment, own))}


def _write_variant(said):
    rows = [f"{said['student']}" + (f": {said['notebook']}" if said["notebook"] else "")]
    for row in said["exercises"]:
        rows += [row["exercise"], *(f"  {name} = {value}" for name, value in row["given"].items())]
        rows += [f"  → {name} = {value}" for name, value in row["key"].items()]
    return "\n".join(rows)


def _solutions(options):
    bank = Bank(options.bank)
    return 0, [str(write_solutions(assignment, bank, options.course)) for assignment in _chosen(options)]


# --- psi bank --------------------------------------------------------------------------------------------------------


def _lint(options):
    bank = Bank(options.bank)
    faults = lint(bank)
    return (1 if faults else 0), {"exercises": len(bank), "faults": faults}


def _write_lint(said):
    return "\n".join([*said["faults"], f"{said['exercises']} exercises, {len(said['faults'])} faults"])


def _list_bank(options):
    keys = ("id", "kind", "chapter", "difficulty")
    exercises = Bank(options.bank).values()
    return 0, [{key: getattr(e, key) for key in keys} | {"points": e.points, "title": e.title.model_dump()} for e in exercises]


def _write_bank(rows):
    return "\n".join(
        f"{r['id']}  ch {r['chapter']:<3}{r['kind']:<15}{r['points']:>4g} points  {r['title']['en']} · {r['title']['zh']}" for r in rows
    )


def _show(options):
    exercise = Bank(options.bank)[options.exercise]
    languages = (options.lang,) if options.lang else LANGUAGES
    lines = [{"line": line.title.say(languages), "points": line.points, "marked_by": line.marked_by} for line in exercise.rubric]
    parts = {part.name: part.label.say(languages) for part in exercise.parts}
    return 0, {
        "id": exercise.id,
        "title": heading(exercise, languages),
        "question": question(exercise, languages),
        "answers": parts,
        "rubric": lines,
    }


def _write_shown(said):
    answers = [f"  {name} = …   {label}" for name, label in said["answers"].items()]
    lines = [f"  {line['points']:g}  {line['line']} ({line['marked_by']})" for line in said["rubric"]]
    return "\n".join([said["title"], "", said["question"], "", *answers, "", *lines])


VERBS = {
    "course": {
        "build": ("make nbgrader's source notebooks from the bank, and the learners' versions", _build, _write_built, _with_build),
        "list": ("name the assignments", _list_course, _write_course, _with_course),
        "variant": ("tell the numbers and keys of one student", _variant, _write_variant, _with_variant),
        "solutions": ("write worked solutions and marking notes, for yourself", _solutions, "\n".join, _with_course),
        "sample": ("hand in for a sample class of three", _sample, "\n".join, _with_course),
    },
    "bank": {
        "lint": ("check every exercise from both sides", _lint, _write_lint, _with_bank),
        "list": ("name every exercise", _list_bank, _write_bank, _with_bank),
        "show": ("show a question and how it is marked, without its answers", _show, _write_shown, _with_show),
    },
}
