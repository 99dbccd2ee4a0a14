"""`ctx.once(key, fn)`: an effect before or between questions runs once across rounds, and its result comes back."""

import asyncio
from datetime import date
from typing import Any

import pytest

from app.effects.once import LEASE
from app.protocol.features import Tool
from app.testing import Client, Reply, Server, accept
from app.toolkit import Accepted, Context, InputRequired, Missing, Question, prompt, resource, tool
from tests.protocol.endpoint import JudgedServer
from tests.protocol.test_legacy import legacy
from tests.toolkit.shop import DELIVER, INVALID_STATE, LISBON, NO, PORTO, YES, Confirm, Shop, asked, is_waiting, params


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def server(shop: Shop) -> Server:
    return Server([shop.delivery()])


@pytest.fixture
def alice(server: Server) -> Client:
    return server.client()


def test_an_effect_between_two_questions_runs_once_and_its_result_comes_back(shop: Shop) -> None:
    """CASES 78: code before the ask runs again each round; here it does not. Three rounds, three instances."""
    server = JudgedServer([shop.delivery()], instances=3)
    alice = server.client(answers={**LISBON, **YES})
    assert alice.call("deliver", {"item": "tea"}).text == "receipt 2"
    assert [each.instance for each in alice.rounds] == [0, 1, 2]
    assert "on receipt 1?" in alice.rounds[1].asked["confirm"]["params"]["message"]
    assert shop.done == ["reserve tea for Lisbon", "order tea"]


def test_repeating_any_round_at_any_time_repeats_no_effect(shop: Shop, alice: Client) -> None:
    """The state of each round opens for ten minutes, in any order."""
    first = asked(alice, DELIVER)
    second = alice.retry(first, DELIVER, LISBON)
    third = alice.retry(second, DELIVER, YES)
    for _ in range(2):
        assert alice.retry(first, DELIVER, LISBON).asked == second.asked
        assert alice.retry(second, DELIVER, YES).result == third.result
    assert shop.done == ["reserve tea for Lisbon", "order tea"]


def test_another_answer_to_what_an_effect_was_done_for_is_refused(shop: Shop, alice: Client) -> None:
    """It is reserved for Lisbon: nobody gets a second one for Porto out of the same flow."""
    first = asked(alice, DELIVER)
    second = alice.retry(first, DELIVER, LISBON)
    refused = alice.retry(first, DELIVER, PORTO)
    assert refused.error == INVALID_STATE
    assert refused.http.facts["reason"] == "requestState refused: once: conflict"
    assert alice.retry(second, DELIVER, YES).text == "receipt 2"
    # The last question's answer decides about what comes after it alone.
    assert alice.retry(second, DELIVER, NO).text == "Not delivered; receipt 1 stands."
    assert shop.done == ["reserve tea for Lisbon", "order tea"]


def test_an_effect_before_the_first_question_runs_once(shop: Shop) -> None:
    """Round 1 has no state yet, and its flow id all the same."""

    @tool
    def draft(ctx: Context) -> str:
        """Make a draft, and ask."""
        name: str = ctx.once("draft", lambda: shop.sell("draft"))
        match ctx.ask("confirm", f"Send {name}?", Confirm):
            case Accepted():
                return f"sent {name}"
            case _:
                return ctx.stop("no")

    alice = Server([draft]).client(answers=YES)
    assert alice.call("draft").text == "sent receipt 1"
    assert alice.repeat().text == "sent receipt 1"
    assert shop.done == ["draft"]


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"a": [1, 2.5, None]}, "é😀"])
def test_every_json_value_comes_back_as_it_was(value: Any) -> None:
    """Also those that are false: nothing is run again for them."""
    seen: list[Any] = []

    @tool
    def look(ctx: Context) -> None:
        """Ask after an effect."""
        seen.append(ctx.once("effect", lambda: value))
        ctx.ask("confirm", "Sure?", Confirm)

    Server([look]).client(answers=YES).call("look")
    assert seen == [value, value]
    assert type(seen[0]) is type(seen[1])


def failing(shop: Shop, result: Any) -> Tool:
    """A tool whose effect ends as `result` says, and that asks afterwards."""

    @tool
    def fail(ctx: Context) -> str:
        """Do something that does not end well, and ask."""

        def effect() -> Any:
            shop.sell("it")
            if isinstance(result, BaseException):
                raise result
            return result(ctx) if callable(result) else result

        ctx.ask("one", "One?", Confirm)
        try:
            ctx.once("effect", effect)
        except (OSError, TypeError):
            ctx.ask("confirm", "It failed. Go on?", Confirm)
        ctx.ask("confirm", "Go on?", Confirm)
        return "went on"

    return fail


ONE = {"one": accept(confirm=True)}


