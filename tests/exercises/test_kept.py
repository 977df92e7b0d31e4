"""What is kept of an exercise between runs is the exercise; what is damaged, old or not our own is worked out anew."""

import errno
import os
import pickle
import subprocess
import sys

import pytest

from autograder import kept
from autograder.bank import Bank, BankError, load

NAMES = sorted(Bank())
READ = """
import sys
from autograder.bank import Bank
bank = Bank()
for name in sys.argv[1:]:
    exercise = bank[name]
    for part in exercise.parts:
        exercise.expected(part)
print([name for name in sys.modules if name in ("formulary.zero", "formulary.pipeline", "formulary.reliability", "numpy")])
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("SIXTEEN_PSI_CACHE", str(tmp_path))
    return kept.folder()


def told(exercise):
    """All that marking asks of an exercise."""
    for part in exercise.parts:
        yield part.name, exercise.expected(part), [exercise.mistaken(part, mistake) for mistake in part.mistakes]
        yield exercise.alphabet(part) if part.type == "expression" else None
        yield part.type == "number" and exercise.carried(part, {name: exercise.amounts[name] for name in exercise.sources(part).values()})


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_exercise_tells_what_it_told(name):
    exercise = load(Bank().files[name]).worked_out()
    again = pickle.loads(pickle.dumps(exercise))
    assert again == exercise
    assert list(told(again)) == list(told(exercise))


def test_what_is_kept_is_read_without_loading_formulas_or_numpy(place):
    some = [name for name in NAMES if name.startswith("E000")]
    runs = [subprocess.run([sys.executable, "-c", READ, *some], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert "formulary.zero" in runs[0] and runs[1].strip() == "[]"


def work_out(path):
    return path.read_text() + " worked out"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text("one")
    return path


def test_only_the_same_file_is_not_worked_out_again(place, source):
    assert kept.read(source, work_out) == "one worked out"
    assert kept.read(source, lambda path: pytest.fail("it was kept")) == "one worked out"
    source.write_text("two")
    assert kept.read(source, work_out) == "two worked out"


SPOILT = {
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:-4]),
    "empty": lambda file: file.write_bytes(b""),
    "open to others": lambda file: file.chmod(0o666),
    "a link": lambda file: file.symlink_to(file.rename(file.with_name("elsewhere"))),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_damaged_file_or_one_that_others_may_write_is_not_read(place, source, spoil):
    kept.read(source, work_out)
    spoil(*place.glob("*"))
    assert kept.read(source, lambda path: "anew") == "anew"


def test_where_nothing_can_be_kept_all_works_as_well(place, source):
    place.parent.mkdir(exist_ok=True)
    place.write_text("a file in the way")
    assert kept.read(source, work_out) == "one worked out"


@pytest.mark.parametrize("cache", ["cache", "~/.cache"])
def test_a_cache_that_depends_on_where_one_stands_is_none(place, source, cache, monkeypatch):
    monkeypatch.setenv("SIXTEEN_PSI_CACHE", cache)
    monkeypatch.chdir(source.parent)
    kept.read(source, work_out)
    assert list(source.parent.iterdir()) == [source]


def test_where_the_disk_is_full_nothing_is_left(place, source, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    assert kept.read(source, work_out) == "one worked out"
    assert list(place.iterdir()) == []


def test_what_changes_while_it_is_worked_out_is_not_kept(place, source):
    assert kept.read(source, lambda path: path.write_text("two") and work_out(path)) == "two worked out"
    source.write_text("one")
    assert kept.read(source, work_out) == "one worked out"


def test_what_code_older_than_its_files_worked_out_is_not_kept(place, source, monkeypatch):
    monkeypatch.setattr(kept, "LOADED", min(path.stat().st_mtime for path in kept._sources()))
    kept.read(source, work_out)
    assert not place.exists()


def test_a_file_that_cannot_be_read_is_told_by_file(place, tmp_path):
    (tmp_path / "bank" / "01" / "E999.yaml").mkdir(parents=True)
    with pytest.raises(BankError, match="not readable"):
        Bank(tmp_path / "bank")["E999"]


def test_a_fault_of_the_file_is_raised_and_not_kept(place, source):
    with pytest.raises(ValueError, match="bad"):
        kept.read(source, lambda path: (_ for _ in ()).throw(ValueError("bad")))
    assert not list(place.glob("*"))


def test_few_states_of_the_code_are_kept(place, source):
    for number in range(8):
        (place.parent / f"exercises-{number:016}").mkdir(parents=True)
    others = [place.parent / f"exercises-{name}" for name in ("2026", "en", "zh", "1", "2", "3")]
    for other in others:
        other.mkdir()
    kept.read(source, work_out)
    assert len(list(place.parent.glob("exercises-????????????????"))) == kept.STATES + 1
    assert all(other.is_dir() for other in others)


def test_another_file_that_it_is_worked_out_from_counts_as_well(place, source):
    other = source.with_name("other.yaml")
    other.write_text("as it was")
    kept.read(source, work_out, other)
    assert kept.read(source, lambda path: pytest.fail("it was kept"), other) == "one worked out"
    other.write_text("changed")
    assert kept.read(source, lambda path: "anew", other) == "anew"
