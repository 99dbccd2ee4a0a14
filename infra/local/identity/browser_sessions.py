"""Who is signed in in a browser: session cookie, CSRF token, and a new session ID at every sign-in."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from infra.local.identity.settings import User

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class SignIn:
    """A user who chose their account, and when."""

    user: User
    at: float


@dataclass(frozen=True)
class BrowserSession:
    """One browser, signed in or not."""

    id: str = field(repr=False)
    sign_in: SignIn | None


class BrowserSessions:
    """Only signed-in sessions are stored; before that the cookie is just what the CSRF token is derived from."""

    def __init__(self, *, issuer: str, lifetime: int, clock: Callable[[], float]) -> None:
        parts = urlsplit(issuer)
        # Browsers share cookies among all ports of a host: two local stacks must not sign each other out.
        self._cookie = f"identity_session_{parts.port or parts.scheme}"
        self._secure = parts.scheme == "https"
        self._lifetime = lifetime
        self._clock = clock
        self._csrf_key = secrets.token_bytes(32)
        self._sign_ins: dict[str, SignIn] = {}

    def read(self, request: Request) -> BrowserSession:
        session_id = request.cookies.get(self._cookie, "")
        if not _SESSION_ID.fullmatch(session_id):
            return BrowserSession(secrets.token_urlsafe(32), None)
        sign_in = self._sign_ins.get(session_id)
        if sign_in and not self._clock() < sign_in.at + self._lifetime:
            del self._sign_ins[session_id]
            sign_in = None
        return BrowserSession(session_id, sign_in)

    def sign_in(self, user: User, *, replacing: BrowserSession) -> BrowserSession:
        """A session under a new ID, or whoever planted the old one would be signed in too (fixation)."""
        self._sign_ins.pop(replacing.id, None)
        session = BrowserSession(secrets.token_urlsafe(32), SignIn(user, self._clock()))
        assert session.sign_in is not None
        self._sign_ins[session.id] = session.sign_in
        return session

    def write(self, response: Response, session: BrowserSession) -> None:
        response.set_cookie(self._cookie, session.id, httponly=True, samesite="lax", secure=self._secure, path="/")

    def csrf_token(self, session: BrowserSession) -> str:
        return hmac.new(self._csrf_key, session.id.encode(), hashlib.sha256).hexdigest()

    def is_csrf_token(self, session: BrowserSession, token: str) -> bool:
        return hmac.compare_digest(self.csrf_token(session).encode(), token.encode())
