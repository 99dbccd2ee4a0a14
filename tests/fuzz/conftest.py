"""One endpoint in this process for all that is tried."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fuzz.endpoint import Endpoint


@pytest.fixture(scope="package")
def endpoint() -> Iterator[Endpoint]:
    with closing(Endpoint()) as opened:
        yield opened
