"""A fresh help desk for each test of the example tools. Delete it with them."""

from collections.abc import Iterator

import pytest

from app.tools import desk as module
from app.tools.desk import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """The desk that the tools use, as it is after a start."""
    vars(module.desk).update(vars(Desk()))
    yield module.desk
    vars(module.desk).update(vars(Desk()))
