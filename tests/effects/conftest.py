"""Servers for the suites of app.effects, where a fake store would prove too little."""

from tests.adapters.contracts.valkey import cluster, shared_cluster, shared_single, single

__all__ = ["cluster", "shared_cluster", "shared_single", "single"]
