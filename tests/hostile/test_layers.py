"""Each layer by itself, also for processors and systems this machine is not."""

import contextlib
import os
import struct

import pytest

from autograder.jail import exposes, floor, kernel, places, run_examined, run_jailed, runs, seccomp, sweep
from autograder.jail.doctor import main

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, NOT_PERMITTED, NO_SUCH_CALL = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
# name: numbers, arguments, verdict
CALLS = {
    "read": ((0, 63), (), ALLOW),
    "socket": ((41, 198), (2, 1), NOT_PERMITTED),
    "connect": ((42, 203), (3,), NOT_PERMITTED),
    "execve": ((59, 221), (), NOT_PERMITTED),
    "execveat": ((322, 281), (), NOT_PERMITTED),
    "ptrace": ((101, 117), (16,), NOT_PERMITTED),
    "process_vm_readv": ((310, 270), (), NOT_PERMITTED),
    "unshare": ((272, 97), (), NOT_PERMITTED),
    "mount": ((165, 40), (), NOT_PERMITTED),
    "keyctl": ((250, 219), (), NOT_PERMITTED),
    "bpf": ((321, 280), (), NOT_PERMITTED),
    "userfaultfd": ((323, 282), (), NOT_PERMITTED),
    "io_uring_setup": ((425, 425), (), NOT_PERMITTED),
    "memfd_create": ((319, 279), (), NOT_PERMITTED),
    "fchmodat": ((268, 53), (), NOT_PERMITTED),
    "truncate": ((76, 45), (), NOT_PERMITTED),
    "pidfd_send_signal": ((424, 424), (), NOT_PERMITTED),
    "a call of the future": ((1000, 1000), (), NOT_PERMITTED),
    "clone3": ((435, 435), (), NO_SUCH_CALL),
    "a thread": ((56, 220), (0x3D0F00,), ALLOW),
    "a thread with handles of its own": ((56, 220), (0x3D0B00,), NOT_PERMITTED),
    "a thread in a new namespace": ((56, 220), (0x3F0F00,), NOT_PERMITTED),
    "a process": ((56, 220), (0x01200011,), NOT_PERMITTED),
    "signal oneself": ((62, 129), (os.getpid(), 6), ALLOW),
    "signal the parent": ((62, 129), (os.getppid(), 6), NOT_PERMITTED),
    "signal everybody": ((62, 129), (2**64 - 1, 9), NOT_PERMITTED),
    "ask a limit": ((302, 261), (0, 7, 0, 12345), ALLOW),
    "set a limit": ((302, 261), (0, 7, 12345, 0), NOT_PERMITTED),
    "set a limit, by a pointer with no low half": ((302, 261), (0, 7, 1 << 32, 0), NOT_PERMITTED),
    "ask the grader's limit": ((302, 261), (os.getppid(), 7, 0, 12345), NOT_PERMITTED),
    "a unix stream pair": ((53, 199), (1, 1 | 0x80000, 0), ALLOW),
    "a unix datagram pair": ((53, 199), (1, 2, 0), NOT_PERMITTED),
    "send along a pair": ((44, 206), (3, 9, 9, 0, 0, 0), ALLOW),
    "send to an address": ((44, 206), (3, 9, 9, 0, 1 << 40, 16), NOT_PERMITTED),
    "open to read": ((257, 56), (0, 0, os.O_RDONLY), ALLOW),
    "open to write anew": ((257, 56), (0, 0, os.O_WRONLY | os.O_TRUNC | os.O_CREAT), ALLOW),
    "empty while reading": ((257, 56), (0, 0, os.O_RDONLY | os.O_TRUNC), NOT_PERMITTED),
    "a file without a name": ((257, 56), (0, 0, os.O_RDWR | 0o20000000), NOT_PERMITTED),
    "exchange two files": ((316, 276), (0, 0, 0, 0, 2), ALLOW),
    "leave a device behind": ((316, 276), (0, 0, 0, 0, 4), NOT_PERMITTED),
    "its own processors": ((204, 123), (0,), ALLOW),
    "the parent's processors": ((204, 123), (os.getppid(),), NOT_PERMITTED),
    "F_SETOWN": ((72, 25), (3, 8, 1), NOT_PERMITTED),
    "TIOCSTI": ((16, 29), (0, 0x5412), NOT_PERMITTED),
    "PR_SET_PDEATHSIG": ((157, 167), (1, 0), NOT_PERMITTED),
}


