"""One way to start a job on many processes: `launch("labs/jobs/model_states.py", nproc=2)`.

The job is a plain script that reads RANK and WORLD_SIZE from its environment. On GPUs torchrun starts it; on a CPU
(Linux) a process that has imported torch beforehand forks the ranks, which takes a fraction of a second a job. A job that
fails, dies or hangs ends in a `Run` that says so, with the log of the rank that failed first; nothing keeps running.
"""

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import logs
from .processes import Forked, ServerDied, Torchrun

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
LAUNCHERS = ("auto", "fork", "torchrun")
DEVICES = ("cpu", "cuda")
PROCESSES_PER_CORE = 32  # with more of them a job would time out before all have started
PORTS = range(2**14, 2**15)  # beyond, Linux gives them to whoever asks for any
POLL_SECONDS = 0.05
FULL = 2**20  # bytes left on a disk that is as good as full
PROGRESS = "progress: "
QUIET = 20  # seconds without a word after which a reader is told so


# for who was too impatient
MORE_TIME = "\nif it was slow and did not hang, give it more: timeout=SECONDS, or psi lab run … --timeout SECONDS"


class LaunchError(ValueError):
    """A job that cannot be started as asked."""


@dataclass(frozen=True)
class Run:
    """How a job went: `measurement` is the JSON its rank 0 printed, or `failure` says in words why there is none."""

    command: str
    log_dir: Path
    seconds: float
    measurement: dict | None = None
    failure: str = ""


def launch(job, nproc=2, args=(), *, timeout=120, launcher="auto", device="cpu", port=None, progress=None, restarts=0):
    """Run the script `job` on `nproc` processes with the command line `args`; returns a Run, however it went.

    timeout: seconds until the job counts as hanging. progress: called with (seconds, what rank 0 last said).
    restarts: how often all ranks are started again when one has failed.
    Raises LaunchError where nothing can be started: no such job, nproc below 1, too few GPUs, a port in use.
    """
    check(job, nproc, launcher, device, port)
    if not timeout > 0:
        raise LaunchError(f"timeout is {timeout!r}; it must be a number of seconds above 0")
    start = {"torchrun": Torchrun, "fork": Forked}[resolve(launcher, device)]
    log_dir, args = _log_dir(), [str(arg) for arg in args]
    started, process = time.monotonic(), None
    try:
        env = environment(nproc, device, port or free_port()) | {"JOB_FOLDER": str(log_dir)}
        process = start(Path(job).resolve(), args, nproc, env, log_dir, restarts)
        failure = _watch(process, log_dir, timeout, progress or progress_line())
    except ServerDied as death:
        failure = str(death)
    finally:
        if process:
            process.stop()
    return _finished(command(job, nproc, args, restarts), log_dir, time.monotonic() - started, failure)


def _log_dir():
    """A new folder. Raises LaunchError where no temporary folder can be written to."""
    try:
        return Path(tempfile.mkdtemp(prefix="psi-lab-"))
    except OSError as error:
        raise LaunchError(f"no room for the job's logs ({error.strerror}); make some, or set TMPDIR to a folder that has") from None


def check(job, nproc, launcher, device, port):
    """Raise LaunchError for a launch that cannot work, saying what to try."""
    if not Path(job).is_file():
        raise LaunchError(f"there is no job file {job}")
    require_processes(nproc)
    for value, name, known in ((launcher, "launcher", LAUNCHERS), (device, "device", DEVICES)):
        if value not in known:
            raise LaunchError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    if device == "cuda":
        _require_gpus(nproc)
    elif nproc > (most := PROCESSES_PER_CORE * os.cpu_count()):
        raise LaunchError(f"nproc is {nproc}, and the {os.cpu_count()} cores here are enough for {most} at most; try fewer")
    if port is not None:
        _require_free(port)


def require_processes(nproc):
    """Raise LaunchError unless `nproc` is a number of processes."""
    if isinstance(nproc, bool) or not isinstance(nproc, int) or nproc < 1:
        raise LaunchError(f"nproc is {nproc!r}; it must be a whole number of processes, at least 1")


def _require_gpus(nproc):
    import torch  # here, since it takes seconds and is only wanted for this question

    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found < nproc:
        raise LaunchError(
            f"device cuda needs {nproc} GPUs, one for each process, and torch {torch.__version__} sees {found}; "
            f"try device cpu{f', or nproc {found}' if found else ''}"
        )


def _require_free(port):
    if not isinstance(port, int) or not 0 < port < 65536:
        raise LaunchError(f"port is {port!r}; it must be a whole number between 1 and 65535")
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise LaunchError(f"port {port} on {HOST} cannot be used ({error.strerror}); leave the port out to get a free one") from None


