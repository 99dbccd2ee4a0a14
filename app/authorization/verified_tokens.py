"""Access tokens whose signature has been verified before: clients send the same one with every request.

Only the signature is remembered. Every claim is checked again, against the clock and the rules of this request, and
the key that verified must be the very one that the issuer's key set has now: one that was withdrawn, or fetched anew,
verifies again. A token is remembered under its SHA-256 until it expires, and never as it came.
"""

import hashlib
from typing import Final

from app.authorization import access_token, signed_jwt
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.authorization.signed_jwt import Signed
from app.principal import AccessToken

CAPACITY: Final = 1024
"""Tokens that one instance remembers; the oldest goes first."""


class VerifiedTokens:
    """Verifies access tokens by one issuer's keys and one resource's rules."""

    __slots__ = ("_capacity", "_keys", "_rules", "_signed")

    def __init__(self, keys: Jwks, rules: TokenRules, *, capacity: int = CAPACITY) -> None:
        self._keys = keys
        self._rules = rules
        self._capacity = capacity
        self._signed: dict[bytes, Signed] = {}

    def verify(self, token: str, *, now: float) -> AccessToken:
        """The access token. Raises InvalidToken with a reason for the log, or Unavailable without keys."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        signed = self._signed.get(digest)
        if signed is not None and self._stands(signed, now=now):
            return access_token.accepted(signed.claims, self._rules, now=now)
        self._signed.pop(digest, None)
        signed = signed_jwt.verify(token, self._keys, types=access_token.types(self._rules), now=now)
        accepted = access_token.accepted(signed.claims, self._rules, now=now)
        if now < accepted.expires_at:
            if len(self._signed) >= self._capacity:
                self._signed.pop(next(iter(self._signed)), None)
            self._signed[digest] = signed
        return accepted

    def _stands(self, signed: Signed, *, now: float) -> bool:
        """Whether the key is still one of the issuer's, and the token has not expired."""
        # By identity: a key set that was fetched anew has other objects, whatever is in them.
        held = any(key is signed.key for key in self._keys.get(signed.key.kid, now=now))
        return held and now < signed.claims["exp"]
