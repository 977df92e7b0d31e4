"""Kernel calls that Python has no name for, by number, on the two processor families the jail knows."""

import ctypes
import os
import platform
import sys

MACHINE = platform.machine()
SUPPORTED = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64")
_LIBC = ctypes.CDLL(None, use_errno=True) if SUPPORTED else None

# Numbers above 424 are the same on every architecture; the others are (x86_64, aarch64).
CAPSET = {"x86_64": 126, "aarch64": 91}
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_GET_SECCOMP, PR_SET_SECCOMP = 1, 4, 21, 22
PR_SET_NO_NEW_PRIVS = 38


def syscall(what, number, *arguments):
    """The result of system call `number`; OSError that starts with `what`."""
    return _checked(_LIBC.syscall(ctypes.c_long(number), *map(_word, arguments)), what)


def prctl(what, option, *arguments):
    """The result of prctl(`option`); OSError that starts with `what`."""
    words = [*map(_word, arguments), *[ctypes.c_long(0)] * (4 - len(arguments))]
    return _checked(_LIBC.prctl(option, *words), what)


def mount(source, target, kind, flags, data=""):
    """mount(2), with text arguments."""
    texts = [text.encode() for text in (source, target, kind)]
    return _checked(_LIBC.mount(*texts, ctypes.c_ulong(flags), data.encode()), f"mount {target}")


def unmount(target):
    """Detach whatever is mounted at `target`."""
    lazily = 2
    return _checked(_LIBC.umount2(target.encode(), lazily), f"unmount {target}")


def unshare(flags):
    """Leave the namespaces named by `flags`."""
    return _checked(_LIBC.unshare(flags), "unshare")


def drop_capabilities():
    """Give up every capability; without new privileges none comes back."""
    version_3, nothing = 0x20080522, bytes(24)
    header = version_3.to_bytes(4, sys.byteorder) + bytes(4)
    syscall("drop capabilities", CAPSET[MACHINE], header, nothing)


def die_with_parent():
    """Be killed when the parent ends, whatever ends it."""
    prctl("parent death signal", PR_SET_PDEATHSIG, 9)


def _word(value):
    if isinstance(value, (bytes, ctypes.Array)):
        return ctypes.cast(value, ctypes.c_void_p)
    return ctypes.c_void_p(None) if value is None else ctypes.c_long(value)


def _checked(result, what):
    if result >= 0:
        return result
    code = ctypes.get_errno()
    raise OSError(code, f"{what}: {os.strerror(code)}")
