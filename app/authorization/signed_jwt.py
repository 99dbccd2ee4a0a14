"""Signed JWTs of one issuer (RFC 7519, RFC 8725): from a compact string to claims that the issuer did sign.

The signature is all that is verified here. Which claims count, and for what, is the caller's to check:
an access token and an ID token of one issuer are signed by the same key.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Collection
from typing import Final, NamedTuple

import jwt

from app import strict_json
from app.authorization.jwks import ALGORITHMS, MAX_KID, Jwks, VerificationKey
from app.errors import InvalidToken
from app.strict_json import JsonObject, NotStrictJson

MAX_TOKEN: Final = 8192

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z", re.ASCII)
_JWS = jwt.PyJWS()


class Signed(NamedTuple):
    """The claims of a token, and the key that verified its signature."""

    claims: JsonObject
    key: VerificationKey


def verified_claims(token: str, keys: Jwks, *, types: Collection[str | None], now: float) -> JsonObject:
    """The claims of a token that one of `keys` signed and whose `typ`, in lower case, is one of `types`.

    Raises InvalidToken with a reason for the log, or Unavailable without keys.
    """
    return verify(token, keys, types=types, now=now).claims


def verify(token: str, keys: Jwks, *, types: Collection[str | None], now: float) -> Signed:
    """`verified_claims`, with the key."""
    if len(token) > MAX_TOKEN or not _COMPACT.match(token):
        raise InvalidToken("shape")
    header = _json_object(_decoded(token.split(".", 1)[0]), "header")
    alg, kid, typ = header.get("alg"), header.get("kid"), header.get("typ")
    # Before any key is looked for: "none" and HS256 are nothing to fetch a key set for.
    if not isinstance(alg, str) or alg not in ALGORITHMS:
        raise InvalidToken("alg")
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID:
        raise InvalidToken("kid")
    # An extension that we do not know might change what the signature means (RFC 7515 section 4.1.11).
    if "crit" in header or "b64" in header:
        raise InvalidToken("crit")
    if not (typ.lower() in types if isinstance(typ, str) else "typ" not in header and None in types):
        raise InvalidToken("typ")
    payload, key = _verified_payload(token, alg, keys.get(kid, now=now))
    return Signed(_json_object(payload, "claims"), key)


def _decoded(encoded: str) -> bytes:
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        raise InvalidToken("header: not Base64") from None


def _json_object(text: bytes, part: str) -> JsonObject:
    try:
        value = strict_json.parse(text)
    except NotStrictJson:
        raise InvalidToken(f"{part}: not JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"{part}: not an object")
    return value


def _verified_payload(
    token: str, algorithm: str, candidates: tuple[VerificationKey, ...]
) -> tuple[bytes, VerificationKey]:
    for candidate in candidates:
        key = candidate.by_algorithm.get(algorithm)
        if key is None:
            continue
        try:
            payload = _JWS.decode_complete(token, key, algorithms=[algorithm])["payload"]
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            continue
        return bytes(payload), candidate
    raise InvalidToken("signature")
