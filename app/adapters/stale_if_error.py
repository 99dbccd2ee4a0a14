"""A value that is fetched when needed, and used on for a while when it cannot be fetched (RFC 5861, stale-if-error).

value                         what `get` does
fresh (10 min +-10 %)         return it
stale (for 1 h more)          fetch it again, once a minute; return what is held while that fails
none, or older                fetch it; after a failure, fail at once for 5 s
refused                       drop it: whoever disables a key or takes a grant away means what is held too
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from app.adapters.aws_client import AwsRefused
from app.errors import Unavailable

FRESH: Final = 600
SPREAD: Final = 0.1
"""By how much of it the freshness of each value varies: instances that start together do not ask together."""
MAX_FRESH: Final = FRESH * (1 + SPREAD)
STALE_IF_ERROR: Final = 3600
HELD_COOLDOWN: Final = 60
COOLDOWN: Final = 5

_log = logging.getLogger("roundtrip")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Held(Generic[T]):
    value: T
    fetched_at: float
    fresh_for: float

    def is_fresh(self, now: float) -> bool:
        # A clock that was set back has no say in how old a value is.
        return 0 <= now - self.fetched_at < self.fresh_for

    def is_usable(self, now: float) -> bool:
        return 0 <= now - self.fetched_at < self.fresh_for + STALE_IF_ERROR


class StaleIfError(Generic[T]):
    """Keeps one value, fetched by one thread at a time. `fetch` raises Unavailable, or AwsRefused.

    `chance` is uniform in [0, 1).
    """

    def __init__(
        self, fetch: Callable[[], T], *, clock: Callable[[], float] = time.time, chance: Callable[[], float]
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._chance = chance
        self._fetching = Lock()
        self._held: _Held[T] | None = None
        self._attempted_at = float("-inf")
        self._problem = Unavailable("not fetched yet", retry_after=1)

    def get(self, *, newer: bool = False) -> T:
        """The value, or with `newer` one that was fetched within the last minute if it can be.

        Raises Unavailable when there is none to use, and after a failure without asking again for a while: an
        outage is not waited for by every request.
        """
        held, now = self._held, self._clock()
        if newer or held is None or not held.is_fresh(now):
            # While another thread fetches, a value that is held will do.
            if self._fetching.acquire(blocking=held is None or not held.is_usable(now)):
                try:
                    self._refresh(self._clock())
                finally:
                    self._fetching.release()
            held, now = self._held, self._clock()
        if held is not None and held.is_usable(now):
            return held.value
        wait = max(1, math.ceil(self._attempted_at + COOLDOWN - now))
        raise type(self._problem)(self._problem.reason, retry_after=wait)

    @property
    def is_stale(self) -> bool:
        """Whether what `get` returned is only used because nothing newer can be had."""
        held = self._held
        return held is None or not held.is_fresh(self._clock())

    def _refresh(self, now: float) -> None:
        held = self._held
        cooldown = HELD_COOLDOWN if held is not None and held.is_usable(now) else COOLDOWN
        # Also after a success: whoever waited for another thread's fetch has its value.
        if 0 <= now - self._attempted_at < cooldown:
            return
        self._attempted_at = now
        try:
            value = self._fetch()
        except AwsRefused as error:
            self._held, self._problem = None, error
        except Unavailable as error:
            self._problem = error
            if held is not None and held.is_usable(now):
                _log.warning("Used on while nothing newer can be had: %s", error.reason)
        else:
            self._held = _Held(value, now, FRESH * (1 - SPREAD + 2 * SPREAD * self._chance()))
