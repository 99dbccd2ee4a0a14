"""What the page after a redirect says: a sealed cookie. Its address carries nothing, and nobody else writes it."""

from collections.abc import Mapping
from typing import Any, Final

from app.errors import SealRefused
from app.sealing import Purpose, Seal, SealingKeys
from app.web.site import Site
from app.web.visit import Visit

LIFETIME: Final = 300
_COOKIE: Final = "mcp_notice"
_BOUND_TO: Final = (b"notice",)


class Notices:
    """Leaves a notice in the browser, and reads it as often as the page is reloaded within `LIFETIME` seconds."""

    def __init__(self, site: Site, keyring: SealingKeys) -> None:
        self._site = site
        self._seal = Seal(keyring, Purpose.SESSION)

    def leave(self, kind: str, *, now: float, **content: str | None) -> str:
        """The Set-Cookie value of a notice. It replaces the one before."""
        claims = {**content, "kind": kind, "exp": int(now) + LIFETIME}
        return self._site.set_cookie(_COOKIE, self._seal.seal(claims, bound_to=_BOUND_TO), max_age=LIFETIME)

    def read(self, visit: Visit) -> Mapping[str, Any]:
        """The notice that this browser holds; without `kind` when there is none."""
        try:
            notice = self._seal.open(visit.cookie(self._site.cookie_name(_COOKIE)), bound_to=_BOUND_TO)
        except SealRefused:
            return {}
        return notice if visit.now < notice["exp"] else {}

    def clear(self) -> str:
        """The Set-Cookie value that makes the browser forget."""
        return self._site.expire_cookie(_COOKIE)
