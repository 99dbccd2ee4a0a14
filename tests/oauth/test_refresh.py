"""Refreshing: early, once, never unlocked, never over what has changed since, and nobody waits."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest

from app.errors import Unavailable
from app.http import TokenEndpointReply
from app.oauth.connections import Connected, Ended, Pending
from app.oauth.refresh import EARLY, JITTER, MINIMUM_LEFT
from app.oauth.vault import REFRESH_LOCK
from tests.oauth.world import ALICE, World, no_answer, reply


@pytest.fixture
def world() -> World:
    return World()


def token(outcome: object) -> str:
    assert isinstance(outcome, Connected), outcome
    return outcome.access_token


def test_a_token_is_used_until_shortly_before_its_end(world: World) -> None:
    """SECURITY section 3, refresh: 60 s early with jitter."""
    first = world.connect().access_token
    world.now += 3600 - EARLY - JITTER - 1
    assert {token(world.call()) for _ in range(20)} == {first}
    world.now += JITTER + 1
    second = token(world.call())
    assert second != first
    assert token(world.call()) == second
    assert world.provider.requests("refresh_token") == 1


def test_instances_differ_in_when_they_refresh() -> None:
    """Jitter: a hundred instances do not come to the provider in one second."""
    refreshed = 0
    for _ in range(40):
        world = World()
        world.connect()
        world.now += 3600 - EARLY - JITTER / 2
        token(world.call())
        refreshed += world.provider.requests("refresh_token")
    assert 0 < refreshed < 40


def test_a_token_that_never_lives_a_minute_is_not_refreshed_in_every_call(world: World) -> None:
    """A provider with short tokens: renewed in the second half of their life, once."""
    world.provider.expires_in = 40
    first = world.connect().access_token
    assert token(world.call()) == first
    world.now += 25
    second = token(world.call())
    assert second != first
    assert token(world.call()) == second
    assert world.provider.requests("refresh_token") == 1


def test_a_token_without_an_end_is_never_refreshed(world: World) -> None:
    """RFC 6749 section 5.1: expires_in is recommended only."""
    world.provider.expires_in = None
    first = world.connect().access_token
    world.now += 10**8
    assert token(world.call()) == first


def test_a_provider_that_rotates_gets_each_refresh_token_once(world: World) -> None:
    """RFC 9700 section 4.14.2."""
    world.connect()
    for _ in range(5):
        world.now += 3600
        token(world.call())
    used = [form["refresh_token"] for _, form in world.provider.posts if form.get("grant_type") == "refresh_token"]
    assert len(used) == len(set(used)) == 5


def test_a_provider_that_does_not_rotate_keeps_its_refresh_token(world: World) -> None:
    """RFC 6749 section 6: the server MAY issue a new refresh token."""
    world.connect()
    document = {"access_token": "without-a-refresh-token", "token_type": "bearer", "expires_in": 3600}
    world.provider.on_token = lambda form: reply(document)
    for _ in range(3):
        world.now += 3600
        assert token(world.call()) == "without-a-refresh-token"
    used = {form["refresh_token"] for _, form in world.provider.posts if form.get("grant_type") == "refresh_token"}
    assert len(used) == 1


def test_of_20_threads_one_refreshes_and_none_waits(world: World) -> None:
    """SECURITY section 3, refresh: the loser uses the token if it is valid for 5 s yet, and never loops."""
    first = world.connect().access_token
    world.now += 3600 - MINIMUM_LEFT - 1
    others_are_done = threading.Event()

    def slow(form: Mapping[str, str]) -> None:
        # The provider answers only when nobody else is left waiting for it.
        assert others_are_done.wait(10)

    world.provider.on_token = slow
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(world.call) for _ in range(20)]
        tokens = [token(call.result()) for call in islice(as_completed(calls, timeout=10), 19)]
        others_are_done.set()
        tokens += [token(call.result()) for call in calls if token(call.result()) != first]
    assert world.provider.requests("refresh_token") == 1
    assert tokens.count(first) == 19
    assert len(tokens) == 20


def test_a_loser_whose_token_has_ended_is_told_to_try_again(world: World) -> None:
    """SECURITY section 3, refresh: isError "try again", no waiting loop."""
    world.connect()
    world.now += 3600 - MINIMUM_LEFT

    def another_call_meanwhile(form: Mapping[str, str]) -> None:
        outcome = world.call()
        assert isinstance(outcome, Ended)
        assert outcome.reason == "failed"
        assert "again" in outcome.text

    world.provider.on_token = another_call_meanwhile
    token(world.call())
    assert world.provider.requests("refresh_token") == 1


def test_whoever_gets_the_lock_second_uses_what_the_first_brought(world: World) -> None:
    """SECURITY section 3, refresh: re-read the vault after acquiring."""
    world.connect()
    world.now += 3600
    look = world.vault.look

    def overtaken(*arguments: str) -> object:
        found = look(*arguments)
        world.vault.look = look  # type: ignore[method-assign]
        world.renewed = token(world.call())  # type: ignore[attr-defined]
        return found

    world.vault.look = overtaken  # type: ignore[method-assign, assignment]
    assert token(world.call()) == world.renewed  # type: ignore[attr-defined]
    assert world.provider.requests("refresh_token") == 1


def test_a_grant_that_is_gone_at_the_provider_leads_to_a_new_flow(world: World) -> None:
    """SECURITY section 3, refresh: invalid_grant -> CAS delete -> new flow."""
    world.connect()
    world.provider.forget_everything()
    world.now += 3600
    handle = world.handle()
    assert world.handle(response="accept") == handle
    assert world.provider.requests("refresh_token") == 1
    assert world.browser.connections(ALICE.user, now=world.now) == []


@pytest.mark.parametrize("error", ["bad_refresh_token", "invalid_grant"])
def test_github_says_it_with_200(world: World, error: str) -> None:
    """GitHub's documented errors of its token endpoint come with status 200."""
    world.connect()
    world.now += 3600
    world.provider.on_token = lambda form: reply({"error": error})
    assert isinstance(world.call(), Pending)


