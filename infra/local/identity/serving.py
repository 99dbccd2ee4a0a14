"""Serves the authorization server on 127.0.0.1: inside a running event loop, or from a thread for tests."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from infra.local.identity.application import app_for
from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.settings import IdentitySettings
from infra.local.loopback_server import listen, serve_on, url_of
from infra.local.on_thread import on_thread


@dataclass(frozen=True)
class Identity:
    """A running authorization server. `requests` grows by "METHOD /path" with each request."""

    url: str
    server: AuthorizationServer
    requests: list[str] = field(default_factory=list)

    def mint(self, subject: str, *, client_id: str, scope: str, resource: str, now: int, **overrides: Any) -> str:
        """See `AuthorizationServer.mint`."""
        return self.server.mint(subject, client_id=client_id, scope=scope, resource=resource, now=now, **overrides)


@contextmanager
def identity_in_thread(settings: IdentitySettings, *, port: int = 0) -> Iterator[Identity]:
    """Serve from a thread while the block runs. The issuer becomes the URL that was bound."""
    with on_thread(lambda: serve_identity(settings, port=port), name="identity") as (identity, _):
        yield identity


@asynccontextmanager
async def serve_identity(settings: IdentitySettings, *, port: int = 0) -> AsyncIterator[Identity]:
    """Serve from the running event loop while the block runs. The issuer becomes the URL that was bound."""
    # Bound first: the issuer is in every document and token, so the port has to be known before the app.
    listener = listen(port)
    url = url_of(listener)
    identity = Identity(url, AuthorizationServer(replace(settings, issuer=url)))
    async with serve_on(listener, app_for(identity.server, request_log=identity.requests), name="identity"):
        yield identity
