"""Prompts and resources: what is listed, what they return, and the questions that they ask."""

from base64 import b64decode
from typing import Any

import pytest

from app.testing import accept, cancel, decline
from tests.protocol.endpoint import served
from tests.protocol.offered import error, offered


def test_prompts_are_listed_with_their_arguments() -> None:
    """server/prompts, Listing Prompts."""
    prompts = {each["name"]: each for each in offered().client().request("prompts/list").result["prompts"]}
    assert prompts["hello"] == {"name": "hello", "description": "Say hello."}
    assert prompts["trip"] == {
        "name": "trip",
        "title": "Plan a trip",
        "description": "Plan a trip.",
        "arguments": [
            {"name": "city", "description": "Where to", "required": True},
            {"name": "style", "required": False},
            {"name": "days", "required": False},
        ],
    }


def test_a_prompt_returns_messages() -> None:
    """server/prompts, Getting a Prompt. Arguments are strings on the wire."""
    result = offered().client().get_prompt("trip", {"city": "Oslo", "days": "5"}).result
    assert result["description"] == "Plan a trip."
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Plan 5 cheap days in Oslo."}},
        {"role": "assistant", "content": {"type": "text", "text": "With pleasure."}},
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nobody"},
        {"name": "trip"},
        {"name": "trip", "arguments": {"city": "Oslo", "days": "many"}},
        {"name": "trip", "arguments": {"city": "Oslo", "style": "loud"}},
        {"name": "trip", "arguments": {"city": 5}},
        {"name": "trip", "arguments": ["Oslo"]},
        {"name": 5},
    ],
)
def test_a_prompt_that_cannot_be_built_is_an_invalid_parameter(params: dict[str, Any]) -> None:
    """server/prompts, Error Handling: -32602 for an unknown name and for missing arguments."""
    assert error(offered().client().request("prompts/get", params)) == (400, -32602)


def test_a_prompt_that_crashes_is_an_internal_error_without_the_exception() -> None:
    """server/prompts, Error Handling: -32603."""
    reply = offered().client().get_prompt("broken")
    assert error(reply) == (500, -32603)
    assert "hunter2" not in reply.http.body.decode()
    assert "log" in reply.error["message"]


@pytest.mark.parametrize("answer", [accept(tone="formal"), decline(), cancel()], ids=lambda answer: answer["action"])
def test_a_prompt_asks_and_the_retry_on_another_instance_goes_on(answer: dict[str, Any]) -> None:
    """basic/patterns/mrtr, Supported Requests: prompts/get. CONFORMANCE 3.4, non-tool-request."""
    client = offered().client(answers={"tone": answer})
    reply = client.get_prompt("letter", {"to": "Bob"})
    assert [each.instance for each in client.rounds] == [0, 1]
    assert "content" not in client.rounds[0].result
    if answer["action"] == "accept":
        assert reply.result["messages"][0]["content"]["text"] == "Write a formal letter to Bob."
    else:
        assert error(reply) == (400, -32602)
        assert "no tone" in reply.error["message"]


def test_a_prompts_state_does_not_open_for_a_tool_or_other_arguments() -> None:
    """SECURITY 5, 89: bound to method, name and arguments."""
    client = offered().client()
    asked = client.request("prompts/get", {"name": "letter", "arguments": {"to": "Bob"}}).result
    for method, params in (
        ("prompts/get", {"name": "letter", "arguments": {"to": "Eve"}}),
        ("prompts/get", {"name": "hello", "arguments": {"to": "Bob"}}),
        ("tools/call", {"name": "greet", "arguments": {"to": "Bob"}}),
    ):
        reply = client.request(method, {**params, "requestState": asked["requestState"]})
        assert reply.error["message"] == "Invalid or expired requestState"


