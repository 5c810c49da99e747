"""Ports on loopback: ones nobody uses, and a sentence about one somebody does.

Between finding a port free and a server's binding it somebody else may take it, so `on_free_ports` tries
again with others. Free ports are looked for below the range the kernel gives to outgoing connections: a
server that is stopped and started again finds its port still free, and a client that retries while the
server is down can never be connected to itself.
"""

import contextlib
import errno
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from servers.problems import PortTaken, ServerProblem

LOOPBACK = "127.0.0.1"
ATTEMPTS = 6
_LOWEST = 12_000
_KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_T = TypeVar("_T")

# Not seeded: two runs at the same time must not walk through the same ports.
_random = random.SystemRandom()


def on_free_ports(count: int, start: Callable[[tuple[int, ...]], _T]) -> _T:
    """Call `start` with free ports, and again with others as long as it finds one of them taken."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(PortTaken):
            return start(free_ports(count))
    return start(free_ports(count))


def on_port(port: int | None, asked_by: str, start: Callable[[int], _T]) -> _T:
    """Call `start` with the port asked for, which must be free, or with any free one."""
    if port is None:
        return on_free_ports(1, lambda ports: start(ports[0]))
    check_free(port, asked_by)
    return start(port)


def free_ports(count: int) -> tuple[int, ...]:
    """Find so many different ports on loopback that nobody listens on at this moment."""
    found: set[int] = set()
    while len(found) < count:
        found.add(_free_port())
    return tuple(found)


def check_free(port: int, asked_by: str) -> None:
    """Say in one sentence who holds `port`, if anybody does."""
    try:
        _bind(port)
    except OSError as error:
        where = f"Port {port} on {LOOPBACK}, which {asked_by} was to use,"
        if error.errno != errno.EADDRINUSE:
            raise ServerProblem(f"{where} cannot be used ({error.strerror}); ask for a port above 1023.") from error
        raise PortTaken(f"{where} is held by {_holder(port)}; stop that, or ask for another port.") from error


def _free_port() -> int:
    highest = int(_KERNEL_RANGE.read_text().split()[0]) if _KERNEL_RANGE.exists() else _LOWEST
    for _ in range(200 if highest > _LOWEST + 1000 else 0):
        with contextlib.suppress(OSError):
            return _bind(_random.randrange(_LOWEST, highest))
    return _bind(0)  # whatever the kernel has: better than nothing on a machine with an unusual range


def _bind(port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: TIME_WAIT is no holder
        probe.bind((LOOPBACK, port))
        return int(probe.getsockname()[1])


def _holder(port: int) -> str:
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr[1] == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "a process of another user"
