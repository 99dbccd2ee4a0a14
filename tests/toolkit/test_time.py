"""The time budget: an effect is not begun without time for it, and a function is ended before its invocation is."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from app.effects.once import LEASE
from app.testing import Reply, Server, accept
from app.toolkit import Context, prompt, resource, tool
from app.toolkit.guard import LEAST_TIME, MAX_WAITS
from app.toolkit.running import _RESERVE
from tests.protocol.endpoint import JudgedServer
from tests.toolkit.shop import BUY, YES, Confirm, Shop, asked, is_waiting, params

SHORT = _RESERVE + 0.1
"""An invocation of which a function has a tenth of a second."""


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture(autouse=True)
def no_alarm_is_left() -> Iterator[None]:
    """Neither a timer nor a handler outlives a request."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) == before


def late(server: Server, seconds: float) -> None:
    """From here on the invocations of this server have so many seconds."""
    server.timeout = seconds


def test_near_the_deadline_an_effect_is_not_begun_and_the_client_comes_again(shop: Shop) -> None:
    """Issue: a state-only input_required where the effect is not begun, instead of being killed."""
    server = JudgedServer([shop.tool()], timeout=25)
    alice = server.client()
    question = asked(alice)
    late(server, LEAST_TIME - 0.1)
    with server.store_outage():
        waiting = alice.retry(question, BUY, YES)
    assert is_waiting(waiting), "nobody was asked: there is no time for it"
    assert waiting.http.facts["once"] == "short_of_time"
    late(server, 25)
    assert alice.retry(waiting, BUY, {}).text == "tea is bought: receipt 1."
    assert alice.retry(question, BUY, YES).text == "tea is bought: receipt 1."
    assert shop.done == ["tea"]


def test_who_never_gets_enough_time_is_told_so(shop: Shop) -> None:
    """After three rounds: not "still running", for nothing is. The flow goes on once there is time."""
    server = JudgedServer([shop.tool()], timeout=LEAST_TIME - 0.1)
    alice = server.client()
    reply = asked(alice)
    reply = alice.retry(reply, BUY, YES)
    for _ in range(MAX_WAITS - 1):
        reply = alice.retry(reply, BUY, {})
        assert is_waiting(reply)
    last = alice.retry(reply, BUY, {})
    assert last.is_error
    assert last.text == "It was not begun: too little time was left for it. Try again later."
    late(server, 25)
    assert alice.retry(reply, BUY, {}).text == "tea is bought: receipt 1."


def test_what_the_explicit_style_carries_outlives_a_round_that_only_waited(shop: Shop) -> None:
    """`InputRequired(state=...)`."""
    server = JudgedServer([shop.explicit()], timeout=25)
    alice, what = server.client(), params("order", item="tea")
    question = alice.begin("order", {"item": "tea"})
    late(server, LEAST_TIME - 0.1)
    waiting = alice.retry(question, what, YES)
    assert is_waiting(waiting)
    late(server, 25)
    assert alice.retry(waiting, what, {}).text == "receipt 1"
    assert shop.done == ["tea"]


def slow(shop: Shop, clock: list[Server], **parameters: Any) -> Any:
    """A tool that uses up most of its invocation before its effect."""

    @tool(name="slow", **parameters)
    def compute(ctx: Context) -> str:
        """Compute for long, and order."""
        ctx.ask("confirm", "Sure?", Confirm)
        if clock[0].timeout == 25:
            clock[0].clock.advance(23)
        return ctx.once("order", lambda: shop.sell("it"))

    return compute


@pytest.mark.parametrize("once", [True, False])
def test_a_step_is_not_begun_either_and_its_tool_completes_nothing(shop: Shop, once: bool) -> None:
    """The same in the middle of a function, under once=True too."""
    servers: list[Server] = []
    servers.append(JudgedServer([slow(shop, servers, once=once)], timeout=25))
    alice = servers[0].client()
    waiting = alice.retry(alice.begin("slow"), params("slow"), YES)
    assert is_waiting(waiting)
    for _ in range(MAX_WAITS - 1):
        waiting = alice.retry(waiting, params("slow"), {})
    assert alice.retry(waiting, params("slow"), {}).text.startswith("It was not begun")
    late(servers[0], 40)
    assert alice.retry(waiting, params("slow"), {}).text == "receipt 1"
    assert shop.done == ["it"]


def test_a_function_says_how_much_time_it_needs(shop: Shop) -> None:
    """`ctx.time_left` and `ctx.need_time`: a whole invocation, or another round."""
    seen: list[float | None] = []

    @tool
    def order(ctx: Context) -> str:
        """Order what takes twenty seconds."""
        seen.append(ctx.time_left)
        ctx.need_time(20)
        return shop.sell("it")

    server = JudgedServer([order], timeout=19)
    alice = server.client()
    waiting = alice.begin("order")
    assert is_waiting(waiting)
    late(server, 25)
    assert alice.retry(waiting, params("order"), {}).text == "receipt 1"
    assert seen == [19, 25]
    server.timeout = None
    assert alice.begin("order").text == "receipt 2"
    assert seen[2] is None


def test_a_view_that_may_not_go_another_round_is_told_in_words(shop: Shop) -> None:
    """single_round: it asked nothing, and there is no second round."""

    @tool(single_round=True)
    def order(ctx: Context) -> str:
        """Order what takes twenty seconds."""
        ctx.need_time(20)
        return shop.sell("it")

    reply = JudgedServer([order], timeout=19).client().begin("order")
    assert reply.is_error
    assert "Repeat this call" in reply.text


