"""From an HTTP request to a payload format 2.0 event, as an HTTP API makes it. Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from infra.local.emulator.intrinsics import ACCOUNT_ID
from infra.local.emulator.routes import Match

API_ID = "local"

# What reaches a function as text; measured on AWS by ministackorg/ministack#766: every other type, form posts and
# a missing type included, arrives base64-encoded.
_TEXT_TYPES = frozenset({"application/json", "application/javascript", "application/xml"})

# RFC 9110, section 7.6.1: meant for the next hop, which is the gateway.
_HOP_BY_HOP = frozenset(
    {"connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request as it came off the wire: bytes, and header names in lower case."""

    method: str
    raw_path: bytes
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    client: str
    port: int


def decode_path(raw_path: bytes) -> str:
    """The path that is routed and that the function sees: an HTTP API decodes it, `%2F` included.

    Seen on AWS: fastify/aws-lambda-fastify#169, and middleapi/standard-server#93 for what follows a decoded `?`.
    """
    # Bytes that are not UTF-8 must not break the JSON of the event.
    return unquote(raw_path.decode("latin-1"), errors="replace").partition("?")[0]


def build_event(
    request: HttpRequest, match: Match, *, path: str, stage: str, now: float, request_id: str, trace_id: str
) -> dict[str, Any]:
    """The event that the function behind the matched route receives."""
    headers, cookies = _headers(request)
    headers["x-amzn-trace-id"] = trace_id
    query = request.query.decode("latin-1")
    domain = headers.get("host", "").rsplit(":", 1)[0]
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": match.route.key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": API_ID,
            "domainName": domain,
            "domainPrefix": domain.split(".", 1)[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.client,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": match.route.key,
            "stage": stage,
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query:
        event["queryStringParameters"] = _query_parameters(query)
    if match.path_parameters:
        event["pathParameters"] = dict(match.path_parameters)
    if request.body:
        event["body"], event["isBase64Encoded"] = _body(request.body, headers.get("content-type", ""))
    return event


def encode_event(event: dict[str, Any]) -> bytes:
    # ASCII escapes would double the size of most of the world's text, and the 6 MB limit counts these bytes.
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _headers(request: HttpRequest) -> tuple[dict[str, str], list[str]]:
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in request.headers:
        # Bytes above 0x7f have no agreed meaning (RFC 9110, section 5.5); latin-1 keeps each of them.
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "cookie":
            cookies += [cookie.strip() for cookie in value.split(";") if cookie.strip()]
        elif name not in _HOP_BY_HOP:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    if request.body:
        # A chunked request has no length before it arrives, and its event has one.
        headers["content-length"] = str(len(request.body))
    forwarded = headers.get("x-forwarded-for")
    headers["x-forwarded-for"] = f"{forwarded}, {request.client}" if forwarded else request.client
    headers["x-forwarded-port"] = str(request.port)
    headers["x-forwarded-proto"] = "http"
    return headers, cookies


def _query_parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return parameters


def _body(body: bytes, content_type: str) -> tuple[str, bool]:
    media_type = content_type.split(";", 1)[0].strip().lower()
    if media_type.startswith("text/") or media_type in _TEXT_TYPES:
        try:
            return body.decode("utf-8"), False
        except UnicodeDecodeError:
            # What AWS does here is not documented; base64 loses nothing and keeps the event valid JSON.
            return base64.b64encode(body).decode(), True
    return base64.b64encode(body).decode(), True
