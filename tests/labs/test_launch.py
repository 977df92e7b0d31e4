"""A job that goes wrong ends with the reason and leaves no process behind, whichever way it was started."""

import errno
import json
import shutil
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from labs import logs, processes
from labs.launch import QUIET, ROOT, LaunchError, launch, progress_line

DEAD = """
from labs.jobs import ranks
import torch.distributed as dist
with ranks.together("cpu"):
    if dist.get_rank() == 1:
        print("rank 1 says goodbye", flush=True)
        os.kill(os.getpid(), 9)
    dist.barrier()
"""
HANG = "print('progress: waiting for nobody', file=sys.stderr, flush=True)\ntime.sleep(600)"
PATIENCE = 300  # seconds for what takes a few on an idle machine
SAY_ENVIRONMENT = """
import json
wanted = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME")
told = {name: os.environ[name] for name in wanted} | {"argv": sys.argv[1:], "name": __name__}
print(json.dumps({"lab": "", "told": told}), flush=True)
"""
LAUNCHERS = pytest.mark.parametrize("launcher", ["fork", "torchrun"])


@LAUNCHERS
def test_a_rank_that_is_killed(job, groups_left, launcher):
    run = launch(job(DEAD), 2, launcher=launcher, timeout=PATIENCE)
    assert run.measurement is None
    assert "rank 1 was killed by signal 9 (SIGKILL)" in run.failure and "rank 1 says goodbye" in run.failure
    assert not groups_left()


@LAUNCHERS
def test_an_import_that_fails(job, groups_left, launcher):
    run = launch(job("import no_such_module"), 2, launcher=launcher, timeout=PATIENCE)
    assert "stopped with exit status 1" in run.failure and "No module named 'no_such_module'" in run.failure
    assert not groups_left()


@LAUNCHERS
def test_a_job_that_hangs(job, groups_left, monkeypatch, launcher):
    """Its time is up as soon as its first rank has said something."""
    late = SimpleNamespace(monotonic=lambda: time.monotonic() + PATIENCE, sleep=time.sleep)
    tell = lambda seconds, said: said and monkeypatch.setattr("labs.launch.time", late)
    run = launch(job(HANG), 2, launcher=launcher, timeout=PATIENCE, progress=tell)
    assert f"did not finish within {PATIENCE} s" in run.failure and "waiting for nobody" in run.failure
    assert not groups_left()


def test_silence_is_told_while_it_lasts(job, monkeypatch):
    """The clock jumps as soon as the rank has said something, and to the end when its silence has been told."""
    told, later = [], lambda by: SimpleNamespace(monotonic=lambda: time.monotonic() + by, sleep=time.sleep)

    def tell(seconds, said):
        told.append(said)
        if said:
            monkeypatch.setattr("labs.launch.time", later(PATIENCE if "nothing new" in said else QUIET + 1))

    run = launch(job(HANG), 1, launcher="fork", timeout=PATIENCE, progress=tell)
    assert f"waiting for nobody (rank 0 has said nothing new for {QUIET} s; giving up at {PATIENCE} s)" in told
    assert "--timeout" in run.failure


def test_a_rank_that_leaves_a_process_of_its_own(job, groups_left):
    launch(job("import subprocess\nsubprocess.Popen(['sleep', '600'])"), 2, launcher="fork")
    assert not groups_left()


def test_an_interrupt_stops_the_ranks(job, groups_left):
    """As when a notebook cell is interrupted."""
    with pytest.raises(KeyboardInterrupt):
        launch(job(HANG), 2, progress=_interrupt, launcher="fork")
    assert not groups_left()


def _interrupt(seconds, said):
    if said:
        raise KeyboardInterrupt


