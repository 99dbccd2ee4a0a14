"""The Context: asking and being answered, ending, and what a tool may know of its call."""

import logging
from typing import Any, Literal, assert_never, assert_type

import pytest
from pydantic import BaseModel, Field, field_validator

from app.principal import Principal
from app.protocol.features import Tool
from app.strict_json import JsonObject
from app.testing import CLIENT_ID, FORMS, ISSUER, Reply, Server, accept, cancel, decline
from app.toolkit import Accepted, Answer, Cancelled, Context, Declined, Question, tool


class Confirm(BaseModel):
    confirm: bool


class Guests(BaseModel):
    adults: int = Field(gt=0)
    meal: Literal["meat", "none"] = "none"

    @field_validator("adults")
    @classmethod
    def fits_the_table(cls, adults: int) -> int:
        if adults > 8:
            raise ValueError("the table has eight chairs")
        return adults


@tool
def book(ctx: Context) -> str:
    """Ask for the guests, and tell every answer apart."""
    answer = ctx.ask("guests", "How many?", Guests)
    assert_type(answer, Answer[Guests])
    match answer:
        case Accepted(Guests(adults=adults, meal=meal)):
            return f"{adults} with {meal}"
        case Accepted():
            return "unreachable"
        case Declined():
            return "declined"
        case Cancelled():
            return "cancelled"
        case _:
            assert_never(answer)


def call(function: Tool, answers: dict[str, JsonObject] | None = None, **arguments: Any) -> Reply:
    return Server([function]).client(answers=answers).call(function.name, arguments)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (accept(adults=2, meal="meat"), "2 with meat"),
        (accept(adults=2), "2 with none"),
        (accept(adults=2, meal=""), "2 with none"),
        (decline(), "declined"),
        (cancel(), "cancelled"),
    ],
)
def test_an_answer_is_the_model_or_declined_or_cancelled(answer: JsonObject, text: str) -> None:
    """And mypy knows: the match above is checked by this project's own type check."""
    assert call(book, {"guests": answer}).text == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"adults": 0}, "adults: Input should be greater than 0"),
        ({"adults": 9}, "adults: Value error, the table has eight chairs"),
        ({"adults": "2"}, "adults: Input should be a valid integer"),
        ({"adults": 2, "meal": "fish"}, "meal: Input should be 'meat' or 'none'"),
        ({"adults": "2", "meal": "fish"}, "adults: Input should be a valid integer; meal: Input should be"),
        ({}, "adults: Field required"),
    ],
)
def test_what_the_form_cannot_say_is_enforced_on_the_answer(content: JsonObject, reason: str) -> None:
    """CASES 53, 54: asked again, with every wrong field named."""
    alice = Server([book]).client()
    asked = alice.request("tools/call", {"name": "book"})
    again = alice.retry(asked, {"name": "book"}, {"guests": accept(**content)})
    message = again.asked["guests"]["params"]["message"]
    assert message.startswith(f"The last answer did not fit: {reason}")
    assert message.endswith(".\n\nHow many?")
    assert again.asked["guests"]["params"]["requestedSchema"] == asked.asked["guests"]["params"]["requestedSchema"]


def test_the_same_question_twice_is_one_question() -> None:
    @tool
    def twice(ctx: Context) -> str:
        """Ask the same thing at two places."""
        return str([ctx.ask("confirm", "Sure?", Confirm) == ctx.ask("confirm", "Sure?", Confirm)])

    assert call(twice, {"confirm": accept(confirm=True)}).text == "[True]"


def test_two_questions_under_one_key_are_a_fault_of_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    """One answer would be taken for consent to both."""

    @tool
    def careless(ctx: Context) -> str:
        """Use a key twice."""
        ctx.ask("confirm", "Delete the draft?", Confirm)
        ctx.ask("confirm", "Delete everything?", Confirm)
        return "deleted"

    failed = call(careless, {"confirm": accept(confirm=True)})
    assert failed.is_error
    assert "Two questions have the key 'confirm': give each its own" in caplog.text


def test_code_before_a_question_runs_in_every_round_and_code_after_it_once() -> None:
    """CASES 78, by design: keep effects after the last question."""
    before: list[int] = []
    after: list[int] = []

    @tool
    def replayed(ctx: Context) -> str:
        """Ask two questions, one after another."""
        before.append(1)
        ctx.ask("one", "One?", Confirm)
        ctx.ask("two", "Two?", Confirm)
        after.append(1)
        return "done"

    assert call(replayed, {"one": decline(), "two": decline()}).text == "done"
    assert (len(before), len(after)) == (3, 1)


