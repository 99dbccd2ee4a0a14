"""Keeping a grant fresh: one refresh at a time, and nobody waits for another's.

A provider with refresh token rotation takes a second use of a refresh token for theft and revokes the whole
family (RFC 9700 section 4.14.2). So a refresh happens under a lock in the store, never without one, and what
it brings is written only over the very version that it was made from.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from app.errors import Unavailable
from app.oauth import provider as requests
from app.oauth import token_response
from app.oauth.provider import Provider
from app.oauth.token_response import NoTokens
from app.oauth.vault import NOTHING, Grant, Held, Vault
from app.ports import LockHeld, TokenEndpoint
from app.principal import User

EARLY: Final = 60
"""Seconds before its end at which a token is renewed."""
JITTER: Final = 30
"""Seconds by which instances differ in this, at most."""
MINIMUM_LEFT: Final = 5
"""A token that lives this long yet is good for one call."""


class Refresher:
    """Renews grants. `draw` gives fresh random text."""

    def __init__(self, vault: Vault, endpoint: TokenEndpoint, draw: Callable[[], str]) -> None:
        self._vault = vault
        self._endpoint = endpoint
        self._draw = draw

    def keep_fresh(self, user: User, entry: str, provider: Provider, held: Held, *, now: float) -> Held:
        """What the entry holds after a refresh, if one was due and ours to make. Never waits for another's.

        Still the old grant: it is fresh, somebody else is renewing it, or the provider did not answer.
        Without a grant: it is gone, the user has to connect again. Raises Unavailable without the store:
        nobody refreshes unlocked.
        """
        grant = held.record
        if not isinstance(grant, Grant) or grant.refresh_token is None or not self._is_due(grant, now):
            return held
        owner = self._draw()
        locked = self._vault.lock(user, entry, owner)
        if isinstance(locked, LockHeld):
            return held
        # A new version: whoever held the lock before us has done it.
        renewed = locked if locked.version != held.version else self._renew(user, entry, provider, locked, now=now)
        if renewed is None:
            # The lock is left to end by itself: until then nobody else tries a provider that does not answer.
            return locked
        with suppress(Unavailable):
            # It ends by itself as well, and what we hold is good.
            self._vault.unlock(user, entry, owner)
        return renewed

    def _is_due(self, grant: Grant, now: float) -> bool:
        if grant.expires_at is None:
            return False
        jitter = sum(self._draw().encode()) % (JITTER + 1)
        # A token that never lives that long would be renewed in every call.
        early = min(EARLY + jitter, (grant.expires_at - grant.issued) // 2)
        return not now < grant.expires_at - early

    def _renew(self, user: User, entry: str, provider: Provider, held: Held, *, now: float) -> Held | None:
        """What the entry holds after the refresh of what was read under the lock, or None: no answer."""
        grant, version = held.record, held.version
        if not isinstance(grant, Grant) or version is None or grant.refresh_token is None:
            return held
        request = requests.refresh_request(provider, grant.refresh_token)
        try:
            reply = self._endpoint.post(request.url, request.form, request.headers)
            tokens = token_response.read(reply, asked=grant.scopes, now=now)
        except Unavailable:
            return None
        except NoTokens as refused:
            if not refused.grant_is_gone:
                return None
            gone = self._vault.delete(user, entry, version=version)
            return NOTHING if gone else self._vault.read(user, entry)
        renewed = replace(
            grant,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or grant.refresh_token,
            expires_at=tokens.expires_at,
            issued=int(now),
            scopes=tokens.scopes,
        )
        try:
            written = self._vault.put(user, entry, renewed, replaces=version)
        except ValueError:
            return None
        if written:
            return Held(version, renewed)
        # Disconnected, or connected anew, while we were asking: what is there now counts, not what we bring.
        return self._vault.read(user, entry)


def is_usable(grant: Grant, *, now: float) -> bool:
    """Whether a grant's token is good for one call from now."""
    return grant.expires_at is None or now < grant.expires_at - MINIMUM_LEFT
