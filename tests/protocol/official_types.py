"""A judge of responses: the official wire types of each MCP revision, and what the specification adds in prose."""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from functools import cache
from types import UnionType
from typing import Any, Final, get_args

from mcp_types import _v2025_11_25 as older_schema
from mcp_types import _v2026_07_28 as schema  # the one-revision models: the public ones accept every revision's members
from mcp_types.methods import CACHEABLE_METHODS, INPUT_REQUIRED_METHODS, SERVER_NOTIFICATIONS, SERVER_RESULTS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from app.http import HttpRequest, HttpResponse

VERSION: Final = "2026-07-28"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"

_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LISTEN: Final = "subscriptions/listen"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_STATUS: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
_TYPED_ERRORS: Final[dict[int, Any]] = {
    -32020: schema.HeaderMismatchError,
    -32021: schema.MissingRequiredClientCapabilityError,
    -32022: schema.UnsupportedProtocolVersionError,
}
# Refused before there is a JSON-RPC message to answer: the body may still be an error response, without an id.
_TRANSPORT_STATUS: Final = frozenset((403, 405, 406, 413, 415))
_NOT_BEFORE_2026: Final = frozenset(("resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"))
# A client of that revision reads content by its type, and refuses the whole result for one that it does not know.
_LATER_CONTENT: Final = {"2025-03-26": frozenset(("resource_link",))}
_OLDER_ERRORS: Final = frozenset((-32700, -32600, -32601, -32602, -32603, -32002, -32042))


def judge(request: HttpRequest, response: HttpResponse) -> None:
    """Raise AssertionError or ValidationError for a response that the request's MCP revision does not allow."""
    assert response.headers["cache-control"] == "no-store"
    assert all(name == name.lower() for name in response.headers)
    if response.status in (202, 204):
        assert "content-type" not in response.headers
    if response.status in (202, 204) or request.method == "HEAD":
        assert response.body == b""
        return
    *notifications, message = _messages(response)
    if isinstance(message.get("error"), str):
        # RFC 6750 and plain HTTP refusals come before MCP begins.
        assert response.status in (400, 401, 403, 404, 503)
        assert set(message) == {"error"}
    elif response.status in _TRANSPORT_STATUS:
        _matches(schema.JSONRPCErrorResponse, message)
        assert message["error"]["code"] == -32600
        assert "id" not in message
    else:
        sent = _sent(request)
        version = _revision(request, sent)
        if version == VERSION:
            _judge_modern(sent, message, response.status)
        else:
            _judge_older(sent, message, response.status, version)
        _judge_notifications(sent, notifications, version)
        if "id" in message:
            assert sent["id"] is not None
            assert (type(message["id"]), message["id"]) == (type(sent["id"]), sent["id"])
        return
    assert not notifications


def _sent(request: HttpRequest) -> dict[str, Any]:
    """The JSON-RPC message of a request; empty for a body that is none."""
    try:
        sent = json.loads(request.body)
    except (ValueError, RecursionError):
        return {}
    return sent if isinstance(sent, dict) else {}


def _params(sent: dict[str, Any]) -> dict[str, Any]:
    params = sent.get("params")
    return params if isinstance(params, dict) else {}


def _meta(sent: dict[str, Any]) -> dict[str, Any]:
    meta = _params(sent).get("_meta")
    return meta if isinstance(meta, dict) else {}


def _revision(request: HttpRequest, sent: dict[str, Any]) -> str:
    """The revision whose rules hold (2026-07-28, basic/versioning): the body decides, and after it the header."""
    if not sent or PROTOCOL_VERSION in _meta(sent):
        return VERSION
    header = request.headers.get("mcp-protocol-version", "").strip()
    if sent.get("method") == "initialize":
        wanted = _params(sent).get("protocolVersion")
        return wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else HANDSHAKE_PROTOCOL_VERSIONS[-1]
    # 2025-11-25, basic/transports, Protocol Version Header: what to assume without one.
    return header if header in HANDSHAKE_PROTOCOL_VERSIONS else VERSION if header else "2025-03-26"


def _judge_modern(sent: dict[str, Any], message: dict[str, Any], status: int) -> None:
    if "result" in message:
        assert status == 200
        judge_result(sent["method"], message["result"])
        _matches(schema.JSONRPCResultResponse, {**message, "result": {"resultType": "complete"}})
        if sent["method"] == _LISTEN:
            assert message["result"]["_meta"][SUBSCRIPTION_ID] == sent["id"]
    else:
        code = message["error"]["code"]
        _matches(_TYPED_ERRORS.get(code, schema.JSONRPCErrorResponse), message)
        assert status == _STATUS.get(code, 500 if code == -32603 else None)


def judge_result(method: str, result: dict[str, Any]) -> None:
    """Raise for a result that is not one of `method`'s at 2026-07-28, member by member."""
    if result["resultType"] == "input_required":
        assert method in INPUT_REQUIRED_METHODS
        _judge_ask(result)
    else:
        assert result["resultType"] == "complete"
        _matches(_complete_model(method), result)
        assert ("ttlMs" in result) == ("cacheScope" in result) == (method in CACHEABLE_METHODS)
        _judge_prose(result)
    _matches(schema.Implementation, result["_meta"][SERVER_INFO])


def _complete_model(method: str) -> Any:
    """By the discriminator, not as a union: an input_required with `content` would pass as a CallToolResult."""
    model = SERVER_RESULTS[(method, VERSION)]
    if not isinstance(model, UnionType):
        return model
    (complete,) = (each for each in get_args(model) if each is not schema.InputRequiredResult)
    return complete


