"""Servers for the suites of the adapters."""

from tests.adapters.contracts.valkey import cluster, shared_cluster, shared_single, single

__all__ = ["cluster", "shared_cluster", "shared_single", "single"]
