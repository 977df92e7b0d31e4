"""Mock papers and interviews: balanced, timed, asked on, kept."""

import random
from dataclasses import replace

import pytest

from autograder.assignment import solution
from autograder.bank import Bank
from autograder.drills import sitting as sittings
from autograder.drills.deck import Deck, Wanted
from autograder.drills.proposal import marked
from autograder.drills.store import Store
from autograder.drills.terminal import Terminal

BANK = Bank()


@pytest.fixture
def deck(tmp_path):
    return Deck(BANK, Store(tmp_path / "drills.sqlite"))


class Learner:
    """Answers every prompt by `reply`, a function of the prompt; keeps what it was told."""

    def __init__(self, deck, reply):
        self.told = []
        self.terminal = Terminal(deck, ("en",), read=reply, write=self.told.append)


def quit_after(count, text=""):
    """A reply that quits once `count` prompts were answered with `text`."""
    left = iter([text] * count)
    return lambda prompt: next(left, ":quit")


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("minutes", [15, 90])
def test_a_paper_is_as_long_as_its_time_and_balanced(deck, minutes, number):
    paper = sittings.draw_paper(deck, minutes, random.Random(number))
    names = [row["exercise"] for row in paper.body["questions"]]
    points = sum(BANK[name].points for name in names)
    target = minutes * sittings.POINTS_PER_MINUTE
    assert len(set(names)) == len(names)
    assert target <= points <= target + 10
    if minutes == 90:
        kinds, chapters = {BANK.headers[name].kind for name in names}, {BANK.headers[name].chapter for name in names}
        assert kinds == set(sittings.BALANCE) and len(chapters) >= 10


def test_a_paper_that_is_left_goes_on_with_the_same_numbers(deck):
    paper = sittings.draw_paper(deck, 15, random.Random(0))
    first = BANK[paper.body["questions"][0]["exercise"]]
    Learner(deck, quit_after(2 * len(first.parts))).terminal.paper(paper)
    again = sittings.unfinished(deck.store, "paper")
    assert again.uid == paper.uid and [row["draw"] for row in again.body["questions"]] == [row["draw"] for row in paper.body["questions"]]
    assert again.body["questions"][0]["answers"] is not None and again.body["questions"][-1]["answers"] is None


def test_the_second_window_on_a_paper_is_told_and_goes_on_from_what_the_first_kept(deck):
    paper = sittings.draw_paper(deck, 15, random.Random(0))
    deck.store.keep(paper)
    first, second = (sittings.unfinished(deck.store, "paper") for _ in range(2))
    Learner(deck, quit_after(1, "True")).terminal.paper(first)
    late = Learner(deck, quit_after(1, "False"))
    left = late.terminal.paper(second)
    assert sum("Another window has gone on" in said for said in late.told) == 1
    assert left == deck.store.sitting(paper.uid) and list(left.body["questions"][0]["begun"].values()) == ["True"]


def test_a_paper_that_another_window_has_finished_is_not_marked_twice(deck):
    paper = sittings.draw_paper(deck, 10, random.Random(1))
    deck.store.keep(paper)
    first, second = (sittings.unfinished(deck.store, "paper") for _ in range(2))
    done = Learner(deck, lambda prompt: "").terminal.paper(first)
    reviews = deck.store.reviews()
    late = Learner(deck, lambda prompt: "")
    assert late.terminal.paper(second) == done and deck.store.reviews() == reviews
    assert any("Score sheet" in said for said in late.told)


def test_a_paper_answered_in_full_is_marked_line_by_line_and_kept(deck):
    paper = sittings.draw_paper(deck, 10, random.Random(1))
    learner = Learner(deck, lambda prompt: "")
    done = learner.terminal.paper(paper)
    lines = [(row["exercise"], row["line"]) for row in done.body["sheet"]]
    assert lines == [(row["exercise"], line.name) for row in paper.body["questions"] for line in BANK[row["exercise"]].rubric]
    assert done.body["points"] == 0 and sittings.unfinished(deck.store, "paper") is None
    assert deck.store.sittings("paper")[0].body["most"] == done.body["most"]


def test_when_the_time_is_up_the_rest_counts_as_not_answered(deck):
    paper = sittings.draw_paper(deck, 15, random.Random(2))
    paper.body["questions"][0] |= {"answers": {}, "seconds": 16 * 60}
    learner = Learner(deck, lambda prompt: pytest.fail(f"asked {prompt!r} after the end"))
    done = learner.terminal.paper(paper)
    assert done.body["finished"] and done.body["points"] == 0
    assert any("time is up" in said for said in learner.told)


def test_an_interviewer_asks_on_about_what_was_left_out_and_counts_it_half(deck):
    sitting = sittings.draw_interview(deck, 6, Wanted(kinds=("short_answer",)))
    exercise = BANK[sitting.body["questions"][0]["exercise"]]
    line = next(line for line in exercise.rubric if line.marked_by == "human")
    first = next(r for r in marked(exercise, {part.name: "nothing comes to mind" for part in exercise.parts}) if r.line is line)
    assert first in sittings.missed([first])
    after = sittings.asked_on(exercise, first, {part.name: line.criterion.en for part in exercise.parts if part.type == "reason"})
    assert after.points == sittings.SECOND_TRY * line.points


def test_an_interview_ends_in_a_score_sheet(deck):
    sitting = sittings.draw_interview(deck, 12, Wanted())
    replies = iter(["I do not know", ""] * 200)
    learner = Learner(deck, lambda prompt: "0" if "proposal" in prompt else next(replies))
    done = learner.terminal.interview(sitting)
    assert done.body["finished"] and done.body["sheet"]
    assert any("And what about this" in said for said in learner.told)
    assert any("Score sheet" in said for said in learner.told)


@pytest.mark.parametrize("name", BANK)
def test_a_paper_takes_the_answers_as_they_are_written(deck, name):
    """What the solution says, typed at the prompts, earns all that has a key."""
    asked = deck.ask(name)
    right = solution(asked.exercise, "en")
    typed = [line for part in asked.exercise.parts for line in _typed(part, right[part.name])]
    paper = sittings._sitting("paper", deck, 90, [name])
    paper = replace(paper, body=paper.body | {"questions": [paper.body["questions"][0] | {"draw": asked.draw}]})
    replies = iter(typed)
    done = Learner(deck, lambda prompt: "" if "proposal" in prompt else next(replies)).terminal.paper(paper)
    keyed = {line.name: line.points for line in asked.exercise.rubric if line.marked_by == "key"}
    assert {row["line"]: row["points"] for row in done.body["sheet"] if row["line"] in keyed} == keyed


def _typed(part, value):
    lines = [line.strip() for line in str(value).splitlines() if line.strip()]
    return [*lines, ""] if part.type == "reason" else lines
