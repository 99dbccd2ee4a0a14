"""Where our pages are, and what every response of theirs carries: addresses, headers, cookies.

Two traps in the headers. Chrome applies `form-action` to the redirects after a POST as well, so the
provider's origin must be listed or Approve does nothing. And `Referrer-Policy: no-referrer` makes browsers
send `Origin: null` with our own forms, so it is `same-origin`.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from app.http import NO_STORE
from app.web.visit import Reply, Visit

HSTS_SECONDS: Final = 31_536_000


@dataclass(frozen=True, slots=True)
class Site:
    """The public base URL of the pages: an origin, and the path in front of them if there is one."""

    base_url: str
    origin: str = field(init=False)
    base_path: str = field(init=False)
    secure: bool = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        loopback = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if not parts.netloc or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
            raise ValueError(f"{self.base_url!r} must be an https URL; http is for a loopback address")
        object.__setattr__(self, "origin", f"{parts.scheme}://{parts.netloc}")
        object.__setattr__(self, "base_path", parts.path.rstrip("/"))
        object.__setattr__(self, "secure", parts.scheme == "https")

    def path(self, path: str) -> str:
        """The path of one of our pages, as links and forms on them name it."""
        return self.base_path + path

    def url(self, path: str) -> str:
        """The address of one of our pages."""
        return self.origin + self.base_path + path

    def cookie_name(self, name: str) -> str:
        """`__Host-` makes browsers refuse the cookie from any other host, subdomains included (RFC 6265bis).

        It needs https; a loopback address has none.
        """
        return f"__Host-{name}" if self.secure else name

    def set_cookie(self, name: str, value: str, *, max_age: int) -> str:
        """A Set-Cookie value. Lax, not Strict: both callbacks are navigations that another site started."""
        secure = "; Secure" if self.secure else ""
        return f"{self.cookie_name(name)}={value}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Lax{secure}"

    def expire_cookie(self, name: str) -> str:
        """A Set-Cookie value that makes the browser forget."""
        return self.set_cookie(name, "", max_age=0)

    def headers(self, *, form_action: str | None = None) -> dict[str, str]:
        """The headers of a page. `form_action` is where else its forms may lead: an origin, or several with spaces."""
        actions = " ".join(("'self'", *map(csp_source, (form_action or "").split())))
        policy = f"default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action {actions}"
        headers = {
            **NO_STORE,
            "content-security-policy": policy,
            "cross-origin-opener-policy": "same-origin",
            "referrer-policy": "same-origin",
        }
        if self.secure:
            headers["strict-transport-security"] = f"max-age={HSTS_SECONDS}"
        return headers

    def see_other(self, location: str, *, facts: Mapping[str, Any]) -> Reply:
        """A redirect that is always a GET: 307 would send our form on (RFC 9700 section 4.12).

        `location` is one of our own addresses or one that the configuration leads to, never one that came in.
        """
        return Reply(303, {**self.headers(), "location": location}, facts=facts)

    def is_own_form(self, visit: Visit) -> bool:
        """Whether the browser says that one of our pages sent this form. The CSRF token decides besides.

        Sec-Fetch-Site cannot be set by a page. Where it is missing the Origin must be ours, if there is one.
        """
        site, origin = visit.headers.get("sec-fetch-site"), visit.headers.get("origin")
        if site is not None:
            return site == "same-origin" and origin in (None, "null", self.origin)
        return origin in (None, self.origin)


def csp_source(origin: str) -> str:
    """An origin as a Content-Security-Policy may name it, which has no syntax for an IPv6 address.

    A scheme alone ("https:") is one too, for providers that send users on to hosts which nobody can list.
    """
    parts = urlsplit(origin)
    if not parts.netloc:
        return f"{parts.scheme}:"
    try:
        ipaddress.IPv6Address(parts.hostname or "")
    except ValueError:
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"
