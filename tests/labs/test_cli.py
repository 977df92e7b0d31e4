"""`psi lab`, as it is typed."""

import json

import pytest

import psi


def test_list_and_show(capsys):
    assert psi.main(["lab", "list"]) == 0
    assert "model_states" in capsys.readouterr().out
    assert psi.main(["lab", "show", "model_states", "--nproc", "4", "variants=fsdp2"]) == 0
    shown = capsys.readouterr().out
    assert "world_size = 4" in shown and "fsdp2/3/padding" in shown and "zero1/0/weights" not in shown


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
