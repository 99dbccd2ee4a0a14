"""The seal rs1: authenticated encryption of small JSON claims, bound to a purpose and a context.

    token = "rs1." || base64url_nopad(kid(4) || salt(32) || commitment(32) || ciphertext || tag(16))
    OKM   = HKDF-SHA256(ikm = K[kid], salt = salt, info = "mcp/<purpose>/rs1" || 0x00 || kid, L = 76)
    key   = OKM[0:32]    nonce = OKM[32:44]    commitment = OKM[44:76]
    AAD   = LP("mcp/<purpose>") LP("rs1") LP(kid) LP(field) ...       LP(x) = uint32be(len(x)) || x
    text  = compact JSON, keys sorted, right-padded with spaces to a multiple of 64

A fresh 256-bit salt derives a fresh key and nonce for every token (HKDF, RFC 5869), so there is no
bound on messages per key to count across instances, as there is for random nonces under one AES-GCM
key (NIST SP 800-38D section 8.3). The commitment makes a token open under one key only. The context is
recomputed by whoever opens, never transmitted: a wrong one fails in decryption, not in a comparison
that somebody could forget. The version in the prefix stands in both info and AAD; no algorithm is named
in the token, so none can be negotiated down.
"""

import hmac
import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app.errors import ConfigurationError, SealRefused

MAX_TOKEN: Final = 32_768
"""Longest token that is looked at, in characters: longer input is refused before any decoding."""
MAX_CLAIMS: Final = 16_384
"""Largest claims that are sealed, in bytes of JSON, so that the token stays below `MAX_TOKEN`."""

_PREFIX: Final = "rs1."
_HEAD: Final = 4 + 32 + 32
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_TAG: Final = 16
_BLOCK: Final = 64
_BODY = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)


class Purpose(StrEnum):
    """What a token is for. Each purpose has its own derived keys: a token never serves another one."""

    REQUEST_STATE = "mcp/request-state"
    VAULT = "mcp/vault"
    FLOW = "mcp/flow"
    SESSION = "mcp/session"
    ONCE = "mcp/once"
    WIDGET = "mcp/widget"
    FALLBACK = "mcp/fallback"
    LEGACY_CLIENT = "mcp/legacy-client"


@dataclass(frozen=True, slots=True)
class Key:
    """A sealing key: a number that tokens carry, and 32 random bytes that never print."""

    kid: int
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != 32:
            raise ConfigurationError(
                [
                    f"Sealing key {self.kid} has {len(self.secret)} bytes, and must have 32. Make one: "
                    "python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"
                ]
            )
        if not 0 < self.kid < 2**32:
            raise ConfigurationError([f"Sealing key id {self.kid} must be from 1 to 4294967295: renumber it."])


class SealingKeys(Protocol):
    """The keys that open tokens, the one that seals them, and the pepper. A ring that is kept elsewhere may raise
    Unavailable from each of them, and is asked only when a token is sealed or opened or something is named.
    """

    @property
    def current(self) -> Key:
        """The key that seals."""
        ...

    def get(self, kid: int) -> Key | None:
        """The key with this id, looked up and never guessed: there is no trial decryption."""
        ...

    @property
    def pepper(self) -> Key:
        """The key of every `BlindIndex`: it names things in a store, and must outlive rotation."""
        ...


class Keyring:
    """Sealing keys that are in this process.

    Rotate in three deployments: add the new key as retired (every instance can open it), make it
    current, drop the old one when the last token it sealed has expired.

    The pepper names things in a store (see `BlindIndex`), and must outlive rotation. A ring of one key
    needs none: it is that key. A ring of several cannot tell which of them was the first, so it must be
    given; keep giving the same key after it has left the ring.
    """

    __slots__ = ("_by_kid", "_pepper", "current", "retired")

    def __init__(self, *, current: Key, retired: Iterable[Key] = (), pepper: Key | None = None) -> None:
        self.current = current
        self.retired = tuple(retired)
        self._pepper = pepper
        self._by_kid: dict[int, Key] = {}
        for key in (current, *self.retired):
            if key.kid in self._by_kid:
                raise ConfigurationError([f"Two sealing keys have the id {key.kid}: give each its own."])
            self._by_kid[key.kid] = key

    def get(self, kid: int) -> Key | None:
        """The key with this id."""
        return self._by_kid.get(kid)

    @property
    def pepper(self) -> Key:
        """The key of every `BlindIndex`. Raises ConfigurationError when the ring cannot tell it."""
        if self._pepper is not None:
            return self._pepper
        if self.retired:
            # Guessing would rename every stored connection in the middle of a rotation.
            raise ConfigurationError(
                [
                    f"The ring has {1 + len(self.retired)} sealing keys and no pepper: name the key that was the "
                    "only one before the first rotation as the pepper, and never change it."
                ]
            )
        return self.current

    def __repr__(self) -> str:
        return f"Keyring(current={self.current.kid}, retired={[key.kid for key in self.retired]})"


