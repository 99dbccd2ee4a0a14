"""Servers for the suites of the adapters."""

from tests.adapters.contracts.valkey import cluster, redis_server, shared_cluster, shared_redis, shared_single, single

__all__ = ["cluster", "redis_server", "shared_cluster", "shared_redis", "shared_single", "single"]
