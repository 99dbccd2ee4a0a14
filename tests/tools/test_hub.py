"""The example client of a third party's API: what a tool gets, and what the model is told when it gets nothing."""

import time
from collections.abc import Iterator

import pytest

from app.adapters.oauth_http import HttpTokenEndpoint
from app.tools.hub import HubApi, HubFailed
from infra.local.provider import Fault, Hub, HubSettings, Kind, ScriptedBrowser, provider_in_thread
from tests.infra.provider.hub_client import CLIENT, HubClient

Tokens = dict[str, str]


@pytest.fixture(scope="module")
def running_hub() -> Iterator[Hub]:
    with provider_in_thread(HubSettings(clients=(CLIENT,))) as hub:
        yield hub


@pytest.fixture(scope="module")
def tokens(running_hub: Hub) -> Tokens:
    """Access tokens by scope, all of alice-hub."""
    with ScriptedBrowser() as browser:
        client = HubClient(running_hub, browser, HttpTokenEndpoint())
        return {scope: client.tokens(scope=scope)["access_token"] for scope in ("repo:read", "user:read")}


@pytest.fixture
def hub(running_hub: Hub) -> Hub:
    running_hub.behave()
    running_hub.record.clear()
    return running_hub


def test_it_lists_the_users_repositories(hub: Hub, tokens: Tokens) -> None:
    """With the third party's token in the header, and nothing of ours."""
    found = HubApi(hub.api_url).repositories(tokens["repo:read"])

    assert {each.owner for each in found} == {"alice-hub"}
    assert "diary" in {each.name for each in found}
    assert hub.record.foreign_tokens == 0
    assert not hub.record.any_jwt


def test_the_model_is_told_what_to_do_about_a_refusal(hub: Hub, tokens: Tokens) -> None:
    """RFC 6750 §3.1: 401 and 403 are different for whoever has to act."""
    with pytest.raises(HubFailed, match="disconnect it and try again"):
        HubApi(hub.api_url).repositories("hub_at_revoked")
    with pytest.raises(HubFailed, match="lacks a permission"):
        HubApi(hub.api_url).repositories(tokens["user:read"])


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault.HTML, "something unexpected"),
        (Fault.SERVER_ERROR, "HTTP 500"),
        (Fault.REDIRECT, "HTTP 302"),
        (Fault.HUGE, "too long or too slow"),
        (Fault.DRIP, "too long or too slow"),
        (Fault.HANG, "cannot be reached"),
    ],
)
def test_no_misbehaviour_holds_a_tool_or_comes_through(hub: Hub, tokens: Tokens, fault: Fault, text: str) -> None:
    """Untrusted text in a tool error would be read by the model; a redirect would get the token."""
    hub.misbehave(Kind.API, fault, address=f"{hub.url}/stolen")
    started = time.perf_counter()

    with pytest.raises(HubFailed, match=text) as failed:
        HubApi(hub.api_url, timeout=0.3).repositories(tokens["repo:read"])
    assert time.perf_counter() - started < 10
    assert "maintenance" not in str(failed.value)
    assert hub.record.at("/stolen") == []


def test_nobody_there_is_a_failure_like_any_other(tokens: Tokens) -> None:
    """Port 9 of this machine is nobody's."""
    with pytest.raises(HubFailed, match="cannot be reached"):
        HubApi("http://127.0.0.1:9/api").repositories(tokens["repo:read"])
