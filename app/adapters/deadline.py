"""One deadline under every operation of a connection, name resolution included, for httpcore2."""

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Any

import httpcore2


class DeadlineBackend(httpcore2.NetworkBackend):
    """Opens TCP connections whose every operation ends by `deadline`, in `time.time()`.

    Each raises httpcore2's own errors. The timeouts that the pool hands down are not looked at.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = _resolve(host, port, timeout=self.left())
        failure: Exception = httpcore2.ConnectError("no address")
        for position, address in enumerate(addresses):
            # The first of several addresses that does not answer must leave time for the next.
            share = self.left() / (len(addresses) - position)
            try:
                stream = self._backend.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream, self)
        raise failure

    def left(self) -> float:
        """The seconds that are left. Raises when there are none."""
        left = self._deadline - time.time()
        if not left > 0:
            raise httpcore2.ReadTimeout("The deadline has passed")
        return left


class _DeadlineStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, backend: DeadlineBackend) -> None:
        self._stream = stream
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._backend.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._backend.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _DeadlineStream(
            self._stream.start_tls(ssl_context, server_hostname, self._backend.left()), self._backend
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _resolve(host: str, port: int, *, timeout: float) -> list[str]:
    """The addresses of a host. getaddrinfo has no timeout, so it runs in a thread that may be left behind."""
    found: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put([str(address[0]) for *_, address in entries])
        except Exception as error:
            found.put(error)

    threading.Thread(target=resolve, name="getaddrinfo", daemon=True).start()
    try:
        outcome = found.get(timeout=timeout)
    except Empty:
        raise httpcore2.ConnectTimeout("The name was not resolved in time") from None
    if isinstance(outcome, Exception):
        # UnicodeError too: a label of more than 63 characters is none that IDNA knows.
        raise httpcore2.ConnectError("The name does not resolve") from outcome
    return outcome
