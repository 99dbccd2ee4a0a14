"""From what a function returned to the HTTP response that the client sees, with the gateway's quirks. Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from infra.local.emulator.response_parameters import Headers, Mappings, apply

# API Gateway owns these names and keeps the function's value under another (api-gateway-known-issues).
_REMAPPED = frozenset({"date", "server", "www-authenticate"})

# The gateway frames its own message.
_DROPPED = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


@dataclass(frozen=True)
class HttpResponse:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


def message(status: int, text: str) -> HttpResponse:
    """A response of the gateway's own."""
    return HttpResponse(status, [("content-type", "application/json")], json.dumps({"message": text}).encode())


INTERNAL_SERVER_ERROR = message(500, "Internal Server Error")


class _InvalidOutput(Exception):
    """The function's output is not a payload format 2.0 response."""


def build_response(output: bytes, *, response_parameters: Mappings) -> HttpResponse:
    """The response for a function's output, or 500 when API Gateway could not make one from it."""
    try:
        return _response(json.loads(output), response_parameters)
    except (ValueError, _InvalidOutput):
        return INTERNAL_SERVER_ERROR


def _response(output: Any, response_parameters: Mappings) -> HttpResponse:
    if not isinstance(output, dict) or "statusCode" not in output:
        # "If your Lambda function returns valid JSON and doesn't return a statusCode, API Gateway makes assumptions."
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return HttpResponse(200, [("content-type", "application/json")], _encode(text))
    status = _status(output["statusCode"])
    sent = _sent_headers(output)
    headers: Headers = []
    for name, value in sent:
        if name in _REMAPPED:
            headers.append((f"x-amzn-remapped-{name}", value))
        elif name not in _DROPPED:
            headers.append((name, value))
    headers = apply(response_parameters.get(status, ()), headers, integration=dict(sent))
    body = _body(output)
    if body and not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain;charset=UTF-8"))
    return HttpResponse(status, headers, body)


def _status(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise _InvalidOutput
    status = int(value)
    if not 200 <= status <= 599:
        raise _InvalidOutput
    return status


def _sent_headers(output: dict[str, Any]) -> Headers:
    headers = output.get("headers") or {}
    cookies = output.get("cookies") or []
    if not isinstance(headers, dict) or not isinstance(cookies, list):
        raise _InvalidOutput
    sent = [(name.lower(), _header_value(value)) for name, value in headers.items()]
    sent += [("set-cookie", _header_value(cookie)) for cookie in cookies]
    # A line break in a value would let a function's caller write headers of its own.
    if not all(_TOKEN.fullmatch(name) and _FIELD_VALUE.fullmatch(value) for name, value in sent):
        raise _InvalidOutput
    return sent


def _header_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise _InvalidOutput
    return str(value).strip()


def _body(output: dict[str, Any]) -> bytes:
    body = output.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise _InvalidOutput
    if not output.get("isBase64Encoded"):
        return _encode(body)
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise _InvalidOutput from error


def _encode(text: str) -> bytes:
    # A lone surrogate is valid JSON and not valid UTF-8.
    return text.encode("utf-8", errors="replace")
