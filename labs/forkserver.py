"""A process that has imported torch once and forks the ranks of one job after another; started by `labs.launch`.

    python -m labs.forkserver

A request is one line of JSON on stdin: script, args, nproc, env, log_dir. The reply is one line on stdout, when the
job is over: which rank failed first and how (code 0: none did). Any input during a job stops it; so does the end of
stdin, which comes when whoever asked has died. Ranks form one process group, and none outlives its job, or on Linux this process.
"""

import contextlib
import ctypes
import importlib
import json
import math
import os
import runpy
import select
import signal
import sys
import time
import traceback
from pathlib import Path

# What jobs import; each import here is one that no rank has to wait for.
PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.optim",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.tensor",
    "torch.nn.parallel",
    "torch.optim",
)
POLL_SECONDS = 0.02
GRACE_SECONDS = 1  # after one rank has failed, for the others to say what they saw
STOP = b"stop\n"
PR_SET_PDEATHSIG = 1


def main():
    requests, replies = os.fdopen(0, "rb", buffering=0), os.dup(1)
    os.dup2(2, 1)  # what imports and ranks print is no reply
    os.register_at_fork(after_in_child=lambda: os.close(replies))  # so that it closes when this process dies
    for name in PRELOAD:
        importlib.import_module(name)
    _reply(replies, {"ready": True})
    while line := requests.readline():
        if line != STOP:  # it came too late: the job had ended
            _reply(replies, run(json.loads(line), requests))
    os._exit(0)  # at once, without taking torch apart


def _reply(replies, answer):
    os.write(replies, json.dumps(answer).encode() + b"\n")


def run(request, requests):
    """Run the ranks of one job to their end: {"rank": first to fail or None, "code": its exit code, negative for a signal}."""
    ranks = _start(request)
    group, failed, deadline = min(ranks), [], math.inf
    while ranks:
        pid, status = os.waitpid(-group, os.WNOHANG)
        rank, code = ranks.pop(pid, None), os.waitstatus_to_exitcode(status)
        if pid and code:
            failed.append({"rank": rank, "code": code})
            deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
        if not pid and select.select([requests], [], [], POLL_SECONDS)[0]:
            requests.readline()
            failed, deadline = [{"rank": None, "code": -signal.SIGTERM}], -math.inf
        if time.monotonic() > deadline:
            _kill(group)
            break
    while ranks:
        ranks.pop(os.waitpid(-group, 0)[0], None)
    _kill(group)
    return to_blame(failed) if failed else {"rank": None, "code": 0}


def to_blame(failed):
    """Of the ranks that failed, in the order in which that was seen, the one that did so by itself.

    A killed rank's connections break before its end can be seen, so those it leaves behind may be seen to fail first.
    """
    return next((end for end in failed if end["code"] < 0), failed[0])


def _kill(group):
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: only zombies are left (macOS)
        os.killpg(group, signal.SIGKILL)


def _start(request):
    """Fork the ranks into one process group, led by rank 0; returns {process id: rank}."""
    ranks, group, server = {}, 0, os.getpid()
    for rank in range(request["nproc"]):
        pid = os.fork()
        if pid == 0:
            _become(rank, request, group, server)
        group = group or pid
        # Both sides put the rank into the group, since either may come first.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, group)
        ranks[pid] = rank
    return ranks


def _end_with(server):
    """Have Linux kill this process when `server`, which forked it, is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # gone already
        os._exit(1)


def _become(rank, request, group, server):
    """In the child: run the script as this rank, as torchrun would, and never return."""
    status = 1
    try:
        _end_with(server)
        os.setpgid(0, group)
        _redirect(Path(request["log_dir"], str(rank)))
        os.environ.update(request["env"] | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        sys.argv = [request["script"], *request["args"]]
        sys.path[0] = str(Path(request["script"]).parent)
        runpy.run_path(request["script"], run_name="__main__")
        status = 0
    except SystemExit as leaving:
        status = _status(leaving.code)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _status(code):
    """The exit status of `raise SystemExit(code)`; a text is printed, as Python does."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _redirect(folder):
    """Nothing to read, and stdout and stderr into this rank's own files."""
    folder.mkdir(parents=True)
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "stdout.log", os.O_WRONLY), (2, "stderr.log", os.O_WRONLY)):
        file = os.open(folder / name, flags | (os.O_CREAT if number else 0), 0o644)
        os.dup2(file, number)
        os.close(file)


if __name__ == "__main__":
    main()
