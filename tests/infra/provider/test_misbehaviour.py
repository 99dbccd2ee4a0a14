"""Every way in which a provider can be wrong, and that our client sees each for what it is, in bounded time."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.errors import Unavailable
from app.http import TokenEndpointReply
from infra.local.provider import Fault, Hub, Kind
from tests.infra.provider.hub_client import SOON, HubClient, document, error_of

TOKEN_KINDS = [Kind.CODE, Kind.REFRESH]
ALL_KINDS = [*TOKEN_KINDS, Kind.REVOCATION, Kind.API]
NO_REPLY = [Fault.HANG, Fault.LOST, Fault.DRIP]


def _send(client: HubClient, kind: Kind, *, impatient: bool = False) -> TokenEndpointReply:
    """A right request of a kind, after what has to come before it."""
    code = client.authorize()["code"]
    sender = client.impatient() if impatient else client
    if kind is Kind.CODE:
        return sender.exchange(code)
    tokens = document(client.exchange(code))
    match kind:
        case Kind.REFRESH:
            return sender.refresh(tokens["refresh_token"])
        case Kind.REVOCATION:
            return sender.revoke(tokens["refresh_token"])
        case _:
            return sender.get("user", tokens["access_token"])


@pytest.mark.parametrize(
    ("kind", "fault"),
    [*((kind, Fault.HANG) for kind in ALL_KINDS), (Kind.CODE, Fault.LOST), (Kind.REFRESH, Fault.DRIP)],
)
def test_no_whole_reply_in_time_is_unavailable(client: HubClient, hub: Hub, kind: Kind, fault: Fault) -> None:
    """SECURITY: the exchange takes 5 s at most; a drip never runs into a timeout that is for each read."""
    hub.misbehave(kind, fault)
    started = time.perf_counter()

    with pytest.raises(Unavailable):
        _send(client, kind, impatient=True)
    assert SOON <= time.perf_counter() - started < 10


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_huge_reply_is_unavailable(client: HubClient, hub: Hub, kind: Kind) -> None:
    """64 KiB, however well-formed."""
    hub.misbehave(kind, Fault.HUGE, size=70_000)

    with pytest.raises(Unavailable, match="too large"):
        _send(client, kind)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize(
    ("fault", "status", "content_type"),
    [
        (Fault.HTML, 200, "text/html; charset=utf-8"),
        (Fault.SERVER_ERROR, 500, "application/json"),
        (Fault.PLAIN_TEXT, 400, "text/plain; charset=utf-8"),
    ],
)
def test_an_answer_of_the_wrong_kind_comes_as_it_is(
    client: HubClient, hub: Hub, kind: Kind, fault: Fault, status: int, content_type: str
) -> None:
    """Reading it is the caller's: the port passes on status, media type and bytes."""
    hub.misbehave(kind, fault)
    reply = _send(client, kind)

    assert (reply.status, reply.content_type) == (status, content_type)
    assert reply.body


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_redirect_is_an_answer_and_its_target_is_never_asked(client: HubClient, hub: Hub, kind: Kind) -> None:
    """RFC 9700 §4.12: following it would hand the code or the token to whoever it names."""
    hub.misbehave(kind, Fault.REDIRECT, address=f"{hub.url}/api/repositories")
    reply = _send(client, kind)

    assert reply.status == 302
    assert hub.record.at("/api/repositories") == []


@pytest.mark.parametrize("kind", TOKEN_KINDS)
def test_a_slow_answer_is_an_answer(client: HubClient, hub: Hub, kind: Kind) -> None:
    """Slow is not gone."""
    hub.misbehave(kind, Fault.SLOW, seconds=0.2)

    assert document(_send(client, kind))["access_token"]


@pytest.mark.parametrize("kind", TOKEN_KINDS)
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.WRONG_TOKEN_TYPE, {"token_type": "mac"}),
        (Fault.EXPIRES_IN_AS_TEXT, {"expires_in": "3600"}),
        (Fault.NO_REFRESH_TOKEN, {"refresh_token": None}),
        (Fault.FEWER_SCOPES, {"scope": "user:read repo:read"}),
    ],
)
def test_tokens_that_are_not_what_the_rfc_says(
    client: HubClient, hub: Hub, kind: Kind, fault: Fault, expected: dict[str, str | None]
) -> None:
    """RFC 6749 §5.1: token_type, expires_in as a number; the refresh token and the scope may be missing or less."""
    hub.misbehave(kind, fault)
    tokens = document(_send(client, kind))

    assert {name: tokens.get(name) for name in expected} == expected


@pytest.mark.parametrize("kind", TOKEN_KINDS)
def test_a_grant_may_be_gone(client: HubClient, hub: Hub, kind: Kind) -> None:
    """RFC 6749 §5.2: the user revoked it at the provider."""
    hub.misbehave(kind, Fault.INVALID_GRANT)

    assert error_of(_send(client, kind)) == (400, "invalid_grant")


