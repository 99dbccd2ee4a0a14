"""The authorization endpoint: what it demands of a client, and what it sends back."""

from typing import Any

import pytest

from infra.local.provider import ConfidentialClient, Hub, SignInFailed, approve
from tests.infra.provider.hub_client import CLIENT, REDIRECT_URI, HubClient, document, response_parameters


def test_the_metadata_names_the_endpoints_that_are_there(client: HubClient, hub: Hub) -> None:
    """RFC 8414 §3, RFC 9207 §3."""
    found = document(client.endpoint.get(f"{hub.url}/.well-known/oauth-authorization-server", {}))

    assert found["issuer"] == hub.url
    assert found["authorization_endpoint"] == hub.authorize_url
    assert found["token_endpoint"] == hub.token_url
    assert found["revocation_endpoint"] == hub.revocation_url
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True


def test_a_yes_brings_back_a_code_the_state_and_the_issuer(client: HubClient, hub: Hub) -> None:
    """RFC 6749 §4.1.2, RFC 9207 §2."""
    response = client.authorize(state="a b&c=d")

    assert set(response) == {"code", "state", "iss"}
    assert (response["state"], response["iss"]) == ("a b&c=d", hub.url)


def test_a_no_brings_back_access_denied_with_the_issuer(client: HubClient, hub: Hub) -> None:
    """RFC 6749 §4.1.2.1, RFC 9207 §2: the issuer is in error responses too."""
    response = client.authorize(allow=False)

    assert (response["error"], response["state"], response["iss"]) == ("access_denied", "state-1", hub.url)
    assert "code" not in response


def test_the_scripted_browser_does_it_all_in_one_call(client: HubClient) -> None:
    """What tests and demos elsewhere use."""
    assert "code" in response_parameters(approve(client.authorization_url(), user="bob-hub"))
    assert "error" in response_parameters(approve(client.authorization_url(), user="bob-hub", allow=False))


@pytest.mark.parametrize(
    "changes",
    [{"code_challenge": None}, {"code_challenge_method": None}, {"code_challenge_method": "plain"}],
    ids=["no challenge", "no method", "plain"],
)
def test_a_request_without_pkce_s256_is_sent_back(client: HubClient, hub: Hub, changes: dict[str, Any]) -> None:
    """RFC 9700 §2.1.1: PKCE for confidential clients too; an absent method means plain (RFC 7636 §4.3)."""
    response = client.authorize(**changes)

    assert (response["error"], response["state"], response["iss"]) == ("invalid_request", "state-1", hub.url)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"scope": "repo:read admin"}, "invalid_scope"),
        ({"response_type": "token"}, "invalid_request"),
    ],
)
def test_what_it_does_not_offer_is_refused(client: HubClient, changes: dict[str, Any], error: str) -> None:
    """RFC 6749 §3.3 and §4.1.2.1."""
    if error == "invalid_scope":
        assert client.authorize(**changes)["error"] == error
    else:
        with pytest.raises(SignInFailed, match=error):
            client.authorize(**changes)


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://127.0.0.1:10/oauth/callback/local",
        f"{REDIRECT_URI}/",
        f"{REDIRECT_URI}?a=b",
        "http://localhost:9/oauth/callback/local",
        "https://evil.example/",
        "é",
        None,
    ],
)
def test_no_redirect_uri_but_the_registered_one_gets_an_answer(client: HubClient, redirect_uri: str | None) -> None:
    """RFC 9700 §2.1: exact string matching. Without a redirect_uri the only registered one is meant."""
    response = client.browser.open(client.authorization_url(redirect_uri=redirect_uri))

    assert response.status_code == (200 if redirect_uri is None else 400)
    assert "location" not in response.headers


def test_an_unknown_client_gets_a_page(client: HubClient) -> None:
    """RFC 6749 §4.1.2.1: it must not redirect."""
    response = client.browser.open(client.authorization_url(client_id="somebody"))

    assert response.status_code == 400
    assert "Nothing was authorized" in response.text


def test_a_client_can_be_registered_while_it_runs(client: HubClient, hub: Hub) -> None:
    """The stack learns its own URL, and so its redirect URI, after the provider has started."""
    late = ConfidentialClient(client_id="late", client_secret="x", redirect_uris=(REDIRECT_URI,), name="Came late")
    hub.server.register(late)

    assert "code" in client.authorize(client_id="late")
    assert CLIENT.client_id != late.client_id
