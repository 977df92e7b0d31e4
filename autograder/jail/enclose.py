"""The layers around one run, put on in order by the forked process itself, before it has seen a line of what it will run."""

import dataclasses
import os
import random
import sys

from . import kernel, landlock, limits, seccomp

_FIRST_USER, _USERS = 1_610_612_736, 1024  # far from every real account


@dataclasses.dataclass(frozen=True)
class Cage:
    """What this machine offers, found out once by the zygote."""

    readable: tuple[str, ...]
    namespaces: bool
    users: bool  # whether each run can be its own user
    base_memory: int  # address space already taken by what is preloaded, in bytes
    base_threads: int  # threads that may already count as this user's

    def user(self, place):
        """The user of the run in `place`, or None where that is not ours to choose."""
        return _FIRST_USER + place % _USERS if self.users else None


def can_change_user(readable):
    """Whether a run can be another user and still read what it needs; tried in a child."""
    if os.geteuid():
        return False
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        _become(_FIRST_USER)
        os._exit(0 if all(os.access(path, os.R_OK) for path in readable) else 1)
    except OSError:
        os._exit(1)


def enclose(cage, ceilings, folder, user, keeper):
    """Lock this process in `folder`, for good. Any OSError means it is not locked in and must end."""
    os.umask(0o077)
    if cage.namespaces:
        size = f"size={ceilings.disk_bytes},nr_inodes={ceilings.disk_entries},mode=0700"
        kernel.mount("work", folder, "tmpfs", 0x2 | 0x4 | 0x8, size)  # no setuid, devices or programs; gone with the run
    if user is not None:
        os.chown(folder, user, user)
        _become(user)
    kernel.drop_capabilities()
    kernel.prctl("dumpable", kernel.PR_SET_DUMPABLE, 0)  # no other process of this user may look into it
    kernel.die_with_parent()  # here, since changing the user undoes it
    if os.getppid() != keeper:
        raise ProcessLookupError("its keeper is gone")
    os.chdir(folder)
    _furnish(folder)
    limits.apply(ceilings, cage.base_memory, cage.base_threads)
    # a file that has lost its name still takes up disk, and where the kernel doesn't bound that, we could not see it
    landlock.restrict(cage.readable, [folder], removing=cage.namespaces)
    seccomp.restrict()


def _become(user):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _furnish(folder):
    """A home in its folder, and the same dice for everyone: two runs of the same cells give the same answers."""
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR"):  # one by one, for `update` would touch every class there is of mappings
        os.environ[name] = folder
    sys.path.insert(0, folder)
    random.seed(0)  # a fork had thrown them anew
