"""A network of the ranks' own, on this machine, whose counters count nobody else's bytes.

Linux lets root give a process a network namespace: interfaces that only it sees. Rank 0 makes one and wakes its loopback
interface, the others join it, and what they then open runs over it.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from labs.jobs import ranks

LOOPBACK = "lo"
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
COUNTERS = "/proc/thread-self/net/dev"
RECEIVED_BYTES, RECEIVED_PACKETS = 0, 1  # columns; on a loopback interface what is sent is received
HEADERS = 14 + 20 + 32  # bytes of Ethernet, IP and TCP with its timestamps before the data of each packet
SETTLE_SECONDS = 0.02
PATIENCE = timedelta(seconds=30)  # a message takes milliseconds; a rank that waits longer waits for nobody
TAKES = 5


class NoPrivateNetwork(RuntimeError):
    """Why there can be none here."""


@dataclass(frozen=True)
class Counted:
    """What has gone over the loopback interface: bytes, headers included, and packets."""

    nbytes: int
    packets: int

    def since(self, earlier):
        """Bytes since then without the packets' headers."""
        return self.nbytes - earlier.nbytes - HEADERS * (self.packets - earlier.packets)


def enter():
    """Move this rank, with all others, into a network of their own; returns a gloo group in it. Raises NoPrivateNetwork.

    To be done last: what is opened from then on is opened there.
    """
    if without := _nothing_to_count(dist.get_backend(), dist.get_world_size(), int(os.environ["LOCAL_WORLD_SIZE"])):
        raise NoPrivateNetwork(without)
    first = dist.get_rank() == 0
    process, refused = ranks.gather((os.getpid(), _attempt(_make) if first else ""))[0]
    if not refused:
        refused = next(filter(None, ranks.gather("" if first else _attempt(_join, process))), "")
    if refused:
        raise NoPrivateNetwork(refused)
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    return dist.new_group(backend="gloo", timeout=PATIENCE)


def _nothing_to_count(backend, world_size, local_world_size):
    """Why nobody should move, or nothing. NCCL's ranks stay where they are: threads it has started would not come along."""
    if backend != "gloo":
        return f"the ranks talk through {backend}, and what is counted here are gloo's sockets"
    if world_size == 1:
        return "a single rank sends nothing"
    if local_world_size != world_size:
        return "the ranks are on several machines, and a network namespace is on one"
    return ""


def _attempt(action, *args):
    """Why it failed, or nothing."""
    try:
        action(*args)
    except (OSError, AttributeError) as error:
        return f"{error.strerror or error}: a network namespace takes Linux and root"
    return ""


def _make():
    _call("unshare", CLONE_NEWNET)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", LOOPBACK.encode(), IFF_UP | IFF_RUNNING))


def _join(process):
    with open(f"/proc/{process}/ns/net") as namespace:
        _call("setns", namespace.fileno(), CLONE_NEWNET)


def _call(name, *args):
    """A call of the C library, on Linux; an OSError where it is refused."""
    if sys.platform != "linux":
        raise OSError(0, f"there is no {name} on {sys.platform}")
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def sent_by_each(action, group):
    """Bytes that a rank sends on the average when all of them take `action`, barriers around it and headers not counted.

    The least of several takes: on a busy machine TCP sends again what was only slow to be acknowledged.
    """
    action()  # gloo connects, and agrees on what is coming
    nothing, something = (min(_between_barriers(what, group) for _ in range(TAKES)) for what in (lambda: None, action))
    return (something - nothing) / dist.get_world_size()


def _between_barriers(action, group):
    before = _settled(group)
    action()
    return _settled(group).since(before)


def _settled(group):
    """What has been counted once all ranks are here and all acknowledgements have come."""
    dist.barrier(group=group)
    time.sleep(SETTLE_SECONDS)
    now = counted()
    dist.barrier(group=group)
    return now


def counted():
    """What has gone over the loopback interface so far."""
    (line,) = [line for line in Path(COUNTERS).read_text().splitlines() if line.strip().startswith(f"{LOOPBACK}:")]
    columns = line.partition(":")[2].split()
    return Counted(int(columns[RECEIVED_BYTES]), int(columns[RECEIVED_PACKETS]))
