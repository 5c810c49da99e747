"""The least MQTT there is: whether a broker answers, without a client library."""

import socket

from servers.ports import LOOPBACK

_TIMEOUT_SECONDS = 5.0
# MQTT 3.1.1, clean session, keep-alive 10 s, no client id: the broker chooses one.
_CONNECT = bytes([0x10, 12, 0, 4]) + b"MQTT" + bytes([4, 0x02, 0, 10, 0, 0])
_DISCONNECT = bytes([0xE0, 0])
_CONNACK = 0x20


def answers(port: int) -> bool:
    """Whether a broker on loopback answers a CONNECT; one that asks for a password does so with a refusal."""
    with socket.create_connection((LOOPBACK, port), timeout=_TIMEOUT_SECONDS) as connection:
        connection.sendall(_CONNECT)
        answer = connection.recv(4)
        if answer[:1] != bytes([_CONNACK]):
            return False
        if answer[3:] == b"\0":
            connection.sendall(_DISCONNECT)
        return True
