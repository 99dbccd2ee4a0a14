"""HTTP as bytes on a socket: what an HTTP library would put right before it is sent goes out as it is."""

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final

PATIENCE: Final = 30.0


@dataclass(frozen=True)
class Answer:
    """A response. Header names are in lower case, values as they came."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value, or None. Two of one name are joined."""
        values = [value for found, value in self.headers if found == name]
        return ", ".join(values) if values else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> dict[str, Any]:
        assert self.status == 200, self.body
        result: dict[str, Any] = self.json["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def from_gateway(self) -> bool:
        """Whether the gateway answered, and no function of ours."""
        return self.header("x-emulator-duration-ms") is not None and self.body.startswith(b'{"message": ')

    @property
    def environment(self) -> str:
        """Which environment served it."""
        return self.header("x-emulator-environment") or ""

    @property
    def milliseconds(self) -> float:
        return float(self.header("x-emulator-duration-ms") or "nan")

    @property
    def text(self) -> str:
        """Everything that came: headers and body."""
        lines = [f"{name}: {value}" for name, value in self.headers]
        return "\n".join([*lines, self.body.decode("utf-8", "replace")])


class Wire:
    """A connection to 127.0.0.1, made again when the other side has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, request: bytes) -> Answer:
        """Send these bytes, and read one response."""
        fresh = self._socket is None
        try:
            return self._exchange(request)
        except (ConnectionError, OSError):
            self.close()
            if fresh:
                raise
        # It was closed while it rested: that says nothing about this request.
        return self._exchange(request)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE)
        self._socket.sendall(request)
        response = HTTPResponse(self._socket, method=request.split(b" ", 1)[0].decode("latin-1"))
        with contextlib.closing(response):
            response.begin()
            body = response.read()
            headers = tuple((name.lower(), value) for name, value in response.getheaders())
        if response.will_close:
            self.close()
        return Answer(response.status, headers, body)


@contextlib.contextmanager
def wire(port: int) -> Iterator[Wire]:
    """A connection for the block."""
    with contextlib.closing(Wire(port)) as connected:
        yield connected


def exchange(port: int, request: bytes) -> Answer:
    """One request on a connection of its own."""
    with wire(port) as connected:
        return connected.send(request)
