"""The files a jailed process may read: Python, its packages, the fonts and clocks they need, and the formulary."""

import os
import pathlib
import sys
import sysconfig

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Packages of the project that cells may import. Never the whole project: it holds the answers and the gradebook.
TAUGHT = ("formulary",)
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/fonts",
    "/usr/share/zoneinfo",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def packages():
    """The package folders this interpreter imports from."""
    known = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    installed = [path for path in sys.path if path.rstrip("/").endswith(("site-packages", "dist-packages", "lib-dynload"))]
    return sorted({os.path.realpath(path) for path in [*known, *installed]} | known)


def readable():
    """Every file and folder a jailed process may read, each as an absolute path that exists."""
    own_library = os.path.join(sys.base_prefix, "lib")  # libpython, and what it is linked with
    taught = [str(_ROOT / name) for name in TAUGHT]
    return [path for path in (*_SYSTEM, own_library, *packages(), *taught, *DEVICES) if os.path.exists(path)]


def exposes(path):
    """Whether a jailed process could read `path`: what must stay secret must never lie where this is true."""
    path = os.path.realpath(path)
    return any(os.path.commonpath([path, os.path.realpath(folder)]) == os.path.realpath(folder) for folder in readable())


def root():
    """The project's folder."""
    return str(_ROOT)
