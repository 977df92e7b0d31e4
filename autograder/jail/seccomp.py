"""Seccomp: the kernel calls a learner's process may make. What isn't listed is refused, so what kernels add later is too.

Nothing here can start a process or a program, open a socket, change a file's owner, mode or dates, look into or stop
another process, or change a limit.
"""

import ctypes
import errno
import functools
import os
import struct

from . import kernel

_FILTER_MODE = 2
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

# name: (x86_64, aarch64); None where that family has no such call
ALLOWED = {
    # memory of its own; memfd_create is missing, since such memory escapes RLIMIT_AS and can hold a program to run
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "msync": (26, 227),
    "membarrier": (324, 283),
    # files: Landlock says which. chmod, chown, utime, setxattr, link, symlink, mknod and truncate by path are missing:
    # Landlock doesn't see the first four at all and truncate only from Linux 6.2. inotify would tell names in folders
    # that can't be listed. sync would stall the whole machine's disk. fallocate takes up disk beyond RLIMIT_FSIZE, and
    # flock locks files that may only be read, which the run of another learner could notice.
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "preadv": (295, 69),
    "pwritev": (296, 70),
    "close": (3, 57),
    "close_range": (436, 436),
    "lseek": (8, 62),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "ftruncate": (77, 46),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "fadvise64": (221, 223),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "copy_file_range": (326, 285),
    "sendfile": (40, 71),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "umask": (95, 166),
    # waiting for them
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    "recvfrom": (45, 207),
    # time, read only
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "alarm": (37, None),
    # what it is; none of these changes anything, or tells of another process. setrlimit, setpriority and the sched_set*
    # family are missing: they reach other processes of the same user, the grader among them
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getgroups": (115, 158),
    "getpgrp": (111, None),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "sched_yield": (24, 124),
    "getcpu": (309, 168),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "capget": (125, 90),
    "getrandom": (318, 278),
    "arch_prctl": (158, None),
    "wait4": (61, 260),
    "waitid": (247, 95),
    # threads of its own, and its end
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "futex": (202, 98),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "restart_syscall": (219, 128),
    "pause": (34, None),
    # signals: handling them
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
}

# Refused with "no such call", on which the C library falls back to the older call we can look into: the arguments of
# these lie in memory, where a filter can't see them.
ABSENT = {"clone3": (435, 435), "openat2": (437, 437)}

_ALL = 0xFFFFFFFF
_TRUNCATE_ONLY, _ACCESS = 0x200, 0x200 | 0b11  # O_TRUNC with O_RDONLY, out of O_TRUNC and the access mode
_NAMELESS = 0x400000  # what O_TMPFILE adds to O_DIRECTORY
_WHITEOUT = 4
_NEW_THREAD, _NEW_NAMESPACES = 0x10000 | 0x400, 0x7E020000  # CLONE_THREAD and CLONE_FILES
_OF_A_PROCESS = {"getpgid": (121, 155), "getsid": (124, 156), "sched_getaffinity": (204, 123)}
_OF_A_PROCESS |= {"sched_getparam": (143, 121), "sched_getscheduler": (145, 120)}
_SAFE_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)  # dup, flags, locks, pipe size
_SAFE_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, its size, bytes waiting, close on exec
_SAFE_PRCTL = (2, 3, 15, 16, 21, 23, 39, 0x53564D41)  # questions about itself, and names for threads and memory
_UNIX, _STREAM = 1, 1


