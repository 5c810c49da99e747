"""A broker that speaks MQTT 3.1.1 only: a proxy that turns away MQTT 5 and passes everything else to a real broker."""

import contextlib
import socket
import threading

_REFUSED_VERSION = b"\x20\x02\x00\x01"
_MQTT_5 = 5


class OldBroker:
    """Listens on a port of its own while the context lasts."""

    def __init__(self, real_port: int) -> None:
        self._real_port = real_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.refused = 0

    def __enter__(self) -> "OldBroker":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            first = connection.recv(65_536)
            version = first[first.index(b"MQTT") + 4]
            if version == _MQTT_5:
                self.refused += 1
                connection.sendall(_REFUSED_VERSION)
                return
            with socket.create_connection(("127.0.0.1", self._real_port)) as real:
                real.sendall(first)
                threading.Thread(target=_pump, args=(real, connection), daemon=True).start()
                _pump(connection, real)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
