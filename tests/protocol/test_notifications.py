"""Progress and log notifications: only what was asked for, in one finished event stream with the answer."""

import math
from typing import Any

import pytest

from app.protocol.notifications import LEVELS, MAX_NOTIFICATIONS, Notifications
from app.toolkit import Context, tool
from tests.protocol.endpoint import JudgedServer
from tests.protocol.offered import error, offered, with_meta

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
STEPS = {"name": "steps", "arguments": {}}


@pytest.mark.parametrize("token", ["progress-1", 7, 0, ""])
def test_progress_comes_before_the_result_under_the_token_of_the_request(token: Any) -> None:
    """basic/patterns/progress; CONFORMANCE 3.2, tools-call-with-progress."""
    reply = with_meta(offered().client(), "tools/call", STEPS, progressToken=token)
    assert reply.http.headers["content-type"] == "text/event-stream"
    sent = [each["params"] for each in reply.notifications]
    assert [(each["progressToken"], each["progress"], each["total"]) for each in sent] == [
        (token, 0, 100),
        (token, 50, 100),
        (token, 100, 100),
    ]
    assert reply.text == "Done."


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    """server/utilities/logging: MUST NOT emit without a level. CONFORMANCE 3.1, check 24."""
    reply = offered().client().call("steps")
    assert reply.http.headers["content-type"] == "application/json"
    assert reply.notifications == []


@pytest.mark.parametrize(("level", "expected"), [("debug", 4), ("info", 1), ("warning", 1), ("error", 0)])
def test_log_messages_come_from_the_level_that_was_asked_for(level: str, expected: int) -> None:
    """server/utilities/logging, Per-request log level."""
    reply = with_meta(offered().client(), "tools/call", STEPS, **{LOG_LEVEL: level})
    assert len(reply.notifications) == expected
    if expected:
        assert reply.notifications[-1]["params"] == {"level": "warning", "logger": "steps", "data": "nearly too late"}


@pytest.mark.parametrize("meta", [{LOG_LEVEL: "loud"}, {LOG_LEVEL: 3}, {"progressToken": True}, {"progressToken": []}])
def test_a_level_or_token_that_is_none_is_an_invalid_parameter(meta: dict[str, Any]) -> None:
    """server/utilities/logging, Error Handling; schema, ProgressToken."""
    assert error(with_meta(offered().client(), "tools/call", STEPS, **meta)) == (400, -32602)


def test_a_client_that_takes_json_alone_gets_the_result_alone() -> None:
    params = {**STEPS, "_meta": {"progressToken": 1}}
    reply = offered().client().request("tools/call", params, accept="application/json")
    assert reply.text == "Done."


def test_a_round_that_asks_sends_its_notifications_too() -> None:
    """The stream carries the response of this round, whatever it is."""

    @tool
    def slow(ctx: Context) -> str:
        """Report, then ask."""
        ctx.progress(1)
        return ctx.sample("x", ["y"], max_tokens=1).text

    client = JudgedServer([slow]).client(capabilities={"sampling": {}})
    reply = with_meta(client, "tools/call", {"name": "slow", "arguments": {}}, progressToken="t")
    assert [each["method"] for each in reply.notifications] == ["notifications/progress"]
    assert reply.result["resultType"] == "input_required"


@pytest.mark.parametrize("value", [1, 0.5, math.nan, math.inf])
def test_progress_that_does_not_increase_is_a_fault_of_the_tool(value: float) -> None:
    """basic/patterns/progress: the value MUST increase."""
    notifications = Notifications(progress_token="t")
    notifications.progress(1)
    with pytest.raises(ValueError, match="report numbers that grow"):
        notifications.progress(value)


def test_a_level_that_does_not_exist_is_a_fault_of_the_tool() -> None:
    with pytest.raises(ValueError, match="must be one of debug"):
        Notifications(level="debug").log("loud", 1)


def test_a_flood_of_notifications_is_cut_off() -> None:
    """basic/patterns/progress: SHOULD implement rate limiting. They are held in memory."""
    notifications = Notifications(progress_token="t", level=LEVELS[0])
    for number in range(MAX_NOTIFICATIONS + 10):
        notifications.progress(number)
    assert len(notifications.sent) == MAX_NOTIFICATIONS