def guarded():
    """Calls allowed for some arguments. name: (numbers, alternatives, refuse); an alternative is tests (argument, half, mask, value).

    A call passes when one alternative holds, or, where `refuse` is set, when none does.
    """
    me = os.getpid()
    null = lambda argument: [(argument, 0, _ALL, 0), (argument, 1, _ALL, 0)]
    one_of = lambda argument, values: [[(argument, 0, _ALL, value)] for value in values]
    return {
        # a signal to oneself (raise, abort, a thread) and to nobody else; not 0 or -1, which mean groups
        "kill": ((62, 129), one_of(0, [me]), False),
        "tgkill": ((234, 131), one_of(0, [me]), False),
        # threads, never a process: what can't multiply can't outlive the run; with one table of handles for all, which is bounded
        "clone": ((56, 220), [[(0, 0, _NEW_THREAD | _NEW_NAMESPACES, _NEW_THREAD)]], False),
        # a question about another process would tell whether it is there
        **{name: (numbers, one_of(0, [0, me]), False) for name, numbers in _OF_A_PROCESS.items()},
        # limits may be asked of oneself, not set, and not asked of or set for another process
        "prlimit64": ((302, 261), [[(0, 0, _ALL, pid), *null(2)] for pid in (0, me)], False),
        # F_SETOWN and F_SETSIG make the kernel send a signal of one's choice to another process
        "fcntl": ((72, 25), one_of(1, _SAFE_FCNTL), False),
        # TIOCSTI types into a terminal, FIOSETOWN is F_SETOWN again
        "ioctl": ((16, 29), one_of(1, _SAFE_IOCTL), False),
        # not PR_SET_PDEATHSIG (outlive the keeper), PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_PTRACER …
        "prctl": ((157, 167), one_of(0, _SAFE_PRCTL), False),
        # a connected pair with both ends in here (asyncio wants one); a datagram pair could write to any address
        "socketpair": ((53, 199), [[(0, 0, _ALL, _UNIX), (1, 0, 0xFF, _STREAM)]], False),
        "sendto": ((44, 206), [null(4)], False),  # no address, so only along such a pair
        # before Linux 6.2 Landlock can't stop open(O_RDONLY | O_TRUNC), which empties a file that may only be read; and a
        # file without a name takes up disk that nobody sees who looks at the folder
        "open": ((2, None), [[(1, 0, _ACCESS, _TRUNCATE_ONLY)], [(1, 0, _NAMELESS, _NAMELESS)]], True),
        "openat": ((257, 56), [[(2, 0, _ACCESS, _TRUNCATE_ONLY)], [(2, 0, _NAMELESS, _NAMELESS)]], True),
        # with RENAME_WHITEOUT a device is left where the file was
        "renameat2": ((316, 276), [[(4, 0, _WHITEOUT, 0)]], False),
    }


def available():
    """Whether this kernel takes filters."""
    if not kernel.SUPPORTED:
        return False
    try:
        kernel.prctl("seccomp", kernel.PR_GET_SECCOMP)
        kernel.prctl("seccomp", kernel.PR_SET_SECCOMP, _FILTER_MODE, None)
    except OSError as refused:
        return refused.errno == errno.EFAULT  # it looked for the filter: the mode exists
    return False


def restrict():
    """Put the filter on this process, for good. It must have one thread and already hold everything it needs."""
    instructions = program(kernel.MACHINE)
    code = ctypes.create_string_buffer(b"".join(instructions))
    header = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
    kernel.prctl("no new privileges", kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl("seccomp", kernel.PR_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(header))


# ------------------------------------------------------------------ the filter, in the kernel's little language
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NOT_PERMITTED, _NO_SUCH_CALL = 0x00050000 | 1, 0x00050000 | 38
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000  # numbers from here on are a second, differently numbered table on x86_64


def program(machine):
    """The filter as a list of 8-byte instructions."""
    column = _COLUMN[machine]
    code = [*_same_for_all(machine)]
    for numbers, alternatives, refuse in guarded().values():
        if numbers[column] is not None:
            code += _guard(numbers[column], alternatives, refuse)
    return [*code, _instruction(_RETURN, _NOT_PERMITTED)]


@functools.cache
def _same_for_all(machine):
    """What comes first in the filter of every process: calls that pass or fail whatever their arguments are."""
    column = _COLUMN[machine]
    code = [
        _instruction(_LOAD, _ARCH_AT),  # a 32-bit call on a 64-bit machine has other numbers: kill, don't guess
        _instruction(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
        _instruction(_AT_LEAST, _X32, 0, 1),
        _instruction(_RETURN, _KILL),
    ]
    for table, verdict in ((ALLOWED, _ALLOW), (ABSENT, _NO_SUCH_CALL)):
        for number in (numbers[column] for numbers in table.values()):
            if number is not None:
                code += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, verdict)]
    return code


def _guard(number, alternatives, refuse):
    hit, miss = (_NOT_PERMITTED, _ALLOW) if refuse else (_ALLOW, _NOT_PERMITTED)
    body = [instruction for tests in alternatives for instruction in _alternative(tests, hit)]
    body.append(_instruction(_RETURN, miss))
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def _alternative(tests, hit):
    """Return `hit` when every test holds; otherwise go on behind it."""
    code = []
    for position, (argument, half, mask, value) in enumerate(tests):
        behind = 3 * (len(tests) - position - 1) + 1
        code += [
            _instruction(_LOAD, _ARGUMENTS_AT + 8 * argument + 4 * half),
            _instruction(_AND, mask),
            _instruction(_EQUAL, value, 0, behind),
        ]
    return [*code, _instruction(_RETURN, hit)]


def _instruction(code, value, then=0, otherwise=0):
    return struct.pack("HBBI", code, then, otherwise, value)
