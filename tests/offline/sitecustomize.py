"""On a test's PYTHONPATH, this keeps its processes off the network: only this machine can be reached."""

import ipaddress
import socket


class Offline(OSError):
    """An attempt to reach another machine."""


def _stays_here(address):
    host = address[0] if isinstance(address, tuple) else "localhost"
    try:
        return host in ("localhost", "") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == socket.gethostname()


def _guard(connect):
    def guarded(self, address):
        if not _stays_here(address):
            raise Offline(f"this runs offline, but it wants to reach {address!r}")
        return connect(self, address)

    return guarded


def _look_up(host, *args, real=socket.getaddrinfo, **options):
    if host is not None and not _stays_here((host if isinstance(host, str) else host.decode(),)):
        raise Offline(f"this runs offline, but it wants to look up {host!r}")
    return real(host, *args, **options)


socket.socket.connect = _guard(socket.socket.connect)
socket.socket.connect_ex = _guard(socket.socket.connect_ex)
socket.getaddrinfo = _look_up
