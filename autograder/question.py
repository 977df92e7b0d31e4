"""Check yourself: `ask("E004-Q02")` shows a question in a chapter, `.check("C")` says at once how an answer does and what hint fits."""

from dataclasses import dataclass, replace

from formulary import InputError, nearest
from formulary.claim import Statement

from . import feedback
from .assignment import as_written, heading, how, question
from .bank import Bank
from .exercise import LANGUAGES
from .rubric import mark

BANK = Bank()


def ask(name, lang=None):
    """The question of that id, in one language (`"en"`, `"zh"`) or both. Raises InputError for an unknown id or language."""
    if lang not in (None, *LANGUAGES):
        raise InputError(f"no language {lang!r}; there is {', '.join(LANGUAGES)}, or None for both")
    return Question(BANK[name], (lang,) if lang else LANGUAGES)


@dataclass(frozen=True)
class Question:
    """An exercise to answer in a notebook: shows itself, checks answers, gives hints, and the solution to who asks for it."""

    exercise: object
    languages: tuple

    def check(self, *first, **answers):
        """Marks of the answers, by part name; one unnamed answer is the first part's. Tells hints, never the right answer."""
        names = [part.name for part in self.exercise.parts]
        unknown = [name for name in answers if name not in names]
        if unknown or len(first) > len(names):
            wrong = f"no part {unknown[0]!r}{nearest(unknown[0], names)}" if unknown else f"{len(first)} answers"
            raise InputError(f"{self.exercise.id}: {wrong}; its parts are {', '.join(names)}")
        answers = dict(zip(names, first, strict=False)) | answers
        # there is nobody to confirm a proposal here, so its note is left out
        results = [replace(result, note=None) for result in mark(self.exercise, answers) if set(result.line.parts) & set(answers)]
        return Marks(results, self.languages)

    def hint(self, number=1):
        """The exercise's own hint of that number."""
        hints = self.exercise.hints
        return Statement(hints[min(number, len(hints)) - 1].say(self.languages, join="\n\n") if hints else "–")

    def solution(self):
        """The worked solution, with the right answer to every part."""
        right = {part.name: self.exercise.expected(part) for part in self.exercise.parts}
        rows = [f"- `{p.name}`: {as_written(self.exercise, p, right[p.name], self.languages[0])}" for p in self.exercise.parts]
        return Statement("\n".join([self.exercise.solution.say(self.languages, join="\n\n"), "", *rows]))

    def form(self):
        """The question as ipywidgets: a field for each part, a button, and the marks below it."""
        from .form import form

        return form(self)

    @property
    def text(self):
        """Title and question as markdown."""
        return f"**{heading(self.exercise, self.languages)}**\n\n{question(self.exercise, self.languages)}"

    def _repr_markdown_(self):
        wanted = lambda part: how(self.exercise, part, quoted=True).say(self.languages)
        rows = [f"- `{part.name}`: {part.label.say(self.languages)} ({wanted(part)})" for part in self.exercise.parts]
        return "\n\n".join([self.text, "\n".join(rows)])


@dataclass(frozen=True)
class Marks:
    """The lines marked, hints told and answers kept back; `.passed` where every point was earned."""

    results: list
    languages: tuple = LANGUAGES

    @property
    def points(self):
        return sum(result.points or 0 for result in self.results)

    @property
    def passed(self):
        return bool(self.results) and all(result.points == result.line.points and not result.needs_human for result in self.results)

    def _repr_markdown_(self):
        return "\n".join(feedback.markdown(result, self.languages, reveal=False) for result in self.results)

    def _repr_html_(self):
        return "".join(feedback.html(result, self.languages, reveal=False) for result in self.results)

    def __str__(self):
        return "\n\n".join(feedback.text(result, self.languages, reveal=False) for result in self.results)
