"""The headers that mirror a request's body: both must say the same (Streamable HTTP, Server Validation)."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from app.protocol import messages
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.messages import RequestMeta
from app.strict_json import JsonObject

PARAM_PREFIX: Final = "Mcp-Param-"

_FIELD_VALUE = re.compile(r"[\x20-\x7e\t]*\Z")
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=\Z", re.DOTALL)
_INTEGER = re.compile(r"(-?[0-9]{1,32})(?:\.0{1,16})?\Z")


def check_headers(headers: Mapping[str, str], request: Request, meta: RequestMeta) -> None:
    """Require that the standard headers say what the body says. Raises JSONRPCError (-32020).

    A duplicate arrives joined with "," and so never equals the body (Request Metadata, Server Validation).
    """
    _match(headers, "MCP-Protocol-Version", meta.protocol_version)
    _match(headers, "Mcp-Method", request.method)
    named_by = messages.NAMED_BY.get(request.method)
    name = request.params.get(named_by) if named_by else None
    if isinstance(name, str) and _decoded(headers, "Mcp-Name") != name:
        raise _mismatch("the header Mcp-Name does not match the body")


def check_parameters(
    headers: Mapping[str, str], arguments: JsonObject, mirrored: Mapping[tuple[str, ...], str]
) -> None:
    """Require that each `Mcp-Param-*` header of a tool says what its argument says. Raises JSONRPCError (-32020)."""
    for path, name in mirrored.items():
        header = PARAM_PREFIX + name
        value = _at(arguments, path)
        if value is None:
            if header.lower() in headers:
                raise _mismatch(f"the header {header} has no argument in the body")
        elif not _same(_decoded(headers, header), value):
            raise _mismatch(f"the header {header} does not match the body")


def _at(arguments: JsonObject, path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _same(text: str, value: Any) -> bool:
    match value:
        case bool():
            return text == ("true" if value else "false")
        case int():
            number = _INTEGER.match(text)
            return number is not None and int(number[1]) == value
        case float():  # JSON has one kind of number: 42.0 in the body is the integer 42
            number = _INTEGER.match(text)
            return number is not None and int(number[1]) == value
        case str():
            return text == value
        case _:
            # What is no primitive has no header form; the tool's schema refuses it next.
            return False


def _match(headers: Mapping[str, str], name: str, expected: str) -> None:
    if _text(headers, name) != expected:
        raise _mismatch(f"the header {name} does not match the body")


def _text(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name.lower())
    if value is None:
        raise _mismatch(f"the header {name} is required")
    value = value.strip(" \t")
    if not _FIELD_VALUE.match(value):
        raise _mismatch(f"the header {name} has characters outside visible ASCII: use the Base64 form")
    return value


def _decoded(headers: Mapping[str, str], name: str) -> str:
    return decode_header_value(_text(headers, name), name)


def decode_header_value(value: str, name: str) -> str:
    """Decode the Base64 sentinel form, exactly (Value Encoding). Anything else is literal."""
    sentinel = _SENTINEL.match(value)
    if sentinel is None:
        return value
    encoded = sentinel.group(1).encode()
    try:
        decoded = b64decode(encoded, validate=True)
        if b64encode(decoded) == encoded:
            return decoded.decode("utf-8")
    except ValueError:
        pass
    raise _mismatch(f"the header {name} is not valid Base64 of UTF-8")


def _mismatch(what: str) -> JSONRPCError:
    return JSONRPCError(ErrorCode.HEADER_MISMATCH, f"Header mismatch: {what}")