def test_a_lost_answer_has_spent_the_refresh_token(client: HubClient, hub: Hub) -> None:
    """Rotation happened, the new token never arrived: trying the old one again ends the family."""
    tokens = client.tokens()
    hub.misbehave(Kind.REFRESH, Fault.LOST, times=1)
    with pytest.raises(Unavailable):
        client.impatient(1.0).refresh(tokens["refresh_token"])

    assert error_of(client.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert hub.record.refresh_token_reuses == 1


def test_a_hanging_request_has_spent_nothing(client: HubClient, hub: Hub) -> None:
    """Unlike a lost answer: the same refresh token works when the provider is back."""
    tokens = client.tokens()
    hub.misbehave(Kind.REFRESH, Fault.HANG, times=1)
    with pytest.raises(Unavailable):
        client.impatient().refresh(tokens["refresh_token"])

    assert client.refresh(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize(
    ("kind", "path", "grant_type"),
    [
        (Kind.CODE, "/token", "authorization_code"),
        (Kind.REFRESH, "/token", "refresh_token"),
        (Kind.REVOCATION, "/revoke", ""),
        (Kind.API, "/api/user", ""),
    ],
)
def test_a_hanging_request_goes_on_as_soon_as_the_provider_behaves(
    client: HubClient, hub: Hub, kind: Kind, path: str, grant_type: str
) -> None:
    """So that a test can hold a refresh in flight, do something else meanwhile, and let it go on."""
    hub.misbehave(kind, Fault.HANG, times=1)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(_send, client, kind)
        while grant_type not in [each.grant_type for each in hub.record.at(path)]:
            time.sleep(0.01)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        hub.behave()

        assert waiting.result(10).status == 200


@pytest.mark.parametrize(
    ("fault", "iss"), [(Fault.WRONG_ISS, "https://other.hub.example.com"), (Fault.MISSING_ISS, None)]
)
@pytest.mark.parametrize("allow", [True, False])
def test_the_issuer_may_be_wrong_or_missing(
    client: HubClient, hub: Hub, fault: Fault, iss: str | None, allow: bool
) -> None:
    """RFC 9207 §2.4: what a mix-up attack looks like to the client, in a success or an error."""
    hub.misbehave(Kind.AUTHORIZATION, fault)
    response = client.authorize(allow=allow)

    assert response.get("iss") == iss
    assert ("code" in response) is allow


def test_a_yes_may_come_back_as_a_no(client: HubClient, hub: Hub) -> None:
    """An administrator's policy at the provider, for example."""
    hub.misbehave(Kind.AUTHORIZATION, Fault.DENIED)

    assert client.authorize()["error"] == "access_denied"


def test_a_fault_ends_after_so_many_requests(client: HubClient, hub: Hub) -> None:
    """A provider that is down and comes back."""
    hub.misbehave(Kind.API, Fault.SERVER_ERROR, times=2)
    token = client.tokens()["access_token"]

    assert [client.get("user", token).status for _ in range(3)] == [500, 500, 200]


def test_a_fault_is_for_one_kind_of_request(client: HubClient, hub: Hub) -> None:
    """A code and a refresh token arrive at the same endpoint, and fail apart from each other."""
    hub.misbehave(Kind.REFRESH, Fault.SERVER_ERROR)
    tokens = client.tokens()

    assert client.get("user", tokens["access_token"]).status == 200
    assert client.refresh(tokens["refresh_token"]).status == 500
    hub.behave()
    assert client.refresh(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize(
    ("kind", "fault", "remedy"),
    [
        (Kind.CODE, Fault.WRONG_ISS, "those of authorization are"),
        (Kind.AUTHORIZATION, Fault.HTML, "those of authorization are"),
        (Kind.API, Fault.NO_REFRESH_TOKEN, "set it for code or refresh"),
        (Kind.CODE, Fault.REDIRECT, "say where it goes"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(hub: Hub, kind: Kind, fault: Fault, remedy: str) -> None:
    """A test that sets it would pass without having tested anything."""
    with pytest.raises(ValueError, match=remedy):
        hub.misbehave(kind, fault)


@pytest.mark.parametrize("fault", [each for each in Fault if each not in NO_REPLY])
def test_no_fault_is_a_crash(client: HubClient, hub: Hub, fault: Fault) -> None:
    """An exception in the server would look like one more 500, and hide that a fault is missing."""
    kind = Kind.AUTHORIZATION if fault in (Fault.WRONG_ISS, Fault.MISSING_ISS, Fault.DENIED) else Kind.CODE
    hub.misbehave(kind, fault, address=f"{hub.url}/", size=1000, seconds=0)
    response = client.authorize()
    if kind is Kind.CODE:
        reply = client.exchange(response["code"])
        assert reply.status != 500 or json.loads(reply.body) == {"error": "server_error"}
