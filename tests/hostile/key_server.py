"""The issuer's keys on a port of their own, as a test wants them: more of them, others, late, or not at all."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 15.0
"""Seconds after which a slow answer is given up, so that nobody waits for a test that has ended."""


class Keys(StrEnum):
    """What is answered."""

    GOOD = "good"
    DOWN = "down"
    """500."""
    SLOW = "slow"
    """Nothing for longer than anybody waits."""
    HUGE = "huge"
    """A good key set, after 2 MB of another member."""
    HTML = "html"
    """A page with status 200, as a load balancer has it."""
    NONE = "none"
    """A key set without keys."""


@dataclass
class KeyServer:
    """A JWK Set at `url`. `published` gives the keys; `fetches` counts requests."""

    port: int
    published: Callable[[], list[dict[str, Any]]]
    answer: Keys = Keys.GOOD
    fetches: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks"

    def body(self) -> tuple[int, str, bytes]:
        """Status, media type and body of the next answer."""
        match self.answer:
            case Keys.DOWN:
                return 500, "application/json", b'{"error":"server_error"}'
            case Keys.HTML:
                return 200, "text/html", b"<!doctype html><title>Down for maintenance</title>"
            case Keys.HUGE:
                padded = {"padding": "x" * 2_000_000, "keys": self.published()}
                return 200, "application/json", json.dumps(padded).encode()
            case Keys.NONE:
                return 200, "application/json", b'{"keys":[]}'
            case Keys.SLOW:
                self.over.wait(PATIENCE)
        return 200, "application/json", json.dumps({"keys": self.published()}).encode()


@contextlib.contextmanager
def key_server() -> Iterator[KeyServer]:
    """Serve while the block runs; nothing is published yet."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.fetches += 1
            status, media_type, body = server.body()
            with contextlib.suppress(OSError):  # who asked may have given up
                self.send_response(status)
                self.send_header("content-type", media_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server = KeyServer(listening.server_port, list)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, name="key-server")
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            listening.shutdown()
            thread.join()
