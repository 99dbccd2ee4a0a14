"""`@tool(once=True)`: what a tool completes happens once in its flow, whatever is repeated, by whom, and when."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from app.effects.once import LEASE
from app.errors import ConfigurationError
from app.settings import Settings
from app.testing import FORMS, Client, Reply, Server, accept
from app.toolkit import CallToolResult, Context, tool
from app.toolkit.guard import IN_DOUBT
from app.wiring.mcp import McpFunction
from tests.protocol.endpoint import JudgedServer
from tests.protocol.test_legacy import legacy
from tests.protocol.test_text_fallback import answer, call, handle_in
from tests.toolkit.shop import BUY, INVALID_STATE, NO, YES, Confirm, Shop, asked, is_waiting, params


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def server(shop: Shop) -> Server:
    return JudgedServer([shop.tool()])


@pytest.fixture
def alice(server: Server) -> Client:
    return server.client()


def test_a_repeated_answer_gets_the_first_result_from_another_instance(shop: Shop, alice: Client) -> None:
    """SECURITY 2.5, CASES 106: the response was lost, the client sends the same bytes again."""
    question = asked(alice)
    first = alice.retry(question, BUY, YES)
    assert first.text == "tea is bought: receipt 1."
    again = alice.repeat()
    assert again.instance != first.instance
    assert again.result == first.result
    assert again.message["id"] != first.message["id"]
    assert again.http.facts["once"] == "replayed"
    assert shop.done == ["tea"]


def test_of_fifty_answers_at_once_one_counts(shop: Shop, server: Server, alice: Client) -> None:
    """SECURITY 100: x50 parallel. Each of the others waits or gets the same result."""
    question = asked(alice)

    def answer(_: int) -> Reply:
        client = server.client()
        reply = client.retry(question, BUY, YES)
        while is_waiting(reply) or "still running" in reply.text:
            reply = client.retry(question, BUY, YES)
        return reply

    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(answer, range(50)))
    assert shop.done == ["tea"]
    assert {each.text for each in replies} == {"tea is bought: receipt 1."}


def test_another_answer_after_the_first_is_refused(shop: Shop, alice: Client) -> None:
    """SECURITY 101: not "decline after accept", and not "accept after decline"."""
    question = asked(alice)
    assert alice.retry(question, BUY, YES).text == "tea is bought: receipt 1."
    refused = alice.retry(question, BUY, NO)
    assert refused.error == INVALID_STATE
    assert refused.status == 400
    assert refused.http.facts["reason"] == "requestState refused: once: conflict"
    assert alice.retry(question, BUY, YES).text == "tea is bought: receipt 1."

    other = asked(alice)
    assert alice.retry(other, BUY, NO).is_error
    assert alice.retry(other, BUY, YES).error == INVALID_STATE
    assert shop.done == ["tea"]


def test_what_a_tool_says_at_its_end_is_repeated_too(shop: Shop, alice: Client) -> None:
    """`ctx.stop` and `ctx.fail` complete a call."""
    question = asked(alice)
    first = alice.retry(question, BUY, NO)
    assert first.text == "The user said no."
    assert alice.repeat().result == first.result


def test_while_it_runs_the_same_request_is_told_to_come_again(shop: Shop, server: Server, alice: Client) -> None:
    """SECURITY 2.5: only a fresh requestState; after three such rounds "still running"."""
    question = asked(alice)
    seen: list[Reply] = []

    def meanwhile() -> None:
        other = server.client()
        seen.append(other.retry(question, BUY, YES))
        for _ in range(3):
            seen.append(other.retry(seen[-1], BUY, {}))

    shop.in_the_middle = meanwhile
    finished = alice.retry(question, BUY, YES)
    assert [is_waiting(each) for each in seen[:3]] == [True] * 3
    assert "still running" in seen[3].text
    assert seen[3].is_error
    assert [each.http.facts["once"] for each in seen] == ["running"] * 4
    # The state that was given while it ran leads to the result too.
    assert alice.retry(seen[0], BUY, {}).result == finished.result
    assert alice.retry(seen[2], BUY, {}).result == finished.result
    assert shop.done == ["tea"]


def test_another_request_while_it_runs_is_refused(shop: Shop, server: Server, alice: Client) -> None:
    """Of the same flow, with another answer."""
    question = asked(alice)
    seen: list[Reply] = []
    shop.in_the_middle = lambda: seen.append(server.client().retry(question, BUY, NO))
    assert not alice.retry(question, BUY, YES).is_error
    assert seen[0].error == INVALID_STATE


def test_an_instance_killed_in_the_middle_leaves_a_doubt_and_no_second_run(shop: Shop) -> None:
    """CASES 107; SECURITY 2.5, unknown."""
    server = Server([shop.tool()])
    alice = server.client()
    question = asked(alice)
    shop.in_the_middle = server.kill
    assert alice.retry(question, BUY, YES).status == 500
    assert is_waiting(alice.repeat())
    server.clock.advance(LEASE)
    for _ in range(3):
        doubtful = alice.retry(question, BUY, YES)
        assert doubtful.is_error
        assert doubtful.text == IN_DOUBT
        assert doubtful.http.facts["outcome"] == "in_doubt"
    assert alice.retry(question, BUY, NO).error == INVALID_STATE
    assert shop.done == ["tea"]


def test_without_the_store_nothing_is_run(shop: Shop, server: Server, alice: Client) -> None:
    """SECURITY 103, fail closed: 503 with Retry-After. The user's answer keeps."""
    question = asked(alice)
    with server.store_outage():
        refused = alice.retry(question, BUY, YES)
    assert refused.status == 503
    assert int(refused.http.headers["retry-after"]) > 0
    assert shop.done == []
    assert alice.retry(question, BUY, YES).text == "tea is bought: receipt 1."


