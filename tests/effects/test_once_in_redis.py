"""Once on a real server in cluster mode: many at a time, lost replies, outages, and what a dump would show."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.adapters.redis_connection import Redis, connect
from app.adapters.redis_once import RedisOnceStore
from app.effects.once import LEASE, Done, Go, Kept, Once, Running, Unknown
from app.errors import Unavailable
from tests.adapters.contracts.valkey import Server, running
from tests.adapters.test_redis_connection import Proxy
from tests.effects.world import ALICE, EFFECT, FLOW, KEYRING, RESULT, START, YES, owners


@pytest.fixture
def redis(cluster: Server) -> Iterator[Redis]:
    connection = connect(cluster.url, cluster=True)
    yield connection
    connection.close()


@pytest.fixture
def once(redis: Redis) -> Once:
    return Once(RedisOnceStore(redis), KEYRING)


def test_of_64_parallel_completions_one_goes(once: Once) -> None:
    """SECURITY section 2.5: 1 go, 63 running; CASES B.6 63."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda each: once.begin(EFFECT, owner=each, now=START), (next(fresh) for _ in range(64)))
        )
    goes = [each for each in answers if isinstance(each, Go)]
    assert len(goes) == 1
    assert answers.count(Running()) == 63
    assert once.finish(goes[0], RESULT, now=START + 1) is Kept.WHOLE

    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda each: once.begin(EFFECT, owner=each, now=START), (next(fresh) for _ in range(64)))
        )
    assert answers == [Done(RESULT)] * 64


fresh = owners()


def test_a_guarded_effect_costs_two_commands(once: Once, cluster: Server) -> None:
    """One script to begin and one to finish."""
    warm = once.begin(replace(EFFECT, step="warm"), owner=next(fresh), now=START)
    assert isinstance(warm, Go)
    once.finish(warm, RESULT, now=START)
    before = cluster.commands()
    go = once.begin(EFFECT, owner=next(fresh), now=START)
    assert isinstance(go, Go)
    once.finish(go, RESULT, now=START)
    assert cluster.commands() - before == 2


def test_an_effect_that_is_opened_before_the_question_costs_three(once: Once, cluster: Server) -> None:
    """One with the question, two with the answer. What the store forgot in between is in doubt."""
    once.open(replace(EFFECT, step="warm"), now=START)
    once.begin(replace(EFFECT, step="warm"), owner=next(fresh), now=START)
    before = cluster.commands()
    once.open(EFFECT, now=START)
    go = once.begin(EFFECT, owner=next(fresh), now=START, opened=True)
    assert isinstance(go, Go)
    once.finish(go, RESULT, now=START)
    assert cluster.commands() - before == 3
    cluster.empty()
    assert once.begin(EFFECT, owner=next(fresh), now=START, opened=True) == Unknown()
    assert cluster.dump() == "[]"


def test_a_dump_of_the_store_tells_nothing(once: Once, cluster: Server) -> None:
    """SECURITY section 1, stolen Redis dump: no flow id, step, person, answer or result."""
    for step in (None, "reserve_a_seat"):
        go = once.begin(replace(EFFECT, step=step), owner=next(fresh), now=START)
        assert isinstance(go, Go)
        dumped = cluster.dump()
        once.finish(go, RESULT, now=START)
        dumped += cluster.dump()
        assert dumped.count("mcp:once:{") >= 2
        hidden = [FLOW.hex(), repr(FLOW), "reserve", "closed", "content", ALICE.subject, "login.example", "client-one"]
        hidden += [YES.hex(), repr(YES)]
        assert not [each for each in hidden if each in dumped]


def test_an_outage_runs_nothing_and_says_so() -> None:
    """SECURITY section 2.5: fail closed; CASES B.7 99."""
    with running() as server:
        redis = connect(server.url)
        once = Once(RedisOnceStore(redis), KEYRING)
        go = once.begin(EFFECT, owner=next(fresh), now=START)
        assert isinstance(go, Go)
    other = replace(EFFECT, step="other")
    with pytest.raises(Unavailable):
        once.open(other, now=START)
    for opened in (False, True):
        with pytest.raises(Unavailable):
            once.begin(other, owner=next(fresh), now=START, opened=opened)
    with pytest.raises(Unavailable):
        once.finish(go, RESULT, now=START)
    with pytest.raises(Unavailable):
        once.abandon(go)
    redis.close()


@pytest.fixture
def proxy(single: Server) -> Iterator[Proxy]:
    running_proxy = Proxy(int(single.url.rpartition(":")[2]))
    yield running_proxy
    running_proxy.stop()


def test_lost_replies_change_nothing(proxy: Proxy) -> None:
    """PLATFORM section 4: the script ran, its reply was lost, and the connection sends it once more."""
    redis = connect(proxy.url)
    once = Once(RedisOnceStore(redis), KEYRING)
    try:
        for each in ("warm", "step"):
            effect = replace(EFFECT, step=each)
            proxy.drop_next_reply = each != "warm"
            abandoned = once.begin(effect, owner=next(fresh), now=START)
            assert isinstance(abandoned, Go), "its own mark is no stranger's"
            proxy.drop_next_reply = each != "warm"
            once.abandon(abandoned)
            proxy.drop_next_reply = each != "warm"
            go = once.begin(effect, owner=next(fresh), now=START)
            assert isinstance(go, Go)
            assert once.begin(effect, owner=next(fresh), now=START) == Running()
            proxy.drop_next_reply = each != "warm"
            assert once.finish(go, RESULT, now=START) is Kept.WHOLE
            assert not proxy.drop_next_reply
            assert once.begin(effect, owner=next(fresh), now=START) == Done(RESULT)
    finally:
        redis.close()


def test_a_reply_that_is_late_is_never_a_go(single: Server) -> None:
    """The server was hung, and carried the script out after the caller had given up."""
    redis = connect(single.url)
    once = Once(RedisOnceStore(redis), KEYRING)
    try:
        warm = once.begin(replace(EFFECT, step="warm"), owner=next(fresh), now=START)
        assert isinstance(warm, Go)
        with single.hung(), pytest.raises(Unavailable):
            once.begin(EFFECT, owner=next(fresh), now=START)
        assert once.begin(EFFECT, owner=next(fresh), now=START) == Running()
        assert once.begin(EFFECT, owner=next(fresh), now=START + LEASE) == Unknown()
    finally:
        redis.close()
