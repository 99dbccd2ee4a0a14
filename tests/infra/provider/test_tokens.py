"""The token endpoint and revocation: what a code and a refresh token are good for, and for how long."""

import pytest

from infra.local.provider import Hub
from tests.infra.identity.oauth_client import Clock
from tests.infra.provider.hub_client import ALL_SCOPES, REDIRECT_URI, HubClient, document, error_of


@pytest.mark.parametrize("secret_in_form", [False, True], ids=["client_secret_basic", "client_secret_post"])
def test_code_refresh_and_revocation_with_either_client_authentication(client: HubClient, secret_in_form: bool) -> None:
    """RFC 6749 §2.3.1, §4.1.3, §6; RFC 7009 §2."""
    client.secret_in_form = secret_in_form
    first = client.tokens()
    second = document(client.refresh(first["refresh_token"]))
    revoked = client.revoke(second["refresh_token"], token_type_hint="refresh_token")

    assert (first["token_type"], first["expires_in"], first["scope"]) == ("Bearer", 3600, ALL_SCOPES)
    assert first["access_token"] != second["access_token"]
    assert first["refresh_token"] != second["refresh_token"]
    assert revoked.status == 200
    assert client.get("user", second["access_token"]).status == 401


def test_tokens_are_opaque(client: HubClient) -> None:
    """Nobody may read them as an MCP server reads its own: there is nothing inside."""
    tokens = client.tokens()

    assert "." not in tokens["access_token"] + tokens["refresh_token"]


@pytest.mark.parametrize("secret_in_form", [False, True], ids=["client_secret_basic", "client_secret_post"])
def test_a_wrong_secret_gets_nothing_and_spends_nothing(client: HubClient, secret_in_form: bool) -> None:
    """RFC 6749 §5.2."""
    code = client.authorize()["code"]
    client.secret_in_form = secret_in_form
    right = client.client
    client.client = type(right)(
        client_id=right.client_id, client_secret="wrong", redirect_uris=right.redirect_uris, name=right.name
    )
    refused = client.exchange(code)
    client.client = right

    assert refused.status in (400, 401)
    assert error_of(refused)[1] == "invalid_client"
    assert client.exchange(code).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": None},
        {"redirect_uri": f"{REDIRECT_URI}x"},
        {"redirect_uri": None},
        {"code": "guessed"},
    ],
    ids=["other verifier", "no verifier", "other redirect_uri", "no redirect_uri", "other code"],
)
def test_a_code_is_bound_to_its_request(client: HubClient, changes: dict[str, str | None]) -> None:
    """RFC 6749 §4.1.3, RFC 7636 §4.6."""
    code = client.authorize()["code"]

    assert client.exchange(**{"code": code, **changes}).status == 400  # type: ignore[arg-type]


def test_a_code_works_once_and_ends_everything_the_second_time(client: HubClient) -> None:
    """RFC 6749 §4.1.2: the tokens of the first use are revoked."""
    code = client.authorize()["code"]
    tokens = document(client.exchange(code))

    assert error_of(client.exchange(code)) == (400, "invalid_grant")
    assert client.get("user", tokens["access_token"]).status == 401


def test_a_code_expires(client: HubClient, clock: Clock) -> None:
    """RFC 6749 §4.1.2."""
    code = client.authorize()["code"]
    clock.advance(60)

    assert error_of(client.exchange(code)) == (400, "invalid_grant")


def test_a_refresh_token_used_twice_ends_the_whole_family(client: HubClient, hub: Hub) -> None:
    """RFC 9700 §4.14.2: the server cannot tell thief from owner. It is counted, for tests of locking."""
    first = client.tokens()
    second = document(client.refresh(first["refresh_token"]))
    assert hub.record.refresh_token_reuses == 0

    assert error_of(client.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert error_of(client.refresh(second["refresh_token"])) == (400, "invalid_grant")
    assert client.get("user", second["access_token"]).status == 401
    assert hub.record.refresh_token_reuses == 1


def test_two_connections_of_one_user_are_two_families(client: HubClient) -> None:
    """What ends one must not end the other."""
    one, other = client.tokens(), client.tokens()
    client.revoke(one["access_token"])

    assert client.get("user", one["access_token"]).status == 401
    assert client.refresh(other["refresh_token"]).status == 200


def test_a_refresh_may_narrow_the_scope_and_never_widen_it(client: HubClient) -> None:
    """RFC 6749 §6."""
    tokens = client.tokens(scope="user:read repo:read")
    narrow = document(client.refresh(tokens["refresh_token"], scope="repo:read"))

    assert narrow["scope"] == "repo:read"
    assert error_of(client.refresh(narrow["refresh_token"], scope="repo:write")) == (400, "invalid_scope")


def test_a_resource_parameter_is_ignored(client: HubClient) -> None:
    """RFC 6749 §3.2: an unknown parameter is ignored, and this provider has not heard of RFC 8707."""
    tokens = client.tokens(resource="https://mcp.example.com/mcp")

    assert client.refresh(tokens["refresh_token"], resource="https://mcp.example.com/mcp").status == 200


def test_tokens_expire(client: HubClient, clock: Clock) -> None:
    """The access token after an hour, the refresh token after half a year."""
    tokens = client.tokens()
    clock.advance(3599)
    assert client.get("user", tokens["access_token"]).status == 200
    clock.advance(1)
    assert client.get("user", tokens["access_token"]).status == 401

    renewed = document(client.refresh(tokens["refresh_token"]))
    clock.advance(180 * 24 * 3600)
    assert error_of(client.refresh(renewed["refresh_token"])) == (400, "invalid_grant")


def test_revoking_what_it_does_not_know_succeeds(client: HubClient) -> None:
    """RFC 7009 §2.2: the purpose is already met."""
    assert client.revoke("hub_rt_unknown").status == 200


def test_revocation_wants_to_know_who_asks(client: HubClient, hub: Hub) -> None:
    """RFC 7009 §2.1."""
    reply = client.endpoint.post(hub.revocation_url, {"token": "x"}, {})

    assert error_of(reply)[1] == "invalid_client"


@pytest.mark.parametrize(
    ("form", "authorization"),
    [
        ({"grant_type": "password"}, None),
        ({"grant_type": ""}, None),
        ({}, None),
        ({"grant_type": "refresh_token", "refresh_token": "é\x00"}, None),
        ({"grant_type": "authorization_code", "code": "é\x00"}, None),
        ({"grant_type": "refresh_token"}, "Basic /////w=="),
        ({"grant_type": "refresh_token"}, "Basic"),
        ({"grant_type": "refresh_token"}, "Basic Og=="),
    ],
)
def test_hostile_token_requests_are_the_callers_fault(
    client: HubClient, hub: Hub, form: dict[str, str], authorization: str | None
) -> None:
    """No input makes it answer 5xx."""
    if authorization is None:
        reply = client.post(hub.token_url, dict(form))
    else:
        reply = client.endpoint.post(hub.token_url, form, {"authorization": authorization})

    assert reply.status in (400, 401)
    assert error_of(reply)[1]