def test_without_the_store_the_user_is_not_asked_in_vain(server: Server, alice: Client) -> None:
    """What could not be guarded would have to be refused after the answer."""
    with server.store_outage():
        assert asked(alice).status == 503
    assert asked(alice).asked


@pytest.mark.parametrize("when", ["before the answer", "in the middle", "afterwards"])
def test_a_store_that_forgot_everything_leaves_a_doubt_and_no_second_run(
    shop: Shop, server: Server, alice: Client, when: str
) -> None:
    """Issue 2, the store lost: it comes back empty, and cannot say what happened before."""
    question = asked(alice)
    if when == "before the answer":
        server.empty_store()
    elif when == "in the middle":
        shop.in_the_middle = server.empty_store
    first = alice.retry(question, BUY, YES)
    if when == "before the answer":
        assert first.text == IN_DOUBT
    else:
        assert first.text == "tea is bought: receipt 1."
    if when == "in the middle":
        # Who was running tells it what happened.
        assert alice.repeat().result == first.result
        server.empty_store()
    elif when == "afterwards":
        server.empty_store()
    for answers in (YES, NO):
        assert alice.retry(question, BUY, answers).text == IN_DOUBT
    assert len(shop.done) == (when != "before the answer")
    # The next call is not in doubt.
    assert alice.retry(asked(alice), BUY, YES).text.startswith("tea is bought")


def test_a_store_lost_in_the_middle_leaves_the_true_result_and_then_a_doubt(
    shop: Shop, server: Server, alice: Client
) -> None:
    """The result is true whether or not it could be kept; nobody runs it again."""
    question = asked(alice)
    outage = server.store_outage()
    shop.in_the_middle = outage.__enter__
    first = alice.retry(question, BUY, YES)
    assert first.text == "tea is bought: receipt 1."
    assert first.http.facts["once"] == "not_kept"
    assert alice.repeat().status == 503
    outage.__exit__(None, None, None)
    assert is_waiting(alice.repeat())
    server.clock.advance(LEASE)
    assert "unknown" in alice.repeat().text
    assert shop.done == ["tea"]


