"""The contracts, against memory, a single Valkey, Redis where it is installed, and Valkey in cluster mode."""

from collections.abc import Callable, Iterator

import pytest

from app.adapters.memory_store import MemoryFlowStore, MemoryVaultStore
from app.adapters.redis_connection import connect
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_vault import RedisVaultStore
from tests.adapters.contracts.flow_store import FlowStoreContract
from tests.adapters.contracts.valkey import Server
from tests.adapters.contracts.vault_store import VaultStoreContract


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


class InMemory:
    @pytest.fixture
    def advance(self, clock: Clock) -> Callable[[float], None]:
        return clock.advance


class OnSingle:
    @pytest.fixture
    def advance(self, single: Server) -> Callable[[float], None]:
        return single.advance


class OnRedisServer:
    """What runs on a single Valkey, on Redis."""

    @pytest.fixture
    def single(self, redis_server: Server) -> Server:
        return redis_server


class OnCluster:
    @pytest.fixture
    def advance(self, cluster: Server) -> Callable[[float], None]:
        return cluster.advance


class TestMemoryFlowStore(InMemory, FlowStoreContract):
    @pytest.fixture
    def store(self, clock: Clock) -> MemoryFlowStore:
        return MemoryFlowStore(clock)


class TestMemoryVaultStore(InMemory, VaultStoreContract):
    @pytest.fixture
    def store(self, clock: Clock) -> MemoryVaultStore:
        return MemoryVaultStore(clock)


class TestRedisFlowStore(OnSingle, FlowStoreContract):
    @pytest.fixture
    def store(self, single: Server) -> Iterator[RedisFlowStore]:
        connection = connect(single.url)
        yield RedisFlowStore(connection)
        connection.close()


class TestRedisVaultStore(OnSingle, VaultStoreContract):
    @pytest.fixture
    def store(self, single: Server) -> Iterator[RedisVaultStore]:
        connection = connect(single.url)
        yield RedisVaultStore(connection)
        connection.close()


class TestFlowStoreOnRedis(OnRedisServer, TestRedisFlowStore):
    pass


class TestVaultStoreOnRedis(OnRedisServer, TestRedisVaultStore):
    pass


class TestRedisFlowStoreInClusterMode(OnCluster, FlowStoreContract):
    @pytest.fixture
    def store(self, cluster: Server) -> Iterator[RedisFlowStore]:
        connection = connect(cluster.url, cluster=True)
        yield RedisFlowStore(connection)
        connection.close()


class TestRedisVaultStoreInClusterMode(OnCluster, VaultStoreContract):
    @pytest.fixture
    def store(self, cluster: Server) -> Iterator[RedisVaultStore]:
        connection = connect(cluster.url, cluster=True)
        yield RedisVaultStore(connection)
        connection.close()
