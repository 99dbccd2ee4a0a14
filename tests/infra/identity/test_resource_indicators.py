"""Which MCP server a token is for: the resource parameter (RFC 8707)."""

import jwt
import pytest

from infra.local.identity import Identity
from tests.infra.identity.oauth_client import RESOURCE, Changes, OAuthClient

OTHER = "http://127.0.0.1:9/other"


@pytest.mark.parametrize(
    "resource",
    [
        None,
        "",
        "http://127.0.0.1:9/unknown",
        "http://127.0.0.1:9/mcp/",
        "not a url",
        f"{RESOURCE}#x",
        [RESOURCE, OTHER],
    ],
)
def test_an_authorization_request_names_one_known_resource(client: OAuthClient, resource: Changes) -> None:
    """RFC 8707 §2: missing, unknown or malformed is invalid_target."""
    response = client.authorize(resource=resource)

    assert response["error"] == "invalid_target"
    assert response["iss"] == client.identity.url


@pytest.mark.parametrize("resource", [None, OTHER, "http://127.0.0.1:9/unknown", [RESOURCE, RESOURCE]])
def test_a_token_request_names_the_resource_that_was_approved(client: OAuthClient, resource: Changes) -> None:
    """MCP authorization, Resource Parameter: MUST be included in both requests."""
    code = client.authorize()["code"]

    response = client.exchange(code, resource=resource)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")


@pytest.mark.parametrize("resource", [None, OTHER, "http://127.0.0.1:9/unknown"])
def test_a_refresh_names_the_resource_that_was_approved(client: OAuthClient, resource: Changes) -> None:
    """RFC 8707 §2.2: for the refresh grant too."""
    response = client.refresh(client.tokens()["refresh_token"], resource=resource)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")


def test_host_and_scheme_compare_without_case_and_the_audience_is_spelled_as_configured(client: OAuthClient) -> None:
    """MCP authorization, Canonical Server URI: SHOULD accept uppercase scheme and host."""
    code = client.authorize(resource="HTTP://127.0.0.1:9/mcp")["code"]

    token = client.exchange(code, resource=RESOURCE).json()["access_token"]

    assert jwt.decode(token, options={"verify_signature": False})["aud"] == RESOURCE


def test_a_resource_can_be_added_while_the_server_runs(client: OAuthClient, identity: Identity) -> None:
    """Each test that starts its own MCP server can use the one authorization server."""
    added = "http://127.0.0.1:9/added"
    identity.server.add_resource(added)

    token = client.exchange(client.authorize(resource=added)["code"], resource=added).json()["access_token"]

    assert jwt.decode(token, options={"verify_signature": False})["aud"] == added


def test_a_resource_with_a_fragment_cannot_be_configured(identity: Identity) -> None:
    """RFC 8707 §2: MUST NOT include a fragment."""
    with pytest.raises(ValueError, match="without fragment"):
        identity.server.add_resource("http://127.0.0.1:9/mcp#x")
