"""`psi lab`, as it is typed."""

import json

import pytest

import psi


def test_list_and_show(capsys):
    assert psi.main(["lab", "list"]) == 0
    assert "model_states" in capsys.readouterr().out
    assert psi.main(["lab", "show", "model_states", "--nproc", "4", "variants=fsdp2"]) == 0
    shown = capsys.readouterr().out
    assert "world_size = 4" in shown and "fsdp2/0–2/weights" in shown and "fsdp2/3/padding" in shown and "zero1/0/weights" not in shown


def test_run_saves_and_reports(capsys, tmp_path):
    assert psi.main(["lab", "run", "model_states", "--nproc", "2", "--json", "--save", str(tmp_path), "variants=zero1"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert ran["outcome"] == "passed" and ran["conditions"]["world_size"] == 2
    (file,) = tmp_path.iterdir()
    assert psi.main(["lab", "report", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["lines"] == ran["lines"]


def test_a_run_that_breaks_says_so(capsys):
    """Four heads cannot share a width that four does not divide: the job itself fails."""
    assert psi.main(["lab", "run", "model_states", "hidden_size=130"]) == 3
    out = capsys.readouterr().out
    assert "BROKEN" in out and "RuntimeError" in out


@pytest.mark.parametrize(
    "words, said",
    [
        (["show", "model_state"], "did you mean model_states"),
        (["run", "model_states", "--nproc", "0"], "nproc is 0"),
        (["show", "model_states", "--nproc", "-1"], "nproc is -1"),
        (["show", "model_states", "steps=0"], "steps is '0'; it must be at least 1"),
        (["run", "model_states", "--nproc", "1000", "--device", "cuda"], "needs 1000 GPUs"),
        (["run", "model_states", "vocab=3"], "did you mean vocab_size"),
        (["show", "model_states", "--nproc", "200", "variants=fsdp2"], "fsdp2 leaves rank 171 without parameters"),
        (["report", "nothing.json"], "nothing.json is no measurement"),
    ],
)
def test_requests_that_make_no_sense(capsys, words, said):
    assert psi.main(["lab", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_condition_without_a_value(capsys):
    with pytest.raises(SystemExit):
        psi.main(["lab", "run", "model_states", "vocab_size"])
    assert "unrecognized arguments: vocab_size" in capsys.readouterr().err


def test_every_lab_in_turn(capsys, monkeypatch, tmp_path):
    """A lab that runs as one process only does so, whatever was asked for."""
    monkeypatch.setattr("labs.cli.LABS", ("tensor_parallel", "paper_cluster"))
    assert psi.main(["lab", "run", "--all", "--nproc", "2", "--save", str(tmp_path)]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["lab", "processes", "seconds", "outcome"]
    assert [(row.split()[0], row.split()[1], row.split()[3]) for row in rows] == [
        ("tensor_parallel", "2", "passed"),
        ("paper_cluster", "1", "passed"),
    ]
    assert len(list(tmp_path.iterdir())) == 2


def test_one_lab_that_cannot_run_does_not_stop_the_others(capsys, monkeypatch):
    monkeypatch.setattr("labs.cli.LABS", ("tensor_parallel", "paper_cluster"))
    words = ["--json", "--device", "cuda", "--nproc", "1000", "hidden_size=1000", "num_heads=1000", "ffn_size=1000", "seq_length=1000"]
    assert psi.main(["lab", "run", "--all", *words]) == 3
    broken, passed = json.loads(capsys.readouterr().out)
    assert broken["outcome"] == "broken" and "needs 1000 GPUs" in broken["reason"]
    assert passed["lab"] == "paper_cluster" and passed["outcome"] == "passed"


@pytest.mark.parametrize("words", [[], ["model_states", "--all"]])
def test_either_one_lab_or_all(capsys, words):
    with pytest.raises(SystemExit):
        psi.main(["lab", "run", *words])
    assert "name" in capsys.readouterr().err
