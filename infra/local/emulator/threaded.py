"""The emulator on a thread of its own, for tests and other code that is not async."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from infra.local.emulator.emulator import Emulator, Values
from infra.local.emulator.environment import EnvironmentInfo
from infra.local.emulator.process import RuntimeClient

T = TypeVar("T")


class RunningEmulator:
    """What the block of `emulator_in_thread` works with. Its methods return when their work is done."""

    def __init__(self, emulator: Emulator, loop: asyncio.AbstractEventLoop) -> None:
        self._emulator = emulator
        self._loop = loop
        self.url = emulator.url
        self.port = emulator.port

    def restart(self, function: str | None = None) -> None:
        self._run(self._emulator.restart(function))

    def kill(self, name: str) -> None:
        self._run(self._emulator.kill(name))

    def environments(self) -> list[EnvironmentInfo]:
        async def read() -> list[EnvironmentInfo]:
            return self._emulator.environments()

        return self._run(read())

    def logs(self) -> list[str]:
        """As Emulator.logs, and also after the emulator has stopped."""
        return self._emulator.logs()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


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
    ready: concurrent.futures.Future[RunningEmulator] = concurrent.futures.Future()
    leave: concurrent.futures.Future[None] = concurrent.futures.Future()

    async def run() -> None:
        async with emulator:
            ready.set_result(RunningEmulator(emulator, asyncio.get_running_loop()))
            await asyncio.wrap_future(leave)

    def main() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=main, name="emulator")
    thread.start()
    try:
        yield ready.result()
    finally:
        leave.set_result(None)
        thread.join()
