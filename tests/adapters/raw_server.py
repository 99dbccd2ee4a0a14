"""A server that says exactly what a test tells it to, byte by byte, however wrong."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE = 15.0
"""Seconds until a server gives up, so that a client without a deadline fails its test and does not hang."""

Talk = Callable[["Conversation"], None]


@dataclass
class Conversation:
    """One accepted connection. `over` is set when the test has ended."""

    connection: socket.socket
    over: threading.Event

    def hear(self) -> bytes:
        """A whole request: its head, and a body of its Content-Length."""
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += self._some()
        head, _, body = heard.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")),
            0,
        )
        while len(body) < length:
            body += self._some()
        return head + b"\r\n\r\n" + body

    def say(self, text: bytes) -> None:
        self.connection.sendall(text)

    def drip(self, text: bytes) -> None:
        """Say it again and again, until nobody listens any more or a client should long have given up."""
        until = time.perf_counter() + PATIENCE
        while not self.over.wait(0.02) and time.perf_counter() < until:
            self.say(text)

    def stall(self) -> None:
        """Keep the connection open and say nothing, as long as that."""
        self.over.wait(PATIENCE)

    def _some(self) -> bytes:
        some = self.connection.recv(65536)
        if not some:
            raise ConnectionError("The client is gone")
        return some


@dataclass
class RawServer:
    """`heard` has the first bytes of each connection that sent a whole request."""

    port: int
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"


@contextlib.contextmanager
def raw_server(talk: Talk | bytes, *, hear: bool = True) -> Iterator[RawServer]:
    """Serve on 127.0.0.1 while the block runs. `talk` is what to do, or what to say, after a request was heard."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(listener.getsockname()[1])
    over = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            server.connections += 1
            with connection, contextlib.suppress(OSError):
                conversation = Conversation(connection, over)
                if hear:
                    server.heard.append(conversation.hear())
                if isinstance(talk, bytes):
                    conversation.say(talk)
                else:
                    talk(conversation)

    thread = threading.Thread(target=serve, name="raw-server")
    thread.start()
    try:
        yield server
    finally:
        over.set()
        # Wakes accept(), which closing alone does not.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
