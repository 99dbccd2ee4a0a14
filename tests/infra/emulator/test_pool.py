"""The pool's hand-over of environments, in orders of events that real processes rarely produce."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from infra.local.emulator import InitError
from infra.local.emulator.environment import ExecutionEnvironment, State
from infra.local.emulator.invocation import Invocation, Outcome, Succeeded
from infra.local.emulator.pool import FunctionPool
from infra.local.emulator.process import available_runtime_client, runtime_command
from infra.local.emulator.template import load

INVOCATION = Invocation(request_id="r", trace_id="t", payload=b"{}")


class ScriptedEnvironment:
    """An environment without a process: it becomes idle, answers and dies when the test says so."""

    def __init__(self, name: str, *, on_idle: Callable[[Any], None], on_exit: Callable[[Any], None]) -> None:
        self.name = name
        self.state: State = "starting"
        self.answered = False
        self.initialized = True
        self._on_idle = on_idle
        self._on_exit = on_exit

    async def start(self) -> None:
        pass

    def rest(self) -> None:
        self.state = "idle"
        self._on_idle(self)

    def die(self) -> None:
        self.state = "stopped"
        self._on_exit(self)

    async def stop(self) -> None:
        self.die()

    def invoke(self, invocation: Invocation) -> asyncio.Future[Outcome]:
        assert self.state == "idle"
        self.state = "busy"
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        outcome.set_result(Succeeded(self.name.encode()))
        return outcome


def scripted(script: Callable[[FunctionPool, list[ScriptedEnvironment]], Awaitable[None]], *, maximum: int) -> None:
    """Run the script on a pool of scripted environments, whose list grows as the pool launches them."""

    async def run() -> None:
        launched: list[ScriptedEnvironment] = []

        def launch(name: str, **events: Any) -> ExecutionEnvironment:
            launched.append(ScriptedEnvironment(name, **events))
            return cast(ExecutionEnvironment, launched[-1])

        pool = FunctionPool("f", minimum=1, maximum=maximum, launch=launch, log=lambda line: None)
        await pool.start()
        await script(pool, launched)
        await pool.stop()

    asyncio.run(asyncio.wait_for(run(), timeout=5))


def test_an_environment_that_dies_as_it_is_handed_over_is_passed_by() -> None:
    """The invocation has not reached the runtime, so it is not lost with it."""

    async def script(pool: FunctionPool, launched: list[ScriptedEnvironment]) -> None:
        invoking = asyncio.create_task(pool.invoke(INVOCATION))
        await asyncio.sleep(0)
        launched[0].rest()
        launched[0].die()
        await asyncio.sleep(0)
        launched[1].rest()
        assert await invoking == ("f-2", Succeeded(b"f-2"))

    scripted(script, maximum=1)


def test_an_environment_handed_to_an_invocation_that_gave_up_goes_to_the_next() -> None:
    """The integration timeout may pass at the moment at which an environment becomes idle."""

    async def script(pool: FunctionPool, launched: list[ScriptedEnvironment]) -> None:
        first = asyncio.create_task(pool.invoke(INVOCATION))
        second = asyncio.create_task(pool.invoke(INVOCATION))
        await asyncio.sleep(0)
        launched[0].rest()
        first.cancel()
        assert await second == ("f-1", Succeeded(b"f-1"))

    scripted(script, maximum=1)


def test_no_environment_is_started_for_an_invocation_that_gave_up() -> None:
    """Its place in the queue is gone."""

    async def script(pool: FunctionPool, launched: list[ScriptedEnvironment]) -> None:
        first = asyncio.create_task(pool.invoke(INVOCATION))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        second = asyncio.create_task(pool.invoke(INVOCATION))
        await asyncio.sleep(0)
        launched[0].rest()
        assert await second == ("f-1", Succeeded(b"f-1"))
        assert len(launched) == 1

    scripted(script, maximum=2)


def test_an_environment_that_is_stopped_before_it_has_a_process_ends_at_once(project: Callable[..., Path]) -> None:
    """Leaving while the pool is scaling out must not wait for INIT."""
    (function,) = load(project("import time; time.sleep(600)"), parameters={}).functions

    async def run() -> None:
        environment = ExecutionEnvironment(
            "main-1",
            function,
            command=runtime_command(available_runtime_client()),
            snapstart=False,
            on_idle=lambda environment: None,
            on_exit=lambda environment: None,
            log=lambda line: None,
        )
        starting = asyncio.create_task(environment.start())
        await asyncio.sleep(0)
        await asyncio.wait_for(environment.stop(), timeout=5)
        with pytest.raises(InitError, match="SIGKILL"):
            await starting

    asyncio.run(run())
