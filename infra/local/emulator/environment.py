"""One execution environment: an operating system process, its Runtime API, its /tmp, and what it says.

Needs process groups, so Linux, macOS, or Windows through WSL.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from infra.local.emulator.errors import InitError
from infra.local.emulator.function import Function
from infra.local.emulator.invocation import Failed, Invocation, Outcome, TimedOut
from infra.local.emulator.process import process_variables
from infra.local.emulator.runtime_api import RuntimeApi

State = Literal["starting", "idle", "busy", "stopped"]

# Lambda allows 10 s; a laptop that starts a dozen environments at once is slower than that.
INIT_TIMEOUT_SECONDS = 60.0

_LINES_IN_AN_ERROR = 30


@dataclass(frozen=True, kw_only=True)
class EnvironmentInfo:
    name: str
    function: str
    pid: int | None
    invocations: int
    state: State


class ExecutionEnvironment:
    """Serves one invocation at a time, until it is stopped, times out or dies."""

    def __init__(
        self,
        name: str,
        function: Function,
        *,
        command: Sequence[str],
        snapstart: bool,
        on_idle: Callable[["ExecutionEnvironment"], None],
        on_exit: Callable[["ExecutionEnvironment"], None],
        log: Callable[[str], None],
    ) -> None:
        self.name = name
        self.state: State = "starting"
        self.invocations = 0
        self.timeout = function.timeout
        self.function_arn = function.arn
        self._function = function
        self._command = command
        self._snapstart = snapstart and function.snapstart
        self._on_idle = on_idle
        self._on_exit = on_exit
        self._log = log
        self._last_lines: deque[str] = deque(maxlen=_LINES_IN_AN_ERROR)
        self._api = RuntimeApi(self)
        self._inbox: asyncio.Queue[Invocation] = asyncio.Queue()
        self._current: Invocation | None = None
        self._outcome: asyncio.Future[Outcome] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._init_failure: Failed | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._scratch = ""
        self._stopping = False
        self._initialized: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()

    @property
    def info(self) -> EnvironmentInfo:
        return EnvironmentInfo(
            name=self.name,
            function=self._function.name,
            pid=self._process.pid if self._process else None,
            invocations=self.invocations,
            state=self.state,
        )

    @property
    def initialized(self) -> bool:
        return self._initialized.done() and not self._initialized.exception()

    @property
    def answered(self) -> bool:
        """Whether its invocation has ended and the runtime has not yet asked for another one."""
        return self.state == "busy" and self._outcome is not None and self._outcome.done()

    async def start(self) -> None:
        """INIT: returns when the runtime asks for its first invocation, and raises InitError if it never does.

        Cancelling stops the waiting and not the process: whoever created the environment still has to stop it.
        """
        try:
            process, output = await self._launch()
        except BaseException as error:
            await self._end()
            if isinstance(error, OSError):
                raise InitError(f"{self.name} cannot start {self._command[0]}: {error}. Check CodeUri.") from error
            raise
        # Held by `_ended`, which every way out waits for.
        self._watcher = asyncio.create_task(self._watch(process, output))
        if self._stopping:
            self._kill()
        try:
            async with asyncio.timeout(INIT_TIMEOUT_SECONDS):
                await asyncio.shield(self._initialized)
        except TimeoutError:
            await self.stop()
            raise InitError(
                f"{self.name} did not finish INIT within {INIT_TIMEOUT_SECONDS:.0f} s. "
                f"Look for work that {self._function.handler} does at import time."
            ) from None

    def invoke(self, invocation: Invocation) -> "asyncio.Future[Outcome]":
        """Hand one invocation to this idle environment. The future is settled however the process fares."""
        self.state = "busy"
        self.invocations += 1
        self._current = invocation
        self._outcome = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(invocation)
        return self._outcome

    async def stop(self) -> None:
        """Kill the process, whatever it is doing, and wait until nothing of it is left."""
        self._stopping = True
        self._kill()
        await self._ended.wait()

    # What the runtime process says through its Runtime API.

    async def next_invocation(self) -> Invocation:
        if self._timer is not None:
            self._timer.cancel()
        self._current = None
        self.state = "idle"
        if not self._initialized.done():
            self._initialized.set_result(None)
        self._on_idle(self)
        invocation = await self._inbox.get()
        # Lambda's Timeout covers the invocation until the runtime asks for the next one, and not INIT.
        self._timer = asyncio.get_running_loop().call_later(self.timeout, self._time_out, invocation)
        return invocation

    def finish(self, request_id: str, outcome: Outcome) -> bool:
        if self._current is None or self._current.request_id != request_id:
            return False
        return self._settle(outcome)

    def fail_init(self, failure: Failed) -> None:
        self._init_failure = failure

    # What the operating system says.

    async def _launch(self) -> tuple[asyncio.subprocess.Process, int]:
        address = await self._api.open()
        self._scratch = tempfile.mkdtemp(prefix=f"{self.name}-")
        output, process_output = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                self._function.handler,
                env=process_variables(
                    self._function, address=address, scratch=self._scratch, snapstart=self._snapstart
                ),
                cwd=self._function.code,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=process_output,
                stderr=process_output,
                # A group of its own: Ctrl-C is for the emulator, and killing reaches the handler's children.
                start_new_session=True,
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(process_output)
        return self._process, output

    async def _watch(self, process: asyncio.subprocess.Process, output: int) -> None:
        log = asyncio.create_task(self._copy_output(output))
        status = await process.wait()
        self.state = "stopped"
        if self._timer is not None:
            self._timer.cancel()
        # A grandchild may hold the pipe open for ever.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(log, timeout=1.0)
        ended = f"exit status {status}" if status >= 0 else f"signal: {signal.Signals(-status).name}"
        if self._current is not None:
            error = f"RequestId: {self._current.request_id} Error: Runtime exited with error: {ended}"
            if self._settle(Failed("Runtime.ExitError", error)):
                self._say(error)
        if not self._initialized.done():
            self._initialized.set_exception(InitError(self._init_error(ended)))
            # Whoever started this environment may have stopped listening.
            self._initialized.exception()
        await self._end()

    async def _end(self) -> None:
        self.state = "stopped"
        await self._api.close()
        if self._scratch:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
        self._ended.set()
        self._on_exit(self)

    async def _copy_output(self, descriptor: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        rest = b""
        try:
            while chunk := await reader.read(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._say(line.decode("utf-8", errors="replace"))
            if rest:
                self._say(rest.decode("utf-8", errors="replace"))
        finally:
            transport.close()

    def _time_out(self, invocation: Invocation) -> None:
        self._say(f"{invocation.request_id} Task timed out after {self.timeout:.2f} seconds")
        self._settle(TimedOut())
        self._kill()

    def _settle(self, outcome: Outcome) -> bool:
        if self._outcome is None or self._outcome.done():
            return False
        self._outcome.set_result(outcome)
        return True

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            # macOS says "not permitted" where Linux says "no such process".
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _say(self, text: str) -> None:
        # The runtime separates the lines of one log event with carriage returns.
        for line in text.replace("\r", "\n").splitlines():
            self._last_lines.append(line)
            self._log(f"{self.name} | {line}")

    def _init_error(self, ended: str) -> str:
        handler = self._function.handler
        if failure := self._init_failure:
            reason = f"{failure.error_type}: {failure.error_message}"
            # The import machinery between the runtime and the handler says nothing about the handler.
            frames = [frame for frame in failure.stack_trace if "importlib" not in frame.partition("\n")[0]]
            evidence = [line for frame in frames for line in frame.rstrip().splitlines()]
        else:
            reason = f"the process ended with {ended}"
            evidence = list(self._last_lines)
        lines = [f"{self.name} failed in INIT of {handler}: {reason}", *(f"  {line}" for line in evidence)]
        return "\n".join([*lines, f"Fix it and start again.{self._how_to_import()}"])

    def _how_to_import(self) -> str:
        module = self._function.handler.rpartition(".")[0].replace("/", ".")
        if not module:
            return ""
        # The interpreter by its path: the shell's `python` may be another one, without what is installed here.
        command = shlex.join([self._command[0], "-c", f"import {module}"])
        folder = shlex.quote(str(self._function.code))
        return f" To import it without Lambda, and without its variables: cd {folder} && {command}"
