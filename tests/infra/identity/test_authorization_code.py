"""The authorization code grant: PKCE, single use, and what a code is bound to."""

from typing import Any
from urllib.parse import quote

import httpx2
import jwt
import pytest

from infra.local.identity import Identity
from tests.infra.identity.conftest import WEB_CLIENT
from tests.infra.identity.oauth_client import (
    CHALLENGE,
    REDIRECT_URI,
    RESOURCE,
    VERIFIER,
    Changes,
    Clock,
    OAuthClient,
)


def test_an_approved_code_becomes_an_rfc_9068_access_token(
    client: OAuthClient, identity: Identity, clock: Clock
) -> None:
    """RFC 9068 §2: header and claims; MCP authorization, Token Audience Binding."""
    tokens = client.tokens(user="bob", scope="tickets:read tickets:close")

    key = jwt.PyJWK(identity.server.keys.jwks()["keys"][0])
    decoded = jwt.decode_complete(
        tokens["access_token"],
        key,
        algorithms=["ES256"],
        audience=RESOURCE,
        options={"verify_iat": False, "verify_exp": False},
    )
    assert decoded["header"] == {"alg": "ES256", "kid": key.key_id, "typ": "at+jwt"}
    claims = decoded["payload"]
    assert claims.pop("jti")
    assert claims == {
        "iss": identity.url,
        "sub": "bob",
        "aud": RESOURCE,
        "client_id": client.client_id,
        "scope": "tickets:read tickets:close",
        "iat": int(clock()),
        "exp": int(clock()) + 3600,
    }
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    assert "id_token" not in tokens


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": None},
        {"code_challenge": VERIFIER, "code_challenge_method": None},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"code_challenge": [CHALLENGE, CHALLENGE]},
    ],
    ids=["no PKCE", "no challenge", "plain by default", "plain", "malformed", "repeated"],
)
def test_a_request_without_pkce_s256_is_sent_back_as_invalid(client: OAuthClient, changes: dict[str, Any]) -> None:
    """MCP authorization, Authorization Code Protection; OAuth 2.1 §7.5.2."""
    response = client.authorize(**changes)

    assert response["error"] == "invalid_request"
    assert response["state"] == "state-1"
    assert "code" not in response


def test_a_confidential_client_needs_pkce_too(client: OAuthClient) -> None:
    """OAuth 2.1 §4.1.1: PKCE is for all clients."""
    client.client_id = WEB_CLIENT.client_id

    assert client.authorize(code_challenge=None, code_challenge_method=None)["error"] == "invalid_request"


def test_the_wrong_verifier_gets_no_token(client: OAuthClient) -> None:
    """RFC 7636 §4.6."""
    code = client.authorize()["code"]

    response = client.exchange(code, code_verifier="w" * 43)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")


def test_a_missing_verifier_gets_no_token(client: OAuthClient) -> None:
    """RFC 7636 §4.5."""
    response = client.exchange(client.authorize()["code"], code_verifier=None)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


def test_a_code_used_twice_is_refused_and_revokes_the_tokens_of_its_first_use(client: OAuthClient) -> None:
    """RFC 6749 §4.1.2: MUST deny, SHOULD revoke all tokens previously issued."""
    code = client.authorize(scope="openid tickets:read")["code"]
    tokens = client.exchange(code).json()
    assert client.userinfo(tokens["access_token"]).status_code == 200

    second = client.exchange(code)

    assert (second.status_code, second.json()["error"]) == (400, "invalid_grant")
    assert client.userinfo(tokens["access_token"]).status_code == 401
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_code_in_the_hands_of_another_client_neither_works_nor_revokes(client: OAuthClient) -> None:
    """RFC 6749 §4.1.3: the code is bound to the client."""
    code, owner = client.authorize()["code"], client.client_id
    client.register()
    assert client.exchange(code).json()["error"] == "invalid_grant"

    client.client_id = owner
    tokens = client.exchange(code).json()
    client.register()
    assert client.exchange(code).json()["error"] == "invalid_grant"

    client.client_id = owner
    assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_a_code_is_good_for_one_minute(client: OAuthClient, clock: Clock) -> None:
    """RFC 6749 §4.1.2: codes expire shortly after they are issued."""
    fresh, stale = client.authorize()["code"], client.authorize()["code"]

    clock.advance(59)
    assert client.exchange(fresh).status_code == 200
    clock.advance(1)
    response = client.exchange(stale)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("redirect_uri", [None, "http://127.0.0.1:3119/callback"])
def test_the_token_request_repeats_the_redirect_uri_exactly(client: OAuthClient, redirect_uri: str | None) -> None:
    """RFC 6749 §4.1.3: their values MUST be identical."""
    response = client.exchange(client.authorize()["code"], redirect_uri=redirect_uri)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")


def test_a_native_app_may_listen_on_any_loopback_port(client: OAuthClient) -> None:
    """RFC 8252 §7.3: MUST allow any port to be specified at the time of the request."""
    client.register(redirect_uris=["http://127.0.0.1/callback"])

    assert client.tokens()["access_token"]


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://127.0.0.1:3118/other",
        "http://127.0.0.1:3118/callback?x=1",
        "http://127.0.0.1:3118/callback#x",
        "http://localhost:3118/callback",
        "https://127.0.0.1:3118/callback",
        "http://user@127.0.0.1:3118/callback",
        "http://127.0.0.1:3118@evil.example/callback",
        "http://127.0.0.1:99999/callback",
        "https://evil.example/callback",
        'http://127.0.0.1:3118/callback"\\é',
        "javascript:alert(1)",
    ],
)
def test_an_unregistered_redirect_uri_is_never_redirected_to(client: OAuthClient, redirect_uri: str) -> None:
    """MCP authorization, Open Redirection; RFC 6749 §4.1.2.4."""
    response = client.http.get(client.authorization_url(redirect_uri=redirect_uri))

    assert response.status_code == 400
    assert "location" not in response.headers
    assert "evil.example" not in response.text


