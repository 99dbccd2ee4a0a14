"""The ES256 keys that sign tokens, their public JWK set, and rotation."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

ALGORITHM: Final = "ES256"


class Omit(Enum):
    """A claim or header field that is to be absent, unlike None, which is sent as null."""

    OMIT = "omit"


OMIT: Final = Omit.OMIT


def generate_signing_key() -> ECKey:
    """A new P-256 key whose `kid` is its RFC 7638 thumbprint."""
    return ECKey.generate_key("P-256", {"use": "sig", "alg": ALGORITHM}, auto_kid=True)


class SigningKeys:
    """One key signs; the keys before it stay published so that tokens signed by them still verify."""

    def __init__(self, keys: Iterable[ECKey]) -> None:
        self._keys = list(keys) or [generate_signing_key()]
        for key in self._keys:
            key.ensure_kid()

    @property
    def current(self) -> ECKey:
        return self._keys[0]

    def rotate(self, new: ECKey | None = None) -> ECKey:
        """From now on sign with `new`, a fresh key unless given, and go on publishing the others."""
        key = new or generate_signing_key()
        key.ensure_kid()
        self._keys.insert(0, key)
        return key

    def withdraw(self, kid: str) -> None:
        """Stop publishing a retired key: what it signed no longer verifies."""
        if self.current.kid == kid:
            raise ValueError(f"{kid} is the key that signs: rotate before withdrawing it")
        self._keys = [key for key in self._keys if key.kid != kid]

    def jwks(self) -> dict[str, Any]:
        """The public halves (RFC 7517), the signing key first."""
        fields = {"use": "sig", "alg": ALGORITHM}
        return {"keys": [{**key.as_dict(private=False), **fields} for key in self._keys]}

    def sign(self, claims: Mapping[str, Any], *, header: Mapping[str, Any]) -> str:
        """A compact JWS over the claims; what is `OMIT` in claims or header is left out."""
        fields = {"alg": ALGORITHM, "kid": self.current.kid, **header}
        return jwt.encode(
            _without_omitted(fields),
            _without_omitted(claims),
            self.current,
            registry=_AnyHeader(algorithms=[ALGORITHM]),
            default_type=None,
        )


class _AnyHeader(JWSRegistry):
    """Signs headers that a verifier must refuse, such as an unknown `crit`: tests need them."""

    def check_header(self, header: Header) -> None:
        pass


def _without_omitted(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not OMIT}
