"""`psi formula` as it is typed."""

import json

import pytest

import psi

ZERO = ["formula", "eval", "zero_state_bytes"]


@pytest.mark.parametrize(
    ("num_params", "ranks", "stage", "amount"),
    [("7B", 8, 1, "38.5 GB"), ("7B", 8, 2, "26.25 GB"), ("7e9", 8, 3, "14 GB"), ("7.5B", 64, 1, "31.4062 GB"), ("7.5B", 64, 3, "1.875 GB")],
)
def test_eval(capsys, num_params, ranks, stage, amount):
    assert psi.main([*ZERO, f"num_params={num_params}", f"world_size={ranks}", f"stage={stage}"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"zero_state_bytes = {amount} = ")
    assert "GiB" in said.splitlines()[0]
    assert "Rajbhandari" in said
    assert "mixed_adam_fp32_grads" in said


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([*ZERO, "num_params=7B", "world_size=8", "stage=4"], "must be one of 0, 1, 2, 3"),
        ([*ZERO, "num_params=7B", "world_size=0", "stage=1"], "at least 1"),
        ([*ZERO, "num_params"], "not input=value"),
        (["formula", "eval", "zero_state_byte"], "did you mean zero_state_bytes"),
        ([*ZERO, "num_params=7GB", "world_size=8", "stage=1"], "is in byte, but a pure number is wanted"),
        ([*ZERO, "num_params=7B", "world_size=8", "stage=1", "--convention", "fp32adam"], "did you mean fp32_adam"),
        (["formul"], "did you mean formula"),
    ],
    ids=str,
)
def test_errors_are_one_line_that_helps(capsys, argv, says):
    assert psi.main(argv) == 2
    assert says in capsys.readouterr().err.splitlines()[0]


def test_json_has_exact_values_and_marks_the_convention_used(capsys):
    psi.main([*ZERO, "num_params=7B", "world_size=8", "stage=1", "--convention", "mixed_adam_both_grads", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["value"] == 66.5e9
    assert [row["name"] for row in said["conventions"] if row["chosen"]] == ["mixed_adam_both_grads"]


def test_list_and_show(capsys):
    psi.main(["formula", "list", "--json"])
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert "zero_state_bytes" in names
    for name in names:
        assert psi.main(["formula", "show", name]) == 0
    assert "derivation" in capsys.readouterr().out


def test_a_formula_with_cases_reads_well(capsys):
    psi.main(["formula", "show", "zero_state_bytes"])
    said = capsys.readouterr().out
    assert "zero_state_bytes = 4*num_params + 12*num_params/world_size, with stage=1" in said
    assert max(map(len, said.splitlines())) < 160
