"""What is asked next, with which numbers, and what an answer does."""

import pytest

from autograder.assignment import solution
from autograder.bank import Bank
from autograder.drills import sitting
from autograder.drills.deck import RAPID_SECONDS, Deck, Wanted, estimate, findings, self_marked, share
from autograder.drills.progress import misconceptions, picture, statistics, write
from autograder.drills.proposal import marked, propose
from autograder.drills.store import Review, Store
from autograder.rubric import Status, check
from formulary import InputError

BANK = Bank()
ONE = "E002-Q07"  # a calculation with ranges and misconceptions


@pytest.fixture
def deck(tmp_path):
    deck = Deck(BANK, Store(tmp_path / "drills.sqlite"), clock=lambda: deck.now)
    deck.now = 1e9
    return deck


def answer(deck, asked, answers):
    results = marked(asked.exercise, answers)
    deck.learn(asked, share(results), findings(results))
    return results


def test_headers_say_what_the_exercises_say():
    assert set(BANK.headers) == set(BANK)
    for name, header in BANK.headers.items():
        assert (header.kind, header.chapter, header.difficulty) == (BANK[name].kind, BANK[name].chapter, BANK[name].difficulty)


@pytest.mark.parametrize("name", BANK)
def test_every_exercise_can_be_drilled(deck, name):
    asked = deck.ask(name)
    results = answer(deck, asked, solution(asked.exercise, "en"))
    keyed = [result for result in results if result.line.marked_by == "key"]
    assert all(result.points == result.line.points for result in keyed)
    assert all(result.points is not None for result in results), "a line without even a proposal"
    assert share(results) >= 0.5
    blank = marked(asked.exercise, {})
    assert share(blank) == 0


def test_a_draw_can_be_drawn_again(deck):
    first = deck.ask(ONE)
    assert deck.ask(ONE, first.draw).exercise.given == first.exercise.given
    assert len({str(deck.ask(ONE).exercise.given) for _ in range(12)}) > 1


def test_new_ones_come_before_those_that_are_not_due_and_what_was_wrong_before_what_was_right(deck):
    wanted, names = Wanted(chapters=(2,)), []
    for number in range(5):
        name = deck.next(wanted)
        names.append(name)
        asked = deck.ask(name)
        answer(deck, asked, {} if number == 1 else solution(asked.exercise, "en"))
    assert len(set(names)) == 5
    assert deck.next(wanted) == names[1]
    assert deck.next(wanted, but=(names[1],)) != names[1]
    deck.now += 120
    assert deck.next(wanted) == names[1]


def test_wanted_is_what_is_asked_for(deck):
    name = deck.next(Wanted(chapters=(7,), kinds=("multi_choice",)))
    assert BANK.headers[name].chapter == 7 and BANK.headers[name].kind == "multi_choice"
    with pytest.raises(InputError, match="no exercise of chapter 99"):
        deck.next(Wanted(chapters=(99,)))


def test_a_misconception_is_a_card_of_its_own_until_it_is_overcome(deck):
    asked = deck.ask(ONE)
    answer(deck, asked, solution(asked.exercise, "en") | {"shrunk": "A"})
    card = f"{ONE}/shrunk/weights"
    shown = deck.store.due()[card]
    assert misconceptions(deck) == [(card, 1)]
    answer(deck, asked, solution(asked.exercise, "en"))
    assert deck.store.due()[card] > shown


def test_an_estimate_may_be_a_tenth_off_and_has_its_time(deck):
    asked = deck.ask(ONE)
    part = asked.numbers[0]
    right = asked.exercise.expected(part).value
    assert estimate(asked, part, f"{right * 1.08} B", 10).share == 1
    assert estimate(asked, part, f"{right * 1.2} B", 10).share == 0
    assert estimate(asked, part, f"{right} B", RAPID_SECONDS + 1).share == 0.5
    assert check(asked.exercise, part, f"{right * 1.08} B").share == 0


def test_own_marks_stay_within_the_line():
    exercise = next(BANK[name] for name in BANK if any(line.marked_by == "human" for line in BANK[name].rubric))
    results = marked(exercise, solution(exercise, "en"))
    line = next(result.line for result in results if result.status is Status.HUMAN)
    assert next(r.points for r in self_marked(results, {line.name: 99}) if r.line is line) == line.points
    assert next(r.points for r in self_marked(results, {line.name: -1}) if r.line is line) == 0


def test_a_proposal_follows_what_the_answer_mentions():
    line = next(line for name in BANK for line in BANK[name].rubric if line.marked_by == "human")
    assert propose(line, line.criterion.en) == line.points == propose(line, line.criterion.zh)
    assert propose(line, "no idea") == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_proposals_are_high_for_model_answers_and_low_for_answers_to_something_else(language):
    asked = [BANK[name] for name in BANK if any(line.marked_by == "human" for line in BANK[name].rubric)]
    texts = ["\n".join(str(solution(one, language)[part.name]) for part in one.parts if part.type == "reason") for one in asked]
    worth = lambda shift: [
        propose(line, texts[(index + shift) % len(texts)]) / line.points
        for index, one in enumerate(asked)
        for line in one.rubric
        if line.marked_by == "human"
    ]
    mean = lambda values: sum(values) / len(values)
    assert mean(worth(0)) > 0.75 and mean(worth(7)) < 0.15


def test_statistics_count_answers_and_draw_a_picture(deck, tmp_path):
    asked = deck.ask(ONE)
    answer(deck, asked, solution(asked.exercise, "en"))
    said = statistics(deck)
    row = next(row for row in said["chapters"] if row["chapter"] == asked.exercise.chapter)
    assert (row["asked"], row["known"], row["answers"], row["share"], row["due"]) == (1, 1, 1, 1.0, 0)
    assert sum(row["exercises"] for row in said["chapters"]) == len(BANK)
    assert any("1 / " in line for line in write(said))
    assert all("{" not in line for language in ("en", "zh") for line in write(said, (language,)))
    picture(said).savefig(tmp_path / "progress.png")
    assert (tmp_path / "progress.png").read_bytes().startswith(b"\x89PNG")


def test_statistics_name_a_misconception_by_its_hint_and_pass_over_what_is_gone(deck):
    asked = deck.ask(ONE)
    answer(deck, asked, solution(asked.exercise, "en") | {"shrunk": "A"})
    deck.store.record(Review("E999-Q01", 1.0, 1, 0.0), Review("E999-Q01/part/mistake", 1.0, 1, 0.0))
    (met,) = [line for line in write(statistics(deck), ("zh",)) if "误解" in line]
    hint = next(mistake.hint for mistake in asked.exercise.part("shrunk").mistakes if mistake.name == "weights")
    assert hint.zh in met


def test_a_paper_goes_on_without_exercises_that_are_gone_or_changed(deck):
    names = list(BANK)[:3]
    paper = sitting._sitting("paper", deck, 15, [*names, "E002-Q07"])
    paper.body["questions"][0]["exercise"] = "E999-Q01"
    paper.body["questions"][3]["given"] = "{'num_params': '1B'}"
    left, gone = sitting.still_asked(deck, paper)
    assert gone == ["E999-Q01", "E002-Q07"]
    assert [row["exercise"] for row in left.body["questions"]] == names[1:]
