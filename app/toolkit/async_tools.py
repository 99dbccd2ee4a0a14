"""Runs `async def` tools. Imported when the first one is called: asyncio costs start-up time."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from app.errors import OutOfTime

_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_loop_starting = threading.Lock()


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on the one private loop of this process.

    The loop has a thread of its own and is never closed: clients that a tool keeps between calls stay
    bound to a live loop, and a caller that is inside a loop itself can call too.
    """
    running = asyncio.run_coroutine_threadsafe(coroutine, _running_loop())
    try:
        return running.result()
    except OutOfTime:
        # Nobody waits for it any more: thawed with the next invocation, it would go on.
        running.cancel()
        raise


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _loop_starting:
        # A fork keeps the loop and not its thread: whoever waited for it would wait for ever.
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run_for_ever, args=(_loop,), name="tools", daemon=True)
            _thread.start()
        return _loop


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # A sys.exit in a task stops the loop before it tells the caller, who is told by the next turn.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