@pytest.mark.parametrize("result", [OSError("reset"), date(2026, 7, 28), {1: "a"}], ids=["raised", "date", "keys"])
def test_an_effect_that_failed_may_have_happened_and_is_not_tried_again(shop: Shop, result: Any) -> None:
    """The function may catch what it raised in this round; later rounds end with a doubt."""
    alice = JudgedServer([failing(shop, result)]).client()
    first = alice.begin("fail")
    second = alice.retry(first, params("fail"), ONE)
    assert list(second.asked) == ["confirm"]
    third = alice.retry(second, params("fail"), YES)
    assert third.is_error
    assert third.text.startswith("effect: ")
    assert shop.done == ["it"]


def test_a_result_that_is_too_large_is_had_in_its_own_round(shop: Shop) -> None:
    """16 KiB under a seal: later rounds are told why they end."""
    alice = Server([failing(shop, "x" * 20_000)]).client()
    second = alice.retry(alice.begin("fail"), params("fail"), ONE)
    assert list(second.asked) == ["confirm"]
    assert "could not be kept" in alice.retry(second, params("fail"), YES).text
    assert shop.done == ["it"]


@pytest.mark.parametrize("end", ["fail", "stop"])
def test_an_effect_that_ends_the_call_ends_every_repetition_in_the_same_words(shop: Shop, end: str) -> None:
    """`ctx.fail` in the function: no seat is left, and that is known."""
    alice = Server([failing(shop, lambda ctx: getattr(ctx, end)("Sold out."))]).client()
    first = alice.begin("fail")
    ended = alice.retry(first, params("fail"), ONE)
    assert (ended.text, ended.is_error) == ("Sold out.", True)
    assert alice.repeat().result == ended.result
    assert shop.done == ["it"]


def test_an_effect_may_not_ask(shop: Shop) -> None:
    """Half of it may have happened by then: the tool fails, and says how to write it."""
    alice = Server([failing(shop, lambda ctx: ctx.ask("inside", "Really?", Confirm))]).client()
    failed = alice.retry(alice.begin("fail"), params("fail"), ONE)
    assert failed.is_error
    assert failed.http.facts["reason"] == "RuntimeError"
    assert "unknown" in alice.repeat().text


def test_two_effects_with_one_key_and_a_coroutine_are_mistakes(shop: Shop) -> None:
    """What would be confused is refused before it runs."""

    async def order() -> str:
        return shop.sell("it")

    @tool
    def twice(ctx: Context) -> None:
        """Use a key twice."""
        ctx.once("effect", lambda: None)
        ctx.once("effect", lambda: shop.sell("it"))

    @tool
    def coroutine(ctx: Context) -> None:
        """Forget to await."""
        ctx.once("effect", order)  # type: ignore[unused-coroutine]

    @tool
    def hidden(ctx: Context) -> None:
        """Forget to await, behind a lambda."""
        ctx.once("effect", lambda: order())  # type: ignore[unused-coroutine]

    alice = Server([twice, coroutine, hidden]).client()
    for name, reason in (("twice", "ValueError"), ("coroutine", "TypeError"), ("hidden", "TypeError")):
        assert alice.call(name).http.facts["reason"] == reason
    assert shop.done == []


def test_effects_have_idempotency_keys_of_their_own(shop: Shop, alice: Client) -> None:
    """Services refuse one key for two requests; a repetition brings the same one."""
    second = alice.retry(asked(alice, DELIVER), DELIVER, LISBON)
    alice.retry(second, DELIVER, YES)
    assert len(set(shop.keys)) == 2


def test_effects_that_run_at_the_same_time_have_each_their_own_key(shop: Shop) -> None:
    """`asyncio.gather`: the key belongs to the task."""

    @tool
    async def both(ctx: Context) -> list[str]:
        """Order two things at once."""
        started = asyncio.Barrier(2)

        async def order() -> str:
            await started.wait()
            return ctx.idempotency_key

        outside = ctx.idempotency_key
        keys = await asyncio.gather(ctx.once_async("a", order), ctx.once_async("b", order))
        ctx.ask("confirm", "Sure?", Confirm)
        return [*keys, outside, ctx.idempotency_key]

    alice = Server([both]).client(answers=YES)
    a, b, before, after = alice.call("both").result["structuredContent"]
    assert len({a, b, before}) == 3
    assert before == after


def test_an_async_effect_runs_once(shop: Shop) -> None:
    """`ctx.once_async` in an `async def` tool."""

    @tool
    async def order(ctx: Context) -> str:
        """Order between two questions."""

        async def sell() -> str:
            await asyncio.sleep(0)
            return shop.sell("it")

        receipt = await ctx.once_async("sell", sell)
        ctx.ask("confirm", f"Sure about {receipt}?", Confirm)
        return receipt

    alice = Server([order]).client(answers=YES)
    assert alice.call("order").text == "receipt 1"
    assert alice.repeat().text == "receipt 1"
    assert shop.done == ["it"]


