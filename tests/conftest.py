"""What several suites share: the running local stack, and that every answer is judged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from infra.local.desk import desk_stack
from infra.local.on_thread import Run, on_thread
from infra.local.stack import LocalStack
from tests.judged import judged

_EFFECT = re.compile(r'effect: ([^"]+)')


@pytest.fixture(scope="session", autouse=True)
def wrong_answers() -> Iterator[list[str]]:
    """Answers of this run that the official types do not allow."""
    with judged() as wrong:
        yield wrong


@pytest.fixture(autouse=True)
def every_answer_is_allowed(wrong_answers: list[str]) -> Iterator[None]:
    """The test in which an answer was given fails for it."""
    wrong_answers.clear()
    yield
    assert not wrong_answers, "\n".join(wrong_answers)


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
        """What the desk's tools really did, in any environment."""
        return [found[1] for line in self.stack.emulator.logs() if (found := _EFFECT.search(line))]


@pytest.fixture(scope="session")
def started_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The desk with two environments for each function: real awslambdaric, real HTTP, real login."""
    folder = tmp_path_factory.mktemp("stack")
    with on_thread(lambda: desk_stack(folder), name="stack") as (running, run):
        yield RunningStack(running, run)


@pytest.fixture(scope="module")
def stack(started_stack: RunningStack) -> RunningStack:
    """The shared stack with new environments: what another module's calls did to a tool's memory is forgotten."""
    started_stack.restart()
    return started_stack


@pytest.fixture
def fresh_stack(stack: RunningStack) -> RunningStack:
    """The same for each test."""
    stack.restart()
    return stack