def _judge_ask(result: dict[str, Any]) -> None:
    _matches(schema.InputRequiredResult, result)
    assert "inputRequests" in result or "requestState" in result
    assert result.get("inputRequests") != {}
    for asked in result.get("inputRequests", {}).values():
        for member in asked.get("params", {}).get("requestedSchema", {}).get("properties", {}).values():
            _matches(schema.PrimitiveSchemaDefinition, member)


def _judge_prose(result: dict[str, Any]) -> None:
    """What the schemas of every revision leave to the text: names that differ, Base64 that decodes."""
    for kind, key in (
        ("tools", "name"),
        ("prompts", "name"),
        ("resources", "uri"),
        ("resourceTemplates", "uriTemplate"),
    ):
        names = [each[key] for each in result.get(kind, ())]
        assert len(set(names)) == len(names), f"two {kind} have one {key}"
    for encoded in _base64_members(result):
        b64decode(encoded, validate=True)


def _base64_members(value: Any) -> Iterator[str]:
    """The `blob` of resource contents, the `data` of images and sounds, wherever they stand."""
    match value:
        case {"type": "image" | "audio", "data": str(data)}:
            yield data
        case {"uri": str(), "blob": str(blob)}:
            yield blob
        case dict():
            for name, each in value.items():
                if name != "structuredContent":  # a tool's own, whatever it looks like
                    yield from _base64_members(each)
        case list():
            for each in value:
                yield from _base64_members(each)


def _judge_older(sent: dict[str, Any], message: dict[str, Any], status: int, version: str) -> None:
    """A response by the rules of an earlier revision; mcp_types has one schema for all of them."""
    if "result" in message:
        assert status == 200
        result, method = message["result"], sent["method"]
        _matches(older_schema.JSONRPCResultResponse, {**message, "result": {}})
        assert not _NOT_BEFORE_2026 & result.keys()
        _matches(SERVER_RESULTS[(method, version)], result)
        if method == "initialize":
            assert result["protocolVersion"] in HANDSHAKE_PROTOCOL_VERSIONS
        if method == "tools/call":
            assert not _LATER_CONTENT.get(version, frozenset()) & {block["type"] for block in result["content"]}
        _judge_prose(result)
        return
    code = message["error"]["code"]
    assert code in _OLDER_ERRORS
    if code == -32042:
        assert version == "2025-11-25"
        assert message["error"]["data"]["elicitations"]
        _matches(older_schema.URLElicitationRequiredError, message)
    _matches(older_schema.JSONRPCErrorResponse, message)
    # Clients of that era read no body of any other status, and show their user a number.
    assert status == {-32700: 400, -32600: 400, -32603: 500}.get(code, 200) or status == 200


def _judge_notifications(sent: dict[str, Any], notifications: Sequence[dict[str, Any]], version: str) -> None:
    """The messages in front of a response: each of its type, and only what the request asked for."""
    progress = float("-inf")
    for number, message in enumerate(notifications):
        _matches(SERVER_NOTIFICATIONS[(message["method"], version)], message)
        params = message["params"]
        match message["method"]:
            case "notifications/progress":
                assert params["progressToken"] == _meta(sent)["progressToken"]
                assert params["progress"] > progress
                progress = params["progress"]
            case "notifications/message" if version == VERSION:
                assert _LEVELS.index(params["level"]) >= _LEVELS.index(_meta(sent)[LOG_LEVEL])
            case "notifications/message":
                pass
            case other:
                assert sent["method"] == _LISTEN, f"{other} is for subscriptions"
                assert params["_meta"][SUBSCRIPTION_ID] == sent["id"]
                assert (other == _ACKNOWLEDGED) == (number == 0)
    if sent.get("method") == _LISTEN and notifications:
        assert notifications[0]["method"] == _ACKNOWLEDGED
        honoured, wanted = notifications[0]["params"]["notifications"], sent["params"]["notifications"]
        assert all(wanted.get(kind) for kind in honoured), "what was not asked for is not sent"


def _messages(response: HttpResponse) -> list[dict[str, Any]]:
    """The JSON-RPC messages of a body: one as JSON, or as many as the event stream has."""
    body = response.body.decode()
    if response.headers["content-type"] == "text/event-stream":
        assert response.headers["x-accel-buffering"] == "no"
        assert body.endswith("\n\n")
        events = body.removesuffix("\n\n").split("\n\n")
        assert all(event.startswith("event: message\ndata: ") for event in events)
        lines = [event.removeprefix("event: message\ndata: ") for event in events]
    else:
        assert response.headers["content-type"] == "application/json"
        lines = [body]
    messages = [_message(line) for line in lines]
    assert all("method" in each and "id" not in each for each in messages[:-1]), "a response is the last message"
    return messages


def _message(line: str) -> dict[str, Any]:
    assert "\n" not in line
    message: dict[str, Any] = json.loads(line)
    return message


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _matches(model: Any, value: Any) -> None:
    """The models ignore what they do not know: a member that does not come back out is one the schema lacks."""
    adapter = _adapter(model)
    parsed = adapter.validate_json(json.dumps(value), strict=True, by_name=False)
    returned = adapter.dump_python(parsed, mode="json", by_alias=True, exclude_unset=True)
    assert returned == value, f"{model} does not know all of {value}, only {returned}"
