"""Dynamic client registration (RFC 7591): what is accepted, replaced and refused."""

from typing import Any

import pytest

from tests.infra.identity.oauth_client import REDIRECT_URI, OAuthClient


def test_a_public_client_gets_an_id_and_no_secret(client: OAuthClient) -> None:
    """RFC 7591 §3.2.1."""
    answer = client.register().json()

    assert answer["client_id"]
    assert "client_secret" not in answer
    assert answer["redirect_uris"] == [REDIRECT_URI]
    assert answer["grant_types"] == ["authorization_code", "refresh_token"]


def test_a_client_that_names_no_method_gets_a_secret_that_works(client: OAuthClient) -> None:
    """RFC 7591 §2: the default is client_secret_basic; §3.2.1: client_secret_expires_at is then required."""
    answer = client.register(token_endpoint_auth_method=None).json()
    code = client.authorize()["code"]

    assert answer["token_endpoint_auth_method"] == "client_secret_basic"
    assert answer["client_secret_expires_at"] == 0
    assert client.exchange(code).json()["error"] == "invalid_client"
    assert client.exchange(code, client_secret=answer["client_secret"]).status_code == 200


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://app.example/callback",
        "http://127.0.0.1.evil.example/callback",
        "http://127.0.0.2/callback",
        "http://0.0.0.0/callback",
        "http://localhost@evil.example/callback",
        "https://user:pw@app.example/callback",
        "https://app.example/callback#part",
        "https://",
        "https:///callback",
        "https://app.example/\r\nX: y",
        "https://app.example/;form-action *",
        "https://app.example:99999/callback",
        "https://[::1/callback",
        "com.example.app:/callback",
        "/callback",
        "",
    ],
)
def test_a_redirect_uri_is_https_or_loopback(client: OAuthClient, redirect_uri: str) -> None:
    """MCP authorization, Communication Security; RFC 7591 §3.2.2."""
    response = client.register(redirect_uris=[REDIRECT_URI, redirect_uri])

    assert (response.status_code, response.json()["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize(
    "redirect_uri",
    ["https://app.example/callback", "http://localhost:8000/cb", "http://[::1]:8000/cb", "http://127.0.0.1/"],
)
def test_https_and_every_form_of_loopback_is_accepted(client: OAuthClient, redirect_uri: str) -> None:
    """MCP authorization, Communication Security."""
    assert client.register(redirect_uris=[redirect_uri]).status_code == 201


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": REDIRECT_URI},
        {"redirect_uris": [7]},
        {"redirect_uris": [REDIRECT_URI] * 21},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_name": {"en": "x"}},
        {"client_name": "x" * 201},
        {"scope": ["tickets:read"]},
        {"application_type": "desktop"},
    ],
)
def test_metadata_of_the_wrong_type_or_kind_is_refused(client: OAuthClient, changes: dict[str, Any]) -> None:
    """RFC 7591 §3.2.2."""
    response = client.register(**changes)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 60_000])
def test_what_is_not_a_json_object_is_refused(client: OAuthClient, body: bytes) -> None:
    """RFC 7591 §3.1."""
    response = client.http.post(
        f"{client.identity.url}/register", content=body, headers={"Content-Type": "application/json"}
    )

    assert response.status_code == 400


def test_unknown_metadata_and_nulls_are_ignored_and_unsupported_grants_dropped(client: OAuthClient) -> None:
    """RFC 7591 §2: MUST ignore what it does not understand, MAY replace values."""
    answer = client.register(
        grant_types=["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
        client_uri=None,
        surprise={"a": 1},
    ).json()

    assert answer["grant_types"] == ["authorization_code"]
    assert "surprise" not in answer


def test_a_registration_too_long_to_be_honest_is_refused(client: OAuthClient) -> None:
    """The endpoint is open to all and keeps what it accepts."""
    assert client.register(client_name="x" * 70_000).status_code == 413


def test_a_web_page_may_register_from_its_own_origin(client: OAuthClient) -> None:
    """MCP clients that run in a browser meet CORS; no cookie counts on these endpoints."""
    headers = {
        "Origin": "https://inspector.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, mcp-protocol-version",
    }
    for path in ("/register", "/token", "/.well-known/oauth-authorization-server"):
        preflight = client.http.options(client.identity.url + path, headers=headers)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in preflight.headers
    assert (
        "access-control-allow-origin"
        not in client.http.get(client.authorization_url(), headers={"Origin": "https://inspector.example"}).headers
    )
