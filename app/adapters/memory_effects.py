"""ports.OnceStore, ApprovalStore and RateLimits in one process: for tests and for reading. See memory_store."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from app.ports import Mark


class MemoryOnceStore:
    """Implements ports.OnceStore."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._marks: dict[str, tuple[float, Mark | None]] = {}
        """None is an open place. Which of the marks are in one is in `_opened`."""
        self._opened: set[str] = set()

    def open(self, name: str, *, lifetime: int) -> None:
        with self._lock:
            if not self._is_there(name):
                self._marks[name] = (self._clock() + lifetime, None)
                self._opened.add(name)

    def claim(self, name: str, mark: Mark, *, lifetime: int) -> Mark:
        with self._lock:
            return self._claim(name, mark, lifetime)

    def take(self, name: str, mark: Mark, *, lifetime: int) -> Mark | None:
        with self._lock:
            return self._claim(name, mark, lifetime) if self._is_there(name) else None

    def _claim(self, name: str, mark: Mark, lifetime: int) -> Mark:
        standing = self._live(name)
        if standing is not None:
            return standing
        if not self._is_there(name):
            self._opened.discard(name)
        self._marks[name] = (self._clock() + lifetime, mark)
        return mark

    def record(self, name: str, mark: Mark, *, lifetime: int) -> bool:
        with self._lock:
            standing = self._live(name)
            if standing is None:
                self._marks[name] = (self._clock() + lifetime, mark)
                return True
            if standing.owner != mark.owner:
                return False
            if standing.sealed_result is None:
                # It keeps its lifetime: this runner's clock may have jumped since.
                self._marks[name] = (self._marks[name][0], mark)
            return True

    def release(self, name: str, owner: str) -> None:
        with self._lock:
            standing = self._live(name)
            if standing is not None and standing.owner == owner and standing.sealed_result is None:
                if name in self._opened:
                    self._marks[name] = (self._marks[name][0], None)
                else:
                    del self._marks[name]

    def _is_there(self, name: str) -> bool:
        return name in self._marks and self._clock() < self._marks[name][0]

    def _live(self, name: str) -> Mark | None:
        return self._marks[name][1] if self._is_there(name) else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a user's record is, or was until it was withdrawn."""

    expires_at: int
    sealed: str | None = None
    withdrawn_at: int | None = None


class MemoryApprovalStore:
    """Implements ports.ApprovalStore. It needs no clock: whoever keeps and looks brings the time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users: dict[str, dict[str, _Place]] = {}

    def keep(
        self, user: str, name: str, sealed: str, *, asked_at: int, expires_at: int, limit: int, now: float
    ) -> bool:
        with self._lock:
            places = self._users.setdefault(user, {})
            for each in [each for each, place in places.items() if not now < place.expires_at]:
                del places[each]
            standing = places.get(name)
            if standing is not None and standing.withdrawn_at is not None and asked_at <= standing.withdrawn_at:
                return False
            if sum(place.sealed is not None for each, place in places.items() if each != name) >= limit:
                return False
            places[name] = _Place(expires_at, sealed)
            return True

    def look(self, user: str, name: str) -> str | None:
        with self._lock:
            place = self._users.get(user, {}).get(name)
            return place.sealed if place else None

    def entries(self, user: str) -> Mapping[str, str]:
        with self._lock:
            places = self._users.get(user, {})
            return {name: place.sealed for name, place in places.items() if place.sealed is not None}

    def withdraw(self, user: str, name: str, *, at: int, until: int) -> bool:
        with self._lock:
            place = self._users.get(user, {}).get(name)
            if place is None or place.withdrawn_at not in (None, at):
                return False
            self._users[user][name] = _Place(until, withdrawn_at=at)
            return True


class MemoryRateLimits:
    """Implements ports.RateLimits."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._windows: dict[str, tuple[float, dict[str, float]]] = {}

    def take(self, name: str, nonce: str, *, count: int, seconds: int, now: float) -> float | None:
        with self._lock:
            expires_at, times = self._windows.get(name, (float("-inf"), {}))
            if not self._clock() < expires_at:
                times = {}
            times = {each: at for each, at in times.items() if at > now - seconds}
            if nonce not in times:
                if len(times) >= count:
                    return min(times.values()) + seconds
                times[nonce] = now
                expires_at = self._clock() + seconds
            self._windows[name] = (expires_at, times)
            return None
