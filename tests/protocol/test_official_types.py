"""The judge knows event streams and the earlier revisions too, and can say no to each of their faults."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.http import HttpRequest, HttpResponse
from app.strict_json import JsonObject
from tests.protocol.official_types import LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID, VERSION, judge

INFO: JsonObject = {"name": "s", "version": "1"}
META: JsonObject = {SERVER_INFO: INFO}
STREAM = {"cache-control": "no-store", "content-type": "text/event-stream", "x-accel-buffering": "no"}
NO_STORE = {"cache-control": "no-store", "content-type": "application/json"}
PROGRESS: JsonObject = {"method": "notifications/progress", "params": {"progressToken": "t", "progress": 1}}
LOG: JsonObject = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
DONE: JsonObject = {"resultType": "complete", "content": [], "_meta": META}


def request(method: str, params: JsonObject, *, version: str = VERSION, meta: JsonObject | None = None) -> HttpRequest:
    if version == VERSION:
        params = {**params, "_meta": {PROTOCOL_VERSION: VERSION, **(meta or {})}}
    elif meta:
        params = {**params, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return HttpRequest("POST", "/mcp", {"mcp-protocol-version": version}, json.dumps(message).encode())


def answer(result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 7, "result": result}


def error(code: int, data: Any = None) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": "m"} | ({"data": data} if data else {})}


def stream(*messages: JsonObject) -> HttpResponse:
    events = (json.dumps({"jsonrpc": "2.0", **message}) for message in messages)
    return HttpResponse(200, STREAM, "".join(f"event: message\ndata: {event}\n\n" for event in events).encode())


def body(message: JsonObject, status: int = 200) -> HttpResponse:
    return HttpResponse(status, NO_STORE, json.dumps(message).encode())


CALL = request("tools/call", {"name": "t"}, meta={"progressToken": "t", LOG_LEVEL: "info"})
LISTEN = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
LIST_CHANGED: JsonObject = {
    "method": "notifications/tools/list_changed",
    "params": {"_meta": {SUBSCRIPTION_ID: 7}},
}


def acknowledged(subscription: Any = 7, **notifications: bool) -> JsonObject:
    return {
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {SUBSCRIPTION_ID: subscription}, "notifications": notifications},
    }


def ended(subscription: Any = 7) -> JsonObject:
    return answer({"resultType": "complete", "_meta": {**META, SUBSCRIPTION_ID: subscription}})


def more(notification: JsonObject, **params: Any) -> JsonObject:
    return {**notification, "params": {**notification["params"], **params}}


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        (CALL, stream(PROGRESS, LOG, more(PROGRESS, progress=2), answer(DONE))),
        (LISTEN, stream(acknowledged(), ended())),
        (LISTEN, stream(acknowledged(toolsListChanged=True), LIST_CHANGED, ended())),
    ],
    ids=["progress-and-log", "listen", "listen-with-news"],
)
def test_an_event_stream_of_notifications_and_one_response_is_accepted(
    sent: HttpRequest, response: HttpResponse
) -> None:
    """basic/transports, Streamable HTTP; basic/patterns/subscriptions."""
    judge(sent, response)


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        pytest.param(CALL, stream(PROGRESS), id="no-response"),
        pytest.param(CALL, stream(answer(DONE), PROGRESS), id="notification-after-the-response"),
        pytest.param(CALL, stream(answer(DONE), answer(DONE)), id="two-responses"),
        pytest.param(CALL, stream(more(PROGRESS, progressToken="u"), answer(DONE)), id="another-token"),
        pytest.param(CALL, stream(PROGRESS, PROGRESS, answer(DONE)), id="progress-that-stands-still"),
        pytest.param(CALL, stream(more(LOG, level="debug"), answer(DONE)), id="below-the-level"),
        pytest.param(CALL, stream(more(LOG, level="loud"), answer(DONE)), id="no-level"),
        pytest.param(CALL, stream(more(LOG, extra=1), answer(DONE)), id="unknown-member"),
        pytest.param(CALL, stream(LIST_CHANGED, answer(DONE)), id="news-without-subscription"),
        pytest.param(request("tools/call", {}), stream(PROGRESS, answer(DONE)), id="progress-not-asked-for"),
        pytest.param(request("tools/call", {}), stream(LOG, answer(DONE)), id="log-not-asked-for"),
        pytest.param(LISTEN, stream(LIST_CHANGED, ended()), id="not-acknowledged-first"),
        pytest.param(LISTEN, stream(acknowledged(8), ended()), id="another-subscription"),
        pytest.param(LISTEN, stream(acknowledged(), ended(8)), id="the-end-of-another"),
        pytest.param(LISTEN, stream(acknowledged(promptsListChanged=True), ended()), id="more-than-wanted"),
        pytest.param(
            CALL, HttpResponse(200, STREAM, stream(answer(DONE)).body.removesuffix(b"\n")), id="unfinished-event"
        ),
    ],
)
def test_an_event_stream_with_a_fault_is_refused(sent: HttpRequest, response: HttpResponse) -> None:
    with pytest.raises((AssertionError, ValidationError, KeyError)):
        judge(sent, response)


INITIALIZED: JsonObject = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
URL: JsonObject = {"mode": "url", "elicitationId": "1", "url": "https://example.com", "message": "m"}
LINK: JsonObject = {"type": "resource_link", "uri": "a://b", "name": "b"}
OLD = request("tools/call", {"name": "t"}, version="2025-11-25")
OLDER = request("tools/call", {"name": "t"}, version="2025-06-18")


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        (request("initialize", {"protocolVersion": "2025-11-25"}, version=""), body(answer(INITIALIZED))),
        (request("ping", {}, version="2025-06-18"), body(answer({}))),
        (OLD, body(answer({"content": []}))),
        (OLDER, body(answer({"content": [LINK]}))),
        (OLD, stream(LOG, answer({"content": []}))),
        (OLD, body(error(-32042, {"elicitations": [URL]}))),
        (OLDER, body(error(-32601))),
        (OLDER, HttpResponse(202, {"cache-control": "no-store"})),
    ],
    ids=["initialize", "ping", "result", "link", "log", "url-elicitation", "error", "accepted"],
)
def test_answers_of_earlier_revisions_are_accepted(sent: HttpRequest, response: HttpResponse) -> None:
    """2025-11-25, basic/lifecycle and basic/transports."""
    judge(sent, response)


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        pytest.param(OLD, body(answer(DONE)), id="result-type"),
        pytest.param(
            request("tools/list", {}, version="2025-11-25"), body(answer({"tools": [], "ttlMs": 1})), id="ttl"
        ),
        pytest.param(OLD, body(answer({"content": [], "extra": 1})), id="unknown-member"),
        pytest.param(OLD, body(answer({})), id="no-content"),
        pytest.param(OLD, body(error(-32601), 404), id="an-error-that-the-client-would-not-read"),
        pytest.param(OLD, body(error(-32021, {"requiredCapabilities": {}})), id="an-error-of-2026"),
        pytest.param(OLD, body(error(-32042, {"elicitations": []})), id="url-elicitation-of-nothing"),
        pytest.param(
            request("tools/call", {}, version="2025-03-26"), body(answer({"content": [LINK]})), id="content-of-later"
        ),
        pytest.param(OLDER, body(error(-32042, {"elicitations": [URL]})), id="url-elicitation-too-early"),
        pytest.param(OLD, stream(PROGRESS, answer({"content": []})), id="progress-not-asked-for"),
        pytest.param(request("server/discover", {}, version="2025-11-25"), body(answer(DONE)), id="a-method-of-2026"),
        pytest.param(
            request("initialize", {"protocolVersion": "2025-11-25"}, version=""),
            body(answer({**INITIALIZED, "protocolVersion": VERSION})),
            id="a-version-without-handshake",
        ),
    ],
)
def test_answers_that_earlier_revisions_do_not_know_are_refused(sent: HttpRequest, response: HttpResponse) -> None:
    with pytest.raises((AssertionError, ValidationError, KeyError)):
        judge(sent, response)


@pytest.mark.parametrize(
    "content",
    [
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "a://b", "blob": "="}},
        {"type": "resource", "resource": {"uri": "a://b"}},
        {"type": "resource_link", "uri": "a://b"},
    ],
    ids=["image", "blob", "neither-text-nor-blob", "link-without-name"],
)
def test_content_with_a_fault_is_refused(content: JsonObject) -> None:
    """server/tools, Tool Result."""
    with pytest.raises((AssertionError, ValidationError, ValueError)):
        judge(CALL, body(answer({**DONE, "content": [content]})))
