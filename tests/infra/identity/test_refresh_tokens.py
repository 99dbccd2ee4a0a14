"""Refresh: rotation, reuse detection, scope, expiry; and revocation."""

import httpx2
import pytest

from infra.local.identity import Identity
from tests.infra.identity.oauth_client import Clock, OAuthClient


def test_each_refresh_gives_new_tokens(client: OAuthClient) -> None:
    """MCP authorization, Token Theft: MUST rotate refresh tokens for public clients."""
    first = client.tokens()
    second = client.refresh(first["refresh_token"]).json()
    third = client.refresh(second["refresh_token"]).json()

    assert len({first["refresh_token"], second["refresh_token"], third["refresh_token"]}) == 3
    assert len({first["access_token"], second["access_token"], third["access_token"]}) == 3


def test_a_refresh_token_used_twice_ends_the_whole_family(client: OAuthClient) -> None:
    """OAuth 2.1 §4.3.1: the server cannot tell thief from owner, so it revokes the active token too."""
    first = client.tokens(scope="openid tickets:read")
    second = client.refresh(first["refresh_token"]).json()

    replay = client.refresh(first["refresh_token"])

    assert (replay.status_code, replay.json()["error"]) == (400, "invalid_grant")
    assert client.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert client.userinfo(second["access_token"]).status_code == 401


def test_another_approval_of_the_same_user_survives_the_end_of_a_family(client: OAuthClient) -> None:
    """A family is one approval, not one user."""
    stolen, other = client.tokens(), client.tokens()
    client.refresh(stolen["refresh_token"])
    client.refresh(stolen["refresh_token"])

    assert client.refresh(other["refresh_token"]).status_code == 200


def test_a_refresh_token_in_the_hands_of_another_client_neither_works_nor_revokes(client: OAuthClient) -> None:
    """RFC 6749 §10.4: bound to the client to which it was issued."""
    tokens, owner = client.tokens(), client.client_id
    client.register()

    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    client.client_id, stranger = owner, client.client_id
    rotated = client.refresh(tokens["refresh_token"])
    assert rotated.status_code == 200

    client.client_id = stranger
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    client.client_id = owner
    assert client.refresh(rotated.json()["refresh_token"]).status_code == 200


def test_a_refresh_may_narrow_the_scope_for_once_but_never_widen_it(client: OAuthClient) -> None:
    """RFC 6749 §6: the refresh token keeps the scope that was granted."""
    tokens = client.tokens(scope="tickets:read tickets:close")

    narrow = client.refresh(tokens["refresh_token"], scope="tickets:read").json()
    full = client.refresh(narrow["refresh_token"]).json()
    wider = client.refresh(full["refresh_token"], scope="tickets:read tickets:close openid")

    assert (narrow["scope"], full["scope"]) == ("tickets:read", "tickets:read tickets:close")
    assert wider.json()["error"] == "invalid_scope"


def test_a_refresh_token_expires(client: OAuthClient, clock: Clock) -> None:
    """RFC 9700 §4.14.2: refresh tokens should expire if unused."""
    tokens = client.tokens()
    clock.advance(30 * 24 * 3600)

    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_client_that_did_not_register_the_grant_gets_no_refresh_token(client: OAuthClient) -> None:
    """MCP authorization, Refresh Tokens: clients include `refresh_token` in their grant_types."""
    client.register(grant_types=["authorization_code"])

    assert "refresh_token" not in client.tokens()


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", [None, "refresh_token", "access_token", "something_else"])
def test_revoking_either_token_ends_both(client: OAuthClient, kind: str, hint: str | None) -> None:
    """RFC 7009 §2.1 and §2.2: a wrong or unknown hint changes nothing."""
    tokens = client.tokens(scope="openid tickets:read")

    response = _revoke(client, tokens[kind], hint)

    assert response.status_code == 200
    assert client.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert client.userinfo(tokens["access_token"]).status_code == 401


def test_revoking_an_unknown_token_succeeds(client: OAuthClient) -> None:
    """RFC 7009 §2.2: the purpose of the request is already met."""
    assert _revoke(client, "no such token", None).status_code == 200


def test_a_client_cannot_revoke_the_token_of_another(client: OAuthClient) -> None:
    """RFC 7009 §2.1."""
    tokens, owner = client.tokens(), client.client_id
    client.register()

    assert _revoke(client, tokens["refresh_token"], None).status_code == 400
    client.client_id = owner
    assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_revocation_asks_who_is_calling(client: OAuthClient, identity: Identity) -> None:
    """RFC 7009 §2.1: the server first validates the client credentials."""
    response = client.http.post(f"{identity.url}/revoke", data={"token": "x"})

    assert response.json()["error"] == "invalid_client"


def _revoke(client: OAuthClient, token: str, hint: str | None) -> httpx2.Response:
    data = {"token": token, "client_id": client.client_id}
    if hint:
        data["token_type_hint"] = hint
    return client.http.post(f"{client.identity.url}/revoke", data=data)
