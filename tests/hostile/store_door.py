"""A door in front of a store, on loopback, that a test closes, bricks up, or lets nothing out of."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from enum import StrEnum

_CHUNK = 2**16


class Door(StrEnum):
    """What passes."""

    OPEN = "open"
    SILENT = "silent"
    """Connections are taken, and nothing passes either way: a partition."""
    NO_REPLY = "no reply"
    """Commands pass, and their replies do not: what was asked for has happened, and nobody hears of it."""
    SHUT = "shut"
    """Connections are closed at once, those that there are too."""


class StoreDoor:
    """Listens on `port` and leads to `target`, another loopback port, which may change."""

    def __init__(self) -> None:
        self.port = 0
        self.target = 0
        self.state = Door.OPEN
        self._connections: set[asyncio.StreamWriter] = set()

    async def set(self, state: Door) -> None:
        """From now on let this pass. Data that a silent door swallowed is lost."""
        self.state = state
        if state is Door.SHUT:
            await self.cut()

    async def cut(self) -> None:
        """Close every connection that there is."""
        for writer in tuple(self._connections):
            writer.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client's."""
        if self.state is Door.SHUT:
            writer.transport.abort()
            return
        self._connections.add(writer)
        with contextlib.suppress(OSError):
            await self._lead(reader, writer)
        writer.transport.abort()
        self._connections.discard(writer)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        store_reader, store_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ways = [
            asyncio.create_task(self._copy(reader, store_writer, (Door.OPEN, Door.NO_REPLY))),
            asyncio.create_task(self._copy(store_reader, writer, (Door.OPEN,))),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            store_writer.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, passing: tuple[Door, ...]) -> None:
        while chunk := await source.read(_CHUNK):
            if self.state in passing:
                sink.write(chunk)
                await sink.drain()


@contextlib.asynccontextmanager
async def store_door() -> AsyncIterator[StoreDoor]:
    """A door while the block runs, on a free port."""
    door = StoreDoor()
    server = await asyncio.start_server(door.take, "127.0.0.1", 0)
    door.port = server.sockets[0].getsockname()[1]
    try:
        yield door
    finally:
        await door.set(Door.SHUT)
        server.close()
        await server.wait_closed()
