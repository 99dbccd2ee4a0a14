"""An HTTP client that sends exactly what a test says: duplicate headers, odd bytes, no defaults."""

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    def header(self, name: str) -> str:
        (value,) = self.all(name)
        return value

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def environment(self) -> str:
        return self.header("x-emulator-environment")


def send(
    url: str,
    method: str,
    target: str,
    *,
    headers: Sequence[tuple[str, str | bytes]] = (),
    body: bytes | None = None,
    host: str | None = None,
) -> Reply:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or urlsplit(url).netloc)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return Reply(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def act(url: str, do: str, *, target: str = "/act", **details: Any) -> Reply:
    """Have sample/handlers/act.py do something."""
    body = json.dumps({"do": do, **details}).encode()
    return send(url, "POST", target, headers=[("Content-Type", "application/json")], body=body)


def returning(url: str, output: Any) -> Reply:
    """Have the function return this output as it is."""
    return act(url, "return", output=output)
