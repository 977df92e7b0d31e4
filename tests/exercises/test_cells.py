"""Answer cells: literals are read without running anything; code runs apart, with limits, and hands back plain data."""

import os
import textwrap

import pytest

from autograder import bank, kept, limits, sandbox
from autograder.answer import Unread
from autograder.cells import read_cell
from autograder.jail import JailFault

NAMES = ["verdict", "reason", "total"]

LITERAL = [
    ("verdict = True\nreason = 'because'\ntotal = '112 GB'", {"verdict": True, "reason": "because", "total": "112 GB"}),
    ("# note\n'docs'\npass\nverdict = None\nreason = \"\"", {"verdict": None, "reason": ""}),
    ("total = 16 * 7e9", {"total": 112e9}),
    ("n = 7e9\ntotal = 16 * n", {"total": 112e9}),
    ("total = 112e9 / 2**30", {"total": 112e9 / 2**30}),
    ("total: float = -3.5", {"total": -3.5}),
    ("total = ['A', 'C']", {"total": ["A", "C"]}),
    ("reason = ('two '\n          'pieces')", {"reason": "two pieces"}),
    ('reason = """one\ntwo"""', {"reason": "one\ntwo"}),
    ("verdict = total = True", {"verdict": True, "total": True}),
    ("", {}),
]


@pytest.mark.parametrize(("source", "answers"), LITERAL)
def test_literal_cells_are_read(source, answers):
    assert read_cell(source, NAMES) == answers


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "total = f()",
        "total = float('1')",
        "total = [x for x in 'ab']",
        "total += 1",
        "def f(): pass",
        "total = __import__('os')",
        "verdict = not False",
        "total = 9**9**9",
        "total = 'a' * 10**9",
        "total = " + "1+" * 500 + "1",
        "a, b = 1, 2",
        "x.total = 3",
        "if True:\n    total = 1",
        "reason = f'{total}'",
    ],
)
def test_other_cells_have_to_be_run(source):
    assert read_cell(source, NAMES) is None


SALVAGE = [
    ("verdict = True\nreason = “因为要保留主权重”\ntotal = '112 GB'", "reason", "因为要保留主权重"),
    ("verdict = True\nreason = “因为要保留主权重”\ntotal = '112 GB'", "total", "112 GB"),
    ("verdict ＝ True\nreason = 'x'", "verdict", True),
    ("reason = 'it's kept'\nverdict = True", "verdict", True),
    ("total = 112 GB\nverdict = True", "verdict", True),
    ("reason = 「理由」", "reason", "理由"),
    ("reason = 'it's kept'", "reason", "it's kept"),
]


@pytest.mark.parametrize(("source", "name", "value"), SALVAGE)
def test_answers_that_can_be_told_apart_are_saved_from_a_broken_cell(source, name, value):
    assert read_cell(source, NAMES)[name] == value


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("total = 112 GB\nverdict = True", "total"),
        ("reason = 'it's kept", "reason"),
        ("total: 112 GB", "total"),
        ("total = (1\nverdict = True", "total"),
    ],
)
def test_the_rest_of_a_broken_cell_is_kept_for_a_person(source, name):
    lost = read_cell(source, NAMES)[name]
    assert isinstance(lost, Unread) and lost.raw and "Python" in lost.why.en


TYPES = {"law": "expression", "total": "number", "why": "reason"}
UNQUOTED = [
    ("law = (P-1)/(M+P-1)", "law", "(P-1)/(M+P-1)"),
    ("law = 2*S*(k-1)/k  # both passes", "law", "2*S*(k-1)/k"),
    ("law = sqrt(L)\ntotal = 112e9", "law", "sqrt(L)"),
    ("law = 2S(k-1)/k\nwhy = 'so'", "law", "2S(k-1)/k"),
    ("law = 16Ψ/k\ntotal = 112 GB", "law", "16Ψ/k"),
    ("law = 16Ψ/k\ntotal = 24.5GB/卡  # 约", "total", "24.5GB/卡"),
    ("law = \\frac{P-1}{M}\ntotal = 3", "law", "\\frac{P-1}{M}"),
    ("law = 7/71", "law", 7 / 71),
    ("text = '2*S'\nlaw = text", "law", "2*S"),
]


