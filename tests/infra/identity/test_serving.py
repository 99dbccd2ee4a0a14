"""Starting and stopping: ports, issuer, signals, two at once, and requests that nobody should send."""

import asyncio
import signal
import socket

import httpx2
import pytest

from infra.local.identity import Identity, IdentitySettings, create_app, identity_in_thread, serve_identity
from tests.infra.identity.oauth_client import RESOURCE, OAuthClient

SETTINGS = IdentitySettings(resources=(RESOURCE,))


def test_the_issuer_is_the_url_that_was_bound() -> None:
    """The port is chosen before anything is signed."""
    with identity_in_thread(SETTINGS) as identity:
        token = identity.mint("alice", client_id="c", scope="", resource=RESOURCE, now=1)
        metadata = httpx2.get(f"{identity.url}/.well-known/oauth-authorization-server", trust_env=False).json()

    assert metadata["issuer"] == identity.url == identity.server.settings.issuer
    assert token
    assert identity.requests == ["GET /.well-known/oauth-authorization-server"]


def test_it_serves_inside_an_event_loop_and_frees_its_port_at_the_end() -> None:
    """The emulator's process hosts it; starting again on the same port must work."""

    async def twice() -> None:
        port = 0
        for _ in range(2):
            async with serve_identity(SETTINGS, port=port) as identity:
                port = int(identity.url.rpartition(":")[2])
                async with httpx2.AsyncClient(trust_env=False) as http:
                    assert (await http.get(f"{identity.url}/jwks")).status_code == 200
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(twice())


def test_the_signals_stay_with_the_program_around_it() -> None:
    """uvicorn would take SIGINT and SIGTERM from the process that hosts it."""

    async def handlers() -> tuple[object, object]:
        async with serve_identity(SETTINGS):
            return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    async def outside() -> tuple[object, object]:
        return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    assert asyncio.run(handlers())[1] == asyncio.run(outside())[1]
    assert type(asyncio.run(handlers())[0]) is type(asyncio.run(outside())[0])


def test_a_port_in_use_is_an_error_at_once() -> None:
    """Nobody should wait for a server that cannot start."""
    with identity_in_thread(SETTINGS) as identity:
        port = int(identity.url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), identity_in_thread(SETTINGS, port=port):
            pass


def test_it_is_bound_to_loopback_only(identity: Identity) -> None:
    """There are no passwords: a neighbour in the network must not reach it."""
    port = int(identity.url.rpartition(":")[2])
    with socket.socket() as other:
        other.bind(("127.0.0.2", port))


def test_two_servers_share_nothing() -> None:
    """Keys and clients live as long as one server."""
    one, other = create_app(SETTINGS), create_app(SETTINGS)

    assert one is not other
    with identity_in_thread(SETTINGS) as first, identity_in_thread(SETTINGS) as second:
        assert first.server.keys.current.kid != second.server.keys.current.kid


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"%ff=%fe&a=%00",
    b"a=1&" * 100,
    b"=&=&=",
    b"code=%F0%9F%92%A9&grant_type=authorization_code",
    b'"\\\r\n',
]


@pytest.mark.parametrize("raw", HOSTILE, ids=str)
def test_hostile_bytes_are_the_callers_fault(client: OAuthClient, raw: bytes) -> None:
    """No input makes it answer 5xx."""
    url = client.identity.url
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    quoted = "".join(f"%{byte:02x}" for byte in raw)
    responses = [
        client.http.post(url + path, content=raw, headers=form)
        for path in ("/token", "/revoke", "/authorize", "/sign-in")
    ]
    responses += [client.http.post(url + path, content=raw) for path in ("/token", "/register", "/userinfo")]
    for name in (
        "client_id",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
        "resource",
        "nonce",
        "code_challenge",
        "prompt",
        "max_age",
    ):
        responses.append(client.http.get(client.authorization_url(**{name: None}) + f"&{name}={quoted}"))
        responses.append(client.http.get(f"{url}/authorize?{name}={quoted}"))
    for name in ("grant_type", "code", "refresh_token", "client_id", "token", "scope"):
        for path in ("/token", "/revoke"):
            responses.append(client.http.post(url + path, content=f"{name}={quoted}", headers=form))

    assert {response.status_code for response in responses} <= {200, 303, 400, 401, 403}


@pytest.mark.parametrize(
    "authorization",
    ["Basic", "Basic /////w==", "Basic !", "Basic eA==", "Basic Og==", "Bearer", "Bearer  x", "x y z", "é"],
)
def test_hostile_credentials_are_the_callers_fault(client: OAuthClient, authorization: str) -> None:
    """RFC 6749 §5.2 and RFC 6750 §3.1."""
    headers = {b"Authorization": authorization.encode()}
    data = {"grant_type": "authorization_code", "code": "x", "token": "x"}
    url = client.identity.url

    for path in ("/token", "/revoke"):
        response = client.http.post(url + path, data=data, headers=headers)
        assert response.status_code in (400, 401)
        assert response.json()["error"] in ("invalid_client", "invalid_request")
    assert client.http.get(f"{url}/userinfo", headers=headers).status_code == 401


def test_a_body_without_the_form_media_type_is_refused(client: OAuthClient) -> None:
    """RFC 6749 §3.2 and appendix B."""
    response = client.http.post(f"{client.identity.url}/token", json={"grant_type": "authorization_code"})

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


def test_a_body_without_end_is_refused(client: OAuthClient) -> None:
    """The token endpoint reads its body before it knows who is calling."""
    response = client.http.post(f"{client.identity.url}/token", data={"code": "x" * 70_000})

    assert response.status_code == 413