def test_ask_all_returns_every_answer_under_its_key() -> None:
    @tool
    def both(ctx: Context) -> str:
        """Ask two things at once."""
        given = ctx.ask_all({"left": Question("Left?", Confirm), "right": Question("Right?", Guests)})
        return f"{given['left']} {given['right']}"

    alice = Server([both]).client(answers={"left": cancel(), "right": accept(adults=1)})
    assert alice.call("both").text == f"{Cancelled()} {Accepted(Guests(adults=1))}"
    assert [len(reply.asked) for reply in alice.rounds] == [2, 0]


def test_ask_all_of_nothing_asks_nothing() -> None:
    @tool
    def none(ctx: Context) -> str:
        """Ask nothing."""
        return str(ctx.ask_all({}))

    assert call(none).text == "{}"


def test_a_question_with_a_lone_surrogate_is_still_asked_and_found_again() -> None:
    """CASES 34: a title from somewhere else may have one; it must not crash the digest or the response."""

    @tool
    def odd(ctx: Context) -> str:
        """Ask with a broken text."""
        ctx.ask("confirm", "Sure \ud800?", Confirm)
        return "done"

    assert call(odd, {"confirm": decline()}).text == "done"


TICKETS = {"T-1": "Printer on fire"}


@tool
def show(id: str, ctx: Context) -> str:
    """Show a ticket."""
    title = TICKETS.get(id) or ctx.fail(f"There is no ticket {id}.")
    assert_type(title, str)
    return title


def test_fail_ends_the_call_with_an_error_that_the_model_can_act_on() -> None:
    """server/tools, Error Handling: a tool execution error, not a protocol error."""
    assert call(show, id="T-1").text == "Printer on fire"
    failed = call(show, id="T-2")
    assert (failed.status, failed.is_error, failed.text) == (200, True, "There is no ticket T-2.")
    assert failed.http.facts["outcome"] == "failed"


def test_stop_ends_the_call_from_any_depth_and_past_any_except() -> None:
    @tool
    def deep(ctx: Context) -> str:
        """Stop where nobody expects it."""

        def inner() -> None:
            try:
                ctx.stop("The user does not want it.")
            except Exception as error:
                raise AssertionError("swallowed") from error

        inner()
        return "went on"

    stopped = call(deep)
    assert (stopped.is_error, stopped.text) == (True, "The user does not want it.")
    assert stopped.http.facts["outcome"] == "stopped"


def test_a_finally_of_the_tool_runs_when_it_asks() -> None:
    closed: list[int] = []

    @tool
    def tidy(ctx: Context) -> str:
        """Hold something while it asks."""
        try:
            ctx.ask("confirm", "Sure?", Confirm)
        finally:
            closed.append(1)
        return "done"

    assert call(tidy, {"confirm": decline()}).text == "done"
    assert len(closed) == 2


@pytest.mark.parametrize("error", [RuntimeError("hunter2"), KeyError("hunter2"), SystemExit("hunter2")], ids=repr)
def test_an_exception_is_an_error_without_its_text_and_the_log_has_it(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A text of an exception may hold anything. The request id leads the operator to it."""

    @tool
    def broken() -> str:
        """Break."""
        raise error

    with caplog.at_level(logging.ERROR, "roundtrip.tools"):
        failed = call(broken)
    assert (failed.status, failed.is_error) == (200, True)
    assert failed.text == "broken failed. The server's log has the reason under test-1."
    assert "hunter2" in caplog.text
    assert failed.http.facts["outcome"] == "crashed"
    assert failed.http.facts["reason"] == type(error).__name__
    assert "hunter2" not in str(failed.http.facts)


@tool(scopes=["tickets:read"])
def about(ctx: Context) -> dict[str, Any]:
    """Say what is known of the call."""
    ctx.ask("confirm", "Sure?", Confirm)
    who = ctx.principal
    assert_type(who, Principal)
    return {
        "who": [who.issuer, who.subject, who.client_id],
        "scopes": sorted(ctx.scopes),
        "request": ctx.request_id,
        "state": ctx.state,
        "capabilities": ctx.client_capabilities,
    }


def test_a_tool_knows_the_verified_caller_the_scopes_and_the_request() -> None:
    """CASES 19 and 61: the principal is the token's, whatever `_meta` says."""
    alice = Server([about]).client("alice", scope="tickets:read other", answers={"confirm": decline()})
    assert alice.call("about").result["structuredContent"] == {
        "who": [ISSUER, "alice", CLIENT_ID],
        "scopes": ["other", "tickets:read"],
        "request": "test-2",
        "state": None,
        "capabilities": FORMS,
    }


def test_a_flow_has_one_id_in_all_its_rounds_and_another_flow_has_another() -> None:
    seen: list[str] = []

    @tool
    def flow(ctx: Context) -> str:
        """Remember the flow."""
        seen.append(ctx.flow_id)
        ctx.ask("confirm", "Sure?", Confirm)
        return "done"

    alice = Server([flow]).client(answers={"confirm": decline()})
    alice.call("flow")
    alice.call("flow")
    assert seen[0] == seen[1] != seen[2] == seen[3]
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in seen)
