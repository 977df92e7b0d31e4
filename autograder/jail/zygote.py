"""The zygote: a process that has imported the slow modules once and forks a jailed process per run.

It is started by exec, not by fork, with an environment of its own and one socket, and is told nothing but ceilings. The
cells go straight to the forked process after that has locked itself in. So the zygote never holds a key, a gradebook or
anyone's cells, and what it forks can't find any.

Per run it is sent five handles: where the run reads, answers, prints (stdout, stderr), and a leash. Closing the other
end of the leash ends the run; the zygote reports on it how the run ended.
"""

import contextlib
import dataclasses
import gc
import importlib
import importlib.util
import json
import os
import resource
import selectors
import signal
import socket
import sys
import tempfile
import time

from . import inmate, kernel, namespaces, places, seccomp, sweep, warm
from .enclose import Cage, can_change_user, enclose
from .limits import Limits

HANDLES = 5
_LOOK_EVERY = 0.05  # s; only where the kernel doesn't bound these itself: the folder, and the threads of root


def main(handle, preload, without):
    """Serve the runs asked for on socket `handle` until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader, which then closes the socket
    with socket.socket(fileno=handle) as control:
        cage = _settle(preload, without)
        base = namespaces.WORK if cage.namespaces else tempfile.mkdtemp(prefix="jail-")
        os.chmod(base, 0o711)  # passed through by runs that are another user, listed by none
        hello = {"namespaces": cage.namespaces, "users": cage.users, "folder": "" if cage.namespaces else base}
        control.send(json.dumps(hello).encode())
        try:
            _Keeper(control, cage, base).serve()
        finally:
            sweep.remove(base)


def _settle(preload, without):
    """Enter the namespaces, import, and return what the runs will be locked in with."""
    readable = places.readable()
    processes = os.open("/proc", os.O_PATH)  # held until the imports are done, since /proc can't be seen from inside
    threads_now = int(_read(processes, "loadavg").split()[3].split("/")[1])
    _go_first_when_memory_is_short()
    inside = "namespaces" not in without and namespaces.available()
    if inside:
        namespaces.enter(readable)
    _import(preload)
    if _threads(processes) != 1:
        raise RuntimeError(f"importing {', '.join(preload)} started threads, which a fork would lose: preload fewer modules")
    pages = int(_read(processes, "self/statm").split()[0])
    os.close(processes)
    seccomp.program(kernel.MACHINE)  # most of it is the same for every run, and kept
    users = "users" not in without and can_change_user(readable)
    return Cage(tuple(readable), inside, users, pages * resource.getpagesize(), 0 if users else threads_now)


_DICE = {"numpy": "numpy.random", "sympy": "sympy.core.random"}  # module: what of it throws dice


def _import(names):
    """Import the modules and use them once."""
    gc.disable()  # hardly any of it is garbage
    sys.meta_path.append(_Taught)
    sys.dont_write_bytecode = True
    for name in names:
        importlib.import_module(name)
    for name in warm.FIRST_USES.keys() & names:
        with contextlib.suppress(Exception):  # another version may not know a call: then the runs are slower, and that is all
            warm.FIRST_USES[name]()
    for name in _DICE.keys() & sys.modules.keys():
        importlib.import_module(_DICE[name]).seed(0)
    gc.freeze()  # a collection in a fork would otherwise copy every page
    gc.enable()


class _Taught:
    """Finds the project's own packages that cells may import, though the project's folder is on no path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None or name not in places.TAUGHT:
            return None
        folder = os.path.join(places.root(), name)
        return importlib.util.spec_from_file_location(name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])


def _read(processes, name):
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=processes)) as file:
        return file.read()


