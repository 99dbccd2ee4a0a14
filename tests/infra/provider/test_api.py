"""The protected API: whose token opens what, and that nobody else's opens anything."""

import json

import pytest

from infra.local.provider import Hub
from tests.infra.identity.oauth_client import Clock
from tests.infra.provider.hub_client import HubClient, document

FOREIGN = "eyJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwOi8vMTI3LjAuMC4xL21jcCJ9.c2ln"
"""Like an access token for the MCP server."""


def test_each_user_sees_their_own(client: HubClient) -> None:
    """Another's repositories would show at once that two users were mixed up."""
    alice, bob = (client.tokens(user=user)["access_token"] for user in ("alice-hub", "bob-hub"))

    assert document(client.get("user", alice))["login"] == "alice-hub"
    assert document(client.get("user", bob))["login"] == "bob-hub"
    owners = [{each["owner"] for each in json.loads(client.get("repositories", token).body)} for token in (alice, bob)]
    assert owners == [{"alice-hub"}, {"bob-hub"}]


@pytest.mark.parametrize(("path", "scope"), [("user", "user:read"), ("repositories", "repo:read")])
def test_each_endpoint_needs_its_scope(client: HubClient, path: str, scope: str) -> None:
    """RFC 6750 §3.1: insufficient_scope."""
    others = {"user:read", "repo:read", "repo:write"} - {scope}
    without, with_it = (client.tokens(scope=each)["access_token"] for each in (" ".join(sorted(others)), scope))

    assert client.get(path, without).status == 403
    assert client.get(path, with_it).status == 200


def test_a_foreign_token_is_refused_and_counted(client: HubClient, hub: Hub) -> None:
    """MCP authorization, Token Passthrough: an MCP server must not pass on the token that it received."""
    tokens = client.tokens()
    assert (hub.record.foreign_tokens, hub.record.any_jwt) == (0, False)

    for token in (FOREIGN, "hub_at_guessed", tokens["refresh_token"]):
        assert client.get("repositories", token).status == 401
    assert (hub.record.foreign_tokens, hub.record.any_jwt) == (3, True)


def test_an_expired_token_is_refused_and_is_no_foreign_one(client: HubClient, hub: Hub, clock: Clock) -> None:
    """RFC 6750 §3.1: invalid_token."""
    token = client.tokens()["access_token"]
    clock.advance(3600)

    assert client.get("user", token).status == 401
    assert hub.record.foreign_tokens == 0


def test_a_token_counts_in_the_header_alone(client: HubClient, hub: Hub) -> None:
    """RFC 6750 §2.3: in a URL it would be in logs."""
    token = client.tokens()["access_token"]

    assert client.endpoint.get(f"{hub.api_url}/user?access_token={token}", {}).status == 401
    assert client.endpoint.get(f"{hub.api_url}/user", {"authorization": f"Basic {token}"}).status == 401
    assert client.endpoint.get(f"{hub.api_url}/user", {"authorization": "Bearer"}).status == 401


def test_a_refusal_is_a_challenge(client: HubClient, hub: Hub) -> None:
    """RFC 9110 §11.6.1: 401 comes with WWW-Authenticate."""
    response = client.browser.http.get(f"{hub.api_url}/user", headers={"Authorization": f"Bearer {FOREIGN}"})

    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert FOREIGN not in response.text + str(response.headers)