@pytest.mark.parametrize(
    "answer",
    [
        no_answer,
        lambda form: reply({}, 500),
        lambda form: reply({"error": "temporarily_unavailable"}, 503),
        lambda form: reply({"error": "invalid_client"}, 401),
        lambda form: TokenEndpointReply(429, "text/plain", b"slow down"),
        lambda form: TokenEndpointReply(200, "text/html", b"<html>"),
        lambda form: reply({"access_token": "x" * 12_000, "refresh_token": "y" * 12_000, "token_type": "bearer"}),
    ],
)
def test_any_other_trouble_keeps_the_connection(world: World, answer: object) -> None:
    """SECURITY section 3, refresh: 5xx/timeout -> keep."""
    first = world.connect().access_token
    world.now += 3600 - MINIMUM_LEFT - 1
    world.provider.on_token = answer  # type: ignore[assignment]
    assert token(world.call()) == first
    world.now += 1
    outcome = world.call()
    assert isinstance(outcome, Ended)
    assert outcome.reason == "failed"
    assert world.provider.requests("refresh_token") == 1
    world.provider.on_token = lambda form: None
    world.now += REFRESH_LOCK
    assert token(world.call()) != first


def test_a_provider_that_does_not_answer_is_asked_once_in_ten_seconds(world: World) -> None:
    """Every call would otherwise wait for its timeout."""
    world.connect()
    world.now += 3600
    world.provider.on_token = no_answer
    for _ in range(5):
        assert isinstance(world.call(), Ended)
    assert world.provider.requests("refresh_token") == 1


def test_nobody_refreshes_without_the_lock(world: World) -> None:
    """SECURITY section 3, refresh: Redis unavailable -> do not refresh unlocked."""
    world.connect()
    world.now += 3600

    def down(*arguments: object, **more: object) -> object:
        raise Unavailable("redis", retry_after=2)

    world.vault.lock = down  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable):
        world.call()
    assert world.provider.requests("refresh_token") == 0


