"""URL mode as the MCP function needs it: the store, and what connects third parties. Opened by the first use."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from app.adapters import redis_connection
from app.adapters.oauth_http import HttpTokenEndpoint
from app.adapters.redis_connection import Redis
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_vault import RedisVaultStore
from app.connection_settings import ConnectionSettings
from app.oauth.connections import Connections
from app.settings import Settings


class Stores(NamedTuple):
    """The store of a deployment, and the ports on it."""

    redis: Redis
    flows: RedisFlowStore
    vault: RedisVaultStore


def open_stores(configured: ConnectionSettings) -> Stores:
    """Nothing is connected before the first command."""
    redis = redis_connection.connect(configured.redis_url, cluster=configured.redis_cluster)
    return Stores(redis, RedisFlowStore(redis), RedisVaultStore(redis))


def connections(environment: Mapping[str, str], settings: Settings) -> Callable[[], Connections] | None:
    """What builds the connections when a tool first needs them, or None without a store.

    Raises ConfigurationError at once for a configuration that cannot work.
    """
    configured = ConnectionSettings.read(environment, settings)
    return None if configured is None else connections_on(open_stores(configured), configured)


def connections_on(stores: Stores, configured: ConnectionSettings) -> Callable[[], Connections]:
    """What builds the connections on stores that other services may share."""

    @cache
    def opened() -> Connections:
        return Connections(
            stores.flows,
            stores.vault,
            HttpTokenEndpoint(),
            keyring=configured.keyring,
            providers=configured.providers,
            base_url=configured.base_url,
        )

    return opened
