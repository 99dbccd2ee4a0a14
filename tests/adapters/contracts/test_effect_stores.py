"""The contracts of marks, approvals and limits: memory, Valkey, Redis where it is installed, and cluster mode."""

from collections.abc import Iterator

import pytest

from app.adapters.memory_effects import MemoryApprovalStore, MemoryOnceStore, MemoryRateLimits
from app.adapters.redis_approvals import RedisApprovalStore
from app.adapters.redis_connection import Redis, connect
from app.adapters.redis_limits import RedisRateLimits
from app.adapters.redis_once import RedisOnceStore
from app.errors import Unavailable
from app.ports import Mark
from tests.adapters.contracts.approval_store import ApprovalStoreContract
from tests.adapters.contracts.once_store import OnceStoreContract
from tests.adapters.contracts.rate_limits import RateLimitsContract
from tests.adapters.contracts.test_stores import Clock, InMemory, OnCluster, OnRedisServer, OnSingle
from tests.adapters.contracts.valkey import Server, running

NOW = 1_800_000_000
MARK = Mark("request", "owner", NOW + 30)


@pytest.fixture
def clock() -> Clock:
    return Clock()


class TestMemoryOnceStore(InMemory, OnceStoreContract):
    @pytest.fixture
    def store(self, clock: Clock) -> MemoryOnceStore:
        return MemoryOnceStore(clock)


class TestMemoryApprovalStore(InMemory, ApprovalStoreContract):
    @pytest.fixture
    def store(self) -> MemoryApprovalStore:
        return MemoryApprovalStore()


class TestMemoryRateLimits(InMemory, RateLimitsContract):
    @pytest.fixture
    def limits(self, clock: Clock) -> MemoryRateLimits:
        return MemoryRateLimits(clock)


class Single(OnSingle):
    @pytest.fixture
    def redis(self, single: Server) -> Iterator[Redis]:
        connection = connect(single.url)
        yield connection
        connection.close()


class Cluster(OnCluster):
    @pytest.fixture
    def redis(self, cluster: Server) -> Iterator[Redis]:
        connection = connect(cluster.url, cluster=True)
        yield connection
        connection.close()


class MarksInRedis(OnceStoreContract):
    @pytest.fixture
    def store(self, redis: Redis) -> RedisOnceStore:
        return RedisOnceStore(redis)


class ApprovalsInRedis(ApprovalStoreContract):
    @pytest.fixture
    def store(self, redis: Redis) -> RedisApprovalStore:
        return RedisApprovalStore(redis)


class LimitsInRedis(RateLimitsContract):
    @pytest.fixture
    def limits(self, redis: Redis) -> RedisRateLimits:
        return RedisRateLimits(redis)


class TestRedisOnceStore(Single, MarksInRedis):
    @pytest.mark.parametrize("damage", [{"owner": ""}, {"lease": "soon"}, {"x": "y"}, {"open": "1", "x": "y"}])
    def test_a_damaged_mark_still_stands(self, store: RedisOnceStore, single: Server, damage: dict[str, str]) -> None:
        """What nobody of ours wrote is no reason to run anything."""
        single.admin.hset("mcp:once:{n}", mapping=damage)
        standing = store.claim("n", MARK, lifetime=60)
        assert standing.owner != MARK.owner
        assert standing.request != MARK.request

    def test_a_key_of_another_kind_is_unavailable(self, store: RedisOnceStore, single: Server) -> None:
        """Fails closed."""
        single.admin.set("mcp:once:{n}", "text")
        with pytest.raises(Unavailable):
            store.claim("n", MARK, lifetime=60)


class TestRedisApprovalStore(Single, ApprovalsInRedis):
    def test_a_damaged_record_is_none(self, store: RedisApprovalStore, single: Server) -> None:
        """And is swept away by the next one that is kept."""
        single.admin.hset("mcp:yes:{alice}", "n", "damaged")
        assert store.look("alice", "n") is None
        assert store.entries("alice") == {}
        assert store.keep("alice", "m", "sealed", asked_at=NOW, expires_at=NOW + 60, limit=1, now=NOW)
        assert single.admin.hkeys("mcp:yes:{alice}") == ["m"]


class TestRedisRateLimits(Single, LimitsInRedis):
    pass


class TestEveryKey(Single):
    def test_the_keys_are_the_documented_ones_and_all_of_them_end(self, redis: Redis, single: Server) -> None:
        """app.adapters.redis_keys; the access list of a shared cache is `~mcp:*`."""
        RedisOnceStore(redis).claim("a", MARK, lifetime=90)
        RedisOnceStore(redis).record("b", MARK, lifetime=90)
        RedisOnceStore(redis).open("f", lifetime=90)
        RedisOnceStore(redis).open("g", lifetime=900)
        for name in "gh":
            RedisOnceStore(redis).claim(name, MARK, lifetime=90)
            RedisOnceStore(redis).release(name, MARK.owner)
        approvals = RedisApprovalStore(redis)
        approvals.keep("c", "n", "sealed", asked_at=NOW, expires_at=NOW + 90, limit=9, now=NOW)
        approvals.keep("d", "n", "sealed", asked_at=NOW, expires_at=NOW + 9, limit=9, now=NOW)
        approvals.withdraw("d", "n", at=NOW, until=NOW + 90)
        RedisRateLimits(redis).take("e", "x", count=9, seconds=90, now=NOW)

        keys = sorted(single.admin.keys("*"))
        once = [f"mcp:once:{{{name}}}" for name in "abfg"]
        assert keys == [*once, "mcp:rate:{e}", "mcp:yes:{c}", "mcp:yes:{d}"]
        assert {single.admin.ttl(key) for key in keys} <= {89, 90}


class TestOnceStoreOnRedis(OnRedisServer, TestRedisOnceStore):
    pass


class TestApprovalStoreOnRedis(OnRedisServer, TestRedisApprovalStore):
    pass


class TestRateLimitsOnRedis(OnRedisServer, TestRedisRateLimits):
    pass


class TestRedisOnceStoreInClusterMode(Cluster, MarksInRedis):
    pass


class TestRedisApprovalStoreInClusterMode(Cluster, ApprovalsInRedis):
    pass


class TestRedisRateLimitsInClusterMode(Cluster, LimitsInRedis):
    pass


def test_scripts_that_the_server_forgot_are_sent_again(single: Server) -> None:
    """SECURITY section 5, 140: SCRIPT FLUSH."""
    redis = connect(single.url)
    store = RedisOnceStore(redis)
    try:
        assert store.claim("n", MARK, lifetime=60) == MARK
        single.admin.script_flush()
        assert store.claim("n", Mark("request", "another", NOW), lifetime=60) == MARK
        single.admin.script_flush()
        store.release("n", "owner")
        single.admin.script_flush()
        assert RedisRateLimits(redis).take("n", "1", count=1, seconds=60, now=NOW) is None
    finally:
        redis.close()


def test_a_store_that_is_gone_is_unavailable() -> None:
    """SECURITY section 2.5: never run unguarded."""
    with running() as server:
        redis = connect(server.url)
        assert RedisOnceStore(redis).claim("n", MARK, lifetime=60) == MARK
    with pytest.raises(Unavailable):
        RedisOnceStore(redis).claim("n", MARK, lifetime=60)
    with pytest.raises(Unavailable):
        RedisApprovalStore(redis).look("alice", "n")
    with pytest.raises(Unavailable):
        RedisRateLimits(redis).take("n", "1", count=1, seconds=60, now=NOW)
    redis.close()
