"""Browser sessions: who is signed in, in this browser, and the tokens that prove a form came from our page.

The browser holds a session id and nothing else. The store holds the session sealed, under a hash of the
id: a dump of it names nobody and signs nobody in.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Final, Protocol

from app.errors import SealRefused
from app.principal import User
from app.sealing import Purpose, Seal, SealingKeys, length_prefixed

LIFETIME: Final = 1800
"""Seconds from the sign-in to the end, whatever the user does."""

_ID = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)


class SessionStore(Protocol):
    """Keeps one text under a key, for a limited time. All of it is hashed or sealed. Raises Unavailable."""

    def put(self, key: str, sealed: str, *, lifetime: int) -> None:
        """Keep a text for `lifetime` seconds, in place of any that was there."""
        ...

    def get(self, key: str) -> str | None:
        """The text, as often as one asks, or None."""
        ...

    def delete(self, key: str) -> None:
        """Forget the text, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser. `account` is how the issuer calls the user: show it, compare `user`.

    Times are in seconds since the epoch.
    """

    user: User
    account: str
    expires_at: int
    _csrf_key: bytes = field(repr=False)

    def csrf_token(self, *subject: str) -> str:
        """The token for a form of this session about `subject`, as `("connect", handle)`.

        It fits no other session and no other subject, so nothing has to be stored.
        """
        fields = length_prefixed(*(each.encode() for each in subject))
        return _text(hmac.digest(self._csrf_key, fields, "sha256"))

    def is_csrf_token(self, token: str, *subject: str) -> bool:
        """Whether a form came from our page, for this session and subject. Takes the same time either way."""
        return hmac.compare_digest(token.encode(), self.csrf_token(*subject).encode())


class Sessions:
    """Starts, finds and ends sessions. Every method raises Unavailable while the store is down."""

    def __init__(self, store: SessionStore, keyring: SealingKeys) -> None:
        self._store = store
        self._seal = Seal(keyring, Purpose.SESSION)

    def start(self, user: User, account: str, *, session_id: str, csrf_key: bytes, now: float) -> None:
        """Keep a new session. `session_id` is 43 and `csrf_key` 32 random characters and bytes, never used before:
        an id that was there before the sign-in may be one that somebody else planted (session fixation).
        """
        claims = {
            "iss": user.issuer,
            "sub": user.subject,
            "account": account,
            "exp": int(now) + LIFETIME,
            "csrf": _text(csrf_key),
        }
        key = _key(session_id)
        self._store.put(key, self._seal.seal(claims, bound_to=(b"session", key.encode())), lifetime=LIFETIME)

    def find(self, session_id: str | None, *, now: float) -> Session | None:
        """The live session with this id, or None for anything else that a cookie may hold."""
        if session_id is None or not _ID.match(session_id):
            return None
        key = _key(session_id)
        sealed = self._store.get(key)
        if sealed is None:
            return None
        try:
            claims = self._seal.open(sealed, bound_to=(b"session", key.encode()))
        except SealRefused:
            return None
        if not now < claims["exp"]:
            return None
        user = User(claims["iss"], claims["sub"])
        return Session(user, claims["account"], claims["exp"], urlsafe_b64decode(claims["csrf"] + "="))

    def end(self, session_id: str) -> None:
        """Forget a session: its id opens nothing any more."""
        self._store.delete(_key(session_id))


def _key(session_id: str) -> str:
    return _text(hashlib.sha256(b"session" + session_id.encode()).digest())


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()
