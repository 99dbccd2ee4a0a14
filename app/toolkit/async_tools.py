"""Runs `async def` tools. Imported when the first one is called: asyncio costs start-up time."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

_loop: asyncio.AbstractEventLoop | None = None
_loop_starting = threading.Lock()


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on the one private loop of this process.

    The loop has a thread of its own and is never closed: clients that a tool keeps between calls stay
    bound to a live loop, and a caller that is inside a loop itself can call too.
    """
    global _loop
    with _loop_starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="tools", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(coroutine, _loop).result()
