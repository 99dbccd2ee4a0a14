"""A judge of responses: the official wire types of MCP 2026-07-28, and what the specification adds in prose."""

import json
from functools import cache
from typing import Any, Final

from mcp_types import _v2026_07_28 as schema  # the one-revision models: the public ones accept every revision's members
from mcp_types.methods import CACHEABLE_METHODS, SERVER_RESULTS
from pydantic import TypeAdapter

from app.http import HttpRequest, HttpResponse

VERSION: Final = "2026-07-28"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

_STATUS: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
_TYPED_ERRORS: Final[dict[int, Any]] = {
    -32020: schema.HeaderMismatchError,
    -32021: schema.MissingRequiredClientCapabilityError,
    -32022: schema.UnsupportedProtocolVersionError,
}
# Refused before there is a JSON-RPC message to answer: the body may still be an error response, without an id.
_TRANSPORT_STATUS: Final = frozenset((403, 405, 406, 413, 415))


def judge(request: HttpRequest, response: HttpResponse) -> None:
    """Raise AssertionError or ValidationError for a response that MCP 2026-07-28 does not allow."""
    assert response.headers["cache-control"] == "no-store"
    assert all(name == name.lower() for name in response.headers)
    if response.status in (202, 204):
        assert "content-type" not in response.headers
    if response.status in (202, 204) or request.method == "HEAD":
        assert response.body == b""
        return
    message = _message(response)
    if isinstance(message.get("error"), str):
        # RFC 6750 and plain HTTP refusals come before MCP begins.
        assert response.status in (400, 401, 403, 404, 503)
        assert set(message) == {"error"}
    elif "result" in message:
        assert response.status == 200
        judge_result(json.loads(request.body)["method"], message["result"])
        _matches(schema.JSONRPCResultResponse, {**message, "result": {"resultType": "complete"}})
    else:
        _judge_error(message, response.status)
    if "id" in message:
        sent = json.loads(request.body)["id"]
        assert sent is not None
        assert (type(message["id"]), message["id"]) == (type(sent), sent)


def judge_result(method: str, result: dict[str, Any]) -> None:
    """Raise for a result that is not one of `method`'s, member by member."""
    if result["resultType"] == "input_required":
        _judge_ask(result)
    else:
        assert result["resultType"] == "complete"
        # By the discriminator, not as a union: an input_required with `content` would pass as a CallToolResult.
        model = schema.CallToolResult if method == "tools/call" else SERVER_RESULTS[(method, VERSION)]
        _matches(model, result)
        assert ("ttlMs" in result) == ("cacheScope" in result) == (method in CACHEABLE_METHODS)
    _matches(schema.Implementation, result["_meta"][SERVER_INFO])


def _judge_ask(result: dict[str, Any]) -> None:
    _matches(schema.InputRequiredResult, result)
    assert "inputRequests" in result or "requestState" in result
    assert result.get("inputRequests") != {}
    for asked in result.get("inputRequests", {}).values():
        for member in asked["params"].get("requestedSchema", {}).get("properties", {}).values():
            _matches(schema.PrimitiveSchemaDefinition, member)


def _judge_error(message: dict[str, Any], status: int) -> None:
    code = message["error"]["code"]
    _matches(_TYPED_ERRORS.get(code, schema.JSONRPCErrorResponse), message)
    if status in _TRANSPORT_STATUS:
        assert code == -32600
        assert "id" not in message
    else:
        assert status == _STATUS.get(code, 500 if code == -32603 else None)


def _message(response: HttpResponse) -> dict[str, Any]:
    body = response.body.decode()
    if response.headers["content-type"] == "text/event-stream":
        assert response.headers["x-accel-buffering"] == "no"
        assert body.startswith("event: message\ndata: ")
        assert body.endswith("\n\n")
        body = body.removeprefix("event: message\ndata: ").removesuffix("\n\n")
    else:
        assert response.headers["content-type"] == "application/json"
    assert "\n" not in body
    message: dict[str, Any] = json.loads(body)
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
