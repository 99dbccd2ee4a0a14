"""What several suites share: the running local stack."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from pydantic import ValidationError

from app.http import HttpRequest, HttpResponse, join_headers
from infra.local.emulator.exchange import Exchange
from infra.local.on_thread import Run, on_thread
from infra.local.page import LocalPage
from infra.local.stack import LocalStack, local_stack
from tests.protocol.official_types import judge

_EFFECT = re.compile(r'effect: ([^"]+)')


@dataclass(frozen=True)
class RunningStack:
    """The stack on a thread of its own."""

    stack: LocalStack
    run: Run

    @property
    def mcp_url(self) -> str:
        return self.stack.mcp_url

    def restart(self) -> None:
        """Replace every execution environment, and wait until the new ones are ready."""
        self.run(self.stack.emulator.restart())

    def environments(self) -> set[str]:
        """The names of the execution environments that run now."""
        return {each.name for each in self.stack.emulator.environments()}

    def effects(self) -> list[str]:
        """What the example tools really did, in any environment."""
        return [found[1] for line in self.stack.emulator.logs() if (found := _EFFECT.search(line))]


@contextmanager
def judged_exchanges() -> Iterator[list[str]]:
    """Judge every MCP response of local stacks by the official types. What is wrong is in the list."""
    wrong: list[str] = []
    observe = LocalPage.observe

    def observed(page: LocalPage, exchange: Exchange) -> None:
        if exchange.path == "/mcp" and exchange.environment:
            try:
                judge(*_as_values(exchange))
            except (AssertionError, ValidationError, KeyError) as error:
                wrong.append(f"{exchange.request_body[:500]!r} got {exchange.response.body[:500]!r}: {error!r}")
        observe(page, exchange)

    with patch.object(LocalPage, "observe", observed):
        yield wrong


def _as_values(exchange: Exchange) -> tuple[HttpRequest, HttpResponse]:
    response = exchange.response
    return (
        HttpRequest(exchange.method, exchange.path, join_headers(exchange.request_headers), exchange.request_body),
        HttpResponse(response.status, join_headers(response.headers), response.body),
    )


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The local stack with two environments for each function: real awslambdaric, real HTTP, real login."""
    key_file: Path = tmp_path_factory.mktemp("keys") / "sealing-keys"
    with (
        judged_exchanges() as wrong,
        on_thread(lambda: local_stack(key_file=key_file), name="stack") as (running, run),
    ):
        yield RunningStack(running, run)
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def fresh_stack(stack: RunningStack) -> RunningStack:
    """The shared stack with new environments: what an example tool did to its own memory is forgotten."""
    stack.restart()
    return stack
