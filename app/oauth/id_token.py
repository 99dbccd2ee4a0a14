"""ID tokens: what the claims must say to tell who signs in, here and now (OpenID Connect Core section 3.1.3.7).

The signature is verified before: an ID token of the same issuer for another client, or for an older
sign-in, is signed just as well.
"""

import hmac
import math
import re
from dataclasses import dataclass
from typing import Any, Final

from app.errors import InvalidToken
from app.strict_json import JsonObject

LEEWAY: Final = 30
MAX_AGE: Final = 600
"""Seconds for which an ID token tells of a sign-in: it comes straight from the token endpoint."""
MAX_AUDIENCES: Final = 16

_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class IdTokenRules:
    """What an ID token must say to be for us. `max_age` is the oldest sign-in in seconds, if that matters."""

    issuer: str
    client_id: str
    subject_claim: str = "sub"
    max_age: int | None = None


def check(claims: JsonObject, rules: IdTokenRules, *, nonce: str, now: float) -> str:
    """The subject of an ID token. Raises InvalidToken with a reason for the log."""
    if claims.get("iss") != rules.issuer:
        raise InvalidToken("id_token: iss")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or len(audiences) > MAX_AUDIENCES or rules.client_id not in audiences:
        raise InvalidToken("id_token: aud")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != rules.client_id:
        raise InvalidToken("id_token: azp")
    _check_times(claims, rules, now)
    sent = claims.get("nonce")
    # The nonce ties the token to the sign-in that this browser began.
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), nonce.encode()):
        raise InvalidToken("id_token: nonce")
    subject = claims.get(rules.subject_claim)
    if not is_name(claims.get("sub")) or not isinstance(subject, str) or not is_name(subject):
        raise InvalidToken("id_token: sub")
    return subject


def account_name(claims: JsonObject, subject: str) -> str:
    """How a page calls the user: by what people recognise, if the issuer tells it."""
    names = (claims.get(name) for name in ("email", "preferred_username", "name"))
    return next((name for name in names if isinstance(name, str) and is_name(name)), subject)


def is_name(value: object) -> bool:
    """Whether a claim can name somebody: a short text that prints."""
    return isinstance(value, str) and _PRINTABLE.match(value) is not None


def _check_times(claims: JsonObject, rules: IdTokenRules, now: float) -> None:
    issued_at = _seconds(claims.get("iat"))
    if not now < _seconds(claims.get("exp")) + LEEWAY:
        raise InvalidToken("id_token: expired")
    if not now - MAX_AGE - LEEWAY <= issued_at <= now + LEEWAY:
        raise InvalidToken("id_token: iat")
    if "nbf" in claims and not _seconds(claims["nbf"]) <= now + LEEWAY:
        raise InvalidToken("id_token: nbf")
    if rules.max_age is not None and not now - _seconds(claims.get("auth_time")) <= rules.max_age + LEEWAY:
        # The issuer may ignore max_age in the request; it may not hide it here (OIDC Core section 3.1.2.1).
        raise InvalidToken("id_token: auth_time")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidToken("id_token: times must be numbers")
    return float(value)
