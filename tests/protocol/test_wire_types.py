"""Every kind of answer is one that the official wire types know, and the judge of that can say no."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from app.http import HttpRequest, HttpResponse
from app.strict_json import JsonObject
from tests.protocol.endpoint import draft, served
from tests.protocol.official_types import SERVER_INFO, judge, judge_result

EVERYTHING: JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
META: JsonObject = {SERVER_INFO: {"name": "s", "version": "1"}}
FORM: JsonObject = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
    },
}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "greet"}),
        ("tools/call", {"name": "greet", "arguments": {"name": 5}}),
        ("tools/call", {"name": "crash"}),
        ("tools/call", {"name": "größe"}),
        ("tools/call", {"name": "ask"}),
        ("tools/call", {"name": "visit"}),
        ("tools/call", {"name": "visit_and_ask"}),
        ("tools/call", {"name": "sample"}),
        ("tools/call", {"name": "roots"}),
        ("tools/call", {"name": "wait"}),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_every_kind_of_result_is_of_its_official_type(method: str, params: JsonObject) -> None:
    """schema.ts, each method's result; basic/index, ResultType and serverInfo."""
    request = draft(served(), method, params, capabilities=EVERYTHING)
    if params.get("name") == "größe":
        request.headers["mcp-name"] = "=?base64?Z3LDtsOfZQ==?="
    assert request.send().status == 200


def test_a_question_has_no_content_and_a_result_has_no_questions() -> None:
    """basic/patterns/mrtr; modelcontextprotocol/rust-sdk#1098: a client must be able to tell them apart."""
    server = served()
    asked = draft(server, params={"name": "ask"}).send().result
    assert set(asked) == {"resultType", "inputRequests", "requestState", "_meta"}
    done = draft(server).send().result
    assert set(done) == {"resultType", "content", "_meta"}


def test_a_round_that_only_waits_sends_no_input_requests_at_all() -> None:
    """basic/patterns/mrtr, server requirement 6; conformance#442: `{}` would ask for nothing."""
    result = draft(served(), params={"name": "wait"}).send().result
    assert "inputRequests" not in result
    assert result["requestState"].startswith("rs1.")


COMPLETE: JsonObject = {"resultType": "complete", "content": [], "_meta": META}
ASK: JsonObject = {"resultType": "input_required", "inputRequests": {"q": FORM}, "requestState": "x", "_meta": META}
LIST: JsonObject = {"resultType": "complete", "tools": [], "ttlMs": 1, "cacheScope": "public", "_meta": META}
NESTED: JsonObject = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(("method", "result"), [("tools/call", COMPLETE), ("tools/call", ASK), ("tools/list", LIST)])
def test_the_judge_accepts_what_the_schema_has(method: str, result: JsonObject) -> None:
    judge_result(method, result)


@pytest.mark.parametrize(
    ("method", "result"),
    [
        pytest.param("tools/call", {**COMPLETE, "resultType": "done"}, id="unknown-result-type"),
        pytest.param("tools/call", {**COMPLETE, "extra": 1}, id="unknown-member"),
        pytest.param("tools/call", {**COMPLETE, "isError": "yes"}, id="string-for-boolean"),
        pytest.param("tools/call", {**COMPLETE, "ttlMs": 1, "cacheScope": "public"}, id="cached-call"),
        pytest.param("tools/call", {**COMPLETE, "content": [{"type": "txt", "text": ""}]}, id="unknown-content"),
        pytest.param("tools/call", {**COMPLETE, "_meta": {}}, id="no-server-info"),
        pytest.param("tools/call", {**COMPLETE, "_meta": {SERVER_INFO: {"name": "s"}}}, id="no-server-version"),
        pytest.param("tools/call", {**ASK, "content": []}, id="content-in-a-question"),
        pytest.param("tools/call", {**ASK, "inputRequests": {}}, id="empty-input-requests"),
        pytest.param("tools/call", {**ASK, "inputRequests": {"q": {**FORM, "method": "ping"}}}, id="unknown-question"),
        pytest.param(
            "tools/call",
            {**ASK, "inputRequests": {"q": {**FORM, "params": {**FORM["params"], "requestedSchema": NESTED}}}},
            id="nested-form",
        ),
        pytest.param("tools/call", {"resultType": "input_required", "_meta": META}, id="neither-question-nor-state"),
        pytest.param("tools/list", {**LIST, "ttlMs": -1}, id="negative-ttl"),
        pytest.param("tools/list", {**LIST, "ttlMs": 1.5}, id="fractional-ttl"),
        pytest.param("tools/list", {**LIST, "cacheScope": "all"}, id="unknown-cache-scope"),
        pytest.param("tools/list", {key: LIST[key] for key in LIST if key != "ttlMs"}, id="no-ttl"),
    ],
)
def test_the_judge_refuses_what_the_schema_lacks(method: str, result: JsonObject) -> None:
    """A judge that cannot say no proves nothing about the other tests."""
    with pytest.raises((AssertionError, ValidationError, KeyError)):
        judge_result(method, result)


NO_STORE = {"cache-control": "no-store", "content-type": "application/json"}
SENT = HttpRequest(
    "POST", "/mcp", {"mcp-protocol-version": "2026-07-28"}, b'{"jsonrpc":"2.0","id":"1","method":"tools/call"}'
)


def _response(message: Any, status: int, headers: dict[str, str]) -> HttpResponse:
    return HttpResponse(status, headers, json.dumps(message).encode())


def _result(**members: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "1", "result": COMPLETE, **members}


def _error(code: int, data: Any = None, **members: Any) -> JsonObject:
    error = {"code": code, "message": "m"} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": "1", "error": error, **members}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: _response(_result(), 200, {**NO_STORE, "cache-control": "private"}), id="stored"),
        pytest.param(lambda: _response(_result(), 200, {"cache-control": "no-store"}), id="no-content-type"),
        pytest.param(lambda: _response(_result(id=1), 200, NO_STORE), id="another-id"),
        pytest.param(lambda: _response(_result(jsonrpc="1.0"), 200, NO_STORE), id="another-jsonrpc"),
        pytest.param(lambda: _response(_result(extra=1), 200, NO_STORE), id="extra-member"),
        pytest.param(lambda: _response(_error(-32601), 400, NO_STORE), id="unknown-method-as-400"),
        pytest.param(lambda: _response(_error(-32000), 400, NO_STORE), id="unlisted-code"),
        pytest.param(lambda: _response(_error(-32022), 400, NO_STORE), id="version-error-without-data"),
        pytest.param(
            lambda: _response(_error(-32021, {"requiredCapabilities": ["elicitation"]}), 400, NO_STORE),
            id="capabilities-as-a-list",
        ),
        pytest.param(lambda: _response(_error(-32600, id=None), 400, NO_STORE), id="null-id"),
        pytest.param(lambda: _response(_error(-32600), 413, NO_STORE), id="id-of-an-unread-message"),
        pytest.param(lambda: HttpResponse(202, {"cache-control": "no-store"}, b"{}"), id="body-of-a-202"),
        pytest.param(lambda: HttpResponse(200, NO_STORE, json.dumps(_result(), indent=1).encode()), id="several-lines"),
    ],
)
def test_the_judge_refuses_responses_that_the_transport_does_not_allow(make: Callable[[], HttpResponse]) -> None:
    judge(SENT, _response(_result(), 200, NO_STORE))
    with pytest.raises((AssertionError, ValidationError, KeyError)):
        judge(SENT, make())
