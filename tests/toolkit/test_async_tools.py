"""Async tools: one loop for the life of the process, on a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel

from app.protocol.features import Tool
from app.testing import Reply, Server, accept, decline
from app.toolkit import Accepted, Context, InputRequired, Missing, Question, tool
from app.toolkit.async_tools import run_async


class Confirm(BaseModel):
    confirm: bool


YES = {"confirm": accept(confirm=True)}


class Pool:
    """Like the connection pools of httpx and redis: usable on the loop that it met first, and on no other."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock: asyncio.Lock | None = None

    async def get(self) -> str:
        if self._lock is None:
            self._loop, self._lock = asyncio.get_running_loop(), asyncio.Lock()
        if self._loop is not asyncio.get_running_loop() or self._loop.is_closed():
            raise RuntimeError("Event loop is closed")
        async with self._lock:
            await asyncio.sleep(0)
        return "got"


def pooled() -> Tool:
    pool = Pool()

    @tool
    async def fetch(ctx: Context) -> str:
        """Fetch something, and ask."""
        got = await pool.get()
        match ctx.ask("confirm", "Sure?", Confirm):
            case Accepted(Confirm(confirm=True)):
                return got + await pool.get()
            case _:
                return ctx.stop("No.")

    return fetch


def test_a_client_that_a_tool_keeps_works_in_every_round_and_every_call() -> None:
    """CASES 5, 7: "Event loop is closed" from a client that is kept between calls."""
    alice = Server([pooled()], instances=1).client(answers=YES)
    assert [alice.call("fetch").text for _ in range(3)] == ["gotgot"] * 3


def test_an_async_tool_answers_a_caller_that_is_inside_a_loop() -> None:
    """CASES 6: under ASGI, or in somebody's asyncio.run."""
    alice = Server([pooled()]).client(answers=YES)

    async def inside() -> str:
        return alice.call("fetch").text

    assert asyncio.run(inside()) == "gotgot"
    assert asyncio.run(inside()) == "gotgot"
    assert alice.call("fetch").text == "gotgot"


def test_calls_from_many_threads_run_at_once_on_the_one_loop() -> None:
    """The web function calls from a thread pool: twenty tools wait for each other, and all are answered."""
    together = 20
    arrived: list[int] = []
    everybody = asyncio.Event()

    @tool
    async def meet(number: int) -> int:
        """Wait for all the others."""
        arrived.append(threading.get_ident())
        if len(arrived) == together:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), timeout=10)
        return number

    server = Server([meet])

    def call(number: int) -> Any:
        return server.client().call("meet", {"number": number}).result["structuredContent"]

    with ThreadPoolExecutor(together) as threads:
        assert list(threads.map(call, range(together))) == list(range(together))
    assert len(set(arrived)) == 1


def reply(function: Callable[..., Any], answers: Any = None) -> Reply:
    return Server([tool(function)]).client(answers=answers or YES).call(function.__name__)


def test_an_async_tool_asks_in_the_explicit_style() -> None:
    async def explicit(ctx: Context) -> str | InputRequired:
        """Ask."""
        await asyncio.sleep(0)
        if isinstance(ctx.responses.get("confirm", Confirm), Missing):
            return InputRequired({"confirm": Question("Sure?", Confirm)}, state=1)
        return f"{ctx.state}"

    assert reply(explicit).text == "1"


def test_an_async_tool_that_catches_every_exception_swallows_no_question() -> None:
    async def careful(ctx: Context) -> str:
        """Ask inside a try."""
        try:
            await asyncio.sleep(0)
            ctx.ask("confirm", "Sure?", Confirm)
        except Exception:
            return "swallowed"
        return "answered"

    assert reply(careful).text == "answered"


def test_tasks_of_a_group_may_ask() -> None:
    """A TaskGroup wraps what ends it: the question comes out all the same, and both are asked at once."""

    async def grouped(ctx: Context) -> str:
        """Ask twice at once."""

        async def one(key: str) -> str:
            return type(ctx.ask(key, f"{key}?", Confirm)).__name__

        async with asyncio.TaskGroup() as group:
            left, right = group.create_task(one("left")), group.create_task(one("right"))
        return f"{left.result()} {right.result()}"

    answers = {"left": accept(confirm=True), "right": decline()}
    assert reply(grouped, answers).text == "Accepted Declined"


def test_a_question_in_a_group_does_not_hide_a_task_that_failed() -> None:
    async def grouped(ctx: Context) -> str:
        """Ask and fail at once."""

        async def fail() -> None:
            raise ValueError("hunter2")

        async def ask() -> None:
            ctx.ask("confirm", "Sure?", Confirm)

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(ask())
        return "done"

    failed = Server([tool(grouped)]).client().begin("grouped")
    assert failed.asked == {}
    assert failed.text.startswith("grouped failed.")


@pytest.mark.parametrize("error", [ValueError("hunter2"), asyncio.CancelledError(), SystemExit(1)], ids=repr)
def test_an_async_tool_that_raises_is_a_tool_error_and_the_next_call_is_answered(error: BaseException) -> None:
    """asyncio lets a SystemExit stop the loop: nobody may wait for ever because of it."""

    async def broken() -> str:
        """Break."""
        await asyncio.sleep(0)
        raise error

    async def fine() -> str:
        """Work."""
        await asyncio.sleep(0)
        return "fine"

    failed = reply(broken)
    assert failed.is_error
    assert "hunter2" not in failed.text
    assert reply(fine).text == "fine"


def test_a_background_task_that_exits_stops_nobody() -> None:
    async def starts() -> str:
        """Start something that exits, and go on."""

        async def leave() -> None:
            raise SystemExit(1)

        task = asyncio.ensure_future(leave())
        with pytest.raises(SystemExit):
            await task
        return "went on"

    assert reply(starts).text == "went on"


def test_the_loop_runs_on_a_thread_that_does_not_keep_the_process_alive() -> None:
    async def where() -> tuple[str, bool]:
        return threading.current_thread().name, threading.current_thread().daemon

    assert run_async(where()) == ("tools", True)
