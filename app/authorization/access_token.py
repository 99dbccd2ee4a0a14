"""JWT access tokens (RFC 9068, RFC 8725): from the Authorization header to a verified AccessToken.

The library verifies the signature. The claims are checked here, strictly and against a clock that is an
argument: PyJWT takes a missing or string `exp`, an empty `sub`, duplicate claims, any `typ`.
"""

import math
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from app import strict_json
from app.authorization.jwks import MAX_KID, Jwks, VerificationKey
from app.errors import InvalidRequest, InvalidToken, MissingCredentials
from app.principal import AccessToken, Principal
from app.strict_json import NotStrictJson

MAX_TOKEN: Final = 8192
LEEWAY: Final = 30
MAX_LIFETIME: Final = 86_400
MAX_AUDIENCES: Final = 16

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z", re.ASCII)
_TYPES: Final = (None, "at+jwt", "application/at+jwt", "jwt")
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,255}\Z")
_JWS = jwt.PyJWS()


@dataclass(frozen=True, slots=True)
class TokenRules:
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
    if "," in header:
        raise InvalidRequest("several credentials")
    if scheme.lower() != "bearer":
        raise MissingCredentials("another scheme")
    if not token or " " in token:
        raise InvalidRequest("malformed Authorization header")
    return token


def verify(token: str, keys: Jwks, rules: TokenRules, *, now: float) -> AccessToken:
    """Verify an access token. Raises InvalidToken with a reason for the log, or Unavailable without keys."""
    if len(token) > MAX_TOKEN or not _COMPACT.match(token):
        raise InvalidToken("shape")
    header = _segment(token.split(".", 1)[0])
    _check_header(header, rules)
    payload = _verified_payload(token, header, keys.get(header["kid"], now=now))
    try:
        claims = strict_json.parse(payload)
    except NotStrictJson:
        raise InvalidToken("claims are not JSON") from None
    if not isinstance(claims, dict):
        raise InvalidToken("claims are not an object")
    return _access_token(claims, rules, now=now)


def _segment(encoded: str) -> dict[str, Any]:
    try:
        value = strict_json.parse(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except ValueError:
        raise InvalidToken("header is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken("header is not an object")
    return value


def _check_header(header: dict[str, Any], rules: TokenRules) -> None:
    kid, typ = header.get("kid"), header.get("typ")
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID:
        raise InvalidToken("kid")
    # An extension that we do not know might change what the signature means (RFC 7515 section 4.1.11).
    if "crit" in header or "b64" in header:
        raise InvalidToken("crit")
    if isinstance(typ, str):
        typ = typ.lower()
    # An ID token or a logout token of the same issuer is signed by the same key.
    if typ not in (_TYPES[1:3] if rules.require_at_jwt else _TYPES):
        raise InvalidToken("typ")


def _verified_payload(token: str, header: dict[str, Any], candidates: tuple[VerificationKey, ...]) -> bytes:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str):
        raise InvalidToken("alg")
    for candidate in candidates:
        key = candidate.by_algorithm.get(algorithm)
        if key is None:
            continue
        try:
            payload = _JWS.decode_complete(token, key, algorithms=[algorithm])["payload"]
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            continue
        return bytes(payload)
    raise InvalidToken("signature")


def _access_token(claims: dict[str, Any], rules: TokenRules, *, now: float) -> AccessToken:
    if claims.get("iss") != rules.issuer:
        raise InvalidToken("iss")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or len(audiences) > MAX_AUDIENCES or rules.audience not in audiences:
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


def _times(claims: dict[str, Any], now: float) -> float:
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


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    scope = claims.get("scope")
    if isinstance(scope, str):
        return frozenset(scope.split())
    scp = claims.get("scp")
    if isinstance(scp, str):
        return frozenset(scp.split())
    if isinstance(scp, list) and all(isinstance(each, str) for each in scp):
        return frozenset(scp)
    return frozenset()
