"""Serves Local Hub on 127.0.0.1: inside a running event loop, or from a thread for tests."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from infra.local.loopback_server import listen, serve_on, url_of
from infra.local.on_thread import on_thread
from infra.local.provider import metadata
from infra.local.provider.application import app_for
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.faults import Fault, Kind, Misbehaviour
from infra.local.provider.record import Record
from infra.local.provider.settings import HubSettings


@dataclass(frozen=True)
class Hub:
    """A running Local Hub: where it is, how to make it misbehave, and what it saw."""

    url: str
    server: HubServer

    @property
    def authorize_url(self) -> str:
        return self.url + metadata.AUTHORIZE

    @property
    def token_url(self) -> str:
        return self.url + metadata.TOKEN

    @property
    def revocation_url(self) -> str:
        return self.url + metadata.REVOKE

    @property
    def account_url(self) -> str:
        """Answers who connected, in the member `login`."""
        return self.url + metadata.USER

    @property
    def api_url(self) -> str:
        return self.url + "/api"

    @property
    def record(self) -> Record:
        return self.server.record

    def misbehave(
        self,
        kind: Kind,
        fault: Fault,
        *,
        times: int | None = None,
        seconds: float = 1.0,
        address: str = "",
        size: int = 1024 * 1024,
    ) -> None:
        """Answer the next `times` requests of a kind wrongly, or all of them until `behave`. See `Fault`."""
        found = Misbehaviour(fault=fault, times=times, seconds=seconds, address=address, size=size)
        self.server.faults.set(kind, found)

    def behave(self) -> None:
        """Answer everything as one should again."""
        self.server.faults.clear()


@contextmanager
def provider_in_thread(settings: HubSettings, *, port: int = 0) -> Iterator[Hub]:
    """Serve from a thread while the block runs. The issuer becomes the URL that was bound."""
    with on_thread(lambda: serve_provider(settings, port=port), name="local-hub") as (hub, _):
        yield hub


@asynccontextmanager
async def serve_provider(settings: HubSettings, *, port: int = 0) -> AsyncIterator[Hub]:
    """Serve from the running event loop while the block runs. The issuer becomes the URL that was bound."""
    listener = listen(port)
    url = url_of(listener)
    hub = Hub(url, HubServer(replace(settings, issuer=url)))
    async with serve_on(listener, app_for(hub.server), name="local-hub"):
        try:
            yield hub
        finally:
            # A request that was left hanging would be cut off in the middle, with a traceback.
            hub.behave()