def _threads(processes):
    folder = os.open("self/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=processes)
    try:
        return len(os.listdir(folder))
    finally:
        os.close(folder)


def _go_first_when_memory_is_short():
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("800")


@dataclasses.dataclass
class _Run:
    process: int
    handle: int  # a pidfd: readable once the process has ended
    leash: socket.socket
    folder: str
    ceilings: Limits
    deadline: float
    broke: str = ""  # which ceiling the keeper ended it for


class _Keeper:
    """Starts runs, ends those that are over their time or disk or whose leash was let go, and cleans up after them."""

    def __init__(self, control, cage, base):
        self.control, self.cage, self.base = control, cage, base
        self.runs = {}  # place: _Run
        self.started, self.looked = 0, 0.0
        self.events = selectors.DefaultSelector()
        self.events.register(control, selectors.EVENT_READ, self._start)

    def serve(self):
        """Until the grader is gone."""
        with contextlib.suppress(EOFError):
            while True:
                for key, _ in self.events.select(self._until_next_look()):
                    key.data()
                self._enforce()
        for place, run in list(self.runs.items()):
            os.kill(run.process, signal.SIGKILL)
            self._bury(place)

    def _until_next_look(self):
        if not self.runs:
            return None
        left = max(0, min(run.deadline for run in self.runs.values()) - time.monotonic())
        return left if self.cage.namespaces else min(left, _LOOK_EVERY)

    def _start(self):
        message, handles, *_ = socket.recv_fds(self.control, 1 << 12, HANDLES)
        if not message:
            raise EOFError
        self.started += 1
        *pipes, leash = handles
        try:
            self._fork(self.started, Limits(**json.loads(message)), pipes, socket.socket(fileno=leash))
        except OSError:  # no process or handle to be had: the grader sees the leash end without a report
            os.close(leash)
        for pipe in pipes:
            os.close(pipe)

    def _fork(self, place, ceilings, pipes, leash):
        folder, keeper = os.path.join(self.base, str(place)), os.getpid()
        os.mkdir(folder, 0o700)
        process = os.fork()
        if not process:
            _inside(self.cage, ceilings, folder, self.cage.user(place), keeper, pipes)
        run = _Run(process, os.pidfd_open(process), leash, folder, ceilings, time.monotonic() + ceilings.seconds)
        self.runs[place] = run
        self.events.register(run.handle, selectors.EVENT_READ, lambda: self._bury(place))
        self.events.register(leash, selectors.EVENT_READ, lambda: self._let_go(place))

    def _let_go(self, place):
        if place in self.runs:  # it may have ended in the same moment
            self.events.unregister(self.runs[place].leash)
            os.kill(self.runs[place].process, signal.SIGKILL)

    def _enforce(self):
        now = time.monotonic()
        look = not self.cage.namespaces and now - self.looked >= _LOOK_EVERY
        self.looked = now if look else self.looked
        for run in self.runs.values():
            broke = "time" if now > run.deadline else _overstepped(run) if look else ""
            if broke:
                run.broke = broke
                run.deadline = now + 1  # look again, should it take that long to end
                os.kill(run.process, signal.SIGKILL)

    def _bury(self, place):
        """The process has ended: leave no folder, and say how it went."""
        run = self.runs.pop(place)
        _, status, used = os.wait4(run.process, 0)
        for watched in (run.handle, run.leash):
            if watched in self.events.get_map():
                self.events.unregister(watched)
        os.close(run.handle)
        with contextlib.suppress(OSError):  # nothing is mounted where the kernel doesn't bound the folder
            kernel.unmount(run.folder)
        sweep.remove(run.folder)
        report = {"status": os.waitstatus_to_exitcode(status), "broke": run.broke, "cpu_seconds": used.ru_utime + used.ru_stime}
        with run.leash, contextlib.suppress(OSError):  # whoever held the leash may be gone
            run.leash.send(json.dumps(report).encode())


def _overstepped(run):
    """The ceiling that the run is over, or nothing."""
    if not sweep.fits(run.folder, run.ceilings.disk_bytes, run.ceilings.disk_entries):
        return "disk"
    with contextlib.suppress(FileNotFoundError):  # it has ended
        threads = os.stat(f"/proc/{run.process}/task").st_nlink - 2
        return "threads" if threads > run.ceilings.threads else ""
    return ""


def _inside(cage, ceilings, folder, user, keeper, pipes):
    """The forked process: keep its four pipes and nothing else, lock itself in, then do its work. Never returns."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _keep_only(pipes)
        enclose(cage, ceilings, folder, user, keeper)
    except BaseException as fault:
        os.write(2, f"the jail could not be built: {fault}\n".encode())
        os._exit(1)
    try:
        inmate.serve(reads=3, answers=4)
    except MemoryError:
        os._exit(inmate.OUT_OF_MEMORY)
    except BaseException as fault:
        os.write(2, f"the process broke down: {fault!r}\n".encode(errors="replace"))
    finally:
        os._exit(0)


def _keep_only(pipes):
    """stdin is empty, 1 and 2 go to the grader, 3 is read, 4 is answered on; every other handle is closed."""
    reads, answers, out, err = pipes
    wanted = (os.open("/dev/null", os.O_RDONLY), out, err, reads, answers)
    beyond = max(wanted) + 1  # first out of the way, so that none is overwritten before it is moved
    for index, handle in enumerate(wanted):
        os.dup2(handle, beyond + index)
    for index in range(len(wanted)):
        os.dup2(beyond + index, index)
    os.closerange(len(wanted), 1 << 20)
