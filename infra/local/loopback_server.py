"""An ASGI application served on 127.0.0.1 inside a running event loop, as a guest: the signals stay with the host."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import uvicorn
from starlette.types import ASGIApp


def listen(port: int) -> socket.socket:
    """A listening socket, port 0 for a free one. Raises OSError when the port is in use.

    Bind before the application is made, where the application has to know its own URL.
    """
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


def url_of(listener: socket.socket) -> str:
    """The origin that a listening socket answers for."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def serve_on(
    listener: socket.socket, app: ASGIApp, *, name: str, max_head: int | None = None
) -> AsyncIterator[None]:
    """Serve while the block runs; it begins when connections are accepted. Closes the socket at the end.

    `max_head` is how many bytes of a request's head are read at most.
    """
    ready = asyncio.Event()
    config = uvicorn.Config(
        app,
        http="h11",
        h11_max_incomplete_event_size=max_head,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = _EmbeddedServer(config, ready.set)
    serving = asyncio.create_task(server.serve([listener]), name=name)
    started = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield
    finally:
        started.cancel()
        server.should_exit = True
        await serving


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
