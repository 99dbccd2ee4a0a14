"""The explicit style: return the questions, read the answers, and carry the state yourself."""

import logging
from datetime import date
from typing import Any, assert_never, assert_type

import pytest
from pydantic import BaseModel

from app.protocol.elicitation import AnyAnswer
from app.protocol.features import Tool
from app.strict_json import JsonObject
from app.testing import FORMS, Client, Reply, Server, accept, cancel, decline
from app.toolkit import Accepted, Cancelled, Context, Declined, InputRequired, Invalid, Missing, Question, tool


class Release(BaseModel):
    stage: str
    canary: bool = False


@tool
def deploy(service: str, ctx: Context) -> str | InputRequired:
    """Tell all five kinds of answer apart."""
    answer = ctx.responses.get("release", Release)
    assert_type(answer, AnyAnswer[Release])
    match answer:
        case Missing():
            return InputRequired({"release": Question("Where to?", Release)}, state={"service": service, "asked": 1})
        case Invalid(reason):
            state = {**ctx.state, "asked": ctx.state["asked"] + 1}
            return InputRequired({"release": Question(f"{reason}. Where to?", Release)}, state=state)
        case Accepted(Release(stage=stage)):
            return f"{ctx.state['service']} to {stage} after {ctx.state['asked']}"
        case Accepted():
            return "unreachable"
        case Declined():
            return "declined"
        case Cancelled():
            return "cancelled"
        case _:
            assert_never(answer)


DEPLOY: JsonObject = {"name": "deploy", "arguments": {"service": "billing"}}


def asked_by(function: Tool, client: Client | None = None) -> tuple[Client, Reply]:
    client = client or Server([function]).client()
    return client, client.request("tools/call", {"name": function.name})


def test_the_question_and_the_state_go_out_and_come_back() -> None:
    alice = Server([deploy]).client(answers={"release": accept(stage="test")})
    assert alice.call("deploy", {"service": "billing"}).text == "billing to test after 1"
    (question,) = alice.rounds[0].asked.values()
    assert question["params"]["message"] == "Where to?"
    assert question["params"]["requestedSchema"]["required"] == ["stage"]


def test_the_state_is_sealed() -> None:
    alice = Server([deploy]).client()
    assert "billing" not in alice.request("tools/call", DEPLOY).http.body.decode()


def test_an_invalid_answer_says_why_and_the_tool_asks_again() -> None:
    alice = Server([deploy]).client()
    asked = alice.request("tools/call", DEPLOY)
    again = alice.retry(asked, DEPLOY, {"release": accept(stage=5)})
    assert again.asked["release"]["params"]["message"] == "stage: Input should be a valid string. Where to?"
    assert alice.retry(again, DEPLOY, {"release": accept(stage="test")}).text == "billing to test after 2"


@pytest.mark.parametrize(("answer", "text"), [(decline(), "declined"), (cancel(), "cancelled")])
def test_declined_and_cancelled_are_two_answers(answer: JsonObject, text: str) -> None:
    assert Server([deploy]).client(answers={"release": answer}).call("deploy", DEPLOY["arguments"]).text == text


def test_an_answer_that_was_not_asked_for_is_missing() -> None:
    """CASES 66: without a verified state there is no answer, in this style as in the other."""
    params = {**DEPLOY, "inputResponses": {"release": accept(stage="prod")}}
    assert list(Server([deploy]).client().request("tools/call", params).asked) == ["release"]


@tool
def look(ctx: Context) -> str | InputRequired:
    """Ask on the wire, and read without a model."""
    answer = ctx.responses.get("wire")
    assert_type(answer, AnyAnswer[JsonObject])
    if isinstance(answer, Missing):
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
        params = {"mode": "form", "message": "?", "requestedSchema": schema}
        return InputRequired({"wire": {"method": "elicitation/create", "params": params}})
    return repr(answer)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (accept(ok=True, more=[1]), Accepted({"ok": True, "more": [1]})),
        ({"action": "accept"}, Accepted({})),
        (decline(), Declined()),
        (cancel(), Cancelled()),
        ({"action": "accept", "content": "yes"}, Invalid("the answer is not an ElicitResult")),
        ({"action": "ACCEPT", "content": {"ok": True}}, Invalid("the answer is not an ElicitResult")),
        ({"ok": True}, Invalid("the answer is not an ElicitResult")),
        (True, Invalid("the answer is not an ElicitResult")),
    ],
)
def test_without_a_model_the_content_comes_as_it_is_and_the_action_is_still_read(response: Any, expected: Any) -> None:
    alice, asked = asked_by(look)
    assert alice.retry(asked, {"name": "look"}, {"wire": response}).text == repr(expected)


@tool
def summarise(ctx: Context) -> str | InputRequired:
    """Let the client's model do something."""
    response = ctx.responses.raw("summary")
    if response is None:
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "Summarise"}}], "maxTokens": 100}
        return InputRequired({"summary": {"method": "sampling/createMessage", "params": params}})
    return str(response["content"]["text"])


