"""A connection to Redis or Valkey, single or cluster, that answers within a second or raises Unavailable.

redis-py's defaults are for servers that run for months: up to a minute of retries, and each of them may run a
command twice whose reply was lost. Here every wait is bounded, nothing is retried by the library, and

  - `run` sends a script once more after a broken connection, because each of ours does nothing the second
    time (a nonce in it says that it was carried out);
  - `call` sends a command once, for what must not happen twice, like GETDEL.

No alarm ends a command before its reply: that would be taken for the reply to the next one.

The library is imported by the first command: a function that needs no store does not pay for it.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from app.adapters.alarm import held
from app.errors import Unavailable

TIMEOUT: Final = 0.5
"""Seconds to connect, and seconds for a reply. Both may pass in one command."""
CLUSTER_TIMEOUT: Final = 0.4
"""The same in cluster mode, where the library asks for the topology after a timeout and so waits twice."""
MAX_IDLE: Final = 30
"""Seconds after which a connection is not trusted: a frozen environment may find it dead without a sign."""
RETRY_AFTER: Final = 2


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script that touches one slot and, sent again with the same arguments, changes nothing more."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", digest)


class Redis:
    """Commands to one server or cluster. Safe to share between threads. Raises Unavailable for every failure."""

    def __init__(self, open_client: Callable[[], Any], *, clock: Callable[[], float] = time.time) -> None:
        self._open_client = open_client
        self._clock = clock
        self._lock = Lock()
        self._client: Any = None
        self._used_at = float("-inf")

    @held()
    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[str | int | float] = ()) -> Any:
        """Run a script, and once more if the connection broke under it."""
        from redis.exceptions import ConnectionError

        rest = (len(keys), *keys, *arguments)
        client = self._connected()
        try:
            return self._evaluate(client, script, rest)
        except Unavailable as error:
            # A reply that is late is not asked for again: two timeouts are longer than anybody should wait.
            if not isinstance(error.__cause__, ConnectionError):
                raise
        with self._lock:
            # Not closed: another thread may be waiting for a reply on it.
            if self._client is client:
                self._client = None
        return self._evaluate(self._connected(), script, rest)

    @held()
    def call(self, *command: str | int | float) -> Any:
        """Send one command, once."""
        return self._send(self._connected(), *command)

    def close(self) -> None:
        """Drop every connection, as after a SnapStart restore. The next command opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _evaluate(self, client: Any, script: Script, rest: Sequence[str | int | float]) -> Any:
        from redis.exceptions import NoScriptError

        try:
            return self._send(client, "EVALSHA", script.sha, *rest)
        except Unavailable as error:
            if not isinstance(error.__cause__, NoScriptError):
                raise
        # The server does not know the script (yet, or after a restart): it has not run.
        return self._send(client, "EVAL", script.text, *rest)

    def _send(self, client: Any, *command: str | int | float) -> Any:
        with _unavailable():
            return client.execute_command(*command)

    def _connected(self) -> Any:
        now = self._clock()
        with self._lock:
            idle, self._used_at = now - self._used_at, now
        if idle > MAX_IDLE:
            self.close()
        with self._lock:
            client = self._client
        if client is not None:
            return client
        # Outside the lock: a cluster's client talks to it already, and nobody queues behind a server that hangs.
        with _unavailable():
            opened = self._open_client()
        with self._lock:
            if self._client is None:
                self._client = opened
            return self._client


@contextmanager
def _unavailable() -> Iterator[None]:
    from redis.exceptions import RedisClusterException, RedisError

    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        credentials = _no_credentials(error)
        if credentials is not None:
            raise Unavailable(credentials.reason, retry_after=credentials.retry_after) from error
        # The message may quote the command: only its kind is told.
        raise Unavailable(f"redis: {type(error).__name__}", retry_after=RETRY_AFTER) from error


def _no_credentials(error: BaseException | None) -> Unavailable | None:
    """What `credentials` raised, under what the library made of it."""
    while error is not None and not isinstance(error, Unavailable):
        error = error.__cause__
    return error


def _provider(credentials: Callable[[], tuple[str, str]]) -> Any:
    from redis.credentials import CredentialProvider
    from redis.exceptions import AuthenticationError

    class Provided(CredentialProvider):
        def get_credentials(self) -> tuple[str, str]:
            try:
                return credentials()
            except Unavailable as error:
                # Any other kind of error would leave the library a connection that is open and nobody's.
                raise AuthenticationError(error.reason) from error

    return Provided()


def connect(
    url: str,
    *,
    cluster: bool = False,
    credentials: Callable[[], tuple[str, str]] | None = None,
    clock: Callable[[], float] = time.time,
) -> Redis:
    """A connection to `redis://` or `rediss://`, opened by the first command.

    `cluster` for ElastiCache Serverless and every other cluster-mode server. `credentials` gives a user name
    and a password for each new connection, such as an IAM token, and may raise Unavailable.
    """

    def open_client() -> Any:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        timeout = CLUSTER_TIMEOUT if cluster else TIMEOUT
        options: dict[str, Any] = {
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "retry": Retry(NoBackoff(), 0),
            "decode_responses": True,
            # Bytes that are no text come from nobody of ours: what they stood for will not open, and that is all.
            "encoding_errors": "replace",
            "protocol": 2,
        }
        if credentials is not None:
            options["credential_provider"] = _provider(credentials)
        return redis.RedisCluster.from_url(url, **options) if cluster else redis.Redis.from_url(url, **options)

    return Redis(open_client, clock=clock)
