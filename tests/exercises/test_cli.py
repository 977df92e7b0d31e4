"""`psi bank` and `psi course` as they are typed: what they print, as JSON too, and how they refuse."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psi
from autograder.bank import Bank
from tests.nbgrader.course import COURSE, PS

BANK = Bank()


@pytest.fixture
def said(capsys):
    """A function that runs a command and returns (exit status, standard output, standard error)."""

    def run(*command):
        status = psi.main(list(command))
        return (status, *capsys.readouterr())

    return run


def test_bank_lint(said, tmp_path):
    """Of a small bank; that the whole one is clean is tested with the law itself."""
    for name in ("E000-TF08", "E002-Q35"):
        (tmp_path / "02").mkdir(exist_ok=True)
        shutil.copy(BANK.files[name], tmp_path / "02")
    status, out, _ = said("bank", "lint", "--bank", str(tmp_path))
    assert status == 0 and out == "2 exercises, 0 faults\n"


def test_bank_lint_fails_loudly(said, tmp_path):
    (tmp_path / "01").mkdir()
    (tmp_path / "01" / "E000-TF99.yaml").write_text("id: E000-TF99\nkind: riddle\n")
    status, out, _ = said("bank", "lint", "--bank", str(tmp_path), "--json")
    assert status == 1
    assert any("E000-TF99.yaml:2: kind" in fault for fault in json.loads(out)["faults"])


@pytest.mark.parametrize("verb", [("lint",), ("list",), ("show", "E002-Q07")])
def test_a_folder_without_exercises_is_no_bank(capsys, tmp_path, verb):
    with pytest.raises(SystemExit):
        psi.main(["bank", *verb, "--bank", str(tmp_path)])
    assert f"there are no exercises in '{tmp_path}'" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error():
    """As in `psi bank list | head -1`, whether Python holds the text back until it ends or not."""
    command = [sys.executable, "-m", "psi", "--help"]
    with subprocess.Popen(command, cwd=COURSE.parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        running.stdout.close()
        assert running.stderr.read() == ""


def test_bank_list(said):
    rows = json.loads(said("bank", "list", "--json")[1])
    assert {row["id"]: row["points"] for row in rows} == {name: BANK[name].points for name in BANK}
    told = said("bank", "list")[1]
    assert all(name in told for name in BANK)


@pytest.mark.parametrize("name", BANK)
def test_bank_show_tells_the_question_and_not_the_answer(said, name):
    shown = said("bank", "show", name)[1]
    assert BANK[name].question.en.strip() in shown and BANK[name].question.zh.strip() in shown
    assert BANK[name].solution.en not in shown
    chinese = json.loads(said("bank", "show", name, "--lang", "zh", "--json")[1])
    assert chinese["question"].startswith(BANK[name].question.zh)


def test_unknown_names_are_refused_with_their_neighbours(said):
    status, _, error = said("bank", "show", "E000-LQ003")
    assert status == 2 and "did you mean E000-LQ03" in error
    status, _, error = said("course", "build", "ps01_memroy", "--source-only")
    assert status == 2 and f"did you mean {PS}" in error


def test_course_list(said):
    row = next(row for row in json.loads(said("course", "list", "--json")[1]) if row["assignment"] == PS)
    assert row["points"] == sum(BANK[name].points for name in row["exercises"])


def test_course_build_in_one_language(said, tmp_path):
    (tmp_path / "assignments").symlink_to(COURSE / "assignments")
    status, out, _ = said("course", "build", PS, "--course", str(tmp_path), "--source-only", "--lang", "zh", "--json")
    built = json.loads(out)[0]
    assert status == 0 and built["release"] is None
    assert "True or false?" not in Path(built["source"]).read_text(encoding="utf-8")


def test_a_sample_class_needs_the_release(said, tmp_path):
    (tmp_path / "assignments").symlink_to(COURSE / "assignments")
    status, _, error = said("course", "sample", "--course", str(tmp_path))
    assert status == 2 and "psi course build" in error
