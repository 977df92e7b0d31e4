"""The bank obeys its law, and the law's keeper sees planted faults, each with file, line and field."""

import shutil

import pytest

from autograder.bank import Bank, BankError, load
from autograder.exercise import NumberPart, texts
from autograder.lint import lint
from formulary import InputError

BANK = Bank()


@pytest.fixture
def planted(tmp_path):
    """A function that puts a changed copy of an exercise into a bank of its own, and returns that bank and its file."""

    def plant(name, old, new):
        path = tmp_path / "bank" / BANK.files[name].parent.name / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        text = BANK.files[name].read_text(encoding="utf-8")
        assert text.count(old) >= 1, old
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return Bank(tmp_path / "bank"), path

    return plant


def line_of(path, words):
    return next(number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if words in line)


def test_the_bank_obeys_its_law():
    assert len(BANK) > 0
    assert lint(BANK) == []


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("E000-TF01", {"verdict": 1, "reason": 2}),
        ("E000-SA01", {"ledger": 2, "small_moments": 1, "why": 1}),
        ("E000-LQ03", {"states": 3, "batch": 2, "parallelism": 2, "configuration": 2, "acceptance": 1}),
    ],
)
def test_points_are_the_papers(name, points):
    assert {line.name: line.points for line in BANK[name].rubric} == points


@pytest.mark.parametrize("name", BANK)
def test_every_text_is_in_both_languages(name):
    chinese = [text.zh for _, text in texts(BANK[name].question) if any("一" <= c <= "鿿" for c in text.zh)]
    assert chinese and all(text.en and text.zh for _, text in texts(BANK[name]))


@pytest.mark.parametrize("name", BANK)
def test_answers_come_from_formulas(name):
    """A number's answer is made of named amounts, and has no typed figure beyond a small factor."""
    for part in BANK[name].parts:
        if isinstance(part, NumberPart):
            assert any(known in part.answer for known in BANK[name].amounts), part.name


# (exercise, what is replaced, by what, words in the line that the error must name, field, part of the message)
FAULTS = [
    ("E000-TF01", "difficulty: 2", "difficulty: 9", "difficulty", "difficulty", "less than or equal to 5"),
    ("E000-TF01", "difficulty: 2", "difficulty: 2\ncolour: red", "colour", "colour", "not permitted"),
    ("E000-TF01", "difficulty: 2", "difficulty: 2\nkind: design", "kind: design", "kind", "twice"),
    ("E000-TF01", "    answer: true\n", "    answer: maybe\n", "answer: maybe", "parts.0.answer", "boolean"),
    ("E000-TF01", "  zh: 两本账", "  de: 两本账", "title:", "title.zh", "required"),
    ("E000-TF01", "parts: [reason]", "parts: [raeson]", "parts: [raeson]", "rubric.1.parts", "raeson"),
    ("E000-TF01", "formula: state_bytes", "formula: state_byte", "values:", "values", "did you mean state_bytes"),
    ("E000-TF01", "num_params: 7B", "num_params: 7 s", "values:", "values", "second"),
    ("E000-TF01", "marked_by: claims", "marked_by: key # planted", "planted", "rubric.1.marked_by", "free text"),
    ("E000-TF01", "{num_params:B}", "{num_param:B}", "  en: |", "question.en", "num_param"),
    ("E000-SA01", "answer: adam - copy", "answer: adam - num_params", "answer: adam - num_params", "parts.5.mistakes.0.answer", "byte"),
    ("E000-SA01", "answer: (adam - adam_8bit) / adam\n", "answer: __import__('os')\n", "__import__", "parts.7.answer", "not a number"),
    ("E004-Q02", "answer: [C]", "answer: [C, E]", "answer: [C, E]", "parts.0.answer", "among A, B, C, D"),
    ("E004-Q02", "answer: [C]", "answer: [B, C]", "answer: [B, C]", "parts.0.answer", "one right key"),
]