def test_a_second_interrupt_while_the_ranks_are_stopped(job, groups_left, monkeypatch):
    """The next job starts afresh."""

    def impatient(seconds, said):
        if said:
            monkeypatch.setattr(processes._server, "answer", lambda: _interrupt(0, "again"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(job(HANG), 2, progress=impatient, launcher="fork")
    assert not groups_left()
    monkeypatch.undo()
    assert "printed no measurement" in launch(job("print('hello')"), 1, launcher="fork").failure


@LAUNCHERS
def test_ranks_end_with_whoever_started_them(job, groups_left, launcher):
    script = job(HANG)
    code = f"from labs.launch import launch; launch({str(script)!r}, 1, launcher={launcher!r})"
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    _wait_until(script.with_name("group0").exists)
    starter.kill()
    starter.wait()
    _wait_until(lambda: not groups_left())


def _wait_until(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)


def test_both_launchers_give_the_same_environment(job):
    script = job(SAY_ENVIRONMENT)
    forked, torchrun = (launch(script, 2, ["a=1", "b"], launcher=launcher) for launcher in ("fork", "torchrun"))
    for rank in range(2):
        told = _told(forked, rank)
        assert told == _told(torchrun, rank)
        assert (told["RANK"], told["OMP_NUM_THREADS"], told["argv"]) == (str(rank), "1", ["a=1", "b"])
    assert forked.command == torchrun.command


def _told(run, rank):
    lines = [line for file in logs.of_rank(run.log_dir, rank, "stdout") for line in logs.read(file).splitlines()]
    return next(json.loads(line)["told"] for line in lines if line.startswith("{"))


def test_the_server_is_killed(job, groups_left):
    """Its ranks go with it, the verdict comes at once, and the next job has a new server."""

    def kill(seconds, said):
        if said:
            processes._server.process.kill()

    run = launch(job(HANG), 2, progress=kill, launcher="fork", timeout=PATIENCE)
    assert "the process that starts ranks died" in run.failure
    _wait_until(lambda: not groups_left())
    assert "printed no measurement" in launch(job("print('hello')"), 1, launcher="fork").failure


def test_no_room_for_logs(job, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(LaunchError, match=r"No space left on device.*set TMPDIR"):
        launch(job(""))


def test_a_full_disk_is_named_beside_what_it_did(job, monkeypatch):
    monkeypatch.setattr("labs.launch.FULL", shutil.disk_usage("/tmp").total + 1)
    failure = launch(job("raise SystemExit('cannot write')"), 1, launcher="fork").failure
    assert "is full" in failure and "cannot write" in failure


def test_progress_without_a_terminal(job, capsys):
    """From a job that goes on until it was heard."""
    script, line = job(TELLING), progress_line()
    heard = script.with_name("heard")

    def tell(seconds, said):
        line(seconds, said)
        if said == "two":
            heard.touch()

    launch(script, 1, progress=tell)
    assert capsys.readouterr().err.endswith("s  two\n")


TELLING = """
for word in ("one", "two"):
    print(f"progress: {word}", file=sys.stderr, flush=True)
while not os.path.exists(os.path.dirname(__file__) + "/heard"):
    time.sleep(0.05)
"""


def test_a_job_without_a_measurement(job):
    assert "printed no measurement" in launch(job("print('hello')"), 1).failure


def test_a_job_that_refuses(job):
    assert "not like this" in launch(job("raise SystemExit('not like this')"), 1).failure


def test_a_port_in_use(job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LaunchError, match="cannot be used"):
            launch(job(""), port=taken.getsockname()[1])


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"nproc": 0}, "at least 1"),
        ({"nproc": 1.5}, "whole number of processes"),
        ({"launcher": "spawn"}, "one of auto, fork, torchrun"),
        ({"device": "tpu"}, "one of cpu, cuda"),
        ({"device": "cuda", "nproc": 1000}, "needs 1000 GPUs, one for each process"),
        ({"port": 70000}, "between 1 and 65535"),
        ({"nproc": 10**6}, "cores here are enough for"),
        ({"timeout": 0}, "seconds above 0"),
    ],
)
def test_what_cannot_be_started(job, asked, said):
    with pytest.raises(LaunchError, match=said):
        launch(job(""), **asked)


def test_a_job_that_is_not_there(tmp_path):
    with pytest.raises(LaunchError, match="no job file"):
        launch(tmp_path / "nothing.py")
