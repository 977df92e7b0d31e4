"""Namespaces: a world with its own few files, processes and network, entered once by the zygote and shared by its runs.

Root may make them; elsewhere a user namespace is tried first, which some systems refuse. They are a layer on top: they
hide even the names, sizes and dates of files, bound the disk, and end every process in them together with the zygote.
"""

import os

from . import kernel

_FILES, _HOSTNAME, _IPC, _USER, _PIDS, _NETWORK = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_PRIVATE, _NO_SUID, _NO_DEVICES = 0x40000 | 0x4000, 0x2, 0x4
_CLONE, _RECURSIVE, _EMPTY_PATH, _HERE = 1, 0x8000, 0x1000, -100
_READ_ONLY = 0x1 | 0x2  # read only, no setuid programs; devices stay usable: /dev/null is one
_ATTACH = 0x4  # move_mount: the source is a handle
WORK = "/tmp"


def available():
    """Whether this machine lets us make them; tried in a child."""
    if not kernel.SUPPORTED:
        return False
    child = os.fork()
    if not child:
        _try()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _try():
    try:
        enter(["/lib", "/usr/lib"])
        os._exit(0)
    except OSError:
        os._exit(1)


def enter(readable):
    """Move this process into new namespaces that show `readable`, read only, and an empty /tmp. Processes it forks are inside too."""
    owner = os.geteuid(), os.getegid()
    kernel.unshare(_FILES | _HOSTNAME | _IPC | _PIDS | _NETWORK | (_USER if owner[0] else 0))
    if owner[0]:
        _keep_identity(*owner)
    _show_only(readable)
    forked = os.fork()  # the first one in is its init: the kernel kills all the others when it ends
    if forked:
        _wait_for(forked)
    kernel.die_with_parent()


def _keep_identity(user, group):
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as table:
            table.write(text)


def _wait_for(child):
    """Stay behind as the parent, holding nothing, until `child` ends."""
    os.closerange(0, 1 << 16)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def _show_only(readable):
    kernel.mount("none", "/", "", _PRIVATE)
    copies = {path: _copy(path) for path in _outermost(readable)}  # taken before the new root hides what lies under it
    kernel.mount("jail", WORK, "tmpfs", _NO_SUID | _NO_DEVICES, "size=4m,nr_inodes=4k,mode=0755")
    for path, copy in copies.items():
        _put(WORK + path, copy)
    os.makedirs(WORK + WORK, exist_ok=True)
    os.chdir(WORK)
    kernel.syscall("pivot_root", kernel.PIVOT_ROOT[kernel.MACHINE], b".", b".")
    kernel.unmount(".")
    os.chdir("/")


def _outermost(paths):
    """Real paths, without those that lie inside another."""
    kept = []
    for path in sorted(set(paths), key=len):
        if not any(path == other or path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept


def _copy(path):
    if os.path.islink(path):  # /lib is usually a link to usr/lib
        return os.readlink(path)
    handle = kernel.syscall(f"open_tree {path}", kernel.OPEN_TREE, _HERE, path.encode(), _CLONE | _RECURSIVE)
    attributes = _READ_ONLY.to_bytes(8, "little") + bytes(24)
    flags = _EMPTY_PATH | _RECURSIVE
    kernel.syscall(f"read only {path}", kernel.MOUNT_SETATTR, handle, b"", flags, attributes, len(attributes))
    return handle


def _put(place, copy):
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if isinstance(copy, str):
        return os.symlink(copy, place)
    if os.path.isdir(f"/proc/self/fd/{copy}"):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o444))
    kernel.syscall(f"move_mount {place}", kernel.MOVE_MOUNT, copy, b"", _HERE, place.encode(), _ATTACH)
    os.close(copy)
