"""What Local Hub notes of a request, and that no secret is in it or in the log."""

import logging

import pytest

from infra.local.provider import Arrival, Hub
from infra.local.provider.record import arrival_of
from tests.infra.provider.hub_client import CLIENT, VERIFIER, HubClient, document
from tests.infra.provider.test_api import FOREIGN


def test_a_request_is_noted_by_its_parameters_and_not_by_their_values(client: HubClient, hub: Hub) -> None:
    """Enough to assert what a client sent."""
    tokens = client.tokens()
    client.refresh(tokens["refresh_token"])
    client.get("user", tokens["access_token"])

    assert hub.record.at("/authorize")[0].code_challenge_method == "S256"
    code, refresh = hub.record.at("/token")
    assert (code.grant_type, code.authorization) == ("authorization_code", "basic")
    assert code.parameters == ("code", "code_verifier", "grant_type", "redirect_uri")
    assert (refresh.grant_type, refresh.parameters) == ("refresh_token", ("grant_type", "refresh_token"))
    assert hub.record.at("/api/user") == [Arrival("GET", "/api/user", (), "bearer", "", "", carries_jwt=False)]


@pytest.mark.parametrize(
    ("headers", "query", "body"),
    [
        ({"authorization": f"Bearer {FOREIGN}"}, "", ""),
        ({"cookie": f"a={FOREIGN}"}, "", ""),
        ({}, f"state={FOREIGN}", ""),
        ({}, "state=" + "".join(f"%{byte:02x}" for byte in FOREIGN.encode()), ""),
        ({}, "", f"a=b&resource={FOREIGN}"),
    ],
    ids=["authorization", "cookie", "query", "percent-encoded", "form"],
)
def test_a_jwt_is_seen_wherever_it_is(headers: dict[str, str], query: str, body: str) -> None:
    """MCP authorization, Token Passthrough: an MCP access token must reach no third party in any way."""
    assert arrival_of("POST", "/", headers, query, body.encode()).carries_jwt


def test_what_a_right_client_sends_is_no_jwt(client: HubClient, hub: Hub) -> None:
    """States have dots too."""
    state = f"{'eyJh' * 10}.{'b' * 43}"
    assert client.authorize(state=state)["state"] == state

    assert not hub.record.any_jwt


def test_no_secret_is_in_the_record_or_in_the_log(
    client: HubClient, hub: Hub, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Codes, verifiers, tokens and the client secret are looked for by their text, at every log level."""
    caplog.set_level(logging.DEBUG)
    code = client.authorize()["code"]
    first = document(client.exchange(code))
    second = document(client.refresh(first["refresh_token"]))
    client.refresh(first["refresh_token"])
    client.get("user", second["access_token"])
    client.revoke(second["refresh_token"])

    # What the scripted browser's own client logs at DEBUG is not Local Hub's.
    logged = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpcore2", "httpx2"))]
    shown = "\n".join([repr(hub), repr(hub.record), *logged, *capfd.readouterr()])
    secrets = [CLIENT.client_secret, VERIFIER, code]
    secrets += [tokens[kind] for tokens in (first, second) for kind in ("access_token", "refresh_token")]
    assert [each for each in secrets if each in shown] == []