def length_prefixed(*fields: bytes) -> bytes:
    """Join byte strings so that no two different lists give the same bytes."""
    return b"".join(len(each).to_bytes(4, "big") + each for each in fields)


class Seal:
    """Seals and opens claims for one purpose. Use it through the module that owns the purpose."""

    __slots__ = ("_keyring", "_purpose")

    def __init__(self, keyring: SealingKeys, purpose: Purpose) -> None:
        self._keyring = keyring
        self._purpose = purpose.value.encode()

    def seal(self, claims: Mapping[str, Any], *, bound_to: Sequence[bytes]) -> str:
        """Encrypt `claims` (JSON values) so that only `open` with equal `bound_to` gives them back.

        Raises ValueError when the claims are larger than `MAX_CLAIMS`, and Unavailable without the key.
        """
        # The salt is drawn here, per token: no caller may choose it, and no snapshot may hold it.
        return self._seal(claims, bound_to=bound_to, salt=os.urandom(32))

    def _seal(self, claims: Mapping[str, Any], *, bound_to: Sequence[bytes], salt: bytes) -> str:
        text = _ENCODER.encode(claims).encode()
        if len(text) > MAX_CLAIMS:
            raise ValueError(f"{len(text)} bytes of claims; at most {MAX_CLAIMS} travel in a token")
        text += b" " * (-len(text) % _BLOCK)
        key = self._keyring.current
        kid = key.kid.to_bytes(4, "big")
        cipher_key, nonce, commitment = self._derive(key, kid, salt)
        sealed = AESGCM(cipher_key).encrypt(nonce, text, self._associated_data(kid, bound_to))
        return _PREFIX + urlsafe_b64encode(kid + salt + commitment + sealed).rstrip(b"=").decode()

    def open(self, token: object, *, bound_to: Sequence[bytes]) -> dict[str, Any]:
        """Verify and decrypt a token. Raises SealRefused, with a reason for the log, for anything else, and Unavailable
        when the key cannot be had.
        """
        if not isinstance(token, str):
            raise SealRefused("shape")
        if len(token) > MAX_TOKEN:
            raise SealRefused("length")
        encoded = token[len(_PREFIX) :]
        if not token.startswith(_PREFIX) or not _BODY.match(encoded) or len(encoded) % 4 == 1:
            raise SealRefused("shape")
        body = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        # Unused trailing bits would give one token several spellings.
        if urlsafe_b64encode(body).rstrip(b"=").decode() != encoded or len(body) < _HEAD + _TAG:
            raise SealRefused("shape")
        kid, salt, commitment = body[:4], body[4:36], body[36:_HEAD]
        key = self._keyring.get(int.from_bytes(kid, "big"))
        if key is None:
            raise SealRefused("kid")
        cipher_key, nonce, expected = self._derive(key, kid, salt)
        if not hmac.compare_digest(commitment, expected):
            raise SealRefused("commitment")
        try:
            text = AESGCM(cipher_key).decrypt(nonce, body[_HEAD:], self._associated_data(kid, bound_to))
        except InvalidTag:
            raise SealRefused("tag") from None
        try:
            claims = json.loads(text.decode())
        except (ValueError, RecursionError):
            # Another writer with the same key: still no reason to answer with a crash.
            raise SealRefused("claims") from None
        if not isinstance(claims, dict):
            raise SealRefused("claims")
        return claims

    def is_current(self, token: str) -> bool:
        """Whether a token that opens was sealed by the current key. Seal anew what outlives a rotation."""
        kid = urlsafe_b64decode(token[len(_PREFIX) : len(_PREFIX) + 8])[:4]
        return kid == self._keyring.current.kid.to_bytes(4, "big")

    def _derive(self, key: Key, kid: bytes, salt: bytes) -> tuple[bytes, bytes, bytes]:
        info = self._purpose + b"/rs1\x00" + kid
        okm = HKDF(algorithm=SHA256(), length=76, salt=salt, info=info).derive(key.secret)
        return okm[:32], okm[32:44], okm[44:]

    def _associated_data(self, kid: bytes, bound_to: Sequence[bytes]) -> bytes:
        return length_prefixed(self._purpose, b"rs1", kid, *bound_to)


class BlindIndex:
    """Names for a store that say nothing without the pepper: HMAC-SHA256 under a key for one purpose.

    For identities and other values that can be guessed. A random secret needs no more than its SHA-256.
    """

    __slots__ = ("_keyring", "_purpose")

    def __init__(self, keyring: SealingKeys, purpose: Purpose) -> None:
        self._keyring = keyring
        self._purpose = purpose.value.encode()

    def of(self, *fields: str) -> str:
        """The name of a list of fields: 43 characters, the same in every instance and after a rotation."""
        info = self._purpose + b"/blind-index"
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self._keyring.pepper.secret)
        name = hmac.digest(key, length_prefixed(*(each.encode() for each in fields)), "sha256")
        return urlsafe_b64encode(name).rstrip(b"=").decode()
