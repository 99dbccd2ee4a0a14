"""Sampling and roots: what a tool asks the client itself."""

from typing import Any

import pytest

from tests.protocol.endpoint import JudgedServer
from tests.protocol.offered import summarize, workspaces

SAMPLING: dict[str, Any] = {"sampling": {}}
WROTE = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "m", "stopReason": "endTurn"}


def asked(tool: Any, arguments: dict[str, Any], capabilities: dict[str, Any]) -> Any:
    client = JudgedServer([tool]).client(capabilities=capabilities)
    params = {"name": tool.name, "arguments": arguments}
    return client, params, client.request("tools/call", params)


def test_a_tool_lets_the_clients_model_write() -> None:
    """client/sampling; CONFORMANCE 3.4, basic-sampling."""
    client, params, first = asked(summarize, {"text": "long"}, SAMPLING)
    assert first.asked["summary"] == {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Summarize: long"}}],
            "maxTokens": 50,
            "systemPrompt": "Be brief.",
        },
    }
    assert client.retry(first, params, {"summary": WROTE}).text == "Short."


@pytest.mark.parametrize(
    "response",
    [
        None,
        5,
        [],
        {},
        {"action": "accept"},
        {**WROTE, "role": "system"},
        {**WROTE, "content": "x"},
        {**WROTE, "model": 5},
        {**WROTE, "content": [5]},
        {**WROTE, "content": {"text": "no type"}},
    ],
)
def test_what_is_no_message_is_asked_again(response: Any) -> None:
    client, params, first = asked(summarize, {"text": "long"}, SAMPLING)
    again = client.retry(first, params, {"summary": response})
    assert again.asked == first.asked


def test_several_blocks_are_one_text() -> None:
    """schema, SamplingMessage: content may be a list."""
    client, params, first = asked(summarize, {"text": "long"}, SAMPLING)
    blocks = [{"type": "text", "text": "One."}, {"type": "image", "data": "", "mimeType": "image/png"}]
    assert client.retry(first, params, {"summary": {**WROTE, "content": blocks}}).text == "One."


def test_a_tool_reads_the_roots() -> None:
    """client/roots; CONFORMANCE 3.4, basic-list-roots."""
    client, params, first = asked(workspaces, {}, {"roots": {}})
    assert first.asked == {"roots": {"method": "roots/list", "params": {}}}
    roots = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b", "name": 5}]}
    assert client.retry(first, params, {"roots": roots}).result["structuredContent"] == ["file:///a", "file:///b"]


@pytest.mark.parametrize("response", [None, {}, {"roots": {}}, {"roots": [5]}, {"roots": [{"name": "A"}]}])
def test_what_is_no_list_of_roots_is_asked_again(response: Any) -> None:
    client, params, first = asked(workspaces, {}, {"roots": {}})
    assert client.retry(first, params, {"roots": response}).asked == first.asked


@pytest.mark.parametrize(("tool", "capability"), [(summarize, "sampling"), (workspaces, "roots")])
def test_a_client_that_declared_neither_is_told_which(tool: Any, capability: str) -> None:
    """CONFORMANCE 3.1, checks 15 and 16: an object, not a list."""
    arguments = {"text": "x"} if tool is summarize else {}
    _, _, reply = asked(tool, arguments, {})
    assert reply.error["data"] == {"requiredCapabilities": {capability: {}}}