@pytest.mark.parametrize(("source", "name", "value"), UNQUOTED)
def test_formulas_and_amounts_are_read_without_their_quotes(source, name, value):
    assert read_cell(source, TYPES)[name] == value


@pytest.mark.parametrize("source", ["law = [P]", "law = (lambda P: P)(M)", "law = P.real", "law = P if M else 1", "total = a + b"])
def test_what_is_more_than_a_formula_is_code(source):
    assert read_cell(source, TYPES) is None


@pytest.mark.parametrize(
    "source", ["verdict = (" * 20_000, "\x00", "x" * 1_000_000, "(" * 300 + ")" * 300, "-" * 100_000 + "1", "verdict = True\n\ud800"]
)
def test_hostile_cells_end_in_a_verdict(source):
    found = read_cell(source, NAMES)
    assert found is None or all(isinstance(value, Unread | bool) for value in found.values())


def run(*sources, names=("total",)):
    return sandbox.answers([(textwrap.dedent(source), list(names)) for source in sources])


def test_literal_notebooks_start_no_process(monkeypatch):
    monkeypatch.setattr(sandbox, "_run", lambda cells: pytest.fail("a process was started"))
    assert run("total = 1", "total = 2") == [{"total": 1}, {"total": 2}]


def test_code_answers_are_run_in_order_with_the_cells_around_them():
    cells = [
        ("import math\nn = 7", None),
        ("total = math.prod([n, 16])", ["total"]),
        ("total = 'literal'", ["total"]),
        ("total = n + 1", ["total"]),
    ]
    assert sandbox.answers(cells) == [{"total": 112}, {"total": "literal"}, {"total": 8}]


def test_a_cell_cannot_answer_for_the_next_exercise():
    assert run("total = sum([1])", "x = sum([2])")[1]["total"] is None


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("total = 1 / len([])", "ZeroDivisionError"),
        ("total = object()", "object"),
        ("import sys\nsys.exit()\ntotal = 1\nprint(total)", "SystemExit"),
        ("undefined\ntotal = None", "NameError"),
        ("undefined\ntotal = 1\ntotal = 2", "NameError"),
        ("import os\nos._exit(0)", "stopped"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "stopped"),
        ("total = bytearray(8 * 2**30)", "MemoryError"),
        ("total = [[1]]", "list"),
    ],
)
def test_code_that_fails_leaves_a_reason(source, why):
    lost = run(source)[0]["total"]
    assert isinstance(lost, Unread) and why in lost.why.en, lost


def test_endless_code_is_stopped_and_earlier_answers_stay(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 5)
    first, second = run("total = sum([1])", "while True: pass")
    assert first == {"total": 1}
    assert isinstance(second["total"], Unread)


def test_code_sees_no_environment_and_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.chdir(tmp_path)
    found = run("import os\ntotal = str(dict(os.environ)) + os.getcwd()\nopen('left.txt', 'w').write('x')")[0]["total"]
    assert "s3cret" not in found and os.getcwd() not in found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("forged", ["{'total': 1}", "[1]", "'text'", "type('D', (dict,), {})(total=1)"])
def test_a_name_of_ours_that_is_taken_gains_nothing(forged):
    """A learner may set our own name, or stop us from setting it: the answer is lost, and nothing else happens."""
    source = f"import builtins\n__answers_0__ = {forged}\nbuiltins.globals = lambda: {{}}\nx = sum([1])"
    assert run(source)[0]["total"] is None or isinstance(run(source)[0]["total"], Unread)


def test_the_bank_and_the_grader_cannot_be_read():
    found = run(f"total = open({str(bank.ROOT / 'bank' / '01' / 'E000-SA01.yaml')!r}).read()")[0]["total"]
    assert isinstance(found, Unread) and ("PermissionError" in found.why.en or "FileNotFoundError" in found.why.en)