def test_waiting_counts_as_a_round_and_its_end_says_what_to_do() -> None:
    """The round cap bounds every flow. Who waits for an effect is not told to call the tool again."""

    @tool
    def order(ctx: Context) -> None:
        """Ask seven times, and wait."""
        for number in range(7):
            ctx.ask(f"q{number}", f"{number}?", Confirm)
        ctx.need_time(20)

    server = Server([order], timeout=19)
    alice = server.client(on_elicitation=lambda key, request: accept(confirm=True))
    last = alice.call("order")
    assert last.text == "This took more than 8 rounds, which is the limit. Check its outcome later."


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def test_a_function_that_runs_too_long_is_ended_before_it_is_killed() -> None:
    """Issue: answers with a clear error. CASES 18: aws/chalice#1580."""

    @tool
    def nap(ctx: Context) -> str:
        """Sleep."""
        try:
            sleep(30)
        except Exception:
            return "swallowed"
        return "slept"

    started = time.time()
    reply = JudgedServer([nap], timeout=SHORT).client().begin("nap")
    assert time.time() - started < 5
    assert reply.is_error
    assert reply.text == "nap ran out of time and was ended in the middle. Try again with less to do."
    assert reply.http.facts["outcome"] == "out_of_time"


def test_an_async_function_is_ended_too_and_does_not_go_on() -> None:
    """Thawed with the next invocation it would."""
    ended = threading.Event()
    went_on: list[str] = []

    @tool
    async def nap(ctx: Context) -> str:
        """Sleep."""
        try:
            await asyncio.sleep(30)
            went_on.append("slept")
        finally:
            ended.set()
        return "slept"

    reply = JudgedServer([nap], timeout=SHORT).client().begin("nap")
    assert "ran out of time" in reply.text
    assert ended.wait(5)
    assert went_on == []


@pytest.mark.parametrize("kind", ["prompt", "resource"])
def test_prompts_and_resources_are_ended_with_an_error(kind: str) -> None:
    """They have no result that could say so."""

    @prompt
    def letter() -> str:
        """Write."""
        sleep(30)
        return ""

    @resource("shop://letters")
    def letters() -> str:
        """Read."""
        sleep(30)
        return ""

    alice = Server([letter, letters], timeout=SHORT).client()
    reply = alice.get_prompt("letter") if kind == "prompt" else alice.read("shop://letters")
    assert reply.error["code"] == -32603
    assert "ran out of time" in reply.error["message"]


def test_an_effect_that_is_ended_in_the_middle_is_in_doubt_for_good(shop: Shop) -> None:
    """once=True: the first answer says so, and every repetition says the same."""
    server = JudgedServer([shop.tool()], timeout=25)
    alice = server.client()
    question = asked(alice)
    late(server, LEAST_TIME)
    shop.in_the_middle = lambda: sleep(30)
    ended = alice.retry(question, BUY, YES)
    assert "ran out of time" in ended.text
    assert "may have happened" in ended.text
    assert alice.repeat().is_error
    late(server, 25)
    assert alice.retry(question, BUY, YES).result == ended.result
    assert shop.done == ["tea"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_step_that_is_ended_in_the_middle_is_not_tried_again(shop: Shop, kind: str) -> None:
    """Whether it happened, nobody knows."""

    @tool(name="order")
    def order(ctx: Context) -> str:
        """Order."""
        ctx.ask("confirm", "Sure?", Confirm)
        return ctx.once("order", lambda: shop.sell("it"))

    async def sell() -> str:
        receipt = shop.sell("it")
        await asyncio.sleep(30)
        return receipt

    @tool(name="order")
    async def order_async(ctx: Context) -> str:
        """Order."""
        ctx.ask("confirm", "Sure?", Confirm)
        return await ctx.once_async("order", sell)

    server = JudgedServer([order if kind == "def" else order_async], timeout=25)
    alice = server.client()
    question = alice.begin("order")
    late(server, LEAST_TIME)
    if kind == "def":
        shop.in_the_middle = lambda: sleep(30)
    assert "ran out of time" in alice.retry(question, params("order"), YES).text
    late(server, 25)
    server.clock.advance(LEASE)
    assert "unknown" in alice.retry(question, params("order"), YES).text
    assert shop.done == ["it"]


def test_what_comes_after_the_function_is_not_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is told of the result although the alarm would ring by then."""
    server = JudgedServer([shop.tool()], timeout=25)
    alice = server.client()
    question = asked(alice)
    once = server._effects.once
    finish = type(once).finish

    def slow_finish(self: Any, *arguments: Any, **named: Any) -> Any:
        if self is once:
            time.sleep(2)
        return finish(self, *arguments, **named)

    monkeypatch.setattr(type(once), "finish", slow_finish)
    late(server, LEAST_TIME)
    first = alice.retry(question, BUY, YES)
    assert first.text == "tea is bought: receipt 1."
    assert alice.retry(question, BUY, YES).result == first.result


def test_in_another_thread_a_function_runs_as_it_is() -> None:
    """Signals are the main thread's: under FastAPI, whose server has its own timeout, nobody is ended."""

    @tool
    def nap(ctx: Context) -> str:
        """Sleep."""
        sleep(0.3)
        return "slept"

    server = JudgedServer([nap], timeout=SHORT)
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(server.client().begin("nap")))
    thread.start()
    thread.join()
    assert replies[0].text == "slept"
