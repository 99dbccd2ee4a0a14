"""JSON-RPC 2.0 as MCP uses it: the envelope, the error codes and the HTTP status of each."""

import json
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from app.strict_json import JsonObject

RequestId: TypeAlias = str | int

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

MAX_ID: Final = 256
"""Longest string id, in characters: an id is echoed into every answer and log line."""


class ErrorCode(IntEnum):
    """Error codes of JSON-RPC 2.0 section 5.1 and of MCP 2026-07-28, basic/index, Error Codes."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022


# The specification fixes 404 for an unknown method and 400 for header, version, _meta and capability
# errors; 400 for the rest of the caller's faults and 500 for ours are this project's choice.
HTTP_STATUS: Final[Mapping[IntEnum, int]] = {
    code: {ErrorCode.METHOD_NOT_FOUND: 404, ErrorCode.INTERNAL_ERROR: 500}.get(code, 400) for code in ErrorCode
}


class JSONRPCError(Exception):
    """A request that is answered with a JSON-RPC error. `reason` is for the log and never travels."""

    def __init__(self, code: IntEnum, message: str, data: JsonObject | None = None, *, reason: str = "") -> None:
        self.code = code
        self.message = message
        self.data = data
        self.reason = reason or message
        super().__init__(message)


class Request(NamedTuple):
    """A JSON-RPC request. `params` is empty when the request has none."""

    id: RequestId
    method: str
    params: JsonObject


class Notification(NamedTuple):
    """A JSON-RPC notification: accepted or refused, never answered."""

    method: str
    params: JsonObject


def parse(message: Any) -> Request | Notification:
    """Read one JSON-RPC message. Raises JSONRPCError (-32600) for anything that is not a request
    or a notification: a batch, a response, an id that is neither a string nor an integer.
    """
    if not isinstance(message, dict):
        what = "Batches are not part of MCP" if isinstance(message, list) else "A message must be a JSON object"
        raise JSONRPCError(ErrorCode.INVALID_REQUEST, f"{what}: send one JSON-RPC request in each POST")
    if message.get("jsonrpc") != "2.0":
        raise JSONRPCError(ErrorCode.INVALID_REQUEST, 'The member "jsonrpc" must be "2.0"')
    method = message.get("method")
    if not isinstance(method, str):
        what = "Clients send no responses" if "result" in message or "error" in message else "No method"
        raise JSONRPCError(ErrorCode.INVALID_REQUEST, f'{what}: the member "method" must be a string')
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise JSONRPCError(ErrorCode.INVALID_REQUEST, 'The member "params" must be an object')
    if "id" not in message:
        return Notification(method, params)
    request_id = readable_id(message)
    if request_id is None:
        raise JSONRPCError(
            ErrorCode.INVALID_REQUEST,
            f'The member "id" must be an integer or a string up to {MAX_ID} characters',
        )
    return Request(request_id, method, params)


def readable_id(message: Any) -> RequestId | None:
    """The id to echo, where the message has a valid one that its sender gave it."""
    if not isinstance(message, dict):
        return None
    if "method" not in message and ("result" in message or "error" in message):
        # A posted response has an id of ours: echoed, it would answer some other request of the client.
        return None
    request_id = message.get("id")
    if isinstance(request_id, str) and len(request_id) <= MAX_ID:
        return request_id
    # bool is an int in Python; `true` is not a JSON-RPC id.
    return request_id if isinstance(request_id, int) and not isinstance(request_id, bool) else None


def result_response(request_id: RequestId, result: JsonObject) -> bytes:
    """A result response on one line: line-oriented clients read it so."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_response(request_id: RequestId | None, error: JSONRPCError) -> bytes:
    """An error response. The id is left out where it could not be read (MCP basic/index)."""
    members: JsonObject = {"code": int(error.code), "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    response: JsonObject = {"jsonrpc": "2.0"}
    if request_id is not None:
        response["id"] = request_id
    return encode(response | {"error": members})


def encode(message: JsonObject) -> bytes:
    """A message on one line."""
    return _ENCODER.encode(message).encode("utf-8", "replace")
