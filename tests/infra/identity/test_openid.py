"""OpenID Connect: our own web function signs users in here."""

from typing import Any

import jwt
import pytest

from infra.local.identity import Identity
from tests.infra.identity.conftest import WEB_CLIENT
from tests.infra.identity.oauth_client import RESOURCE, Clock, OAuthClient

SECRET = {"client_secret": WEB_CLIENT.client_secret}


@pytest.fixture
def web(client: OAuthClient) -> OAuthClient:
    """The web function's sign-in: identity only, no MCP server, so no resource."""
    client.client_id = WEB_CLIENT.client_id
    client.scope = "openid"
    return client


def test_a_sign_in_gives_an_id_token(web: OAuthClient, identity: Identity, clock: Clock) -> None:
    """OIDC Core §2 and §3.1.3.3."""
    signed_in_at = int(clock())
    web.authorize(user="bob", resource=None)
    clock.advance(100)
    code = web.authorize(user="bob", resource=None, nonce="n-1", scope="openid profile email")["code"]
    tokens = web.exchange(code, resource=None, **SECRET).json()

    claims = _verified(tokens["id_token"], identity, audience=WEB_CLIENT.client_id)
    assert claims.pop("at_hash")
    assert claims == {
        "iss": identity.url,
        "sub": "bob",
        "aud": WEB_CLIENT.client_id,
        "nonce": "n-1",
        "auth_time": signed_in_at,
        "iat": int(clock()),
        "exp": int(clock()) + 3600,
        "name": "Bob",
        "email": "bob@example.com",
        "email_verified": True,
    }


def test_the_access_token_of_a_sign_in_is_for_no_mcp_server(web: OAuthClient, identity: Identity) -> None:
    """RFC 9068 §3: a default resource; it must not be one where the user approved nothing."""
    code = web.authorize(resource=None)["code"]
    token = web.exchange(code, resource=None, **SECRET).json()["access_token"]

    assert _verified(token, identity, audience=f"{identity.url}/userinfo")["aud"] != RESOURCE
    assert web.userinfo(token).json() == {"sub": "alice"}


def test_the_token_request_of_a_sign_in_cannot_add_a_resource(web: OAuthClient) -> None:
    """The user approved none."""
    response = web.exchange(web.authorize(resource=None)["code"], **SECRET)

    assert response.json()["error"] == "invalid_target"


def test_a_sign_in_that_also_asks_for_an_api_needs_the_resource(web: OAuthClient) -> None:
    """Only identity scopes go without."""
    assert web.authorize(resource=None, scope="openid tickets:read")["error"] == "invalid_target"


@pytest.mark.parametrize(
    ("scope", "claims"),
    [("openid", {"sub"}), ("openid profile", {"sub", "name"}), ("openid email", {"sub", "email", "email_verified"})],
)
def test_userinfo_tells_what_the_scope_opens(client: OAuthClient, scope: str, claims: set[str]) -> None:
    """OIDC Core §5.3 and §5.4."""
    tokens = client.tokens(scope=f"{scope} tickets:read")

    assert client.userinfo(tokens["access_token"]).json().keys() == claims


def test_userinfo_is_closed_to_all_others(client: OAuthClient, identity: Identity, clock: Clock) -> None:
    """RFC 6750 §3.1; OIDC Core §5.3.3."""
    without_scope = client.userinfo(client.tokens()["access_token"])
    assert (without_scope.status_code, without_scope.json()["error"]) == (403, "insufficient_scope")
    assert client.userinfo("nonsense").status_code == 401
    token = client.tokens(scope="openid tickets:read")["access_token"]
    assert client.userinfo(token).status_code == 200
    clock.advance(3600)
    assert client.userinfo(token).status_code == 401
    anonymous = client.http.get(f"{identity.url}/userinfo")
    assert (anonymous.status_code, anonymous.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("changes", [{"prompt": "login"}, {"prompt": "select_account"}, {"max_age": "60"}])
def test_a_client_may_ask_for_a_fresh_sign_in(web: OAuthClient, clock: Clock, changes: dict[str, Any]) -> None:
    """OIDC Core §3.1.2.1: prompt and max_age."""
    web.authorize(resource=None)
    clock.advance(61)
    page = web.browser.open(web.authorization_url(resource=None, **changes)).text

    code = web.authorize(resource=None, **changes)["code"]

    assert "Who are you?" in page
    tokens = web.exchange(code, resource=None, **SECRET).json()
    assert jwt.decode(tokens["id_token"], options={"verify_signature": False})["auth_time"] == int(clock())


def test_a_recent_sign_in_is_recent_enough(web: OAuthClient, clock: Clock) -> None:
    """OIDC Core §3.1.2.1: max_age."""
    web.authorize(resource=None)
    clock.advance(60)

    assert "Approve access?" in web.browser.open(web.authorization_url(resource=None, max_age="60")).text


def test_a_silent_request_is_told_what_it_lacks(web: OAuthClient) -> None:
    """OIDC Core §3.1.2.6: login_required, consent_required."""
    assert web.authorize(resource=None, prompt="none")["error"] == "login_required"
    web.authorize(resource=None)
    assert web.authorize(resource=None, prompt="none")["error"] == "consent_required"


def _verified(token: str, identity: Identity, *, audience: str) -> dict[str, Any]:
    key = jwt.PyJWK(identity.server.keys.jwks()["keys"][0])
    claims: dict[str, Any] = jwt.decode(
        token, key, algorithms=["ES256"], audience=audience, options={"verify_exp": False, "verify_iat": False}
    )
    return claims