@pytest.mark.parametrize(
    "stranger", [{"subject": "bob"}, {"client_id": "https://other.example/client.json"}], ids=["user", "client"]
)
def test_a_stored_result_is_for_its_own_user_and_client(
    shop: Shop, server: Server, alice: Client, stranger: dict[str, str]
) -> None:
    """The state opens for nobody else, and the result is sealed for them besides."""
    question = asked(alice)
    assert not alice.retry(question, BUY, YES).is_error
    assert server.client(**stranger).retry(question, BUY, YES).error == INVALID_STATE  # type: ignore[arg-type]
    assert shop.done == ["tea"]


def test_a_flow_of_two_questions_counts_as_one(shop: Shop) -> None:
    """SECURITY 104: the state of round 1 after round 2 finished."""

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Ask twice, and order."""
        ctx.ask("one", "One?", Confirm)
        ctx.ask("two", "Two?", Confirm)
        return shop.sell("it")

    alice = JudgedServer([order]).client()
    what = params("order")
    first = alice.begin("order")
    second = alice.retry(first, what, {"one": accept(confirm=True)})
    assert list(second.asked) == ["two"]
    assert alice.repeat().asked == second.asked, "a question costs nothing"
    done = alice.retry(second, what, {"two": accept(confirm=True)})
    assert done.text == "receipt 1"
    assert alice.repeat().result == done.result
    assert alice.retry(first, what, {"one": accept(confirm=True)}).error == INVALID_STATE
    both = {"one": accept(confirm=True), "two": accept(confirm=True)}
    assert alice.retry(first, what, both).error["code"] == -32602, "an answer to what was not asked does not count"
    assert shop.done == ["it"]


def test_an_answer_that_does_not_fit_is_asked_again_and_completes_nothing(shop: Shop, alice: Client) -> None:
    """The mark of a round that asked is taken back."""
    question = asked(alice)
    again = alice.retry(question, BUY, {"confirm": accept(confirm="yes")})
    assert "did not fit" in again.asked["confirm"]["params"]["message"]
    assert alice.retry(again, BUY, YES).text == "tea is bought: receipt 1."
    assert alice.repeat().text == "tea is bought: receipt 1."
    assert shop.done == ["tea"]


def test_a_tool_that_raises_in_the_middle_is_in_doubt_for_good(shop: Shop, alice: Client) -> None:
    """Nobody can say whether it happened: at most once means that nobody tries."""

    def fail() -> None:
        raise OSError("connection reset by the shop")

    question = asked(alice)
    shop.in_the_middle = fail
    failed = alice.retry(question, BUY, YES)
    assert failed.is_error
    assert "may have happened" in failed.text
    assert "connection reset" not in failed.text
    assert alice.repeat().result == failed.result
    assert shop.done == ["tea"]


def test_a_result_that_fits_no_schema_is_an_error_and_still_happened(shop: Shop) -> None:
    """What fails after the effect must not open the way to a second one."""

    @tool(once=True)
    def count(ctx: Context) -> int:
        """Count."""
        ctx.ask("confirm", "Sure?", Confirm)
        return shop.sell("it")  # type: ignore[return-value]

    alice = JudgedServer([count]).client()
    question = alice.begin("count")
    failed = alice.retry(question, params("count"), YES)
    assert failed.is_error
    assert alice.repeat().result == failed.result
    assert shop.done == ["it"]


@pytest.mark.parametrize("result", [CallToolResult(structured_content={"days": (1, 2)}), "x" * 20_000], ids=type)
def test_a_result_that_cannot_be_kept_is_given_once(shop: Shop, result: Any) -> None:
    """SECURITY 2.4: 16 KiB under a seal. A repetition gets to know that it is done."""

    @tool(once=True)
    def order(ctx: Context) -> Any:
        """Order."""
        ctx.ask("confirm", "Sure?", Confirm)
        shop.sell("it")
        return result

    alice = Server([order]).client()
    question = alice.begin("order")
    first = alice.retry(question, params("order"), YES)
    assert not first.is_error
    assert first.http.facts["once"] == "without_result"
    again = alice.repeat()
    assert again.text == "It is done. Its result could not be kept to be shown again."
    assert not again.is_error
    assert shop.done == ["it"]


def test_a_call_that_asks_nothing_is_no_flow_yet(shop: Shop) -> None:
    """Before its first answer a client has no state that could be shown twice: a new call is a new flow."""

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Order without a question."""
        return shop.sell("it")

    server = Server([order])
    with server.store_outage():
        assert server.client().call("order").text == "receipt 1"
        assert server.client().call("order").text == "receipt 2"


