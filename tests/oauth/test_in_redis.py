"""The flow on a real server in cluster mode: what is stored, how often it is asked, and what if it is not there."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.adapters import redis_keys
from app.adapters.redis_connection import connect
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_vault import RedisVaultStore
from app.errors import Unavailable
from app.oauth.browser import Already, Completed, Refused
from app.oauth.connections import Connected, Pending, Stored
from app.oauth.errors import FlowNotFound
from app.oauth.flow import LIFETIME
from app.oauth.handles import Names
from tests.adapters.contracts.valkey import Server, running
from tests.oauth.world import ALICE, ALICE_ELSEWHERE, BASE, BOB, KEYRING, World, reply

DONE = Completed("Acme", "alice@acme.example")
SECRET = "sk_live_typed_by_the_user"
SESSION = "session-id-of-a-browser"


@pytest.fixture
def world(cluster: Server) -> Iterator[World]:
    connection = connect(cluster.url, cluster=True)
    yield World(RedisFlowStore(connection), RedisVaultStore(connection))
    connection.close()


def test_nothing_that_is_stored_is_usable_or_names_anybody(world: World, cluster: Server) -> None:
    """SECURITY section 1, stolen Redis dump: no token, code, verifier, handle, session id, sub or key."""
    dumps: list[str] = []
    handle = world.handle()
    dumps.append(cluster.dump())
    url = world.approve(handle, session=SESSION)
    dumps.append(cluster.dump())
    query = world.provider.consent(url)
    world.provider.on_token = lambda form: dumps.append(cluster.dump())
    assert world.back(query, session=SESSION) == DONE
    secret_handle = world.handle(world.ask())
    dumps.append(cluster.dump())
    world.browser.store_secret(secret_handle, ALICE.user, SECRET, now=world.now)
    world.now += 3600
    assert isinstance(world.call(), Connected)
    waiting = world.handle(principal=ALICE_ELSEWHERE)
    dumps.append(cluster.dump())
    everything = "\n".join(dumps)
    assert everything.count("mcp:flow:") >= 5
    assert "mcp:vault:" in everything
    assert "mcp:lock:" in everything
    hidden = [
        *world.provider.secrets,
        # The first half of a state is the flow's name in the store, and opens nothing.
        parse_qs(urlsplit(url).query)["state"][0].partition(".")[2],
        handle,
        secret_handle,
        waiting,
        SESSION,
        SECRET,
        ALICE.subject,
        ALICE.issuer,
        ALICE.client_id,
        ALICE_ELSEWHERE.client_id,
        "alice@acme.example",
        "acme-client-secret",
        "Stripe API key",
        KEYRING.current.secret.hex(),
        repr(KEYRING.current.secret)[2:-1],
    ]
    assert len(world.provider.secrets) >= 6
    for each in hidden:
        assert each not in everything


def test_a_thousand_pending_retries_cost_two_round_trips_each_and_leave_nothing(world: World, cluster: Server) -> None:
    """DESIGN section 1, promise 1: a retry that comes too early is answered in milliseconds."""
    handle = world.handle()
    world.approve(handle)
    keys = cluster.dump()
    before = cluster.commands()
    for _ in range(1000):
        assert world.call(response="accept") == Pending(f"{BASE}/connect/{handle}")
    assert cluster.commands() - before == 2000
    assert cluster.dump() == keys


def test_a_connected_call_costs_one_round_trip(world: World, cluster: Server) -> None:
    """The contract allows two."""
    world.connect()
    before = cluster.commands()
    for _ in range(10):
        assert isinstance(world.call(response="accept"), Connected)
    assert cluster.commands() - before == 10


def test_parallel_first_calls_make_one_flow(world: World, cluster: Server) -> None:
    """SECURITY section 3, step 1: the loser deletes its flow and reuses the winner's."""
    with ThreadPoolExecutor(16) as pool:
        handles = set(pool.map(lambda _: world.handle(), range(32)))
    assert len(handles) == 1
    assert len(cluster.admin.keys("mcp:flow:*")) == 1


def test_of_64_parallel_callbacks_one_exchanges(world: World) -> None:
    """SECURITY section 1: Lua claim, 64 parallel -> 1 ok."""
    query = world.provider.consent(world.approve(world.handle()))
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: world.back(query), range(64)))
    assert outcomes.count(DONE) == 1
    assert all(isinstance(each, Already | Refused) for each in outcomes if each != DONE)
    assert world.provider.requests("authorization_code") == 1


def test_of_20_parallel_calls_one_refreshes_and_none_waits(world: World) -> None:
    """SECURITY section 3, refresh."""
    first = world.connect()
    world.now += 3590
    others_are_done = Event()
    world.provider.on_token = lambda form: reply({}, 500) if not others_are_done.wait(10) else None
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(world.call) for _ in range(20)]
        early = [call.result() for call in islice(as_completed(calls, timeout=10), 19)]
        others_are_done.set()
        assert early == [first] * 19
        assert sum(call.result() != first for call in calls) == 1
    assert world.provider.requests("refresh_token") == 1


