"""Servers for the tests that keep everything in Valkey."""

from tests.adapters.contracts.valkey import cluster, shared_cluster

__all__ = ["cluster", "shared_cluster"]
