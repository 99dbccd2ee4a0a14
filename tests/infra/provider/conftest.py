"""One running Local Hub for all tests of this folder, well-behaved at the start of each."""

from collections.abc import Iterator

import pytest

from app.adapters.oauth_http import HttpTokenEndpoint
from infra.local.provider import Hub, HubSettings, ScriptedBrowser, provider_in_thread
from tests.infra.identity.oauth_client import Clock
from tests.infra.provider.hub_client import CLIENT, HubClient


@pytest.fixture(scope="session")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def running_hub(clock: Clock) -> Iterator[Hub]:
    with provider_in_thread(HubSettings(clients=(CLIENT,), clock=clock)) as hub:
        yield hub


@pytest.fixture
def hub(running_hub: Hub) -> Hub:
    running_hub.behave()
    running_hub.record.clear()
    return running_hub


@pytest.fixture
def browser() -> Iterator[ScriptedBrowser]:
    with ScriptedBrowser() as fresh:
        yield fresh


@pytest.fixture
def client(hub: Hub, browser: ScriptedBrowser) -> HubClient:
    return HubClient(hub, browser, HttpTokenEndpoint())