def test_a_new_call_is_a_new_flow(shop: Shop, alice: Client) -> None:
    """The user is asked again, and may want it twice."""
    for number in (1, 2):
        assert alice.retry(asked(alice), BUY, YES).text == f"tea is bought: receipt {number}."
    assert shop.done == ["tea", "tea"]


def test_the_idempotency_key_is_the_same_in_all_rounds_and_of_no_other_flow(shop: Shop) -> None:
    """RFC 9562; SECURITY 2.5: a downstream key closes what a store can lose. Without once the key still is one."""
    seen: list[str] = []

    @tool
    def look(ctx: Context) -> str:
        """Ask, and tell the key."""
        seen.append(ctx.idempotency_key)
        ctx.ask("confirm", "Sure?", Confirm)
        return ctx.idempotency_key

    server = Server([look])
    server.client(answers=YES).call("look")
    assert len(set(seen)) == 1
    assert UUID(seen[0]).version == 5
    server.client(answers=YES).call("look")
    assert len(set(seen)) == 2


def test_a_mark_outlives_the_last_state_of_its_flow(shop: Shop, server: Server, alice: Client) -> None:
    """Ten minutes for a state, an hour for a flow: at no time between does a repetition run it."""
    question = asked(alice)
    alice.retry(question, BUY, YES)
    server.clock.advance(599)
    assert alice.repeat().text == "tea is bought: receipt 1."
    server.clock.advance(1)
    assert alice.repeat().error == INVALID_STATE
    assert shop.done == ["tea"]


def test_a_replay_over_a_deployment_gets_the_stored_result(shop: Shop, server: Server, alice: Client) -> None:
    """Keys and store stay; what the tool says now does not matter."""
    question = asked(alice)
    alice.retry(question, BUY, YES)
    server.restart([Shop().tool()])
    assert alice.repeat().text == "tea is bought: receipt 1."


def test_async_tools_are_guarded_too(shop: Shop) -> None:
    """`async def`: the loop has a thread of its own, and the instance dies all the same."""

    @tool(once=True)
    async def order(ctx: Context) -> str:
        """Order."""
        ctx.ask("confirm", "Sure?", Confirm)
        return shop.sell("it")

    server = Server([order])
    alice = server.client()
    question = alice.begin("order")
    assert alice.retry(question, params("order"), YES).text == "receipt 1"
    assert alice.repeat().text == "receipt 1"

    shop.in_the_middle = server.kill
    question = alice.begin("order")
    assert alice.retry(question, params("order"), YES).status == 500
    server.clock.advance(LEASE)
    assert "unknown" in alice.repeat().text
    assert shop.done == ["it", "it"]


