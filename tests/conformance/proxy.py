"""A proxy on 127.0.0.1 that adds an access token: the suite cannot send one. All else goes through byte for byte.

Host, Origin, duplicated headers and the white space in them are what some scenarios test, so nothing is parsed
further than it takes to see where a message ends. What passes can be judged: see `Exchange`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from app.http import HttpRequest, HttpResponse, join_headers
from infra.local.loopback_server import listen, url_of

Judge = Callable[[HttpRequest, HttpResponse], None]

_MAX_HEAD: Final = 2**18
_NO_BODY: Final = (204, 304)


@dataclass
class Proxy:
    """A running proxy. `target` is the origin that it sends to, `token` what it adds; both may be set later.

    `verdicts` has a line for every exchange that the judge refused.
    """

    url: str
    target: str = ""
    token: str = field(default="", repr=False)
    judge: Judge | None = None
    passed: int = 0
    verdicts: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, with a connection of its own to the target."""
        upstream = urlsplit(self.target)
        there, to = await asyncio.open_connection(upstream.hostname, upstream.port, limit=_MAX_HEAD)
        try:
            while (request := await _read_message(reader)) is not None:
                to.write(request.with_header(b"authorization", f"Bearer {self.token}".encode()))
                response = await _read_message(there, to_method=request.method)
                if response is None:
                    break
                writer.write(response.raw)
                await writer.drain()
                self._consider(request, response)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # either side may leave at any time
        finally:
            for each in (to, writer):
                each.close()
                with contextlib.suppress(ConnectionError):
                    await each.wait_closed()

    def _consider(self, request: "Message", response: "Message") -> None:
        self.passed += 1
        if self.judge is None:
            return
        method, path, _ = request.start_line.split(" ", 2)
        asked = HttpRequest(method, path, request.headers, request.content)
        answered = HttpResponse(int(response.start_line.split(" ")[1]), response.headers, response.content)
        try:
            self.judge(asked, answered)
        except Exception as error:
            said = f"{type(error).__name__}: {error}".partition("\n  For further information")[0]
            asked_for = request.content.decode(errors="replace")[:600]
            self.verdicts.append(f"{said}\n  {asked_for}\n  {response.content.decode(errors='replace')[:600]}")


@dataclass(frozen=True)
class Message:
    """A request or a response as it came, and what its framing says about it."""

    head: bytes
    body: bytes
    content: bytes
    """The body without its chunks."""
    headers: dict[str, str]

    @property
    def raw(self) -> bytes:
        return self.head + self.body

    @property
    def start_line(self) -> str:
        return self.head.partition(b"\r\n")[0].decode("latin-1")

    @property
    def method(self) -> str:
        return self.start_line.partition(" ")[0]

    def with_header(self, name: bytes, value: bytes) -> bytes:
        """The message with one header more, in front of the others."""
        start_line, _, rest = self.raw.partition(b"\r\n")
        return start_line + b"\r\n" + name + b": " + value + b"\r\n" + rest


async def _read_message(reader: asyncio.StreamReader, *, to_method: str = "") -> Message | None:
    """The next message, or None where the connection ends. `to_method` says that it is a response, and to what."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    lines = head.decode("latin-1").split("\r\n")[1:-2]
    headers = join_headers((name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines))
    status = int(head.split(b" ", 2)[1]) if to_method else 0
    if status in _NO_BODY or to_method == "HEAD":
        return Message(head, b"", b"", headers)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body, content = await _read_chunks(reader)
        return Message(head, body, content, headers)
    length = headers.get("content-length")
    if to_method and length is None:
        body = await reader.read()
    else:
        body = await reader.readexactly(int(length or 0))
    return Message(head, body, body, headers)


async def _read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    raw, content = b"", b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            break
        chunk = await reader.readexactly(size + 2)
        raw += line + chunk
        content += chunk[:-2]
    raw += line
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        raw += line
    return raw + line, content


@contextlib.asynccontextmanager
async def token_proxy() -> AsyncIterator[Proxy]:
    """A proxy whose target and token are set before the first request, since the target may have to know its URL."""
    listener = listen(0)
    proxy = Proxy(url_of(listener))
    serving: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(serve, sock=listener, limit=_MAX_HEAD)
    try:
        yield proxy
    finally:
        server.close()
        # Clients keep their connections open for as long as they can.
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
