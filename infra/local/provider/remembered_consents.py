"""What was agreed to in a browser before, so that the next time takes one click: a long-lived cookie."""

import re
import secrets
from collections import defaultdict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_YEAR: Final = 365 * 24 * 3600


@dataclass(frozen=True)
class Consent:
    """Somebody's yes to one application and some scopes."""

    subject: str
    client_id: str
    scopes: frozenset[str]


class RememberedConsents:
    """By browser, not by user: whoever uses another browser is asked again."""

    def __init__(self, *, issuer: str) -> None:
        parts = urlsplit(issuer)
        # Browsers share cookies among all ports of a host.
        self._cookie = f"hub_consents_{parts.port or parts.scheme}"
        self._secure = parts.scheme == "https"
        self._by_browser: defaultdict[str, list[Consent]] = defaultdict(list)

    def cover(self, request: Request, wanted: Consent) -> bool:
        """Whether this browser's user agreed to as much before."""
        return any(
            (each.subject, each.client_id) == (wanted.subject, wanted.client_id) and wanted.scopes <= each.scopes
            for each in self._by_browser.get(self._browser(request), [])
        )

    def remember(self, request: Request, response: Response, consent: Consent) -> None:
        """Remember a consent, and give the browser the cookie to be known by."""
        browser = self._browser(request) or secrets.token_urlsafe(32)
        self._by_browser[browser].append(consent)
        response.set_cookie(
            self._cookie, browser, max_age=_YEAR, httponly=True, samesite="lax", secure=self._secure, path="/"
        )

    def _browser(self, request: Request) -> str:
        # An ID that was not given out here is not taken on (fixation).
        browser = request.cookies.get(self._cookie, "")
        return browser if _ID.fullmatch(browser) and browser in self._by_browser else ""
