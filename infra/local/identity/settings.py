"""What a caller decides about the local authorization server: issuer, resources, scopes, users, keys, clock."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from joserfc.jwk import ECKey

from infra.local.identity.client_document_fetcher import DocumentFetcher, fetch_document

IDENTITY_SCOPES: Mapping[str, str] = {
    "openid": "Know which account you use here",
    "profile": "See your name",
    "email": "See your email address",
    "offline_access": "Stay connected when you are away",
}


@dataclass(frozen=True)
class User:
    """Someone who can sign in. There is no password: this server proves nothing about who sits there."""

    subject: str
    name: str
    email: str


ALICE = User(subject="alice", name="Alice", email="alice@example.com")
BOB = User(subject="bob", name="Bob", email="bob@example.com")


@dataclass(frozen=True, kw_only=True)
class ConfidentialClient:
    """A client with a secret, registered in advance: our own web function, which signs users in."""

    client_id: str
    client_secret: str = field(repr=False)
    redirect_uris: tuple[str, ...]
    name: str


@dataclass(frozen=True, kw_only=True)
class IdentitySettings:
    """`resources` are the MCP endpoint URLs that tokens may be for; an access token's `aud` is one of them.

    `scopes` maps each scope of the MCP server to the sentence that the consent page shows for it.
    The first of `signing_keys` signs, all are published; none given means one made for this process.
    """

    resources: tuple[str, ...]
    issuer: str = "http://127.0.0.1:9400"
    scopes: Mapping[str, str] = field(default_factory=dict)
    users: tuple[User, ...] = (ALICE, BOB)
    clients: tuple[ConfidentialClient, ...] = ()
    signing_keys: tuple[ECKey, ...] = ()
    fetch_client_document: DocumentFetcher = fetch_document
    allow_loopback_client_ids: bool = True
    clock: Callable[[], float] = time.time
    authorization_code_lifetime: int = 60
    access_token_lifetime: int = 3600
    refresh_token_lifetime: int = 30 * 24 * 3600
    browser_session_lifetime: int = 8 * 3600

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            raise ValueError(
                f"issuer {self.issuer!r} must be an origin: leave out path and trailing slash, "
                "as in http://127.0.0.1:9400"
            )

    @property
    def scope_descriptions(self) -> dict[str, str]:
        return {**self.scopes, **IDENTITY_SCOPES}