def test_a_disconnect_during_a_refresh_wins(world: World) -> None:
    """SECURITY section 5, 136: the entry stays deleted, revoked once."""
    world.connect()
    world.now += 3600

    def disconnected_meanwhile(form: Mapping[str, str]) -> None:
        assert world.browser.disconnect(ALICE.user, "acme", now=world.now)

    world.provider.on_token = disconnected_meanwhile
    world.provider.rotates = False
    assert isinstance(world.call(), Pending)
    assert world.browser.connections(ALICE.user, now=world.now) == []
    revoked = [form["token_type_hint"] for url, form in world.provider.posts if url.endswith("/revoke")]
    assert revoked == ["refresh_token", "access_token"]


def test_a_slow_refresher_does_not_undo_a_new_connection(world: World) -> None:
    """Fencing: what is there counts, not what a slow instance brings."""
    world.connect()
    world.now += 3600
    world.provider.rotates = False

    def connected_anew_meanwhile(form: Mapping[str, str]) -> None:
        if form["grant_type"] == "refresh_token":
            world.provider.on_token = lambda form: None
            world.browser.disconnect(ALICE.user, "acme", now=world.now)
            world.anew = world.connect().access_token  # type: ignore[attr-defined]
            # The provider still takes the old refresh token: the worst case.
            world.provider._refresh_tokens[form["refresh_token"]] = "read"

    world.provider.on_token = connected_anew_meanwhile
    assert token(world.call()) == world.anew  # type: ignore[attr-defined]
    assert token(world.call()) == world.anew  # type: ignore[attr-defined]


def test_a_refresh_token_that_is_gone_takes_no_newer_grant_with_it(world: World) -> None:
    """invalid_grant -> CAS delete: of the version that it was said about."""
    world.connect()
    world.now += 3600

    def connected_anew_meanwhile(form: Mapping[str, str]) -> TokenEndpointReply:
        world.provider.on_token = lambda form: None
        world.browser.disconnect(ALICE.user, "acme", now=world.now)
        world.anew = world.connect().access_token  # type: ignore[attr-defined]
        return reply({"error": "invalid_grant"}, 400)

    world.provider.on_token = connected_anew_meanwhile
    assert token(world.call()) == world.anew  # type: ignore[attr-defined]
    assert token(world.call()) == world.anew  # type: ignore[attr-defined]


def test_a_lock_that_cannot_be_released_costs_nobody_the_token(world: World) -> None:
    """It ends by itself."""
    first = world.connect().access_token
    world.now += 3600

    def down(*arguments: object) -> None:
        raise Unavailable("redis", retry_after=2)

    world.vault.unlock = down  # type: ignore[method-assign, assignment]
    assert token(world.call()) != first


def test_a_refresh_that_loses_a_scope_asks_the_user(world: World) -> None:
    """RFC 6749 section 6: the scope of the new token may be narrower."""
    world.connect(scopes=("read", "write"))
    world.now += 3600
    narrower = {"access_token": "narrower", "token_type": "bearer", "expires_in": 3600, "scope": "read"}
    world.provider.on_token = lambda form: reply(narrower)
    assert isinstance(world.call(scopes=("read", "write")), Pending)
    assert token(world.call(scopes=("read",))) == "narrower"


def test_an_expired_token_without_a_refresh_token_leads_to_a_new_flow(world: World) -> None:
    """Nothing to renew it with."""
    document = {"access_token": "once", "token_type": "bearer", "expires_in": 60}
    world.provider.on_token = lambda form: reply(document)
    world.connect()
    world.now += 60 - MINIMUM_LEFT - 1
    assert token(world.call()) == "once"
    world.now += 1
    handle = world.handle()
    assert world.browser.view(handle, ALICE.user, now=world.now).kind == "connect"
