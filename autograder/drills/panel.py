"""Drills in a notebook: `from autograder import drill; drill()`. The same deck and store as in the terminal, with fields and buttons."""

import time
from html import escape

import ipywidgets as widgets

from formulary import InputError

from .. import feedback
from ..assignment import heading, question
from ..bank import Bank
from ..exercise import KINDS, LANGUAGES
from ..form import answer_of, field, shown, style
from ..rubric import Status, check
from .deck import RAPID_SECONDS, RAPID_WITHIN, Deck, Wanted, estimate, findings, self_marked, share
from .explain import explained
from .progress import statistics, write
from .proposal import marked
from .schedule import VERDICTS, rating
from .store import Store
from .wording import say, span

ALL = ""  # a box shows nothing for None
BETWEEN = "\n\n"  # paragraphs


def drill(lang="en", store=None, chapter=None):
    """A panel that asks the bank's exercises, what is due first; progress is kept in `store`, a path, or the user's own data folder."""
    languages = LANGUAGES if lang == "both" else (lang,)
    return Panel(Deck(Bank(), Store(store)), languages, chapter)


class Panel(widgets.VBox):
    """The choice of what to ask, the question, fields for the answers, and what came of them."""

    def __init__(self, deck, languages, chapter=None):
        self.deck, self.languages, self.last = deck, languages, ()
        self.choice = _choice(deck, languages, chapter)
        self.buttons = {name: widgets.Button(description=self._say(name)) for name in ("check", "hint", "show", "next")}
        for name, button in self.buttons.items():
            button.on_click(getattr(self, f"_on_{name}"))
            button.layout.width = "auto"
        for box in self.choice.values():
            box.observe(self._on_next, "value")
        self.asking, self.told, self.own, self.stand = widgets.VBox(), widgets.VBox(), widgets.VBox(), widgets.HTML()
        elsewhere = widgets.HTML(f"<p>{self._say('elsewhere')}</p>")
        asked = (_row(self.choice.values()), self.asking, _row(self.buttons.values()))
        super().__init__([*asked, self.told, self.own, self.stand, elsewhere, style()])
        self._on_next(None)

    def _say(self, key, **values):
        return say(key, self.languages, **values)

    @property
    def wanted(self):
        """What the learner chose to be asked."""
        picked = {name: (box.value,) if box.value != ALL else () for name, box in self.choice.items() if name != "mode"}
        kinds = picked["kind"] or (("calculation",) if self.rapid else ())
        return Wanted(picked["chapter"], kinds, picked["difficulty"])

    @property
    def rapid(self):
        return self.choice["mode"].value == "rapid"

    # --- asking

    def _on_next(self, _):
        try:
            name = self.deck.next(self.wanted, but=self.last)
        except InputError:
            return self._ask_nothing()
        self.last, self.asked, self.started, self.hinted = (name,), self.deck.ask(name), time.monotonic(), 0
        exercise, estimating = self.asked.exercise, self.rapid and self.asked.numbers
        self.fields = {part.name: field(exercise, part, self.languages) for part in (self._rapid_parts() if estimating else exercise.parts)}
        text = self._rapid_text() if estimating else question(exercise, self.languages)
        self.asking.children = (shown(f"**{heading(exercise, self.languages)}**\n\n{text}"), *self.fields.values())
        self.told.children = self.own.children = ()
        self.stand.value = ""
        self._enable("check", "hint", "show")

    def _ask_nothing(self):
        self.asking.children, self.told.children, self.own.children = (shown(self._say("nothing")),), (), ()
        self.stand.value = ""
        self._enable()

    def _rapid_text(self):
        """The question without the options, which are for other parts."""
        limits = self._say("estimate", within=RAPID_WITHIN, limit=RAPID_SECONDS)
        return f"{self.asked.exercise.question.say(self.languages, join=BETWEEN)}\n\n{self._say('only')} {limits}"

    def _rapid_parts(self):
        return [self.asked.drawn_number]

    def _enable(self, *names):
        for name in ("check", "hint", "show"):
            self.buttons[name].disabled = name not in names

    def _on_hint(self, _):
        hints = self.asked.exercise.hints
        told = [hint.say(self.languages, join=BETWEEN) for hint in hints[: self.hinted + 1]]
        self.told.children = (shown(BETWEEN.join(told if self.hinted < len(hints) else [*told, self._say("no_hint_here")])),)
        self.hinted += 1

    def _on_show(self, _):
        """The solution: in place of an answer, which then counts nothing, or below what came of it."""
        answered = self.buttons["check"].disabled
        see = f"→ {self._see().say(self.languages)}"
        told = shown(f"{explained(self.asked.exercise, self.languages)}\n\n{see}")
        self.told.children = (*self.told.children, told) if answered else (told,)
        if not answered:
            self._learn(0.0, ())
        self._enable()

    def _see(self):
        return feedback.chapter(self.asked.exercise.chapter, section=self.asked.exercise.section)

    # --- marking

    def _on_check(self, _):
        self.answers = {name: answer_of(box) for name, box in self.fields.items()}
        if unread := self._unread():
            self.told.children = (shown(BETWEEN.join(unread)),)
            return None
        self._enable()
        if self.rapid and self.asked.numbers:
            return self._check_estimate()
        results = marked(self.asked.exercise, self.answers)
        if waiting := [r for r in results if r.status is Status.HUMAN]:
            return self._ask_own(results, waiting)
        return self._finish(results)

    def _unread(self):
        """What is to be written otherwise before anything is marked."""
        parts = [self.asked.exercise.part(name) for name in self.fields]
        found = [check(self.asked.exercise, part, self.answers[part.name]) for part in parts if part.type != "reason"]
        return [finding.said.say(self.languages) for finding in found if finding.status is Status.UNREAD]

    def _check_estimate(self):
        (name, value), seconds = next(iter(self.answers.items())), time.monotonic() - self.started
        found = estimate(self.asked, self.asked.exercise.part(name), value, seconds)
        late = [self._say("late", seconds=seconds, limit=RAPID_SECONDS)] if seconds > RAPID_SECONDS else []
        self.told.children = (shown("\n\n".join([text.say(self.languages) for text in found.texts(reveal=True)] + late)),)
        self._learn(found.share, (found,))

    def _ask_own(self, results, waiting):
        """Sliders for the lines that only the learner can mark, each at our proposal."""
        sliders = {result.line.name: self._slider(result) for result in waiting}
        button = widgets.Button(description=self._say("keep"))
        button.on_click(lambda _: self._finish(self_marked(results, {name: slider.value for name, slider in sliders.items()})))
        criteria = [shown(f"{r.line.title.say(self.languages)}: {r.line.criterion.say(self.languages)}") for r in waiting]
        self.own.children = (*(box for pair in zip(criteria, sliders.values(), strict=True) for box in pair), button)

    def _slider(self, result):
        label = f"{self._say('machine')} {result.points:.3g} / {result.line.points:g}"
        return widgets.FloatSlider(
            result.points, min=0, max=result.line.points, step=0.5, description=label, style={"description_width": "initial"}
        )

    def _finish(self, results):
        self.own.children = ()
        told = "".join(feedback.html(result, self.languages) for result in results)
        if any(result.points != result.line.points for result in results):
            told += f"<p>→ {escape(self._see().say(self.languages))}</p>"
        self.told.children = (widgets.HTML(f'<div role="status" style="white-space: normal; overflow-wrap: anywhere">{told}</div>'),)
        self._learn(share(results), findings(results))

    def _learn(self, got, found):
        self._enable("show")
        self.deck.learn(self.asked, got, found, time.monotonic() - self.started, "rapid" if self.rapid else "practice")
        wait = self.deck.due()[self.asked.exercise.id] - self.deck.clock()
        verdict = f"{self._say(VERDICTS[rating(got)])}; {self._say('again', wait=span(wait))}"
        stand = escape("\n".join(write(statistics(self.deck), self.languages)))
        self.stand.value = f'<p role="status"><b>{verdict}</b></p><pre style="overflow-x: auto">{stand}</pre>'


def _row(boxes):
    """Side by side, in as many rows as the width asks for."""
    return widgets.HBox(list(boxes), layout={"flex_flow": "row wrap"})


def _choice(deck, languages, chapter):
    """The boxes that say what to ask, by name."""
    every = lambda rows: [(say("all", languages), ALL), *rows]
    chapters = sorted({header.chapter for header in deck.bank.headers.values()})
    wide = {"width": "auto", "max_width": "100%"}
    box = lambda name, options, value=ALL: widgets.Dropdown(
        options=options, value=value, description=say(name, languages), layout=wide, style={"description_width": "initial"}
    )
    titles = every((f"{number} {feedback.title(number).say(languages)}", number) for number in chapters)
    modes = [(say(mode, languages), mode) for mode in ("practice", "rapid")]
    return {
        "mode": box("mode", modes, "practice"),
        "chapter": box("chapter", titles, ALL if chapter is None else chapter),
        "kind": box("kind", every((say(kind, languages), kind) for kind in KINDS)),
        "difficulty": box("difficulty", every((str(number), number) for number in range(1, 6))),
    }
