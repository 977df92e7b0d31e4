"""`psi drill` in a real pseudo-terminal, and what its prompts make of what is typed."""

import json
import os
import re
import sys
from pathlib import Path

import pexpect
import pytest

from autograder.assignment import question, solution
from autograder.bank import Bank
from autograder.drills.cli import main
from autograder.drills.folding import columns, folded
from autograder.drills.store import Store

ROOT = Path(__file__).resolve().parents[2]
BANK = Bank()
CHAPTER = 2  # five exercises: ten cards ask some of them twice
COMMAND = [str(ROOT / "psi.py"), "drill"]


def session(*words):
    """The program in a terminal of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "dumb"}
    return pexpect.spawn(
        sys.executable, [*COMMAND, *words], env=environment, encoding="utf-8", timeout=300, echo=False, dimensions=(50, 160)
    )


def asked(terminal):
    """The id of the exercise that is asked next, or None at the end."""
    while (found := terminal.expect([r"\((E\d{3}-[A-Z]+\d+), ", r"answered, \d+%", "Enter goes on"])) == 2:
        terminal.sendline("")
    return None if found else terminal.match[1]


def drawn(exercise, shown):
    """The exercise with the numbers that the terminal shows."""
    bare = lambda text: "".join(text.split())
    draws = (exercise.variant(str(draw)) for draw in range(1000))
    return next(one for one in draws if bare(folded(question(one, ("en",)))) in bare(shown))


def reply(terminal, exercise, right):
    """Answer all its prompts, rightly or with nothing; take the proposal for what a person marks."""
    for part in exercise.parts:
        terminal.expect_exact("> ")
        if part is exercise.parts[0]:
            answers = solution(drawn(exercise, terminal.before), "en")
        lines = str(answers[part.name]).splitlines() if right else [""]
        for line in filter(str.strip, lines) if right else lines:
            terminal.sendline(line)
        if right and part.type == "reason":
            terminal.sendline("")
    while terminal.expect([r"Enter takes the proposal, \S+ > ", "comes back in"]) == 0:
        terminal.sendline("")


def test_ten_cards_in_a_real_terminal_bring_the_wrong_one_back_first(tmp_path):
    path, order = tmp_path / "drills.sqlite", []
    terminal = session("--chapter", str(CHAPTER), "--cards", "10", "--store", str(path))
    while name := asked(terminal):
        order.append(name)
        reply(terminal, BANK[name], right=order.count(name) > 1 or len(order) != 2)
    terminal.expect(pexpect.EOF)
    assert len(order) == 10
    again = [name for number, name in enumerate(order) if name in order[:number]]
    assert again[0] == order[1], "the one that was wrong"
    reviews = [review for review in Store(path).reviews() if "/" not in review.card]
    assert len(reviews) == 10
    assert reviews[1].share == 0 and min(review.share for review in (*reviews[:1], *reviews[2:])) > 0.5


def test_leaving_keeps_what_was_answered(tmp_path):
    path = tmp_path / "drills.sqlite"
    terminal = session("--chapter", str(CHAPTER), "--store", str(path))
    reply(terminal, BANK[asked(terminal)], right=False)
    terminal.expect("Enter goes on")
    terminal.sendline(":quit")
    terminal.expect("1 answered")
    terminal.expect(pexpect.EOF)
    assert len(Store(path).reviews()) == 1


def test_ctrl_c_leaves_without_a_traceback(tmp_path):
    terminal = session("--store", str(tmp_path / "drills.sqlite"))
    terminal.expect_exact("> ")
    terminal.sendintr()
    terminal.expect("psi: stopped")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path):
    """`typed(words, *lines)`: what the command prints when these lines are typed; an unexpected prompt ends the input."""

    def typed(words, *lines):
        left = iter(lines)

        def read(prompt):
            for line in left:
                return line
            raise EOFError

        monkeypatch.setattr("builtins.input", read)
        status = main(["drill", *words, "--store", str(tmp_path / "drills.sqlite")])
        return status, capsys.readouterr()

    return typed


def test_hint_show_and_skip(typed):
    _, said = typed(["--chapter", "2"], ":hint", ":skip", ":show", ":nonsense")
    assert "Right answers" in said.out and "Solution" in said.out
    assert "there is :hint :show :skip :quit" in said.out
    assert "1 answered, 0%" in said.out


def test_an_end_of_input_is_a_quit(typed):
    assert typed(["--chapter", "7"])[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--chapter", "99"], "there is no exercise of chapter 99; `psi bank list`"),
        (["rapid", "--chapter", "15", "--difficulty", "5"], "no exercise of chapter 15, kind calculation, difficulty 5"),
        (["interview", "--chapter", "98", "99"], "no exercise of chapter 98 or 99, kind short_answer or design or derivation"),
        (["import", "nothing.json"], "No such file"),
        (["anki", "/nowhere/x.apkg"], "/nowhere/x.apkg: No such file or directory; name another"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(typed, words, says):
    status, said = typed(words)
    assert status == 2 and said.err.startswith("psi drill: ") and says in said.err and said.out == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["practise"], "invalid choice: 'practise' (choose from 'practice'"),
        (["stats", "--picture", "progress.xyz"], "ends in .png or .svg is wanted, not 'progress.xyz'"),
        (["paper", "--minutes", "0"], "a whole number above 0 is wanted"),
        (["--lang", "de"], "choose from 'en', 'zh', 'both'"),
    ],
)
def test_what_is_no_command_names_what_there_is(capsys, words, says):
    with pytest.raises(SystemExit) as caught:
        main(["drill", *words])
    assert caught.value.code == 2 and says in capsys.readouterr().err


def test_what_cannot_be_read_is_asked_for_again_and_costs_nothing(typed, tmp_path):
    _, said = typed(["--chapter", "7", "--kind", "single_choice", "--cards", "1"], "1", "\x1b[Z")
    assert said.out.count("is not among the options") == 2 and "\x1b" not in said.out
    assert Store(tmp_path / "drills.sqlite").reviews() == []


def test_hints_run_out_with_a_word(typed):
    _, said = typed(["--chapter", "7", "--kind", "calculation"], *[":hint"] * 4)
    assert "no more hints; :show" in said.out


def test_the_solution_is_offered_after_a_wrong_answer_with_what_each_step_comes_to(typed):
    _, said = typed(["rapid", "--chapter", "7", "--cards", "1"], "1 GB", ":show")
    assert said.out.index("Enter goes on") < said.out.index("Where the formulas come from") < said.out.rindex("read chapter 7")
    assert re.search(r"(?m)^- .+: \d+\*num_params", said.out)


def test_what_is_passed_over_does_not_come_back_before_the_rest(typed):
    _, said = typed(["--chapter", "2", "--cards", "5"], *[":skip"] * 5)
    assert len(set(re.findall(r"\((E\d{3}-[A-Z]+\d+), ", said.out))) == 5


def test_commands_work_in_the_middle_of_a_text(typed):
    _, said = typed(["--chapter", "7", "--kind", "short_answer"], "it gathers", ":quit")
    assert "nothing answered" in said.out


def test_lines_are_as_wide_as_the_terminal_in_both_languages(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _, said = typed(["--chapter", "7", "--lang", "both", "--cards", "3"], ":show", ":show", ":show")
    assert [line for line in said.out.splitlines() if columns(line) > 60 and " " in line.strip("- ")] == []
    assert "**" not in said.out


def test_a_paper_that_is_left_keeps_each_answer_and_the_time(typed, tmp_path):
    typed(["paper", "--minutes", "15"], "True")
    (sitting,) = Store(tmp_path / "drills.sqlite").sittings("paper")
    first = sitting.body["questions"][0]
    assert first["seconds"] > 0 and first["answers"] is None
    assert first["begun"] and list(first["begun"].values()) == ["True"]
    _, said = typed(["paper"], "")
    assert "going on where you stopped" in said.out and "True or False" not in said.out.partition("question 2")[0]


def test_estimates_tell_the_right_value(typed):
    _, said = typed(["rapid", "--chapter", "7", "--cards", "1"], "1 GB")
    assert "expected:" in said.out and "comes back in" in said.out


def test_progress_goes_to_json_and_back(typed, tmp_path):
    typed(["--chapter", "2", "--cards", "1"], ":show")
    file = tmp_path / "progress.json"
    assert typed(["export", str(file)])[0] == 0
    assert len(json.loads(file.read_text())["reviews"]) == 1
    assert "0 new answers" in typed(["import", str(file)])[1].out
    _, said = typed(["stats", "--json"])
    assert json.loads(said.out)["answers"] == 1
    (tmp_path / "broken.json").write_text("{")
    assert "is not JSON" in typed(["import", str(tmp_path / "broken.json")])[1].err
