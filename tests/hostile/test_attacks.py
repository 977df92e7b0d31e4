"""Every attack for real, under every layer and under the floor alone: a named verdict, nothing read, changed or left running."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import pytest

from autograder.jail import Limits, run_examined, run_jailed
from autograder.jail.runs import zygote
from tests.hostile.attacks import CATEGORIES, HONEST, IN_PROCESS, PRELUDE, TESTS
from tests.hostile.world import World

MIB = 1024**2
FOREVER = 55.0  # s; what nobody stops sleeps longer than this, or never ends
LADDERS = {"every layer": (), "the floor alone": ("namespaces", "users")}
ATTACKS = [pytest.param(attack, id=f"{category}: {attack.name}") for category, attacks in CATEGORIES.items() for attack in attacks]
REAL = [case for case in ATTACKS if case.values[0].real]


def _limits(seconds):
    return Limits(
        seconds=seconds, cpu_seconds=3, memory_bytes=512 * MIB, file_bytes=2 * MIB, disk_bytes=4 * MIB, disk_entries=200, output_bytes=MIB
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("course")).settle()
    yield world
    world.close()


@pytest.fixture(params=LADDERS.values(), ids=LADDERS.keys(), scope="module")
def without(request):
    return request.param


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack(attack, world, without):
    how = {"preload": attack.preload, "without": without}
    neighbour = _Neighbour(how)
    cells = [PRELUDE.format(targets=world.targets()), attack.code]
    result = run_jailed(cells, ["loot"], limits=_limits(attack.seconds), **how)
    assert result.verdict in attack.verdicts.split(), result
    assert re.search(attack.says, f"{result.error} {result}"), result
    assert world.harm(result) == []
    assert result.seconds < FOREVER
    assert neighbour.result().answers == {"answer": 42}
    assert _left_running(zygote(**how)) == []
    assert _left_behind(zygote(**how)) == []


@pytest.mark.parametrize("attack", REAL)
def test_the_attack_does_harm_where_there_is_no_jail(attack, tmp_path):
    world = World(tmp_path / "course").settle()
    cell = PRELUDE.format(targets=world.targets()) + attack.code + "\nprint(loot)"
    (tmp_path / "work").mkdir()
    try:
        run = subprocess.run(
            [sys.executable, "-c", cell], cwd=tmp_path / "work", pass_fds=[world.handle], capture_output=True, timeout=60, check=False
        )
        assert _harm_before_long(world, run.stdout.decode()), run.stderr.decode()
    finally:
        world.close()


def _harm_before_long(world, seen):
    """The harm done, as soon as there is any: on a busy machine it takes a killed process a while to end."""
    for _ in range(600):
        if harm := world.harm(seen):
            return harm
        time.sleep(0.05)
    return []


@pytest.mark.parametrize("cell", IN_PROCESS.values(), ids=IN_PROCESS.keys())
def test_no_trick_earns_a_point(cell, without):
    result = run_examined([cell], [TESTS], ["points"], calls=["twice"], limits=_limits(1), without=without)
    assert result.answers.get("points", 0) == 0, result
    assert _left_running(zygote(without=without)) == []


def test_honest_work_earns_every_point(without):
    result = run_examined([HONEST], [TESTS], ["points"], calls=["twice"], limits=_limits(30), without=without)
    assert (result.verdict, result.answers) == ("ok", {"points": 5})


class _Neighbour:
    """An honest run beside the attack, out of the same zygote."""

    def __init__(self, how):
        self.thread = threading.Thread(target=self._run, args=(how,))
        self.thread.start()

    def _run(self, how):
        self.outcome = run_jailed(["answer = sum([40, 2])"], ["answer"], **how)

    def result(self):
        self.thread.join()
        return self.outcome


def _left_running(top):
    """Processes below the zygote, but for the one that is it where it has namespaces of its own."""
    parents = {int(path.name): _parent(path) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()}
    below, wave = [], {top.process.pid}
    while wave := {process for process, parent in parents.items() if parent in wave}:
        below += wave
    return below[1:] if top.layers["namespaces"] else below


def _parent(path):
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # ended meanwhile
        return None


def _left_behind(top):
    """Folders of runs that are over, where they lie on this machine's disk."""
    return os.listdir(top.folder) if top.folder else []