def test_a_task_group_that_meets_an_outage_or_a_refusal_says_so(shop: Shop) -> None:
    """What a group makes of it is no crash: 503, and the one error for a state that does not fit."""

    @tool
    async def order(ctx: Context) -> str:
        """Order in a task."""
        city = ctx.ask("confirm", "Sure?", Confirm)

        async def sell() -> str:
            return shop.sell("it")

        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(ctx.once_async("sell", sell))
        return f"{task.result()} {city is not None}"

    server = Server([order])
    alice = server.client()
    first = alice.begin("order")
    with server.store_outage():
        assert alice.retry(first, params("order"), YES).status == 503
    assert alice.retry(first, params("order"), YES).text == "receipt 1 True"
    assert alice.retry(first, params("order"), NO).error == INVALID_STATE
    assert shop.done == ["it"]


def test_a_group_in_which_one_asks_and_another_meets_an_outage_is_an_outage(shop: Shop) -> None:
    """The question would be asked in a round that has to be sent again anyway."""

    @tool
    async def order(ctx: Context) -> None:
        """Ask and order at once."""

        async def ask() -> None:
            ctx.ask("confirm", "Sure?", Confirm)

        async def sell() -> str:
            return shop.sell("it")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ask())
            tasks.create_task(ctx.once_async("sell", sell))

    server = Server([order])
    with server.store_outage():
        assert server.client().begin("order").status == 503
    assert shop.done == []


def test_while_an_effect_runs_the_others_come_again_and_a_killed_one_leaves_a_doubt(
    shop: Shop, server: Server, alice: Client
) -> None:
    """As for the completion of a tool: never a second run."""
    first = asked(alice, DELIVER)
    seen: list[Reply] = []

    def meanwhile() -> None:
        seen.append(server.client().retry(first, DELIVER, LISBON))
        server.kill()

    shop.in_the_middle = meanwhile
    assert alice.retry(first, DELIVER, LISBON).status == 500
    assert is_waiting(seen[0])
    assert is_waiting(alice.retry(seen[0], DELIVER, {}))
    server.clock.advance(LEASE)
    doubtful = alice.retry(first, DELIVER, LISBON)
    assert doubtful.text == "reserve: The outcome is unknown: it may have happened. Check before repeating it."
    assert doubtful.is_error
    assert shop.done == ["reserve tea for Lisbon"]


def test_without_the_store_no_effect_is_begun(shop: Shop, server: Server, alice: Client) -> None:
    """Fails closed, and goes on when the store is back."""
    first = asked(alice, DELIVER)
    with server.store_outage():
        assert alice.retry(first, DELIVER, LISBON).status == 503
    assert shop.done == []
    assert list(alice.retry(first, DELIVER, LISBON).asked) == ["confirm"]


def test_a_store_lost_in_the_middle_of_an_effect_keeps_its_result_for_this_round(
    shop: Shop, server: Server, alice: Client
) -> None:
    """The tool has it, and may ask on; whoever comes later is in doubt."""
    first = asked(alice, DELIVER)
    outage = server.store_outage()
    shop.in_the_middle = outage.__enter__
    second = alice.retry(first, DELIVER, LISBON)
    outage.__exit__(None, None, None)
    assert "on receipt 1?" in second.asked["confirm"]["params"]["message"]
    server.clock.advance(LEASE)
    assert "unknown" in alice.retry(second, DELIVER, YES).text
    assert shop.done == ["reserve tea for Lisbon"]


def test_the_explicit_style_is_bound_to_the_answers_that_it_has_read(shop: Shop) -> None:
    """An answer read by `ctx.responses` decides about an effect as one from `ctx.ask` does."""

    @tool
    def order(ctx: Context) -> str | InputRequired:
        """Order in the explicit style."""
        given = ctx.responses.get("confirm", Confirm)
        if isinstance(given, Missing):
            return InputRequired({"confirm": Question("Sure?", Confirm)})
        if isinstance(given, Accepted) and given.value.confirm:
            return ctx.once("yes", lambda: shop.sell("yes"))
        return ctx.once("no", lambda: shop.sell("no")) if isinstance(given, Accepted) else ctx.stop("no")

    @tool
    def same(ctx: Context) -> str | InputRequired:
        """Order whatever the answer is."""
        if ctx.responses.raw("confirm") is None:
            return InputRequired({"confirm": Question("Sure?", Confirm)})
        return ctx.once("order", lambda: shop.sell("it"))

    alice = Server([order, same]).client()
    first = alice.begin("same")
    assert alice.retry(first, params("same"), YES).text == "receipt 1"
    assert alice.retry(first, params("same"), {"confirm": accept(confirm=False)}).error == INVALID_STATE
    assert alice.retry(first, params("same"), YES).text == "receipt 1"
    assert shop.done == ["it"]


