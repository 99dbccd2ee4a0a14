"""Limits: so many of a kind for each principal, and an honest answer when the next one may come."""

from collections.abc import Iterator

import pytest

from app.adapters.memory_effects import MemoryRateLimits
from app.adapters.redis_connection import connect
from app.adapters.redis_limits import RedisRateLimits
from app.effects.limits import DEFAULTS, Allowed, Kind, Limit, Limited, Limits
from app.errors import ConfigurationError
from app.principal import Principal
from tests.adapters.contracts.valkey import Server
from tests.effects.world import ALICE, ALICE_ELSEWHERE, ALICE_OF_ANOTHER_ISSUER, BOB, KEYRING, START, Clock, owners

THREE = {Kind.ASK: Limit(3, 60), Kind.FLOW: Limit(1, 3600)}
fresh = owners()


def take(limits: Limits, who: Principal = ALICE, kind: Kind = Kind.ASK, *, now: float = START) -> Allowed | Limited:
    return limits.take(who, kind, entropy=next(fresh), now=now)


@pytest.fixture
def limits() -> Limits:
    return Limits(MemoryRateLimits(Clock()), KEYRING, THREE)


def test_what_is_too_much_is_told_when_to_come_back(limits: Limits) -> None:
    """SECURITY section 0: 429 rate. Whoever waits as long as was said gets through."""
    assert [take(limits, now=START + each) for each in (0, 10.5, 20)] == [Allowed()] * 3
    refused = take(limits, now=START + 30.5)
    assert refused == Limited(30)
    assert take(limits, now=START + 59.9) == Limited(1)
    assert take(limits, now=START + 30.5 + 30) == Allowed()


def test_kinds_are_counted_apart(limits: Limits) -> None:
    """An ask is no flow."""
    assert take(limits, kind=Kind.ASK) == Allowed()
    assert take(limits, kind=Kind.FLOW) == Allowed()
    assert take(limits, kind=Kind.FLOW) == Limited(3600)
    assert take(limits, kind=Kind.ASK) == Allowed()


@pytest.mark.parametrize("other", [BOB, ALICE_ELSEWHERE, ALICE_OF_ANOTHER_ISSUER])
def test_principals_are_counted_apart(limits: Limits, other: Principal) -> None:
    """A client that asks too much stops itself, and no other of the same user."""
    take(limits, kind=Kind.FLOW)
    assert take(limits, other, kind=Kind.FLOW) == Allowed()


@pytest.mark.parametrize("jump", [-86_400, -3600, 3600 * 10])
def test_a_wait_is_never_longer_than_the_window(jump: int) -> None:
    """Whatever the clocks say: the store forgets by its own."""
    store_clock = Clock()
    limits = Limits(MemoryRateLimits(store_clock), KEYRING, THREE)
    take(limits, kind=Kind.FLOW, now=START + jump)
    refused = take(limits, kind=Kind.FLOW, now=START + min(jump, 0))
    assert refused == Limited(3600)
    store_clock.now += 3600
    assert take(limits, kind=Kind.FLOW, now=START) == Allowed()


@pytest.mark.parametrize(("count", "seconds"), [(0, 60), (1, 0), (-1, 60), (1, -60)])
def test_a_limit_that_stops_everything_is_refused(count: int, seconds: int) -> None:
    """At the start, with the remedy."""
    with pytest.raises(ConfigurationError, match="1 or more"):
        Limit(count, seconds)


def test_there_is_a_default_for_each_kind() -> None:
    """A person answering steadily never meets it: one form in ten seconds."""
    assert set(DEFAULTS) == set(Kind)
    limits = Limits(MemoryRateLimits(Clock()), KEYRING)
    assert all(take(limits, now=START + 10 * each) == Allowed() for each in range(200))


@pytest.fixture
def in_cluster(cluster: Server) -> Iterator[Limits]:
    connection = connect(cluster.url, cluster=True)
    yield Limits(RedisRateLimits(connection), KEYRING, THREE)
    connection.close()


def test_on_a_real_server_a_fraction_of_a_second_counts(in_cluster: Limits, cluster: Server) -> None:
    """Times travel whole: a window that is rounded would let one more through, or one less."""
    for _ in range(3):
        assert take(in_cluster, now=START + 0.123456) == Allowed()
    assert take(in_cluster, now=START + 60.123) == Limited(1)
    assert take(in_cluster, now=START + 60.123456) == Allowed()
    (key,) = cluster.admin.keys("*")
    stored = key + repr(cluster.admin.zrange(key, 0, -1, withscores=True))
    hidden = [ALICE.subject, "login.example", "client-one", "ask"]
    assert not [each for each in hidden if each in stored]
