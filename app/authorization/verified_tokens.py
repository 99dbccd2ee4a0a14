"""Access tokens whose signature has been verified before: clients send the same one with every request.

A token is remembered under its SHA-256, never as it came, and until it expires. What depends on more than the token is
looked at each time: the clock, and whether the key that verified it is the very one that the issuer's key set has now.
One that was withdrawn, or fetched anew, verifies again.
"""

import hashlib
from typing import Final, NamedTuple

from app.authorization import access_token, signed_jwt
from app.authorization.access_token import LEEWAY, TokenRules
from app.authorization.jwks import Jwks, VerificationKey
from app.principal import AccessToken

CAPACITY: Final = 1024
"""Tokens that one instance remembers; the oldest goes first."""


class _Verified(NamedTuple):
    access_token: AccessToken
    key: VerificationKey
    valid_from: float


class VerifiedTokens:
    """Verifies access tokens by one issuer's keys and one resource's rules."""

    __slots__ = ("_capacity", "_keys", "_rules", "_verified")

    def __init__(self, keys: Jwks, rules: TokenRules, *, capacity: int = CAPACITY) -> None:
        self._keys = keys
        self._rules = rules
        self._capacity = capacity
        self._verified: dict[bytes, _Verified] = {}

    def verify(self, token: str, *, now: float) -> AccessToken:
        """The access token. Raises InvalidToken with a reason for the log, or Unavailable without keys."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        verified = self._verified.get(digest)
        if verified is not None and self._stands(verified, now=now):
            return verified.access_token
        self._verified.pop(digest, None)
        claims, key = signed_jwt.verify(token, self._keys, types=access_token.types(self._rules), now=now)
        accepted = access_token.accepted(claims, self._rules, now=now)
        if now < accepted.expires_at:
            if len(self._verified) >= self._capacity:
                self._verified.pop(next(iter(self._verified)), None)
            valid_from = max(claims["iat"], claims.get("nbf", claims["iat"])) - LEEWAY
            self._verified[digest] = _Verified(accepted, key, valid_from)
        return accepted

    def _stands(self, verified: _Verified, *, now: float) -> bool:
        """Whether the token is valid now, and its key still one of the issuer's."""
        # By identity: a key set that was fetched anew has other objects, whatever is in them.
        held = any(key is verified.key for key in self._keys.get(verified.key.kid, now=now))
        return held and verified.valid_from <= now < verified.access_token.expires_at