def free_port():
    """A TCP port on this machine that nobody listens on, and that the system gives no other program before the job has taken it."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((HOST, port))
            return port
    raise LaunchError(f"no port of {HOST} from {PORTS[0]} to {PORTS[-1]} is free; name another one as port")


def resolve(launcher, device):
    """Which launcher "auto" means: fork for CPUs where forking a process with torch in it is safe, else torchrun."""
    return launcher if launcher != "auto" else "fork" if device == "cpu" and sys.platform == "linux" else "torchrun"


def environment(nproc, device, port):
    """What every rank finds in its environment besides its own number."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    shared = {
        "OMP_NUM_THREADS": "1",  # ranks share the cores; more threads make small jobs a hundred times slower
        "PYTHONPATH": os.pathsep.join(paths),
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(nproc),
        "LOCAL_WORLD_SIZE": str(nproc),
    }
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return shared | ({"GLOO_SOCKET_IFNAME": loopback} if device == "cpu" else {})


def command(job, nproc, args, restarts=0):
    """The line that starts the same job by hand."""
    path = Path(job).resolve()
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    again = ["--max-restarts", str(restarts)] if restarts else []
    return shlex.join(["torchrun", "--nproc-per-node", str(nproc), *again, str(shown), *args])


# --- while it runs -----------------------------------------------------------------------------------------------


def _watch(process, log_dir, timeout, progress):
    """Wait for the job's end; returns why it failed, or nothing."""
    started, told, heard = time.monotonic(), None, (0, "")
    while (ended := process.poll()) is None:
        seconds, said = time.monotonic() - started, _last_said(log_dir)
        if seconds > timeout:
            return f"the job did not finish within {timeout:g} s and was stopped; rank 0 last said: {said or 'nothing'}{MORE_TIME}"
        heard = heard if said == heard[1] else (seconds, said)
        if told != (told := (int(seconds), said + _silence(seconds - heard[0], timeout))):
            progress(*told)
        time.sleep(POLL_SECONDS)
    progress(None, "")
    return _why(ended, log_dir) if ended["code"] else ""


def _silence(quiet, timeout):
    """For how long rank 0 has said nothing, in whole QUIETs, and when that will be taken for a hang."""
    told = int(quiet // QUIET) * QUIET
    return f" (rank 0 has said nothing new for {told} s; giving up at {timeout:g} s)" if told else ""


def _why(ended, log_dir):
    rank, code = ended["rank"], ended["code"]
    how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"stopped with exit status {code}"
    who, files = ("the launcher", [log_dir / "agent.log"]) if rank is None else (f"rank {rank}", logs.of_rank(log_dir, rank))
    return f"{who} {how}; the last lines of its log:\n{logs.tail(*files)}"


def _lines(log_dir, stream, start):
    """The lines of rank 0's `stream` that begin with `start`."""
    return [line for file in logs.of_rank(log_dir, 0, stream) for line in logs.read(file).splitlines() if line.startswith(start)]


def _last_said(log_dir):
    said = _lines(log_dir, "stderr", PROGRESS)
    return said[-1].removeprefix(PROGRESS) if said else ""


def progress_line():
    """A function of (seconds, said) that writes one line over and over, in a notebook or a terminal; seconds None clears it."""
    if _in_notebook():
        from IPython.display import display

        handle = display({"text/plain": ""}, raw=True, display_id=True)
        return lambda seconds, said: handle.update({"text/plain": _line(seconds, said)}, raw=True)
    if sys.stderr.isatty():
        return lambda seconds, said: print(f"\r{_line(seconds, said):<100}\r", end="", file=sys.stderr, flush=True)
    return _line_by_line()


def _line_by_line():
    """For a file or a pipe, such as a batch job's: a line for each thing that rank 0 says."""
    told = [""]

    def tell(seconds, said):
        if said not in ("", told[-1]):
            told.append(said)
            print(_line(seconds, said), file=sys.stderr, flush=True)

    return tell


def _in_notebook():
    """Whether this process is a kernel, and has not merely imported one."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython and ipython.get_ipython(), "kernel")


def _line(seconds, said):
    return "" if seconds is None else f"{seconds} s  {said or 'starting'}"


def _finished(command, log_dir, seconds, failure):
    printed = _lines(log_dir, "stdout", '{"lab"')
    if not failure and not printed:
        failure = f"rank 0 ended well but printed no measurement; the last lines of its log:\n{logs.tail(*logs.of_rank(log_dir, 0))}"
    if failure and shutil.disk_usage(log_dir).free < FULL:
        failure = f"the disk of {log_dir} is full, so logs and files may be cut off; make room, or set TMPDIR to another folder\n{failure}"
    if failure:
        return Run(command, log_dir, seconds, failure=f"{failure}\nall logs are in {log_dir}")
    return Run(command, log_dir, seconds, json.loads(printed[-1]))
