"""One deployment for all of the hostile tests, on a store in cluster mode."""

import itertools
from collections.abc import Iterator

import pytest

from infra.local.provider import HubSettings
from tests.hostile.laboratory import Laboratory, laboratory

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """Two environments for each function. A third party's token is due for a refresh after six seconds."""
    folder = tmp_path_factory.mktemp("hostile")
    with laboratory(folder, cluster=True, hub_settings=HubSettings(access_token_lifetime=12)) as running:
        yield running


@pytest.fixture
def alice(lab: Laboratory) -> str:
    """A token of a user of this test's own: how often one is asked is limited."""
    return lab.mint(f"alice-{next(_numbers)}")