@pytest.mark.parametrize(("name", "old", "new", "where", "field", "message"), FAULTS, ids=[f"{f[0]} {f[4]} {f[5]}" for f in FAULTS])
def test_a_fault_is_named_by_file_line_and_field(planted, name, old, new, where, field, message):
    _, path = planted(name, old, new)
    with pytest.raises(BankError) as caught:
        load(path)
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{path}:"), first
    assert f" {field}" in first and message in str(caught.value), first
    assert str(caught.value).split(":")[1] == str(line_of(path, where)), first


# what the types allow but the two sides do not
BREACHES = [
    ("a misconception that another one hides", "E000-SA01", "answer: w / 2", "answer: w_fp32", "not counted_parameters"),
    ("a misconception that is right", "E000-SA01", "answer: w_fp32", "answer: w", "not fp32_weights"),
    (
        "a model answer that earns nothing",
        "E000-SA01",
        "the two moments shrink, while the weights, the gradients and",
        "things shrink, while",
        "the solution (en)",
    ),
    ("a typed figure", "E002-Q07", "answer: before\n", "answer: before * 84000 / 84000\n", "without typed figures"),
    ("a number from nowhere", "E000-LQ03", "answer: steps\n", "answer: 16 / 2\n", "worked out from the amounts"),
    (
        "a question that tells its key",
        "E002-Q07",
        "There are {world_size} cards",
        "With {before}, there are {world_size} cards",
        "tells the key 84 GB",
    ),
    ("a wrong key", "E004-Q02", "answer: [C]", "answer: [D]", "not both_gradients"),
    ("a file in the wrong folder", "E004-Q02", "chapter: 1\n", "chapter: 2\n", "belongs into the folder 02"),
    (
        "a hint that tells an amount",
        "E002-Q08",
        "its own shard.",
        "its own shard of {shard}.",
        "the hint tells shard, which the question does not",
    ),
    (
        "a hint that tells an expression",
        "E000-LQ02",
        "only one block is sent",
        "only one block, S/k, is sent",
        "the hint tells message: S/k",
    ),
    ("no section", "E004-Q02", "section: 'One word, many ledgers'\n", "", "no heading '' in chapter 1"),
    ("a section that the chapter lacks", "E004-Q02", "section: 'One word,", "section: 'Two words,", "no heading 'Two words, many ledgers'"),
    ("a reason without a rubric", "E000-TF01", "  - name: reason\n    points", "  - name: why\n    points", "E000-TF01 has no line 'why'"),
    ("an id that is not the file's", "E004-Q02", "id: E004-Q02", "id: E004-Q03", "E004-Q03 is in a file called"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), [b[1:] for b in BREACHES], ids=[b[0] for b in BREACHES])
def test_lint_sees_breaches(planted, name, old, new, message):
    bank, path = planted(name, old, new)
    found = lint(bank)
    assert any(message in fault and fault.startswith(str(path)) for fault in found), found


def test_lint_counts_the_kinds(planted):
    bank, _ = planted("E004-Q02", "difficulty: 1", "difficulty: 2")
    counts = bank.root / "counts.yaml"
    counts.write_text("exercises: {single_choice: 1}\nextras: {}\n")
    assert lint(bank) == []
    counts.write_text("exercises: {single_choice: 2, design: 1}\nextras: {}\n")
    assert lint(bank) == [
        f"{counts}:1: exercises.design: 0 in the bank, 1 wanted",
        f"{counts}:1: exercises.single_choice: 1 in the bank, 2 wanted",
    ]


def test_lint_sees_stray_files_and_too_few_misconceptions(planted):
    bank, path = planted(
        "E000-SA01", "      - name: counted_parameters\n        answer: w / 2\n", "      - name: fp32_weights\n        answer: w_fp32\n"
    )
    (path.parent / "notes.txt").write_text("later")
    shutil.copy(path, bank.root / "E000-SA01.yaml")
    found = "\n".join(lint(bank))
    assert "notes.txt:1: exercise: a stray file" in found and f"{bank.root / 'E000-SA01.yaml'}:1: exercise: a stray file" in found


def test_an_unknown_exercise_names_its_neighbours():
    with pytest.raises(InputError, match="did you mean E000-LQ03"):
        BANK["E000-LQ003"]
