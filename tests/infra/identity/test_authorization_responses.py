"""What goes back to the client: state and `iss` every time (RFC 9207), and errors that the user caused."""

from typing import Any

import pytest

from infra.local.identity import Identity
from tests.infra.identity.oauth_client import OAuthClient


def test_a_code_comes_with_state_and_issuer(client: OAuthClient, identity: Identity) -> None:
    """RFC 9207 §2; RFC 6749 §4.1.2."""
    response = client.authorize(state='a "state" & ünïcode')

    assert response.keys() == {"code", "state", "iss"}
    assert response["state"] == 'a "state" & ünïcode'
    assert response["iss"] == identity.url


def test_a_denied_consent_is_access_denied(client: OAuthClient, identity: Identity) -> None:
    """RFC 6749 §4.1.2.1."""
    response = client.authorize(approve=False)

    assert response["error"] == "access_denied"
    assert response["state"] == "state-1"
    assert response["iss"] == identity.url
    assert "code" not in response


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"scope": "nonsense"}, "invalid_scope"),
        ({"resource": "http://127.0.0.1:9/unknown"}, "invalid_target"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "openid", "prompt": "none"}, "login_required"),
        ({"scope": "openid", "prompt": "none login"}, "invalid_request"),
    ],
)
def test_an_error_response_comes_with_state_and_issuer(
    client: OAuthClient, identity: Identity, changes: dict[str, Any], error: str
) -> None:
    """RFC 9207 §2: including error responses."""
    response = client.authorize(**changes)

    assert response["error"] == error
    assert response["state"] == "state-1"
    assert response["iss"] == identity.url


def test_the_query_of_a_registered_redirect_uri_is_kept(client: OAuthClient) -> None:
    """RFC 6749 §3.1.2: the query component MUST be retained."""
    redirect_uri = "https://app.example/callback?tenant=7"
    client.register(redirect_uris=[redirect_uri])

    url = client.browser.sign_in(client.authorization_url(redirect_uri=redirect_uri), user="alice")

    assert url.startswith(f"{redirect_uri}&code=")
