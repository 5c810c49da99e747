"""Asking a server on loopback over HTTP: no proxies, no redirects, every connection closed."""

import contextlib
import http.client
import ssl

from servers.ports import LOOPBACK

_TIMEOUT_SECONDS = 10.0


def get(port: int, path: str, tls: ssl.SSLContext | None = None) -> tuple[int, bytes]:
    """Give the status and the body of the answer to GET `path`; OSError when there is no proper answer."""
    connection: http.client.HTTPConnection
    if tls is None:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS)
    else:
        connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS, context=tls)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{LOOPBACK}:{port} answered GET {path} with something other than HTTP.") from error


def is_ok(port: int, path: str, tls: ssl.SSLContext | None = None) -> bool:
    """Whether GET `path` is answered with 200."""
    status, _ = get(port, path, tls)
    return status == http.client.OK
