"""The execution environments of one function: which one takes an invocation, when one is added, replaced or retired."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from infra.local.emulator.environment import EnvironmentInfo, ExecutionEnvironment
from infra.local.emulator.errors import EmulatorError, InitError
from infra.local.emulator.invocation import Invocation, Outcome


class Launch(Protocol):
    def __call__(
        self,
        name: str,
        *,
        on_idle: Callable[[ExecutionEnvironment], None],
        on_exit: Callable[[ExecutionEnvironment], None],
    ) -> ExecutionEnvironment:
        """An environment that has not been started."""


class FunctionPool:
    """At least `minimum` environments warm, up to `maximum` on demand; the one that rested longest goes first."""

    def __init__(self, name: str, *, minimum: int, maximum: int, launch: Launch, log: Callable[[str], None]) -> None:
        self._name = name
        self._minimum = minimum
        self._maximum = max(minimum, maximum)
        self._launch = launch
        self._log = log
        self._launched = 0
        self._environments: dict[str, ExecutionEnvironment] = {}
        self._retired: set[ExecutionEnvironment] = set()
        # In the order in which they became idle, so that consecutive requests meet different environments.
        self._idle: dict[ExecutionEnvironment, None] = {}
        self._waiters: deque[asyncio.Future[ExecutionEnvironment]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._restart = asyncio.Lock()
        self._closing = False

    def environments(self) -> list[EnvironmentInfo]:
        """Those that have a process or will have one."""
        return [environment.info for environment in self._environments.values() if environment.state != "stopped"]

    async def start(self) -> None:
        """Start the warm environments together; raises the first InitError after all have finished INIT."""
        await self._start([self._create() for _ in range(self._minimum)])

    async def invoke(self, invocation: Invocation) -> tuple[str, Outcome]:
        """Serve one invocation: the environment's name and how it ended.

        Cancelling gives up the wait, never the invocation: Lambda finishes what it has begun.
        """
        environment = await self._acquire()
        return environment.name, await asyncio.shield(environment.invoke(invocation))

    async def restart(self) -> None:
        """Replace every environment. The old ones serve until the new ones are ready, and stay if INIT fails."""
        async with self._restart:
            old = list(self._environments.values())
            await self._start([self._create() for _ in range(self._minimum)])
            await self._retire(old)

    async def kill(self, name: str) -> bool:
        """End one environment at once, as a crash would. False if there is none of that name."""
        environment = self._environments.get(name)
        if environment is None:
            return False
        self._idle.pop(environment, None)
        await environment.stop()
        return True

    async def stop(self) -> None:
        self._closing = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(_stopping())
        self._waiters.clear()
        while self._environments:
            await asyncio.gather(*(environment.stop() for environment in list(self._environments.values())))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _create(self) -> ExecutionEnvironment:
        self._launched += 1
        environment = self._launch(f"{self._name}-{self._launched}", on_idle=self._offer, on_exit=self._discard)
        self._environments[environment.name] = environment
        return environment

    async def _start(self, environments: list[ExecutionEnvironment]) -> None:
        results = await asyncio.gather(*(environment.start() for environment in environments), return_exceptions=True)
        if failures := [result for result in results if isinstance(result, BaseException)]:
            await self._retire(environments)
            raise failures[0]

    async def _retire(self, environments: list[ExecutionEnvironment]) -> None:
        """Stop each environment now, or when it has finished the invocation that it is serving."""
        self._retired.update(set(environments) & set(self._environments.values()))
        resting = [environment for environment in environments if environment.state != "busy"]
        for environment in resting:
            self._idle.pop(environment, None)
        await asyncio.gather(*(environment.stop() for environment in resting))

    async def _acquire(self) -> ExecutionEnvironment:
        while True:
            environment = await self._next_idle()
            # It may have died between the moment it was handed over and this one.
            if environment.state == "idle":
                return environment

    async def _next_idle(self) -> ExecutionEnvironment:
        if self._closing:
            raise _stopping()
        if self._idle:
            environment = next(iter(self._idle))
            del self._idle[environment]
            return environment
        waiter: asyncio.Future[ExecutionEnvironment] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._scale_out()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._offer(waiter.result())
            raise

    def _scale_out(self) -> None:
        """Start what the waiting invocations lack, and what keeps the pool warm, within the maximum."""
        serving = [environment for environment in self._environments.values() if environment not in self._retired]
        # One that has answered is idle again in a moment, or dead and then missed by `_discard`.
        coming = sum(environment.state == "starting" or environment.answered for environment in serving)
        missing = max(len(self._waiters) - coming, self._minimum - len(serving))
        for _ in range(min(missing, self._maximum - len(serving))):
            self._spawn(self._add(self._create()))

    async def _add(self, environment: ExecutionEnvironment) -> None:
        try:
            await environment.start()
        except InitError as error:
            self._log(str(error).splitlines()[0])
            # The invocation that asked for the environment gets its error; nobody else is held up by it.
            while self._waiters:
                waiter = self._waiters.popleft()
                if not waiter.done():
                    waiter.set_exception(error)
                    break

    def _offer(self, environment: ExecutionEnvironment) -> None:
        if environment in self._retired or self._closing:
            self._spawn(environment.stop())
            return
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(environment)
                return
        self._idle[environment] = None

    def _discard(self, environment: ExecutionEnvironment) -> None:
        self._environments.pop(environment.name, None)
        self._idle.pop(environment, None)
        retired = environment in self._retired
        self._retired.discard(environment)
        if self._closing or retired:
            return
        # One that never finished INIT would fail again, in a loop; the next invocation tries again.
        if environment.initialized or self._waiters:
            self._scale_out()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _stopping() -> EmulatorError:
    return EmulatorError("The emulator is stopping. Start it again.")