def test_exercises_that_are_kept_cannot_be_read():
    kept.folder().mkdir(parents=True, exist_ok=True)
    found = run(f"import os\ntotal = len(os.listdir({str(kept.folder())!r}))")[0]["total"]
    assert isinstance(found, Unread) and ("PermissionError" in found.why.en or "FileNotFoundError" in found.why.en)


@pytest.mark.parametrize("said", ["'\\ud83d!'", "['\\ud83d!']"])
def test_half_a_letter_is_not_taken_along(said):
    assert read_cell(f"x = {said}", ["x"])["x"] in ("?!", ["?!"])


@pytest.mark.parametrize("said", ["[b'a']", "[...]", "[1j]"])
def test_a_list_of_what_is_no_answer_is_not_read(said):
    assert read_cell(f"x = {said}", ["x"]) is None


def test_a_run_that_another_takes_down_is_run_again(monkeypatch):
    faults, works = [JailFault("somebody killed it")], sandbox.run_jailed

    def fails_once(*arguments, **more):
        if faults:
            raise faults.pop()
        return works(*arguments, **more)

    monkeypatch.setattr(sandbox, "run_jailed", fails_once)
    assert run("total = sum([1])") == [{"total": 1}]


def test_a_fault_of_ours_waits_for_a_person(monkeypatch):
    def broken(*_, **__):
        raise JailFault("no process could be started")

    monkeypatch.setattr(sandbox, "run_jailed", broken)
    found = run("total = sum([1])", "total = 2")
    assert "our fault" in found[0]["total"].why.en
    assert found[1] == {"total": 2}


def test_where_code_cannot_be_locked_in_it_is_not_run(monkeypatch):
    monkeypatch.setattr(sandbox, "floor", lambda: False)
    found = run("total = sum([1])", "total = 2")
    assert isinstance(found[0]["total"], Unread) and "not run" in found[0]["total"].why.en
    assert found[1] == {"total": 2}


def test_who_leaves_out_the_quotes_is_told():
    ((answer,),) = (found.values() for found in run("choice = C", names=["choice"]))
    assert "NameError" in answer.why.en and "in quotes" in answer.why.en


ASKED = {"missing": "choice", "right": "verdict", "law": "expression", "size": "number"}
UNQUOTED = [
    ("missing = C", {"missing": ["C"]}),
    ("missing = A, c", {"missing": ["A", "c"]}),
    ("missing = [B, D]", {"missing": ["B", "D"]}),
    ("right = true", {"right": "true"}),
    ("right = 对\nmissing = B", {"right": "对", "missing": ["B"]}),
]


@pytest.mark.parametrize(("source", "answers"), UNQUOTED)
def test_letters_and_words_are_read_without_their_quotes(source, answers):
    assert read_cell(source, ASKED) == answers


@pytest.mark.parametrize("source", ["missing = Z", "missing = C + 1", "right = maybe", "size = C", "missing = f(C)"])
def test_what_is_not_clear_without_quotes_has_to_be_run(source):
    assert read_cell(source, ASKED) is None


def test_a_letter_that_stands_for_something_is_that():
    assert read_cell("C = 'A'\nmissing = C", ASKED) == {"missing": "A"}


def test_a_failure_costs_only_what_it_is_about():
    cells = ["missing = Z\nsize = '40 GB'\nlaw = 2*P", "law = 2Ψ(k-1)/k", "size = 1 / len([])\nright = true", "right = len('a') == 1"]
    first, second, third, fourth = sandbox.answers([(source, ASKED) for source in cells])
    assert all("'Z'" in first.pop(name).why.en for name in ("missing", "right")) and first == {"size": "40 GB", "law": "2*P"}
    assert second["law"] == "2Ψ(k-1)/k"
    assert "ZeroDivision" in third["size"].why.en and third["right"] == "true"
    assert fourth["right"] is True
