"""A grader's machine in miniature: what an attack may want, and a way to tell whether it got any of it."""

import contextlib
import hashlib
import os
import pathlib
import resource
import secrets
import socket
import sqlite3
import subprocess
import sys


class World:
    """Files, a token, an open handle, listeners and a bystander process, all made for the taking, under `folder`."""

    def __init__(self, folder):
        self.secret = f"key-{secrets.token_hex(16)}"  # never written into a test, so whoever knows it has read it
        self.folder = pathlib.Path(folder)
        self._write_files()
        os.environ["GRADER_TOKEN"] = self.secret
        self.handle = os.open(self.folder / "key.yaml", os.O_RDWR)
        os.set_inheritable(self.handle, True)
        self._listen()
        self.bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
        self._manners = self._bystander()

    def _write_files(self):
        for name in ("key.yaml", "submitted/bob/paper.ipynb", "source/paper.ipynb", "secret_module.py"):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"answer = '{self.secret}'\n")
        with contextlib.closing(sqlite3.connect(self.folder / "gradebook.db")) as database, database:
            database.execute("create table grade (student text, points real, note text)")
            database.execute("insert into grade values ('alice', 0, ?)", (self.secret,))

    def _listen(self):
        self.listeners = [socket.socket(family, kind) for family, kind in _LISTENERS]
        tcp, udp, unix, abstract = self.listeners
        self.abstract = f"\0hostile-{secrets.token_hex(4)}"
        for listener, address in ((tcp, _ANY), (udp, _ANY), (unix, str(self.folder / "socket")), (abstract, self.abstract)):
            listener.bind(address)
            listener.setblocking(False)
            if listener.type == socket.SOCK_STREAM:
                listener.listen()

    def targets(self):
        """All an attacker could know, as plain data: everything but the secret."""
        tcp, udp, *_ = self.listeners
        return {
            "folder": str(self.folder),
            "key": str(self.folder / "key.yaml"),
            "gradebook": str(self.folder / "gradebook.db"),
            "other": str(self.folder / "submitted/bob/paper.ipynb"),
            "socket": str(self.folder / "socket"),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": self.abstract,
            "handle": self.handle,
            "grader": os.getpid(),
            "bystander": self.bystander.pid,
            "python": os.path.dirname(os.__file__),
        }

    def harm(self, *seen):
        """What an attack got or changed, as a list of sentences; empty where it got nothing. `seen` is all that came out of it."""
        harms = ["the secret came out"] * any(self.secret in repr(thing) for thing in seen)
        harms += ["the files changed"] * (self._files() != self._before)
        harms += [f"somebody reached {listener.family.name} {listener.type.name}" for listener in self.listeners if self._reached(listener)]
        harms += ["the bystander was disturbed"] * (self._bystander() != self._manners)
        return harms

    def settle(self):
        """Remember how things are."""
        self._before = self._files()
        return self

    def _files(self):
        return {str(path): self._state(path) for path in sorted(self.folder.rglob("*"))}

    def _state(self, path):
        status = path.lstat()
        contents = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and os.access(path, os.R_OK) else ""
        extra = {name: os.getxattr(path, name) for name in os.listxattr(path)} if path.is_file() else {}
        return status.st_mode, status.st_uid, status.st_mtime_ns, status.st_nlink, contents, extra

    @staticmethod
    def _reached(listener):
        with contextlib.suppress(BlockingIOError):
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(100)
            return True
        return False

    def _bystander(self):
        process = self.bystander.pid
        if self.bystander.poll() is not None:
            return "ended"
        stopped = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        limit = resource.prlimit(process, resource.RLIMIT_CPU)
        return stopped, os.getpriority(os.PRIO_PROCESS, process), sorted(os.sched_getaffinity(process)), limit

    def close(self):
        self.bystander.kill()
        self.bystander.wait()
        os.close(self.handle)
        for listener in self.listeners:
            listener.close()


_ANY = ("127.0.0.1", 0)
_LISTENERS = (
    (socket.AF_INET, socket.SOCK_STREAM),
    (socket.AF_INET, socket.SOCK_DGRAM),
    (socket.AF_UNIX, socket.SOCK_STREAM),
    (socket.AF_UNIX, socket.SOCK_DGRAM),
)