@pytest.mark.parametrize(
    ("method", "params", "scope"),
    [
        ("prompts/get", {"name": "letter", "arguments": {"to": "Bob"}}, "letters:write"),
        ("resources/read", {"uri": "secret://x"}, "secrets:read"),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}},
            "letters:write",
        ),
    ],
)
def test_scopes_hold_for_prompts_resources_and_completion(method: str, params: dict[str, Any], scope: str) -> None:
    """basic/authorization, Scope Challenge Handling."""
    reply = offered().client(scope="other").request(method, params)
    assert reply.status == 403
    assert f'scope="{scope}"' in reply.http.headers["www-authenticate"]


def test_resources_and_templates_are_listed_apart() -> None:
    """server/resources, Listing Resources and Resource Templates."""
    client = offered().client()
    resources = client.request("resources/list").result["resources"]
    templates = client.request("resources/templates/list").result["resourceTemplates"]
    assert [each["uri"] for each in resources] == ["notes://today", "notes://logo"]
    assert resources[0] == {
        "uri": "notes://today",
        "name": "today",
        "description": "Today's note.",
        "mimeType": "text/plain",
        "size": 5,
    }
    assert [each["uriTemplate"] for each in templates] == ["notes://by-id/{id}", "files://{+path}", "secret://{name}"]


def test_text_bytes_and_several_contents_can_be_read() -> None:
    """server/resources, Reading Resources."""
    client = offered().client()
    assert client.read("notes://today").result["contents"] == [
        {"uri": "notes://today", "mimeType": "text/plain", "text": "Rain."}
    ]
    (logo,) = client.read("notes://logo").result["contents"]
    assert b64decode(logo["blob"]) == b"\x89PNG"
    assert [each["uri"] for each in client.read("files://a/b.txt").result["contents"]] == [
        "files://a/b.txt",
        "files://a/b.txt.sig",
    ]
    assert client.read("notes://by-id/7").result["contents"][0]["text"] == "Note 7."


@pytest.mark.parametrize(
    "uri", ["notes://tomorrow", "notes://by-id/x", "notes://by-id/100", "notes://by-id/1/2", "x", ""]
)
def test_a_resource_that_does_not_exist_is_an_error_that_names_it(uri: str) -> None:
    """server/resources, Error Handling: -32602 and never an empty list. CONFORMANCE, sep-2164."""
    reply = offered().client().read(uri)
    assert error(reply) == (400, -32602)
    assert reply.error["data"] == {"uri": uri}


def test_what_may_be_kept_is_said_for_each_resource() -> None:
    """server/utilities/caching: private and stale at once, unless the resource says more."""
    client = offered().client()
    kept, fresh = client.read("notes://today").result, client.read("notes://logo").result
    assert (kept["ttlMs"], kept["cacheScope"]) == (60_000, "public")
    assert (fresh["ttlMs"], fresh["cacheScope"]) == (0, "private")


def test_a_resource_asks_and_the_retry_on_another_instance_goes_on() -> None:
    """basic/patterns/mrtr, Supported Requests: resources/read. Not covered by the official suite."""
    client = offered().client(answers={"tone": accept(tone="friendly")})
    reply = client.read("secret://door")
    assert reply.result["contents"][0]["text"] == "door, friendly"
    assert [each.instance for each in client.rounds] == [0, 1]
    asked = client.rounds[0].result
    other = client.request("resources/read", {"uri": "secret://safe", "requestState": asked["requestState"]})
    assert other.error["message"] == "Invalid or expired requestState"


def test_a_server_without_prompts_and_resources_has_neither_method_nor_capability() -> None:
    """server/discover: what is declared is what there is."""
    client = served().client()
    assert client.request("server/discover").result["capabilities"] == {"tools": {}, "logging": {}}
    for method in ("prompts/list", "prompts/get", "resources/list", "resources/read", "completion/complete"):
        assert error(client.request(method, {"name": "x", "uri": "x"})) == (404, -32601)


def test_a_server_with_everything_declares_it() -> None:
    """server/discover. No listChanged: lists change by deployment, and no stream is held to say so."""
    capabilities = offered().client().request("server/discover").result["capabilities"]
    assert capabilities == {"tools": {}, "logging": {}, "prompts": {}, "resources": {}, "completions": {}}
