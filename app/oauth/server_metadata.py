"""The endpoints of the authorization server that signs users in, from its metadata (RFC 8414, OpenID Discovery).

Fresh for 10 minutes, used for a day while nothing newer can be had. The cooldown counts from every
attempt, also a failed one: an outage costs the issuer one request in 30 seconds from each instance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

from app.errors import Unavailable
from app.ports import DocumentSource

FRESH: Final = 600
STALE_IF_ERROR: Final = 86_400
COOLDOWN: Final = 30

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """What a client has to know of its authorization server. `secret_in_body` says that it takes a client
    secret in the form only; the default is HTTP Basic.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    iss_in_responses: bool
    secret_in_body: bool


class NotUsable(ValueError):
    """This document is not the issuer's, or the server cannot do what we need. The message says what to change."""


def read_metadata(document: object, *, issuer: str) -> ServerMetadata:
    """The metadata of `issuer`. Raises NotUsable."""
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        # Another issuer's document would send codes to that issuer (RFC 8414 section 3.3).
        raise NotUsable("issuer: it must be exactly the configured one")
    if "S256" not in _strings(document, "code_challenge_methods_supported"):
        # Absent means that PKCE would be ignored (MCP basic/authorization, PKCE).
        raise NotUsable("code_challenge_methods_supported: the server must list S256")
    methods = _strings(document, "token_endpoint_auth_methods_supported")
    return ServerMetadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint", issuer),
        token_endpoint=_endpoint(document, "token_endpoint", issuer),
        iss_in_responses=document.get("authorization_response_iss_parameter_supported") is True,
        secret_in_body=bool(methods) and "client_secret_basic" not in methods,
    )


def _strings(document: dict[str, Any], name: str) -> list[str]:
    values = document.get(name)
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []


def _endpoint(document: dict[str, Any], name: str, issuer: str) -> str:
    url = document.get(name)
    if not isinstance(url, str):
        raise NotUsable(f"{name}: it is missing")
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in _LOOPBACK and issuer.startswith("http://")
    if not (parts.scheme == "https" or local) or not parts.hostname or parts.fragment or parts.username:
        raise NotUsable(f"{name}: it must be an https URL without fragment or user name")
    return url


class MetadataCache:
    """The metadata of one issuer, fetched when needed. Safe to share between threads."""

    def __init__(self, source: DocumentSource, *, issuer: str, locations: Sequence[str]) -> None:
        self._source = source
        self._issuer = issuer
        self._locations = tuple(locations)
        self._refreshing = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop everything, as after a SnapStart restore."""
        self._metadata: ServerMetadata | None = None
        self._problem = "no authorization server metadata"
        self._fetched_at = self._attempted_at = float("-inf")

    def get(self, *, now: float) -> ServerMetadata:
        """The metadata. Raises Unavailable, with what to change as its reason, when there is none to use."""
        with self._refreshing:
            if now - self._fetched_at >= FRESH and now - self._attempted_at >= COOLDOWN:
                self._refresh(now)
            if self._metadata is None or not now - self._fetched_at < STALE_IF_ERROR:
                raise Unavailable(self._problem, retry_after=max(1, int(self._attempted_at + COOLDOWN - now)))
            return self._metadata

    def _refresh(self, now: float) -> None:
        self._attempted_at = now
        for url in self._locations:
            try:
                self._metadata = read_metadata(self._source.fetch(url), issuer=self._issuer)
            except Unavailable:
                continue
            except NotUsable as error:
                self._problem = f"authorization server metadata: {error}"
                continue
            self._fetched_at = now
            return
