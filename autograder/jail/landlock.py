"""Landlock: the files a process may touch, and no TCP and no signal beyond itself. Needs no privilege."""

import os
import stat
import struct

from . import kernel

# The rights a kernel knows, by ABI version: file rights are bits 0 .. n-1.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_READ_FILE, _READ_FOLDER, _WRITE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
_REMOVE_FOLDER, _REMOVE_FILE, _MAKE_FOLDER, _MAKE_FILE, _MOVE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 13
_READ = _READ_FILE | _READ_FOLDER
# No right to make links, sockets, pipes or devices: whoever cleans the folder up meets files and folders only.
_WORK = _READ | _WRITE | _TRUNCATE | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_FOLDER | _MAKE_FILE | _MOVE
_ON_FILES = _READ_FILE | _WRITE | _TRUNCATE


def abi():
    """The version of Landlock this kernel offers; 0 where there is none."""
    if not kernel.SUPPORTED:
        return 0
    try:
        version_please = 1
        return kernel.syscall("landlock", kernel.LANDLOCK_CREATE, None, 0, version_please)
    except OSError:
        return 0


def restrict(readable, writable, removing=True):
    """Refuse every file but those in and under `readable` and `writable`, for this process, for good.

    Without `removing` no file in `writable` can be removed, renamed or replaced.
    """
    work = _WORK if removing else _WORK & ~_REMOVE_FILE
    handled = (1 << _FILE_RIGHTS[min(abi(), 5)]) - 1
    ruleset = _ruleset(handled)
    for path in readable:
        _allow(ruleset, path, _READ & handled)
    for path in writable:
        _allow(ruleset, path, work & handled)
    kernel.prctl("no new privileges", kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.syscall("landlock: restrict", kernel.LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _ruleset(handled):
    tcp = 0b11 if abi() >= 4 else 0  # bind and connect, allowed nowhere
    scopes = 0b11 if abi() >= 6 else 0  # abstract sockets and signals stay inside
    size = 8 if abi() < 4 else 16 if abi() < 6 else 24
    return kernel.syscall("landlock: create", kernel.LANDLOCK_CREATE, struct.pack("QQQ", handled, tcp, scopes)[:size], size, 0)


def _allow(ruleset, path, rights):
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:  # a list of usual places: not every system has all of them
        return
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= _ON_FILES
    beneath = 1
    kernel.syscall(f"landlock: {path}", kernel.LANDLOCK_ADD, ruleset, beneath, struct.pack("=Qi", rights, handle), 0)
    os.close(handle)