def test_what_is_no_elicitation_is_read_raw() -> None:
    """Conformance, input-required-result-basic-sampling: such a result has no action."""
    alice, asked = asked_by(summarise, Server([summarise]).client(capabilities={"sampling": {}}))
    assert asked.asked["summary"]["method"] == "sampling/createMessage"
    result = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "m"}
    assert alice.retry(asked, {"name": "summarise"}, {"summary": result}).text == "Short."


def test_raw_gives_nothing_that_was_not_asked() -> None:
    alice = Server([summarise]).client(capabilities={"sampling": {}})
    params = {"name": "summarise", "inputResponses": {"summary": {"content": {"text": "Short."}}}}
    assert list(alice.request("tools/call", params).asked) == ["summary"]


def test_a_tool_can_choose_by_what_the_client_declared() -> None:
    """Conformance, input-required-result-capability-check: ask only for what the client can give."""

    @tool
    def choose(ctx: Context) -> str | InputRequired:
        """Ask for what there is."""
        if "elicitation" in ctx.client_capabilities:
            return InputRequired({"ok": Question("Sure?", Release)})
        return InputRequired({"roots": {"method": "roots/list", "params": {}}})

    for capabilities, key in ((FORMS, "ok"), ({"roots": {}}, "roots")):
        _, asked = asked_by(choose, Server([choose]).client(capabilities=capabilities))
        assert list(asked.asked) == [key]


def test_several_rounds_keep_earlier_answers() -> None:
    @tool
    def steps(ctx: Context) -> str | InputRequired:
        """Ask twice."""
        for key in ("one", "two"):
            if isinstance(ctx.responses.get(key, Release), Missing):
                return InputRequired({key: Question(key, Release)}, state=key)
        one, two = ctx.responses.get("one", Release), ctx.responses.get("two", Release)
        assert isinstance(one, Accepted)
        assert isinstance(two, Accepted)
        return f"{one.value.stage} {two.value.stage} {ctx.state}"

    alice = Server([steps]).client(answers={"one": accept(stage="a"), "two": accept(stage="b")})
    assert alice.call("steps").text == "a b two"
    assert [list(reply.asked) for reply in alice.rounds] == [["one"], ["two"], []]


def test_a_tool_may_only_wait_and_carry() -> None:
    """patterns/mrtr: a state without questions means that the client may retry at once."""

    @tool
    def wait(ctx: Context) -> str | InputRequired:
        """Come back three times."""
        count = (ctx.state or 0) + 1
        return f"{count}" if count == 3 else InputRequired(state=count)

    alice = Server([wait]).client(capabilities={})
    assert alice.call("wait").text == "3"
    assert all("inputRequests" not in reply.result for reply in alice.rounds)


@pytest.mark.parametrize(
    "state",
    [None, True, 0, 1.5, "x", "\ud800", [], {}, {"a": [1, {"b": None}]}, {"": ""}, 2**60],
    ids=ascii,
)
def test_a_state_comes_back_as_it_went(state: Any) -> None:
    """CASES 70: a value that changes its type on the way is a fault that shows in the second round only."""
    back: list[Any] = []

    @tool
    def carry(ctx: Context) -> str | InputRequired:
        """Carry something."""
        if isinstance(ctx.responses.get("ok"), Missing):
            return InputRequired({"ok": Question("Sure?", Release)}, state=state)
        back.append(ctx.state)
        return "done"

    assert Server([carry]).client(answers={"ok": decline()}).call("carry").text == "done"
    assert back == [state]
    assert type(back[0]) is type(state)


@pytest.mark.parametrize(
    "state",
    [
        date(2026, 12, 24),
        {"day": date(2026, 12, 24)},
        {1: "number as a key"},
        (1, 2),
        {"pair": (1, 2)},
        {1, 2},
        b"bytes",
        float("nan"),
        [float("inf")],
        Release(stage="test"),
        object(),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_state_that_would_come_back_changed_is_refused_with_the_remedy(state: Any) -> None:
    """At the line that makes it, and not as another value in the next round."""
    with pytest.raises(TypeError, match=r"must be JSON to come back as it is.*Carry a date as isoformat\(\)"):
        InputRequired(state=state)


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ({"a:b": Question("?", Release)}, "The question key 'a:b' must be"),
        ({"key": {"method": "tools/call"}}, "must be one of elicitation/create, sampling/createMessage, roots/list"),
        ({"key": {}}, "must be one of elicitation/create"),
        ({"key": {"method": "roots/list", "params": {"at": date(2026, 1, 1)}}}, "not JSON serializable"),
    ],
)
def test_a_question_that_cannot_be_asked_is_a_tool_error_and_the_log_says_why(
    requests: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def wrong(ctx: Context) -> str | InputRequired:
        """Ask wrongly."""
        return InputRequired(requests)

    with caplog.at_level(logging.ERROR, "roundtrip.tools"):
        _, failed = asked_by(wrong)
    assert failed.is_error
    assert reason in caplog.text