@pytest.mark.parametrize("machine", ARCH)
@pytest.mark.parametrize("name", CALLS)
def test_filter(name, machine):
    numbers, arguments, verdict = CALLS[name]
    assert _decide(machine, ARCH[machine], numbers[seccomp._COLUMN[machine]], arguments) == verdict


@pytest.mark.parametrize("machine", ARCH)
def test_filter_kills_calls_of_another_table(machine):
    i386 = 0x40000003
    assert _decide(machine, i386, 1, ()) == KILL
    assert _decide(machine, ARCH[machine], 0x40000000 + 1, ()) == KILL


def _decide(machine, arch, number, arguments):
    """What the kernel would decide: its little machine, with one register, run over our program."""
    words = [*(value & 0xFFFFFFFFFFFFFFFF for value in arguments), *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *words)
    code, at, register = seccomp.program(machine), 0, 0
    while True:
        operation, then, otherwise, value = struct.unpack("HBBI", code[at])
        at += 1
        if operation == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            register &= value
        elif operation == 0x06:
            return value
        else:
            at += then if {0x15: register == value, 0x35: register >= value}[operation] else otherwise


def test_every_number_is_listed_once():
    for column in (0, 1):
        numbers = [entry[column] for entry in [*seccomp.ALLOWED.values(), *seccomp.ABSENT.values()]]
        numbers += [entry[0][column] for entry in seccomp.guarded().values()]
        numbers = [number for number in numbers if number is not None]
        assert len(numbers) == len(set(numbers))


@pytest.fixture
def elsewhere(monkeypatch):
    """A system that can't lock anything in, such as macOS or Windows."""
    monkeypatch.setattr(kernel, "SUPPORTED", False)
    floor.cache_clear()
    yield
    floor.cache_clear()


def test_where_nothing_can_be_locked_in_nothing_is_run(elsewhere, capsys):
    assert not floor()
    for result in (run_jailed(["answer = 1"], ["answer"]), run_examined(["x = 1"], ["answer = 1"], ["answer"])):
        assert (result.verdict, result.answers) == ("refused", {})
        assert "person" in result.error
    assert main(["grade", "doctor"]) == 1
    assert "Only literal answers are marked here" in capsys.readouterr().out


def test_where_the_project_can_be_read_nothing_is_run(monkeypatch, capsys):
    monkeypatch.setattr(places, "_SYSTEM", (os.path.dirname(places.root()),))
    floor.cache_clear()
    try:
        assert run_jailed(["answer = 1"], ["answer"]).verdict == "refused"
        assert main(["grade", "doctor"]) == 1 and "NO   the project elsewhere" in capsys.readouterr().out
    finally:
        floor.cache_clear()


def test_a_jail_that_can_not_be_built_runs_nothing(monkeypatch):
    impossible = runs.Limits(disk_bytes=-1, file_bytes=-2)
    result = run_jailed(["answer = 1"], ["answer"], limits=impossible)
    assert (result.verdict, result.answers) == ("refused", {})
    assert "the jail could not be built" in result.error


def test_doctor_says_what_was_tried(capsys):
    assert main(["grade", "doctor"]) == 0
    report = capsys.readouterr().out
    assert "Landlock" in report
    assert "NO " not in report.split("locked in, and stopped")[1]


def test_what_must_stay_secret_does_not_lie_where_it_can_be_read():
    root = places.root()
    assert not any(exposes(os.path.join(root, name)) for name in ("exercises", "autograder", "tests", ".git", "gradebook.db", "."))
    assert exposes(os.path.join(root, "formulary/formula.py"))
    assert exposes(os.__file__)


def test_sweeping_a_tree_deeper_than_a_path_can_be_long(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "kept").write_text("x")
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(40):
            os.symlink(tmp_path / "kept", "link")
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        open("file", "w").close()
    finally:
        os.chdir(here)
    assert not sweep.fits(top, max_bytes=10**9, max_entries=10**6)
    sweep.remove(top)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_vanishes_while_it_is_looked_at_hides_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    (tmp_path / "gone").touch()
    entries = [*os.scandir(tmp_path)]
    (tmp_path / "gone").unlink()
    monkeypatch.setattr(os, "scandir", lambda _: contextlib.nullcontext(entries))
    assert not sweep.fits(tmp_path, max_bytes=1 << 19, max_entries=10)
