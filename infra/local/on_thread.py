"""An async context manager run on a thread of its own, for callers that are not async."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")

Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the thread's loop, and returns its result."""


@contextlib.contextmanager
def on_thread(manager: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> Iterator[tuple[T, Run]]:
    """Enter `manager()` on a new event loop in a new thread, and leave it when the block ends."""
    ready: concurrent.futures.Future[tuple[T, asyncio.AbstractEventLoop]] = concurrent.futures.Future()
    leave: concurrent.futures.Future[None] = concurrent.futures.Future()

    async def hold() -> None:
        async with manager() as value:
            ready.set_result((value, asyncio.get_running_loop()))
            await asyncio.wrap_future(leave)

    def main() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=main, name=name)
    thread.start()
    try:
        value, loop = ready.result()
        yield value, lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()
    finally:
        leave.set_result(None)
        thread.join()
