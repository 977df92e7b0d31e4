"""Two ways to start the ranks of a job; each gives poll() (None while it runs, else who failed first and how) and stop().

{"rank": 1, "code": -9}     rank 1 failed first, killed by signal 9
{"rank": None, "code": 0}   all ranks ended well
"""

import atexit
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

from .forkserver import STOP, to_blame
from .logs import read, tail

# --- torchrun ----------------------------------------------------------------------------------------------------

# torchrun's own words for a rank that failed.
FAILURE = re.compile(r"rank\s*:\s*(\d+) \(local_rank.*?exitcode\s*:\s*(-?\d+)", re.DOTALL)
MARK = "SIXTEEN_PSI_RUN"


class Torchrun:
    """A job under torchrun. Its ranks live in sessions of their own, so they are told by a mark in their environment."""

    def __init__(self, script, args, nproc, env, log_dir, restarts):
        self.log, self.mark = log_dir / "agent.log", uuid.uuid4().hex
        place = ["--nproc-per-node", str(nproc), "--master-addr", env["MASTER_ADDR"], "--master-port", env["MASTER_PORT"]]
        logs = ["--log-dir", str(log_dir), "--redirects", "3", "--max-restarts", str(restarts)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.agent", *place, *logs, str(script), *args],
                env={**os.environ, **env, MARK: self.mark},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def poll(self):
        code = self.process.poll()
        if not code:
            return None if code is None else {"rank": None, "code": 0}
        failed = [{"rank": int(rank), "code": int(end)} for rank, end in FAILURE.findall(read(self.log))]
        by_agent = [end for end in failed if end["code"] == -signal.SIGTERM]
        return to_blame([end for end in failed if end not in by_agent] or [{"rank": None, "code": code}])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()  # the agent then ends its ranks
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()

    def _left(self):
        """Processes that carry this run's mark (on Linux; elsewhere the agent alone, if it is still there)."""
        mark = f"{MARK}={self.mark}".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in environ.read_bytes().split(b"\0"):
                    yield int(environ.parent.name)
        if self.process.poll() is None:
            yield self.process.pid


# --- forkserver --------------------------------------------------------------------------------------------------


class ServerDied(RuntimeError):
    """The process that forks ranks is gone; says why."""


class _Server:
    """The forking process, started when first needed and ended with this one. It runs one job at a time."""

    def __init__(self):
        self.process, self.busy = None, threading.Lock()

    def ask(self, request):
        if self.process is None or self.process.poll() is not None:
            self._start(request["env"])
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._death() from None

    def _start(self, env):
        self.log = Path(tempfile.mkdtemp(prefix="psi-lab-")) / "agent.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.forkserver"],
                env={**os.environ, **env},
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        atexit.register(self.end)
        try:
            self.answer()
        except BaseException:
            self.process.kill()
            raise

    def end(self):
        """Let the server go, and see it gone."""
        self.process.stdin.close()
        self.process.wait()

    def answered(self):
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def answer(self):
        """The server's next line, waited for. Raises ServerDied, with its log, when there will be none."""
        line = self.process.stdout.readline()
        if not line:
            raise self._death()
        return json.loads(line)

    def _death(self):
        return ServerDied(f"the process that starts ranks died; the last lines of its log:\n{tail(self.log)}")


_server = _Server()


class Forked:
    """A job whose ranks are forked by the server, as often again as `restarts` says; each attempt has its own folder of logs."""

    def __init__(self, script, args, nproc, env, log_dir, restarts):
        _server.busy.acquire()
        self.ended, self.attempt, self.restarts = None, 0, restarts
        self.request = {"script": str(script), "args": args, "nproc": nproc, "env": env, "log_dir": str(log_dir)}
        try:
            self._ask()
        except BaseException:
            _server.busy.release()
            raise

    def _ask(self):
        env = self.request["env"] | {"TORCHELASTIC_RESTART_COUNT": str(self.attempt)}
        _server.ask(self.request | {"env": env, "log_dir": f"{self.request['log_dir']}/attempt_{self.attempt}"})

    def poll(self):
        if self.ended is None and _server.answered():
            self.ended = {"rank": None, "code": 1}
            self.ended = _server.answer()
            if self.ended["code"] and self.attempt < self.restarts:
                self.attempt, self.ended = self.attempt + 1, None
                self._ask()
        return self.ended

    def stop(self):
        try:
            if self.poll() is None:
                _server.process.stdin.write(STOP)
                self.ended = _server.answer()
        except (ServerDied, BrokenPipeError):
            self.ended = {"rank": None, "code": 1}
        except BaseException:  # interrupted once more; an answer that nobody reads must not be taken for the next job's
            _server.end()
            raise
        finally:
            _server.busy.release()
