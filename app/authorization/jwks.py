"""The issuer's verification keys: which of them are trusted, and when they are fetched again.

    state of the set     key known                    key unknown
    fresh (10 min)       use it                       refresh, if the cooldown allows, else refuse
    stale (24 h)         refresh if allowed, use it   refresh if allowed, else refuse
    none, or too old     refresh if allowed, else unavailable

The cooldown counts from every attempt, also a failed one: an outage or a stream of made-up key ids
costs the issuer one request in 30 seconds from each instance, and nobody waits for it twice.
"""

import math
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import jwt

from app.errors import InvalidToken, Unavailable

if TYPE_CHECKING:
    from app.ports import DocumentSource

FRESH: Final = 600
STALE_IF_ERROR: Final = 86_400
COOLDOWN: Final = 30
MAX_KEYS: Final = 32
MAX_KID: Final = 256

# The algorithm is taken from the key, or from its kind: never from the token alone (RFC 8725 section 3.1).
_ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): ("RS256", "PS256"),
    ("EC", "P-256"): ("ES256",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS: Final = frozenset(algorithm for each in _ALGORITHMS.values() for algorithm in each)
"""Every signature algorithm that some trusted key may verify."""
_PRIVATE_MEMBERS: Final = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))
_MIN_RSA_BITS: Final = 2048


class VerificationKey(NamedTuple):
    """One public key, as an object ready to verify with under each algorithm that it may be used for."""

    kid: str
    by_algorithm: Mapping[str, Any]


def trusted_keys(document: object) -> dict[str, tuple[VerificationKey, ...]]:
    """The keys of a JWK Set that we verify with, by key id. The rest is left out: symmetric, private,
    weak, unknown, without a key id, or for another use (RFC 7517 section 4).
    """
    members = document.get("keys") if isinstance(document, dict) else None
    trusted: dict[str, tuple[VerificationKey, ...]] = {}
    for jwk in members[:MAX_KEYS] if isinstance(members, list) else []:
        key = _trusted(jwk)
        if key is not None:
            trusted[key.kid] = (*trusted.get(key.kid, ()), key)
    return trusted


def _trusted(jwk: object) -> VerificationKey | None:
    if not isinstance(jwk, dict) or not _PRIVATE_MEMBERS.isdisjoint(jwk):
        return None
    kid, kty = jwk.get("kid"), jwk.get("kty")
    curve = None if kty == "RSA" else jwk.get("crv")
    if not isinstance(kid, str) or len(kid) > MAX_KID or not isinstance(kty, str):
        return None
    algorithms = _ALGORITHMS.get((kty, curve if isinstance(curve, str) else None), ())
    declared = jwk.get("alg")
    if declared is not None:
        algorithms = (declared,) if declared in algorithms else ()
    operations = jwk.get("key_ops", ["verify"])
    if not algorithms or jwk.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    try:
        by_algorithm = {algorithm: jwt.PyJWK(jwk, algorithm=algorithm).key for algorithm in algorithms}
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if kty == "RSA" and by_algorithm[algorithms[0]].key_size < _MIN_RSA_BITS:
        return None
    return VerificationKey(kid, by_algorithm)


class Jwks:
    """The keys of one issuer, fetched when needed. Safe to share between threads."""

    def __init__(self, source: "DocumentSource", *, issuer: str, jwks_url: str | None = None) -> None:
        self._source = source
        self._issuer = issuer
        self._configured_url = jwks_url
        self._refreshing = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop everything, as after a SnapStart restore."""
        self._url = self._configured_url
        self._keys: dict[str, tuple[VerificationKey, ...]] = {}
        self._fetched_at = self._attempted_at = float("-inf")
        self._problem = "not fetched yet"

    def get(self, kid: str, *, now: float) -> tuple[VerificationKey, ...]:
        """The keys with this id. Raises InvalidToken when there is none, and Unavailable when none can be had."""
        if now - self._fetched_at >= FRESH or kid not in self._keys:
            # While another thread fetches, a key that we hold will do.
            if self._refreshing.acquire(blocking=not self._holds(kid, now)):
                try:
                    if now - self._attempted_at >= COOLDOWN:
                        self._refresh(now)
                finally:
                    self._refreshing.release()
            if not now - self._fetched_at < STALE_IF_ERROR:
                wait = max(1, math.ceil(self._attempted_at + COOLDOWN - now))
                raise Unavailable(f"no verification keys: {self._problem}", retry_after=wait)
        try:
            return self._keys[kid]
        except KeyError:
            raise InvalidToken("unknown kid") from None

    def _holds(self, kid: str, now: float) -> bool:
        return kid in self._keys and now - self._fetched_at < STALE_IF_ERROR

    def _refresh(self, now: float) -> None:
        self._attempted_at = now
        try:
            if self._url is None:
                self._url = discover_jwks_url(self._source, self._issuer)
            keys = trusted_keys(self._source.fetch(self._url))
        except Unavailable as error:
            self._problem = error.reason
            return
        if keys:
            self._keys, self._fetched_at = keys, now
        else:
            self._problem = "the JWK Set has no key that can be trusted"


def metadata_urls(issuer: str) -> list[str]:
    """Where an issuer's metadata may be, in the order that clients try (authorization-server-discovery)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*inserted, f"{origin}{path}/.well-known/openid-configuration"] if path else inserted


def discover_jwks_url(source: "DocumentSource", issuer: str) -> str:
    """The `jwks_uri` of the metadata whose `issuer` is exactly ours (RFC 8414 section 3.3). Raises Unavailable."""
    problem = "no authorization server metadata"
    for url in metadata_urls(issuer):
        try:
            document = source.fetch(url)
        except Unavailable:
            continue
        if not isinstance(document, dict):
            continue
        if document.get("issuer") != issuer:
            problem = "metadata: its issuer must be exactly the configured one (MCP_ISSUER)"
            continue
        jwks_url = document.get("jwks_uri")
        # Another host's keys would make that host the issuer.
        if isinstance(jwks_url, str) and _same_origin(jwks_url, issuer):
            return jwks_url
        problem = "metadata: its jwks_uri is not on the issuer's host: if that is right, configure it (MCP_JWKS_URL)"
    raise Unavailable(problem, retry_after=COOLDOWN)


def _same_origin(url: str, issuer: str) -> bool:
    try:
        one, other = urlsplit(url), urlsplit(issuer)
    except ValueError:
        return False
    return (one.scheme, one.netloc) == (other.scheme, other.netloc)
