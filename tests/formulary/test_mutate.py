"""A wrong formula would be noticed: a fixed sample of small changes, one a formula. `python -m tools.mutate` tries them all."""

import json
import subprocess
import sys

import pytest
import sympy as sp

from formulary import formula
from formulary.quantity import unit_of
from formulary.units import ANY, dimension
from tools.mutate import ENOUGH, documented, mutants, summary, targets


def test_witnesses_notice_a_sample_of_changes():
    run = subprocess.run([sys.executable, "-m", "tools.mutate", "--sample", "30", "--json"], capture_output=True, text=True)
    assert run.stdout, run.stderr
    said = json.loads(run.stdout)
    assert (said["formulas"], said["noticed_after_all"]) == (30, [])
    assert said["share"] >= ENOUGH, said["unnoticed"]


@pytest.mark.parametrize("name", ["zero_state_bytes", "needed_micro_batches", "ring_all_reduce_time"])
def test_changes_keep_the_unit_and_differ(name):
    made = formula(name)
    found = mutants(made)
    assert len(found) > 20
    for changed in found.values():
        assert dimension(changed, unit_of) in (ANY, made.unit)
        assert sp.simplify(changed - made.expr) != 0


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ring_all_reduce_bytes", {"2 -> 3", "-1 -> 0", "world_size -> world_size + 1", "world_size -> world_size**2"}),
        ("needed_buckets", {"ceiling -> floor", "ceiling dropped", "num_params dropped"}),
        ("in_flight", {"Min -> Max", "num_stages -> stage_index", "-stage_index negated"}),
        ("serial_step_time", {"comm_time dropped", "comm_time negated", "comm_time -> compute_time"}),
    ],
)
def test_every_kind_of_change_is_made(name, kinds):
    assert kinds <= set(mutants(formula(name)))


def test_what_is_explained_is_not_counted_and_what_is_noticed_need_not_be():
    results = {"one": [("a", "test_x"), ("b", None), ("c", None)]}
    said = summary(results, {("one", "b"): "the same", ("one", "a"): "wrongly listed"})
    assert (said["changes"], said["noticed"], said["unnoticed"]) == (2, 1, [["one", "c"]])
    assert (said["equivalent"], said["noticed_after_all"]) == ([["one", "b", "the same"]], [["one", "a"]])


def test_documented_changes_exist_and_are_explained():
    catalogue = targets()
    for (name, what), why in documented().items():
        assert what in mutants(catalogue[name][0]), f"{name} has no change {what!r}"
        assert len(why.split()) >= 5
