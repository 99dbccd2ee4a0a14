"""The emulator on a thread of its own, for tests and other code that is not async."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from infra.local.emulator.emulator import Emulator, Values
from infra.local.emulator.environment import EnvironmentInfo
from infra.local.emulator.process import RuntimeClient
from infra.local.on_thread import Run, on_thread


class RunningEmulator:
    """What the block of `emulator_in_thread` works with. Its methods return when their work is done."""

    def __init__(self, emulator: Emulator, run: Run) -> None:
        self._emulator = emulator
        self._run = run
        self.url = emulator.url
        self.port = emulator.port

    def restart(self, function: str | None = None) -> None:
        self._run(self._emulator.restart(function))

    def kill(self, name: str) -> None:
        self._run(self._emulator.kill(name))

    def environments(self) -> list[EnvironmentInfo]:
        async def read() -> list[EnvironmentInfo]:
            return self._emulator.environments()

        found: list[EnvironmentInfo] = self._run(read())
        return found

    def logs(self) -> list[str]:
        """As Emulator.logs, and also after the emulator has stopped."""
        return self._emulator.logs()


@contextlib.contextmanager
def emulator_in_thread(
    template: Path,
    *,
    parameters: Values,
    environment: Values | None = None,
    environments: int = 2,
    max_environments: int = 8,
    port: int = 0,
    snapstart: bool = False,
    log: Callable[[str], None] | None = None,
    runtime_client: RuntimeClient | None = None,
) -> Iterator[RunningEmulator]:
    """Run an Emulator while the block runs. `log` is called on the emulator's thread."""
    emulator = Emulator(
        template,
        parameters=parameters,
        environment=environment,
        environments=environments,
        max_environments=max_environments,
        port=port,
        snapstart=snapstart,
        log=log,
        runtime_client=runtime_client,
    )
    with on_thread(lambda: emulator, name="emulator") as (running, run):
        yield RunningEmulator(running, run)
