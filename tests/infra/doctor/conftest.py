"""Servers for the doctor to look at: stores, and a small deployment that can be spoiled."""

from collections.abc import Iterator

import pytest

from tests.adapters.contracts.valkey import cluster, shared_cluster, shared_single, single
from tests.infra.doctor.deployment import Deployment, deployed

__all__ = ["cluster", "shared_cluster", "shared_single", "single"]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """An endpoint and an issuer with nothing wrong about them, yet."""
    with deployed() as running:
        yield running
