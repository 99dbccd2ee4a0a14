"""The session and login stores in this process, for tests and examples: no other instance sees them."""

import time
from collections.abc import Callable
from threading import Lock


class _ExpiringTexts:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._texts: dict[str, tuple[str, float]] = {}

    def put(self, key: str, sealed: str, *, lifetime: int) -> None:
        """Keep a text for `lifetime` seconds, in place of any that was there."""
        with self._lock:
            self._texts[key] = (sealed, self._clock() + lifetime)

    def _live(self, key: str) -> str | None:
        text, expires_at = self._texts.get(key, (None, 0.0))
        return text if self._clock() < expires_at else None

    def dump(self) -> dict[str, str]:
        """Everything that is stored, as who stole the store would see it."""
        return {key: text for key, (text, _) in self._texts.items()}


class MemorySessions(_ExpiringTexts):
    """Implements oauth.sessions.SessionStore."""

    def get(self, key: str) -> str | None:
        """The text, as often as one asks, or None."""
        with self._lock:
            return self._live(key)

    def delete(self, key: str) -> None:
        """Forget the text, if there is one."""
        with self._lock:
            self._texts.pop(key, None)


class MemoryLogins(_ExpiringTexts):
    """Implements oauth.sign_in.LoginStore."""

    def take(self, key: str) -> str | None:
        """Read and delete at once: of many callers one gets the text, the others None."""
        with self._lock:
            text = self._live(key)
            self._texts.pop(key, None)
            return text