def test_steps_in_a_tool_that_is_guarded_as_a_whole(shop: Shop) -> None:
    """A tool with two effects after its question: killed after the first, it is not begun again."""

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Order two things."""
        ctx.ask("confirm", "Sure?", Confirm)
        first = ctx.once("first", lambda: shop.sell("first"))
        return f"{first}, {ctx.once('second', lambda: shop.sell('second'))}"

    server = Server([order])
    alice = server.client()
    first = alice.begin("order")
    with server.store_outage():
        assert alice.retry(first, params("order"), YES).status == 503
    assert alice.retry(first, params("order"), YES).text == "receipt 1, receipt 2"
    assert alice.repeat().text == "receipt 1, receipt 2"
    assert shop.done == ["first", "second"]


def test_a_round_that_could_not_reach_the_store_for_its_second_effect_goes_on_with_it(shop: Shop) -> None:
    """503 completes nothing: the effects that happened have their own marks, and come back with their results."""
    server: Server

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Order two things."""
        ctx.ask("confirm", "Sure?", Confirm)
        first = ctx.once("first", lambda: shop.sell("first"))
        if len(shop.done) == 1:
            with server.store_outage():
                ctx.once("second", lambda: shop.sell("second"))
        return f"{first}, {ctx.once('second', lambda: shop.sell('second'))}"

    server = Server([order])
    alice = server.client()
    first = alice.begin("order")
    assert alice.retry(first, params("order"), YES).status == 503
    shop.done.append("the outage is over")
    assert alice.repeat().text == "receipt 1, receipt 3"
    assert shop.done == ["first", "the outage is over", "second"]


def sending(shop: Shop) -> list[Any]:
    """A prompt and a resource that have an effect once, after a question."""

    def send(ctx: Context) -> str:
        ctx.ask("confirm", "Sure?", Confirm)
        receipt: str = ctx.once("send", lambda: shop.sell("it"))
        return receipt

    @prompt
    def letter(ctx: Context) -> str:
        """Write a letter."""
        return send(ctx)

    @resource("shop://letters/{id}")
    def read_letter(id: str, ctx: Context) -> str:
        """Read a letter, which marks it as read."""
        return send(ctx)

    return [letter, read_letter]


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("prompts/get", {"name": "letter", "arguments": {}}),
        ("resources/read", {"uri": "shop://letters/1"}),
    ],
)
def test_prompts_and_resources_have_effects_once_too(shop: Shop, method: str, what: dict[str, Any]) -> None:
    """They take part in the same way (DESIGN 3), and end with protocol errors, having no other."""
    server = Server(sending(shop))
    alice = server.client()
    first = alice.request(method, what)
    with server.store_outage():
        assert alice.retry(first, what, YES, method=method).status == 503
    seen: list[Reply] = []
    shop.in_the_middle = lambda: seen.append(server.client().retry(first, what, YES, method=method))
    done = alice.retry(first, what, YES, method=method)
    assert is_waiting(seen[0])
    assert alice.repeat().result == done.result
    assert alice.retry(first, what, NO, method=method).error == INVALID_STATE

    first = alice.request(method, what)
    shop.in_the_middle = server.kill
    alice.retry(first, what, YES, method=method)
    server.clock.advance(LEASE)
    doubtful = alice.retry(first, what, YES, method=method)
    assert doubtful.error["code"] == -32602
    assert "unknown" in doubtful.error["message"]
    assert shop.done == ["it", "it"]


def test_a_legacy_client_gets_words_where_a_modern_one_would_come_again(shop: Shop) -> None:
    """Before 2026-07-28 there is no input_required: a tool error, and a protocol error elsewhere."""

    @tool
    def order(ctx: Context) -> str:
        """Order something."""
        ctx.need_time(60)
        return shop.sell("it")

    @prompt
    def letter(ctx: Context) -> str:
        """Write a letter."""
        ctx.need_time(60)
        return shop.sell("it")

    @resource("shop://letters")
    def letters(ctx: Context) -> str:
        """Read letters."""
        ctx.need_time(60)
        return shop.sell("it")

    server = JudgedServer([order, letter, letters], timeout=25)
    assert "Repeat this call" in legacy(server, "tools/call", params("order")).text
    for method, what in (("prompts/get", {"name": "letter"}), ("resources/read", {"uri": "shop://letters"})):
        reply = legacy(server, method, what)
        assert "Repeat this call" in reply.message["error"]["message"]
    assert shop.done == []
