"""Serves the authorization server on 127.0.0.1: in a thread for tests, or inside a running event loop."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

import uvicorn

from infra.local.identity.application import app_for
from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.settings import IdentitySettings

START_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Identity:
    """A running authorization server. `requests` grows by "METHOD /path" with each request."""

    url: str
    server: AuthorizationServer
    requests: list[str] = field(default_factory=list)

    def mint(self, subject: str, *, client_id: str, scope: str, resource: str, now: int, **overrides: Any) -> str:
        """See `AuthorizationServer.mint`."""
        return self.server.mint(subject, client_id=client_id, scope=scope, resource=resource, now=now, **overrides)


@contextmanager
def identity_in_thread(settings: IdentitySettings, *, port: int = 0) -> Iterator[Identity]:
    """Serve from a thread while the block runs. The issuer becomes the URL that was bound."""
    ready = threading.Event()
    identity, server, listener = _prepare(settings, port, ready.set)
    thread = threading.Thread(target=server.run, args=([listener],), name="identity", daemon=True)
    thread.start()
    try:
        if not ready.wait(START_SECONDS):
            raise RuntimeError("The authorization server did not start: see the thread's traceback above")
        yield identity
    finally:
        server.should_exit = True
        thread.join()


@asynccontextmanager
async def serve_identity(settings: IdentitySettings, *, port: int = 0) -> AsyncIterator[Identity]:
    """Serve from the running event loop while the block runs. The issuer becomes the URL that was bound."""
    ready = asyncio.Event()
    identity, server, listener = _prepare(settings, port, ready.set)
    serving = asyncio.create_task(server.serve([listener]), name="identity")
    started = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield identity
    finally:
        started.cancel()
        server.should_exit = True
        await serving


def _prepare(
    settings: IdentitySettings, port: int, on_ready: Callable[[], None]
) -> tuple[Identity, "_EmbeddedServer", socket.socket]:
    # Bound first: the issuer is in every document and token, so the port has to be known before the app.
    listener = _listen(port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    identity = Identity(url, AuthorizationServer(replace(settings, issuer=url)))
    app = app_for(identity.server, request_log=identity.requests)
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return identity, _EmbeddedServer(config, on_ready), listener


def _listen(port: int) -> socket.socket:
    # Not socket.create_server: without the protocol number asyncio leaves Nagle's algorithm on, 40 ms a response.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            # A port in TIME_WAIT may be bound again. On Windows the option would let two programs share it.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class _EmbeddedServer(uvicorn.Server):
    """Leaves the signals to the program around it, and says when it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()
