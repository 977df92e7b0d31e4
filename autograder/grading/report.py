"""What an instructor wants to know of a marked class: how hard each line was, what was misunderstood, whose answers are alike."""

import csv
import json
import statistics
from collections import Counter, defaultdict

from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rapidfuzz import fuzz, process

from ..assignment import answer_id
from .gradebook import waits
from .run import Course
from .work import NOTHING_READ

LONGEST = 160  # characters shown of an answer
COMPARED = 2_000  # characters of one that are compared
BLOCK = 500  # answers that are compared with all at once
SHORTEST = 20  # characters from which on an answer can be said to be like another


def write_report(folder, name, alike):
    """Write the CSVs and the notebook into `reports/`; returns their paths, and by student why who waits for a person does.

    `alike`: percent from which on two answers are named.

    Raises InputError where nothing is marked.
    """
    course = Course.load(folder)
    with course.book(name) as book:
        marker = course.marker(name, book.papers())
        rows = book.journal()
        course.refuse_nothing(name, rows)
        standing = book.standing({student for student, _ in rows})
    tables = {
        "questions": _questions(marker, rows, standing),
        "misconceptions": _misconceptions(marker, rows),
        "students": _students(rows, standing),
        "alike": _alike(marker, rows, alike),
    }
    place = course.folder / "reports"
    place.mkdir(exist_ok=True)
    paths = [write_table(place / f"{name}-{kind}.csv", table) for kind, table in tables.items()]
    write(_notebook(marker.assignment, tables, paths), place / f"{name}.ipynb")
    return [*paths, place / f"{name}.ipynb"], waits(rows)


# --- the tables, each a list of rows with named columns --------------------------------------------------------------


def _questions(marker, rows, standing):
    """For each line: mean share of its points, and how the share goes with that of all other lines (-1 to 1)."""
    scores = {where: found["scores"] for where, found in standing.items() if where in rows}
    lines = {where: json.loads(row["lines"] or "{}") for where, row in rows.items()}
    table = []
    for line, (exercise, asked) in marker.assignment.lines(marker.bank).items():
        pairs = [_with_rest(held, line) for held in scores.values() if line in held]
        statuses = Counter(found[line][1] for found in lines.values() if line in found)
        table.append(
            {
                "line": line,
                "question": exercise.title.en,
                "marked by": asked.marked_by,
                "points": asked.points,
                "submissions": len(pairs),
                "mean share": round(statistics.fmean(share for share, _ in pairs), 3) if pairs else "",
                "discrimination": _correlation(pairs),
                **{status.lower(): statuses.get(status, 0) for status in ("RIGHT", "PARTLY", "WRONG", "BLANK", "HUMAN", "BROKEN")},
            }
        )
    return table


def _with_rest(held, line):
    """(share of a line's points, share of all others') of a submission."""
    score, most = held[line]
    others = [pair for name, pair in held.items() if name != line]
    worth = sum(points for _, points in others)
    return score / most if most else 0.0, sum(got for got, _ in others) / worth if worth else 0.0


def _correlation(pairs):
    """How two shares go together, or nothing where one of them is the same for everybody."""
    if len(pairs) < 3 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return ""
    return round(statistics.correlation(*map(list, zip(*pairs, strict=True))), 3)


def _misconceptions(marker, rows):
    """Each known mistake, and by how many it was made."""
    found = (entry for row in rows.values() for entry in json.loads(row["lines"] or "{}").items())
    met = Counter((line, *mistake) for line, (*_, mistakes) in found for mistake in mistakes)
    table = []
    for line, (exercise, asked) in marker.assignment.lines(marker.bank).items():
        for part in map(exercise.part, asked.parts):
            for mistake in part.mistakes:
                told = {"line": line, "part": part.name, "mistake": mistake.name, "made by": met[line, part.name, mistake.name]}
                table.append(told | {"share": round(met[line, part.name, mistake.name] / max(1, len(rows)), 3), "hint": mistake.hint.en})
    return sorted(table, key=lambda row: -row["made by"])


def _students(rows, standing):
    """Each submission: its score, how it came out and why, what waits, how long marking took."""
    return [
        {
            "student": student,
            "score": round(found["total"] - found["penalty"], 4),
            "of": found["most"],
            "late penalty": found["penalty"],
            "state": row["state"],
            "reason": row["reason"],
            "lines waiting": "" if row["reason"].startswith(NOTHING_READ) else found["waiting"],
            "seconds to mark": round(row["seconds"] or 0, 3),
        }
        for (student, paper), row in sorted(rows.items())
        for found in [standing[student, paper]]
    ]


