"""The suite, the server that it tests, and one run of each of its commands."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.local.on_thread import on_thread
from tests.conformance.server import ServerUnderTest, server_under_test
from tests.conformance.suite import Run, Suite

RunSuite = Callable[..., Run]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "suite" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def suite() -> Suite:
    return Suite.installed()


@pytest.fixture(scope="session")
def everything(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """Asks for the suite first: without it nothing needs a server."""
    key_file = tmp_path_factory.mktemp("conformance-keys") / "sealing-keys"
    with on_thread(lambda: server_under_test(key_file), name="everything") as (running, _):
        yield running


@pytest.fixture(scope="session")
def run(suite: Suite, everything: ServerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> RunSuite:
    """Runs the suite with these options, once for all tests that ask."""
    runs: dict[tuple[str, ...], Run] = {}

    def once(*options: str) -> Run:
        if options not in runs:
            output = tmp_path_factory.mktemp("conformance") / "run"
            runs[options] = suite.server(everything.url, *options, output=output)
        return runs[options]

    return once
