"""Worked solutions and marking notes of an assignment, as one Markdown document for those who mark; never part of a release."""

from .assignment import COURSE, as_written, heading, points, question, worth
from .exercise import Text

WORDS = {
    "title": Text(en="solutions and marking notes", zh="参考解答与评分说明"),
    "key": Text(en="Answers", zh="答案"),
    "solution": Text(en="Worked solution", zh="解答"),
    "marking": Text(en="Marking", zh="评分"),
    "mistakes": Text(en="Known mistakes", zh="常见错误"),
    "keeps": Text(en="keeps {share} of the credit", zh="保留 {share} 的分"),
    "within": Text(en="within {within}", zh="误差 {within} 以内"),
    "carry": Text(
        en="a number that follows from the learner's own earlier answer keeps {carry}", zh="由学生自己前面的答案推得的数保留 {carry}"
    ),
    "marked_by": {
        "key": Text(en="by key", zh="按答案自动评分"),
        "claims": Text(en="by its claims; unsure ones wait for a person", zh="按论断评分，拿不准的由人工确认"),
        "human": Text(en="by a person", zh="由人工评分"),
    },
}


def write_solutions(assignment, bank, course=COURSE):
    """Write `solutions/ASSIGNMENT.md` in the course's folder; returns its path."""
    path = course / "solutions" / f"{assignment.id}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(assignment, bank), encoding="utf-8")
    return path


def document(assignment, bank):
    """The whole document as Markdown, in the assignment's languages."""
    languages = assignment.languages
    total = points(sum(bank[name].points for name in assignment.exercises), languages)
    head = f"# {assignment.title.say(languages)}: {WORDS['title'].say(languages)}\n\n**{total}**"
    return "\n\n".join([head, *(_exercise(number, bank[name], languages) for number, name in enumerate(assignment.exercises, 1))]) + "\n"


def _exercise(number, exercise, languages):
    say = lambda name: f"**{WORDS[name].say(languages)}**"
    return "\n\n".join(
        [
            f"## {number}. {heading(exercise, languages)}",
            question(exercise, languages),
            say("key"),
            "\n".join(_key(exercise, part, languages) for part in exercise.parts),
            say("solution"),
            exercise.solution.say(languages, join="\n\n"),
            say("marking"),
            "\n".join(row for line in exercise.rubric for row in _line(exercise, line, languages)),
            *([say("mistakes"), "\n".join(_mistakes(exercise, languages))] if any(part.mistakes for part in exercise.parts) else []),
        ]
    )


def _key(exercise, part, languages):
    right = exercise.expected(part)
    told = right.say(languages) if isinstance(right, Text) else as_written(exercise, part, right, languages[0])
    within = (
        f" ({WORDS['within'].say(languages).replace('{within}', f'{part.within:.1%}')})" if part.type == "number" and part.within else ""
    )
    return f"- {part.label.say(languages)}: {told}{within}"


def _line(exercise, line, languages):
    yield f"- {line.title.say(languages)}, {points(line.points, languages)}, {WORDS['marked_by'][line.marked_by].say(languages)}"
    yield f"    - {line.criterion.say(languages)}"
    if any(exercise.sources(part) for part in map(exercise.part, line.parts) if part.type == "number"):
        yield f"    - {WORDS['carry'].say(languages).replace('{carry}', f'{line.carry:.0%}')}"
    yield from (f"    - {said}" for said in worth(exercise, line, languages))


def _mistakes(exercise, languages):
    for part in exercise.parts:
        for mistake in part.mistakes:
            wrong = as_written(exercise, part, exercise.mistaken(part, mistake), languages[0])
            keeps = f" ({WORDS['keeps'].say(languages).replace('{share}', f'{mistake.credit:.0%}')})" if mistake.credit else ""
            yield f"- {part.label.say(languages)} = {wrong}{keeps}: {mistake.hint.say(languages)}"