def _alike(marker, rows, least):
    """Pairs of students whose reasons are alike, the likest first; the same text of many is one row."""
    said = defaultdict(lambda: defaultdict(list))
    for (student, _), row in rows.items():
        for exercise, part, text in _reasons(marker, json.loads(row["answers"] or "{}")):
            said[exercise, part][text].append(student)
    table = [row for (exercise, part), texts in said.items() for row in _pairs(exercise, part, texts, least)]
    return sorted(table, key=lambda row: -row["percent"])


def _reasons(marker, answers):
    for name in marker.assignment.exercises:
        for part in marker.bank[name].parts:
            text = answers.get(answer_id(name), {}).get(part.name)
            if part.type == "reason" and isinstance(text, str) and len(text) >= SHORTEST:
                yield name, part.name, text


def _pairs(exercise, part, texts, least):
    told = {"exercise": exercise, "part": part}
    for text, students in texts.items():
        if len(students) > 1:
            yield told | {"percent": 100.0, "students": ", ".join(students), "one": text[:LONGEST], "other": text[:LONGEST]}
    different = list(texts)
    for one, other, percent in _likenesses(different, least):
        who = ", ".join([*texts[one], *texts[other]])
        yield told | {"percent": round(percent, 1), "students": who, "one": one[:LONGEST], "other": other[:LONGEST]}


def _likenesses(texts, least):
    """(one, other, percent) of the texts that are alike by what they begin with; a block at a time, since all pairs would not fit."""
    beginnings = [text[:COMPARED] for text in texts]
    for start in range(0, len(texts), BLOCK):
        found = process.cdist(beginnings[start : start + BLOCK], beginnings, scorer=fuzz.ratio, score_cutoff=least, workers=-1)
        for i, j in zip(*found.nonzero(), strict=True):
            if start + i < j:
                yield texts[start + i], texts[j], float(found[i, j])


# --- as files --------------------------------------------------------------------------------------------------------


def write_table(path, table):
    """Write rows as a CSV that no spreadsheet takes for formulas, an empty file if there are none; returns the path."""
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else [], quoting=csv.QUOTE_NONNUMERIC)
        if table:
            writer.writeheader()
        writer.writerows({key: tame(value) for key, value in row.items()} for row in table)
    return path


def tame(value):
    """A cell that a spreadsheet shows and does not compute."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@＝＋－＠\t\r\n") else value


DRAW = """import csv
from matplotlib import pyplot as plt

with open("{file}", encoding="utf-8-sig", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["mean share"] and row["discrimination"]]
plt.scatter([float(row["mean share"]) for row in rows], [float(row["discrimination"]) for row in rows])
for row in rows:
    plt.annotate(row["line"], (float(row["mean share"]), float(row["discrimination"])), fontsize=7)
plt.xlabel("mean share of the points (hard to easy)")
plt.ylabel("discrimination")
plt.show()"""
TITLES = {
    "questions": "How hard each line was, and how well it tells apart",
    "misconceptions": "Misconceptions met",
    "students": "Submissions",
    "alike": "Answers that are alike",
}
ROWS = 40  # of each table that the notebook shows


def _notebook(assignment, tables, paths):
    cells = [new_markdown_cell(f"# {assignment.title.en}: report\n\nThe whole tables are in the CSV files beside this notebook.")]
    for (kind, table), path in zip(tables.items(), paths, strict=True):
        cells.append(new_markdown_cell(f"## {TITLES[kind]}\n\n`{path.name}`\n\n{_markdown(table)}"))
        cells += [new_code_cell(DRAW.format(file=path.name))] * (kind == "questions")
    return new_notebook(cells=cells, metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}})


def _markdown(table):
    if not table:
        return "None."
    rows = [list(table[0]), ["---"] * len(table[0]), *(list(row.values()) for row in table[:ROWS])]
    return "\n".join("| " + " | ".join(_shown(value) for value in row) + " |" for row in rows)


def _shown(value):
    """A value in a table: on one line, and nothing in it is markup."""
    text = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|$" else c for c in text) if text != "---" else text
