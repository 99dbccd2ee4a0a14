"""A timer that ends Python code in the main thread, where the Lambda runtime runs handlers."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Final

from app.errors import OutOfTime

_AGAIN: Final = 0.05
"""Seconds to the next ring, for one that came when it could not be heard."""

_held = 0


class Alarm(AbstractContextManager[None]):
    """Raises OutOfTime in the block when it is `at`, in seconds since the epoch, and nowhere else.

    System calls that block are interrupted; code that never returns to the interpreter is not. In any thread but
    the main one, and on systems without setitimer, the block runs as it is.
    """

    __slots__ = ("_armed", "_at", "_before")

    def __init__(self, at: float) -> None:
        self._at = at
        self._armed = False
        self._before: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
            self._before = signal.signal(signal.SIGALRM, self._ring)
            self._armed = True
            # A timer of 0 would never ring.
            signal.setitimer(signal.ITIMER_REAL, max(self._at - time.time(), 0.001), _AGAIN)

    def __exit__(self, *raised: object) -> None:
        if self._before is not None:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        # Raised on the edges of the block it would leave the timer running, and be nobody's to catch.
        on_the_edge = frame is not None and frame.f_code in (Alarm.__enter__.__code__, Alarm.__exit__.__code__)
        if self._armed and not _held and not on_the_edge:
            self._armed = False
            raise OutOfTime


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
