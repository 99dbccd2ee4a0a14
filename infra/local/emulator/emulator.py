"""The emulator as one object: AWS Lambda and an HTTP API for one template, on 127.0.0.1."""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

from infra.local.emulator.environment import EnvironmentInfo, ExecutionEnvironment
from infra.local.emulator.errors import EmulatorError, PortInUse
from infra.local.emulator.exchange import Page
from infra.local.emulator.function import Function
from infra.local.emulator.gateway import Gateway
from infra.local.emulator.pool import FunctionPool
from infra.local.emulator.process import RuntimeClient, available_runtime_client, runtime_command
from infra.local.emulator.routes import RouteTable
from infra.local.emulator.template import load
from infra.local.loopback_server import listen, serve_on

# Given as a function of the gateway's URL, values may contain a URL whose port is chosen only at start.
Values = Mapping[str, str] | Callable[[str], Mapping[str, str]]

_LOG_LINES = 10_000
# Larger than the gateway's own limit, which answers 431 where the server would only say 400.
_MAX_HEAD = 2**18


class Emulator:
    """An async context manager: entering starts everything and waits for INIT, leaving stops everything."""

    def __init__(
        self,
        template: Path,
        *,
        parameters: Values,
        environment: Values | None = None,
        attributes: Mapping[str, str] | None = None,
        built: Path | None = None,
        interpreter: Path | None = None,
        environments: int = 2,
        max_environments: int = 8,
        port: int = 0,
        snapstart: bool = False,
        log: Callable[[str], None] | None = None,
        runtime_client: RuntimeClient | None = None,
        page: Page | None = None,
    ) -> None:
        """`attributes` and `built` as in `template.load`; `interpreter` is a Python that has the runtime client; `page`
        is what people see at the root.
        """
        if environments < 1:
            raise EmulatorError(
                "The emulator needs at least one environment per function. Pass environments=1 or more."
            )
        self._path = template
        self._parameters = parameters
        self._environment = environment or {}
        self._attributes = attributes
        self._built = built
        self._minimum = environments
        self._maximum = max_environments
        self._requested_port = port
        self._snapstart = snapstart
        self._log = log
        self._page = page
        self._command = runtime_command(runtime_client or available_runtime_client(), interpreter)
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._pools: dict[str, FunctionPool] = {}
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Emulator":
        async with contextlib.AsyncExitStack() as stack:
            listener = stack.enter_context(_listen(self._requested_port))
            self.port: int = listener.getsockname()[1]
            self.url = f"http://127.0.0.1:{self.port}"
            template = load(
                self._path,
                parameters=_given(self._parameters, self.url),
                environment=_given(self._environment, self.url),
                attributes=self._attributes,
                built=self._built,
            )
            self._pools = {function.name: self._pool(function) for function in template.functions}
            stack.push_async_callback(self._stop_functions)
            await _all(pool.start() for pool in self._pools.values())
            gateway = Gateway(
                routes=RouteTable(template.routes),
                stage=template.stage,
                pools=self._pools,
                control=self,
                port=self.port,
                page=self._page,
            )
            await stack.enter_async_context(serve_on(listener, gateway, name="gateway", max_head=_MAX_HEAD))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._page is not None:
            self._page.close()
        # Functions first: requests in flight get their 500 at once, and the server has nothing left to wait for.
        await self._stop_functions()
        await self._stack.aclose()

    async def restart(self, function: str | None = None) -> None:
        """Replace every environment of the function, or of all functions; returns when the new ones are ready."""
        if function is not None and function not in self._pools:
            raise EmulatorError(f"There is no function {function}. Use one of: {', '.join(self._pools)}.")
        await _all(pool.restart() for name, pool in self._pools.items() if function in (None, name))

    async def kill(self, name: str) -> None:
        """End one environment as a crash would; returns when its process is gone."""
        if not any([await pool.kill(name) for pool in self._pools.values()]):
            known = ", ".join(info.name for info in self.environments())
            raise EmulatorError(f"There is no environment {name}. Use one of: {known}.")

    def environments(self) -> list[EnvironmentInfo]:
        return [info for pool in self._pools.values() for info in pool.environments()]

    def logs(self) -> list[str]:
        """The last lines that environments wrote, each with the environment's name in front."""
        return list(self._lines)

    def _pool(self, function: Function) -> FunctionPool:
        def launch(
            name: str,
            *,
            on_idle: Callable[[ExecutionEnvironment], None],
            on_exit: Callable[[ExecutionEnvironment], None],
        ) -> ExecutionEnvironment:
            return ExecutionEnvironment(
                name,
                function,
                command=self._command,
                snapstart=self._snapstart,
                on_idle=on_idle,
                on_exit=on_exit,
                log=self._record,
            )

        return FunctionPool(
            function.name, minimum=self._minimum, maximum=self._maximum, launch=launch, log=self._record
        )

    def _record(self, line: str) -> None:
        self._lines.append(line)
        if self._log is not None:
            self._log(line)

    async def _stop_functions(self) -> None:
        await asyncio.gather(*(pool.stop() for pool in self._pools.values()))


def _given(values: Values, url: str) -> Mapping[str, str]:
    return values(url) if callable(values) else values


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all of it, then raise the first failure: nothing is left half done behind an exception."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _listen(port: int) -> socket.socket:
    try:
        return listen(port)
    except OSError as error:
        raise PortInUse(
            f"Port {port} on 127.0.0.1 is not free ({error.strerror}). Choose another with --port."
        ) from error