def test_the_port_of_an_https_redirect_uri_counts(client: OAuthClient) -> None:
    """RFC 8252 §7.3 is about loopback only; all else is compared exactly (RFC 9700 §2.1)."""
    client.register(redirect_uris=["https://app.example/callback"])

    response = client.http.get(client.authorization_url(redirect_uri="https://app.example:8443/callback"))

    assert response.status_code == 400
    assert "location" not in response.headers


def test_the_only_registered_redirect_uri_may_be_left_out(client: OAuthClient) -> None:
    """RFC 6749 §3.1.2.3."""
    code = client.authorize(redirect_uri=None)["code"]

    assert client.exchange(code, redirect_uri=None).status_code == 200


def test_one_of_several_registered_redirect_uris_has_to_be_named(client: OAuthClient) -> None:
    """RFC 6749 §3.1.2.3."""
    client.register(redirect_uris=[REDIRECT_URI, "https://app.example/callback"])

    response = client.http.get(client.authorization_url(redirect_uri=None))

    assert response.status_code == 400
    assert "location" not in response.headers


def test_an_unknown_client_is_told_in_a_page(client: OAuthClient) -> None:
    """RFC 6749 §4.1.2.4: MUST NOT automatically redirect."""
    response = client.http.get(client.authorization_url(client_id="nobody"))

    assert response.status_code == 400
    assert "invalid_client" in response.text
    assert "location" not in response.headers


@pytest.mark.parametrize("name", ["grant_type", "code", "code_verifier", "redirect_uri", "client_id"])
def test_a_repeated_parameter_is_refused_by_the_token_endpoint(client: OAuthClient, name: str) -> None:
    """RFC 6749 §3.2."""
    fields = _token_request(client)

    response = client.token(**{**fields, name: [str(fields[name])] * 2})

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert client.token(**fields).status_code == 200


@pytest.mark.parametrize("name", ["code", "code_verifier", "client_id"])
def test_an_empty_parameter_is_an_omitted_one(client: OAuthClient, name: str) -> None:
    """RFC 6749 §3.2."""
    response = client.token(**{**_token_request(client), name: ""})

    assert response.json() == client.token(**{**_token_request(client), name: None}).json()
    assert response.json()["error"] in ("invalid_request", "invalid_client")


@pytest.mark.parametrize("grant_type", ["client_credentials", "password", "implicit", None])
def test_no_other_grant_is_offered(client: OAuthClient, grant_type: str | None) -> None:
    """OAuth 2.1 §10: implicit and password grants are gone."""
    response = client.token(grant_type=grant_type, client_id=client.client_id, resource=RESOURCE)

    assert (response.status_code, response.json()["error"]) == (400, "unsupported_grant_type")


def test_a_scope_that_nobody_offers_is_refused(client: OAuthClient) -> None:
    """RFC 6749 §3.3."""
    assert client.authorize(scope="tickets:read admin")["error"] == "invalid_scope"


def test_a_client_may_ask_for_more_than_it_registered(client: OAuthClient) -> None:
    """MCP authorization, Step-Up Authorization Flow: same client, increased set of scopes."""
    client.register(scope="tickets:read")

    assert client.tokens(scope=None)["scope"] == "tickets:read"
    assert client.tokens(scope="tickets:read tickets:close")["scope"] == "tickets:read tickets:close"


def test_a_confidential_client_may_send_its_secret_in_the_body(client: OAuthClient) -> None:
    """RFC 6749 §2.3.1, client_secret_post."""
    client.client_id = WEB_CLIENT.client_id
    code = client.authorize()["code"]

    assert client.exchange(code).json()["error"] == "invalid_client"
    assert client.exchange(code, client_secret="guess").json()["error"] == "invalid_client"
    assert client.exchange(code, client_secret=WEB_CLIENT.client_secret).status_code == 200


def test_a_confidential_client_may_send_its_secret_in_a_header(client: OAuthClient, identity: Identity) -> None:
    """RFC 6749 §2.3.1, client_secret_basic: both are form-encoded before Base64."""
    client.client_id = WEB_CLIENT.client_id
    fields = {"grant_type": "authorization_code", "code": client.authorize()["code"], "resource": RESOURCE}
    fields |= {"redirect_uri": REDIRECT_URI, "code_verifier": VERIFIER}

    def exchange(secret: str) -> httpx2.Response:
        credentials = (quote(WEB_CLIENT.client_id), quote(secret))
        return client.http.post(f"{identity.url}/token", data=fields, auth=credentials)

    refused = exchange("guess")
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert exchange(WEB_CLIENT.client_secret).status_code == 200


def _token_request(client: OAuthClient) -> dict[str, Changes]:
    return {
        "grant_type": "authorization_code",
        "code": client.authorize()["code"],
        "code_verifier": VERIFIER,
        "redirect_uri": REDIRECT_URI,
        "client_id": client.client_id,
        "resource": RESOURCE,
    }
