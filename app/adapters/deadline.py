"""One deadline under every operation of a connection, name resolution included."""

import socket
import ssl
import threading
import time
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final

_CHUNK: Final = 64 * 1024


class DeadlineStream:
    """A TCP connection, with TLS where there is a context, whose every operation ends by `deadline`, in `time.time()`.

    A timeout for each read would never end a server that drips bytes. Every method raises OSError.
    """

    def __init__(self, host: str, port: int, *, deadline: float, trusted: ssl.SSLContext | None) -> None:
        self._deadline = deadline
        self._socket = _connected(host, port, deadline)
        if trusted is not None:
            try:
                self._socket.settimeout(_left(deadline))
                self._socket = trusted.wrap_socket(self._socket, server_hostname=host)
            except BaseException:
                self._socket.close()
                raise

    def __enter__(self) -> "DeadlineStream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(_left(self._deadline))
            rest = rest[self._socket.send(rest) :]

    def receive(self) -> bytes:
        """What is there, after waiting for something to be there. Empty when the other side has ended."""
        self._socket.settimeout(_left(self._deadline))
        return self._socket.recv(_CHUNK)


def _left(deadline: float) -> float:
    left = deadline - time.time()
    if not left > 0:
        raise TimeoutError("The deadline has passed")
    return left


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    addresses = _resolve(host, port, timeout=_left(deadline))
    failure = OSError("The name has no address")
    for position, address in enumerate(addresses):
        try:
            # The first of several addresses that does not answer must leave time for the next.
            return socket.create_connection((address, port), _left(deadline) / (len(addresses) - position))
        except OSError as error:
            failure = error
    raise failure


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
        raise TimeoutError("The name was not resolved in time") from None
    if isinstance(outcome, Exception):
        # UnicodeError too: a label of more than 63 characters is none that IDNA knows.
        raise socket.gaierror("The name does not resolve") from outcome
    return outcome
