"""URL mode as the MCP function needs it: the store, and what connects third parties. Opened by the first use."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from app.adapters import redis_connection
from app.adapters.elasticache_iam import ElastiCacheIam
from app.adapters.oauth_http import HttpTokenEndpoint
from app.adapters.redis_approvals import RedisApprovalStore
from app.adapters.redis_connection import Redis
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_limits import RedisRateLimits
from app.adapters.redis_once import RedisOnceStore
from app.adapters.redis_vault import RedisVaultStore
from app.adapters.secrets_manager import SecretsManager
from app.connection_settings import ConnectionSettings, are_asks_limited
from app.connections_secret import with_secret
from app.effects.approvals import Approvals
from app.effects.effects import Effects
from app.effects.limits import Kind, Limited, Limits
from app.effects.once import Once
from app.errors import ConfigurationError
from app.oauth.connections import Connections
from app.principal import Principal
from app.redis_settings import RedisSettings
from app.settings import Settings


class Stores(NamedTuple):
    """The store of a deployment, and the ports on it."""

    redis: Redis
    flows: RedisFlowStore
    vault: RedisVaultStore


def open_redis(configured: RedisSettings) -> tuple[Redis, ElastiCacheIam | None]:
    """The connection, and what signs in on it where no password does. Nothing is connected before the first command."""
    credentials = None
    if (iam := configured.iam) is not None:
        credentials = ElastiCacheIam(iam.user, iam.cache_name, region=iam.region, serverless=iam.serverless)
    return redis_connection.connect(configured.url, cluster=configured.cluster, credentials=credentials), credentials


class UrlMode:
    """URL mode of one deployment. Each part is made when it is first asked for, and kept.

    `read` gives the settings; `is_read` says that it asks nobody for them. `asks_limited` is known without them, so
    that a form needs no secret to be shown. Raises ConfigurationError, and Unavailable while a secret cannot be read:
    the next use tries again.
    """

    def __init__(self, read: Callable[[], ConnectionSettings], *, is_read: bool, asks_limited: bool = False) -> None:
        self._read = read
        self.is_read = is_read
        self.asks_limited = asks_limited

    @cached_property
    def settings(self) -> ConnectionSettings:
        return self._read()

    @cached_property
    def stores(self) -> Stores:
        redis, _ = self._redis
        return Stores(redis, RedisFlowStore(redis), RedisVaultStore(redis))

    @cached_property
    def _redis(self) -> tuple[Redis, ElastiCacheIam | None]:
        return open_redis(self.settings.redis)

    def connections(self) -> Connections:
        return self._connections

    @cached_property
    def _connections(self) -> Connections:
        return Connections(
            self.stores.flows,
            self.stores.vault,
            HttpTokenEndpoint(),
            keyring=self.settings.keyring,
            providers=self.settings.providers,
            base_url=self.settings.base_url,
            may_start=self._may_start,
        )

    def effects(self) -> Effects:
        return self._effects

    @cached_property
    def _effects(self) -> Effects:
        redis, _ = self._redis
        keyring = self.settings.keyring
        return Effects(
            Once(RedisOnceStore(redis), keyring),
            Approvals(RedisApprovalStore(redis), keyring),
            Limits(RedisRateLimits(redis), keyring, self.settings.limits),
        )

    def _may_start(self, principal: Principal, now: float) -> int | None:
        taken = self._effects.limits.take(principal, Kind.FLOW, entropy=os.urandom(16), now=now)
        return taken.retry_after if isinstance(taken, Limited) else None

    def prepare(self) -> None:
        """Import what the first connection needs, for a snapshot. Reads and connects nothing."""
        import redis  # noqa: F401

        if not self.is_read or self.settings.redis.iam:
            import botocore.session  # noqa: F401

    def forget(self) -> None:
        """Drop connections and tokens, as after a SnapStart restore. No secret is read before a snapshot."""
        if "_redis" in vars(self):
            redis, iam = self._redis
            redis.close()
            if iam is not None:
                iam.forget()


def url_mode(
    environment: Mapping[str, str], settings: Settings, *, secrets: SecretsManager | None = None
) -> UrlMode | None:
    """URL mode, or None without a store. Raises ConfigurationError at once for a configuration that cannot work.

    A secret is not read here: a snapshot would keep what it says, and nobody may need it.
    """
    secret_id = environment.get("MCP_CONNECTIONS_SECRET", "").strip()
    if not secret_id:
        configured = ConnectionSettings.read(environment, settings)
        if configured is None:
            return None
        return UrlMode(lambda: configured, is_read=True, asks_limited=are_asks_limited(environment))
    ConnectionSettings.check(environment, settings)
    reader = secrets or SecretsManager()

    def read() -> ConnectionSettings:
        found = ConnectionSettings.read(with_secret(environment, reader.read(secret_id)), settings)
        if found is None:
            raise ConfigurationError(
                ["MCP_CONNECTIONS_SECRET has no REDIS_URL, and MCP_REDIS_URL is not set: set one of the two."]
            )
        return found

    return UrlMode(read, is_read=False, asks_limited=are_asks_limited(environment))
