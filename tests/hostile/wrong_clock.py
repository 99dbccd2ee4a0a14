"""The clock of an execution environment that disagrees with the others'.

WRONG_CLOCK is a file and a number of seconds, like `/tmp/clocks:25`. Of the environments that start, every second
one is right; the others are ahead and behind by that, in turn.
"""

import os
import time
from typing import Any, Final

VARIABLE: Final = "WRONG_CLOCK"


def _number(path: str) -> int:
    """How many environments have started, this one included: each appends a byte, and the length is its number."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, b".")
        return os.lseek(descriptor, 0, os.SEEK_CUR)
    finally:
        os.close(descriptor)


class OwnTime:
    """A runtime's context, whose deadline is by the same clock as everything else in the environment."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def get_remaining_time_in_millis(self) -> int:
        # The emulator's deadline is in right time, and the runtime compares it with the wrong one.
        return int(self._context.get_remaining_time_in_millis() + OFFSET * 1000)


def _install(setting: str) -> float:
    path, _, seconds = setting.rpartition(":")
    offset = {1: float(seconds), 3: -float(seconds)}.get(_number(path) % 4, 0.0)
    real = time.time

    def wrong() -> float:
        return real() + offset

    time.time = wrong
    return offset


OFFSET: Final = _install(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else 0.0