def test_the_explicit_style_is_guarded_and_keeps_its_state_while_it_waits(shop: Shop) -> None:
    """`InputRequired(state=...)` comes back with the answers, also over a round that only waited."""
    server = JudgedServer([shop.explicit()])
    alice, what = server.client(), params("order", item="tea")
    question = alice.begin("order", {"item": "tea"})
    seen: list[Reply] = []
    shop.in_the_middle = lambda: seen.append(server.client().retry(question, what, YES))
    assert alice.retry(question, what, YES).text == "receipt 1"
    assert alice.retry(seen[0], what, {}).text == "receipt 1"
    assert shop.done == ["tea"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_an_answer_that_came_as_text_is_guarded_and_answered_in_words(shop: Shop, era: str) -> None:
    """DESIGN 4, the tool `answer`: there is no requestState to come again with, so everything is said."""
    server = JudgedServer([shop.tool(destructive=False, text_fallback=True)])
    handle = handle_in(call(server, era, "buy", {"item": "tea"}))
    yes = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    seen: list[Reply] = []
    shop.in_the_middle = lambda: seen.append(answer(server, era, handle, yes))
    first = answer(server, era, handle, yes)
    assert first.text == "tea is bought: receipt 1."
    assert seen[0].is_error
    assert "Repeat this call, as it is" in seen[0].text
    assert answer(server, era, handle, yes).result == first.result
    no = answer(server, era, handle, {"confirm": {"action": "decline"}})
    assert no.is_error
    assert "no longer open" in no.text
    assert shop.done == ["tea"]


def test_a_legacy_client_is_not_asked_for_what_may_destroy(shop: Shop) -> None:
    """DESIGN 4: a model must not confirm for the user."""
    server = JudgedServer([shop.tool()])
    reply = legacy(server, "tools/call", BUY)
    assert reply.is_error
    assert "cannot show" in reply.text
    assert shop.done == []


def test_a_missing_capability_in_a_later_round_completes_nothing(shop: Shop, server: Server) -> None:
    """SECURITY 113: -32021, and the flow goes on when the client can."""

    @tool(once=True)
    def order(ctx: Context) -> str:
        """Ask twice."""
        ctx.ask("one", "One?", Confirm)
        ctx.ask("two", "Two?", Confirm)
        return shop.sell("it")

    alice = Server([order]).client()
    what, one, two = params("order"), {"one": accept(confirm=True)}, {"two": accept(confirm=True)}
    first = alice.begin("order")
    alice.capabilities = {}
    assert alice.retry(first, what, one).error["code"] == -32021
    alice.capabilities = FORMS
    second = alice.retry(first, what, one)
    assert alice.retry(second, what, two).text == "receipt 1"


def test_a_server_with_such_a_tool_does_not_start_without_a_store(shop: Shop, server: Server) -> None:
    """It could not keep its promise; the message names the tool and the remedy."""
    key = "1:dGVzdCBrZXlzIGFyZSBmb3IgdGVzdHMgb25seS0tLS0="
    settings = Settings.read({**server.environment, "MCP_SEALING_KEYS": key})
    for guarded in (shop.tool(), shop.tool(once=False, approval="session")):
        with pytest.raises(ConfigurationError, match=r"buy: .* need a store\. Set MCP_REDIS_URL"):
            McpFunction(settings, [guarded], server.issuer)
    McpFunction(settings, [shop.tool(once=False)], server.issuer)


@pytest.mark.parametrize("other", [{"stateless": True}, {"single_round": True}])
def test_what_has_no_second_round_or_no_proof_cannot_be_guarded(shop: Shop, other: dict[str, bool]) -> None:
    """Refused when the module is imported, with the remedy."""
    with pytest.raises(ConfigurationError, match=f"{next(iter(other))}.*drop that"):
        shop.tool(**other)


def test_a_client_that_never_reads_its_answers_learns_nothing_from_the_wire(shop: Shop, alice: Client) -> None:
    """The stored result is in no state and no URL, and what is refused is byte for byte the same."""
    question = asked(alice)
    alice.retry(question, BUY, YES)
    conflict = alice.retry(question, BUY, NO)
    tampered = {**BUY, "requestState": question.result["requestState"][:-4] + "AAAA", "inputResponses": YES}
    forged = alice.request("tools/call", tampered)
    assert {**json.loads(conflict.http.body), "id": 0} == {**json.loads(forged.http.body), "id": 0}


def test_the_log_tells_what_became_of_it(shop: Shop, server: Server, alice: Client) -> None:
    """For the operator; nothing of the user's."""
    question = asked(alice)
    facts = alice.retry(question, BUY, YES).http.facts
    assert (facts["outcome"], facts["once"]) == ("complete", "whole")
    facts = alice.repeat().http.facts
    assert (facts["outcome"], facts["once"]) == ("complete", "replayed")
    assert not [name for name in facts if name in ("user", "subject", "answers", "result")]
