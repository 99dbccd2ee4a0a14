"""JWT access tokens (RFC 9068, RFC 8725): from the Authorization header to a verified AccessToken.

The library verifies the signature. The claims are checked here, strictly and against a clock that is an
argument: PyJWT takes a missing or string `exp`, an empty `sub`, duplicate claims, any `typ`.
"""

import math
import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from app.authorization import signed_jwt
from app.authorization.jwks import Jwks
from app.errors import InvalidRequest, InvalidToken, MissingCredentials
from app.principal import AccessToken, Principal
from app.strict_json import JsonObject

LEEWAY: Final = 30
MAX_LIFETIME: Final = 86_400
MAX_AUDIENCES: Final = 16

_AT_JWT: Final = ("at+jwt", "application/at+jwt")
# An ID token or a logout token of the same issuer is signed by the same key.
_TYPES: Final = (None, "jwt", *_AT_JWT)
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}\Z")


class TokenRules(NamedTuple):
    """What an access token must say to be for us.

    `audience` is the configured resource URL, `subject_claim` the claim that names the user
    (`sub`, or `oid` where `sub` is pairwise per client).
    """

    issuer: str
    audience: str
    subject_claim: str = "sub"
    require_at_jwt: bool = False


def bearer_token(headers: Mapping[str, str]) -> str:
    """The one bearer token of a request (RFC 6750 section 2.1). It is never read from a URL, a body or a cookie.

    Raises MissingCredentials, or InvalidRequest for a repeated or malformed header.
    """
    header = headers.get("authorization")
    if header is None:
        raise MissingCredentials("no Authorization header")
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise MissingCredentials("another scheme")
    if "," in header:
        raise InvalidRequest("several credentials")
    if not token or " " in token:
        raise InvalidRequest("malformed Authorization header")
    return token


def verify(token: str, keys: Jwks, rules: TokenRules, *, now: float) -> AccessToken:
    """Verify an access token. Raises InvalidToken with a reason for the log, or Unavailable without keys."""
    return accepted(signed_jwt.verify(token, keys, types=types(rules), now=now).claims, rules, now=now)


def types(rules: TokenRules) -> Collection[str | None]:
    """The values of `typ` that an access token may have."""
    return _AT_JWT if rules.require_at_jwt else _TYPES


def accepted(claims: JsonObject, rules: TokenRules, *, now: float) -> AccessToken:
    """What verified claims grant here and now. Raises InvalidToken with a reason for the log."""
    if claims.get("iss") != rules.issuer:
        raise InvalidToken("iss")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or len(audiences) > MAX_AUDIENCES or rules.audience not in audiences:
        raise InvalidToken("aud")
    if not all(isinstance(each, str) for each in audiences):
        raise InvalidToken("aud")
    if "cnf" in claims:
        # A sender-constrained token must not work as a bearer token (RFC 9449 section 7.2).
        raise InvalidToken("cnf")
    if claims.get("token_use") == "id" or claims.get("typ") in ("ID", "Refresh"):
        raise InvalidToken("not an access token")
    expires_at = _times(claims, now)
    subject = claims.get(rules.subject_claim)
    client_id = claims.get("client_id", claims.get("azp"))
    if not _is_name(claims.get("sub")) or not _is_name(subject):
        raise InvalidToken("sub")
    if not _is_name(client_id):
        raise InvalidToken("client_id")
    principal = Principal(rules.issuer, str(subject), str(client_id))
    return AccessToken(principal, _scopes(claims), int(expires_at))


def _times(claims: JsonObject, now: float) -> float:
    expires_at, issued_at = _seconds(claims.get("exp")), _seconds(claims.get("iat"))
    not_before = _seconds(claims["nbf"]) if "nbf" in claims else issued_at
    if not now < expires_at + LEEWAY:
        raise InvalidToken("expired")
    if not max(issued_at, not_before) <= now + LEEWAY:
        raise InvalidToken("not yet valid")
    if not expires_at - issued_at <= MAX_LIFETIME:
        raise InvalidToken("lives too long")
    return expires_at


def _seconds(value: object) -> float:
    # A bool is an int in Python, and a string "1796…" is what PyJWT would coerce.
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value < 2**53):
        raise InvalidToken("exp, iat and nbf must be numbers")
    return float(value)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _PRINTABLE.match(value) is not None


def _scopes(claims: JsonObject) -> frozenset[str]:
    scope = claims.get("scope")
    if isinstance(scope, str):
        return _separated(scope)
    scp = claims.get("scp")
    if isinstance(scp, str):
        return _separated(scp)
    if isinstance(scp, list) and all(isinstance(each, str) for each in scp):
        return frozenset(scp)
    return frozenset()


def _separated(scopes: str) -> frozenset[str]:
    # By the space alone: str.split() would make several scopes of one that has another blank in it.
    return frozenset(scopes.split(" ")) - {""}
