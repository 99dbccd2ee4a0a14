"""The contracts of sessions and logins, against memory, a single Valkey, and Valkey in cluster mode."""

from collections.abc import Iterator

import pytest

from app.adapters.memory_sessions import MemoryLogins, MemorySessions
from app.adapters.redis_connection import Redis, connect
from app.adapters.redis_sessions import RedisLogins, RedisSessions
from app.errors import Unavailable
from tests.adapters.contracts.session_stores import LoginStoreContract, SessionStoreContract
from tests.adapters.contracts.test_stores import Clock, InMemory, OnCluster, OnRedisServer, OnSingle
from tests.adapters.contracts.valkey import Server, running


class TestMemorySessions(InMemory, SessionStoreContract, LoginStoreContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def sessions(self, clock: Clock) -> MemorySessions:
        return MemorySessions(clock)

    @pytest.fixture
    def logins(self, clock: Clock) -> MemoryLogins:
        return MemoryLogins(clock)


class OnRedis(SessionStoreContract, LoginStoreContract):
    @pytest.fixture
    def sessions(self, redis: Redis) -> RedisSessions:
        return RedisSessions(redis)

    @pytest.fixture
    def logins(self, redis: Redis) -> RedisLogins:
        return RedisLogins(redis)


class TestRedisSessions(OnSingle, OnRedis):
    @pytest.fixture
    def redis(self, single: Server) -> Iterator[Redis]:
        connection = connect(single.url)
        yield connection
        connection.close()

    def test_the_keys_are_the_documented_ones(self, redis: Redis, single: Server) -> None:
        """app.adapters.redis_keys; the access list of a shared cache is `~mcp:*`."""
        RedisSessions(redis).put("a", "sealed", lifetime=60)
        RedisLogins(redis).put("b", "sealed", lifetime=60)

        assert sorted(single.admin.keys("*")) == ["mcp:login:{b}", "mcp:sess:{a}"]


class TestSessionsOnRedis(OnRedisServer, TestRedisSessions):
    pass


class TestRedisSessionsInClusterMode(OnCluster, OnRedis):
    @pytest.fixture
    def redis(self, cluster: Server) -> Iterator[Redis]:
        connection = connect(cluster.url, cluster=True)
        yield connection
        connection.close()


def test_a_store_that_is_gone_is_unavailable() -> None:
    """SECURITY section 0, item 10; public case 99: what is consumed once fails closed."""
    with running() as server:
        redis = connect(server.url)
        sessions, logins = RedisSessions(redis), RedisLogins(redis)
        sessions.put("a", "sealed", lifetime=60)
    with pytest.raises(Unavailable):
        sessions.get("a")
    with pytest.raises(Unavailable):
        logins.take("a")
    redis.close()
