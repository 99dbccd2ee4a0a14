"""What a provider's token endpoint answered: tokens, or an error that says what to do next.

invalid_grant (and GitHub's names for it)    the grant is gone: forget it, the user connects again
every other error, or nothing usable         the grant stays, the caller may try again later
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from app import strict_json
from app.http import TokenEndpointReply

MAX_TOKEN: Final = 16_384
MAX_LIFETIME: Final = 100_000_000
"""Seconds, about three years: a larger `expires_in` counts as this."""
MAX_ACCOUNT: Final = 200

_TOKEN = re.compile(r"[\x21-\x7e]+\Z", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,12}\Z", re.ASCII)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}\Z", re.ASCII)
_ERROR = re.compile(r"[a-z_]{1,64}\Z", re.ASCII)
# GitHub answers 200 with these instead of invalid_grant.
_GONE: Final = frozenset(("invalid_grant", "bad_refresh_token", "bad_verification_code"))


@dataclass(frozen=True, slots=True)
class Tokens:
    """A usable answer. `refresh_token` is None when the provider sent none: an earlier one stays valid."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: int | None
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class NoTokens(Exception):
    """No usable answer. `reason` is ours or a known error code: it is safe to log and to keep."""

    reason: str
    grant_is_gone: bool = False


def read(reply: TokenEndpointReply, *, asked: frozenset[str], now: float) -> Tokens:
    """The tokens in a reply (RFC 6749 section 5.1). Raises NoTokens.

    `asked` counts as granted when the reply names no scope, as the RFC has it. `now` is when the request
    was sent, so that the token is never held longer than the provider honours it.
    """
    document = _json_object(reply)
    error = document.get("error")
    if error is not None:
        code = error if isinstance(error, str) and _ERROR.match(error) else "unknown_error"
        raise NoTokens(code, grant_is_gone=code in _GONE)
    if reply.status != 200:
        raise NoTokens(f"http_{reply.status}")
    if str(document.get("token_type", "")).lower() != "bearer":
        # A token of a kind that we do not know how to present must not be tried as a bearer token.
        raise NoTokens("token_type")
    access_token = _token(document.get("access_token"))
    if access_token is None:
        raise NoTokens("access_token")
    return Tokens(
        access_token=access_token,
        refresh_token=_token(document.get("refresh_token")),
        expires_at=_expires_at(document.get("expires_in"), now),
        scopes=_scopes(document.get("scope"), asked),
    )


def read_account(reply: TokenEndpointReply, claim: str) -> str | None:
    """What the provider calls the account, or None: it is for people to read, and nothing depends on it."""
    try:
        account = _json_object(reply).get(claim) if reply.status == 200 else None
    except NoTokens:
        return None
    if not isinstance(account, str) or not account.strip() or not account.isprintable():
        return None
    return account[:MAX_ACCOUNT]


def _json_object(reply: TokenEndpointReply) -> strict_json.JsonObject:
    try:
        document = strict_json.parse(reply.body)
    except strict_json.NotStrictJson:
        raise NoTokens(f"http_{reply.status}" if reply.status != 200 else "not_json") from None
    if not isinstance(document, dict):
        raise NoTokens("not_an_object")
    return document


def _token(value: Any) -> str | None:
    """A token as it may stand in an Authorization header, or None."""
    if isinstance(value, str) and len(value) <= MAX_TOKEN and _TOKEN.match(value):
        return value
    return None


def _expires_at(expires_in: Any, now: float) -> int | None:
    if expires_in is None:
        return None
    if isinstance(expires_in, str) and _SECONDS.match(expires_in):
        expires_in = int(expires_in)
    if isinstance(expires_in, bool) or not isinstance(expires_in, int) or not expires_in >= 1:
        raise NoTokens("expires_in")
    return int(now) + min(expires_in, MAX_LIFETIME)


def _scopes(scope: Any, asked: frozenset[str]) -> frozenset[str]:
    if scope is None:
        return asked
    # Some providers separate with commas (GitHub), against section 3.3.
    found = frozenset(scope.replace(",", " ").split()) if isinstance(scope, str) else frozenset()
    return frozenset(each for each in found if _SCOPE.match(each))
