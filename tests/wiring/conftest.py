"""A store for the functions under test."""

from tests.adapters.contracts.valkey import shared_single, single

__all__ = ["shared_single", "single"]