def test_a_lost_index_costs_a_second_question_and_nothing_else(world: World, cluster: Server) -> None:
    """Eviction: the link that is open goes on to work, and the call finds its result in the vault."""
    handle = world.handle()
    cluster.admin.delete(redis_keys.pointers(Names(KEYRING).user(ALICE.user)))
    other = world.handle(response="accept")
    assert other != handle
    assert world.back(world.provider.consent(world.approve(handle))) == DONE
    assert isinstance(world.call(response="accept"), Connected)
    assert world.browser.view(other, ALICE.user, now=world.now).kind == "consent"


def test_a_flow_that_the_store_has_not_forgotten_yet_has_expired_all_the_same(world: World) -> None:
    """SECURITY section 3: TTL 900 s, by the clock of whoever looks."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    world.now += LIFETIME
    with pytest.raises(FlowNotFound):
        world.browser.view(handle, ALICE.user, now=world.now)
    assert world.back(query) == Refused(400, "gone_expired")
    assert world.provider.posts == []
    assert world.handle(response="accept") != handle


def test_bytes_that_are_no_text_are_as_good_as_nothing(world: World, cluster: Server) -> None:
    """SECURITY section 5, 134: corrupted -> new flow, no 500."""
    world.connect()
    user = Names(KEYRING).user(ALICE.user)
    cluster.admin.hset(redis_keys.vault(user), "provider:acme", b"\xff\xfe:\x80")
    assert world.browser.connections(ALICE.user, now=world.now) == []
    assert world.browser.disconnect(ALICE.user, "acme", now=world.now)
    cluster.admin.hset(redis_keys.vault(user), "provider:acme", b"\xff\xfe:\x80")
    cluster.admin.hset(redis_keys.pointers(user), Names(KEYRING).slot(ALICE.client_id, "provider:acme"), b"\xff")
    assert isinstance(world.connect(), Connected)


def test_a_lost_flow_is_replaced(world: World, cluster: Server) -> None:
    """Failover: the pointer arrived on the replica and the flow did not."""
    handle = world.handle()
    cluster.admin.delete(*cluster.admin.keys("mcp:flow:*"))
    assert world.handle(response="accept") != handle
    with pytest.raises(FlowNotFound):
        world.browser.view(handle, ALICE.user, now=world.now)


def test_a_server_that_lost_everything_gets_a_new_flow(world: World, cluster: Server) -> None:
    """SECURITY section 5, 139: tools/call gives a new URL, callback -> 400."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    cluster.empty()
    assert world.back(query) == Refused(400, "gone_expired")
    assert world.handle(response="accept") != handle
    assert isinstance(world.connect(), Connected)


def test_the_loop_survives_a_script_flush_at_every_step(world: World, cluster: Server) -> None:
    """SECURITY section 5, 140; CASES B.7 98."""

    def flushed(step: Any) -> Any:
        cluster.admin.script_flush()
        return step

    handle = flushed(world.handle())
    url = flushed(world.approve(handle))
    assert flushed(world.back(world.provider.consent(url))) == DONE
    flushed(world.browser.store_secret(world.handle(world.ask()), ALICE.user, SECRET, now=world.now))
    assert flushed(world.ask()) == Stored(SECRET)
    world.now += 3600
    assert isinstance(flushed(world.call()), Connected)
    assert flushed(world.browser.disconnect(ALICE.user, "acme", now=world.now))
    assert isinstance(world.call(), Pending)


def test_what_belongs_to_nobody_any_more_goes_away_by_itself(world: World, cluster: Server) -> None:
    """Only the vault has no TTL."""
    world.connect()
    world.approve(world.handle(principal=BOB), BOB)
    world.now += 3600
    world.call()
    forever = [key for key in cluster.admin.keys("*") if cluster.admin.ttl(key) < 0]
    assert forever == [redis_keys.vault(Names(KEYRING).user(ALICE.user))]
    cluster.advance(901)
    assert cluster.admin.keys("*") == forever
    assert isinstance(world.call(), Connected)


def test_without_the_store_every_step_is_unavailable_and_no_code_is_spent() -> None:
    """SECURITY section 1: fail closed. CASES B.7 99."""
    with running() as server:
        connection = connect(server.url)
        world = World(RedisFlowStore(connection), RedisVaultStore(connection))
        handle = world.handle()
        query = world.provider.consent(world.approve(handle))
        server.stop()
        steps: list[Any] = [
            lambda: world.call(),
            lambda: world.call(response="decline"),
            lambda: world.ask(),
            lambda: world.browser.view(handle, ALICE.user, now=world.now),
            lambda: world.approve(handle),
            lambda: world.browser.decline(handle, ALICE.user, now=world.now),
            lambda: world.back(query),
            lambda: world.browser.connections(ALICE.user, now=world.now),
            lambda: world.browser.disconnect(ALICE.user, "acme", now=world.now),
        ]
        for step in steps:
            with pytest.raises(Unavailable):
                step()
        assert world.provider.posts == []
        connection.close()


def test_a_store_that_fails_after_the_exchange_costs_the_user_one_more_click(world: World) -> None:
    """The code is spent and the vault was not written: after 30 s the same link starts again."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    put = world.vault.put

    def down(*arguments: object, **more: object) -> bool:
        raise Unavailable("redis", retry_after=2)

    world.vault.put = down  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        world.back(query)
    world.vault.put = put  # type: ignore[method-assign]
    assert world.handle(response="accept") == handle
    world.now += 30
    assert world.back(world.provider.consent(world.approve(handle))) == DONE
