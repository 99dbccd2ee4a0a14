"""A timer that ends Python code in the main thread, where the Lambda runtime runs handlers."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

from app.errors import OutOfTime

T = TypeVar("T")

_AGAIN: Final = 0.05
"""Seconds to the next ring, for one that came when it could not be heard."""

_held = 0


def ring_at(at: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise OutOfTime in it when it is `at`, in seconds since the epoch.

    System calls that block are interrupted; code that never returns to the interpreter is not. In any thread but
    the main one, and on systems without setitimer, the work runs as it is. An alarm that was set before, a test
    runner's say, goes on afterwards.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return work()
    armed = True

    def ring(signum: int, frame: FrameType | None) -> None:
        nonlocal armed
        # Once: what the work does in `finally` is done.
        if armed and not _held:
            armed = False
            raise OutOfTime

    started = time.time()
    delay, again = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, ring)
    # A call and no `with`: in a block of the caller's, Python 3.13 leaves a loop that is interrupted without the end.
    try:
        # A timer of 0 would never ring.
        signal.setitimer(signal.ITIMER_REAL, max(at - started, 0.001), _AGAIN)
        return work()
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if delay:
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.time() - started), 0.001), again)


@contextmanager
def held() -> Iterator[None]:
    """An alarm that is due rings after the block: what is in it is done as a whole."""
    global _held
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held += 1
    try:
        yield
    finally:
        _held -= 1
