"""The last exchanges, and a stream of those that come: server-sent events that a browser resumes where it left off."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

KEPT: Final = 200


class Feed:
    """One loop's: `publish` and `follow` are called on it."""

    def __init__(self, *, kept: int = KEPT) -> None:
        self._items: deque[tuple[int, str]] = deque(maxlen=kept)
        self._changed = asyncio.Event()
        self._closed = False
        self.last = 0

    def publish(self, item: str) -> None:
        """Add an item, one line of text, with the number after `last`."""
        self.last += 1
        self._items.append((self.last, item))
        self._wake()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake()

    async def follow(self, after: int) -> AsyncIterator[str]:
        """Every item after a number, as events, until the feed is closed.

        A number of a feed before this one, which a browser remembers over a restart, begins at the beginning.
        """
        seen = after if after <= self.last else 0
        # A browser calls the stream open when the first bytes of it are there.
        yield "retry: 1000\n\n"
        while not self._closed:
            changed = self._changed
            for number, item in [each for each in self._items if each[0] > seen]:
                seen = number
                yield f"id: {number}\ndata: {item}\n\n"
            if changed is self._changed:
                await changed.wait()

    def _wake(self) -> None:
        # A new event for those who come next: each waits for the change after the one that it has seen.
        self._changed.set()
        self._changed = asyncio.Event()
