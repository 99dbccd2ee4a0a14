"""Starting and stopping: ports, issuer, two at once, and a stop while a request hangs."""

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from app.adapters.oauth_http import HttpTokenEndpoint
from infra.local.provider import Fault, Hub, HubSettings, Kind, create_app, provider_in_thread, serve_provider


def test_it_serves_inside_an_event_loop_and_frees_its_port_at_the_end() -> None:
    """The local stack's process hosts it; starting again on the same port must work."""

    async def twice() -> None:
        port = 0
        for _ in range(2):
            async with serve_provider(HubSettings(), port=port) as hub:
                port = int(hub.url.rpartition(":")[2])
                async with httpx2.AsyncClient(trust_env=False) as http:
                    metadata = (await http.get(f"{hub.url}/.well-known/oauth-authorization-server")).json()
                    assert metadata["issuer"] == hub.url
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(twice())


def test_a_port_in_use_is_an_error_at_once(hub: Hub) -> None:
    """Nobody should wait for a server that cannot start."""
    port = int(hub.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), provider_in_thread(HubSettings(), port=port):
        pass


def test_it_is_bound_to_loopback_only(hub: Hub) -> None:
    """There are no passwords: a neighbour in the network must not reach it."""
    port = int(hub.url.rpartition(":")[2])
    with socket.socket() as other:
        other.bind(("127.0.0.2", port))


def test_a_request_that_hangs_does_not_keep_it_from_stopping(caplog: pytest.LogCaptureFixture) -> None:
    """A test that fails in the middle must not hang the run, nor end it in tracebacks."""
    with ThreadPoolExecutor() as threads:
        with provider_in_thread(HubSettings()) as hub:
            hub.misbehave(Kind.API, Fault.HANG)
            waiting = threads.submit(HttpTokenEndpoint(timeout=60).get, hub.account_url, {})
            while not hub.record.at("/api/user"):
                time.sleep(0.01)
        assert waiting.result(10).status == 401

    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_two_hubs_share_nothing() -> None:
    """Clients, tokens and faults live as long as one server."""
    with provider_in_thread(HubSettings()) as one, provider_in_thread(HubSettings()) as other:
        one.misbehave(Kind.API, Fault.SERVER_ERROR)
        statuses = [HttpTokenEndpoint().get(hub.account_url, {}).status for hub in (one, other)]

    assert statuses == [500, 401]
    assert create_app(HubSettings()) is not create_app(HubSettings())
