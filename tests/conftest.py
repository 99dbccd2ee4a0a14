"""What several suites share: the running local stack, and that every answer is judged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.local.on_thread import Run, on_thread
from infra.local.stack import LocalStack, local_stack
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
        """What the example tools really did, in any environment."""
        return [found[1] for line in self.stack.emulator.logs() if (found := _EFFECT.search(line))]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The local stack with two environments for each function: real awslambdaric, real HTTP, real login."""
    key_file: Path = tmp_path_factory.mktemp("keys") / "sealing-keys"
    with on_thread(lambda: local_stack(key_file=key_file), name="stack") as (running, run):
        yield RunningStack(running, run)


@pytest.fixture
def fresh_stack(stack: RunningStack) -> RunningStack:
    """The shared stack with new environments: what an example tool did to its own memory is forgotten."""
    stack.restart()
    return stack
