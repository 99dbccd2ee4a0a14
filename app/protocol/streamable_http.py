"""Streamable HTTP for MCP 2026-07-28: one POST in, one finished answer out.

The order of checks is part of the contract: Origin, method, size, access token, media types, JSON,
envelope, `_meta`, headers, version, and then the method's own. Bytes of an unauthenticated caller never
reach the JSON parser.
"""

import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from app import strict_json
from app.errors import AuthorizationError, Unavailable
from app.http import HttpRequest, HttpResponse
from app.ports import ResourceServer
from app.principal import AccessToken
from app.protocol import jsonrpc, messages
from app.protocol.dispatch import Server
from app.protocol.jsonrpc import HTTP_STATUS, ErrorCode, JSONRPCError, Notification, Request
from app.protocol.messages import RequestMeta
from app.strict_json import JsonObject, NotStrictJson

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"
_NO_STORE: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_FIELD_VALUE = re.compile(r"[\x20-\x7e\t]*\Z")
_REFUSED_RANGE = re.compile(r"q=0(\.0{0,3})?\Z")
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=\Z", re.DOTALL)
_PREFLIGHT_HEADERS: Final = "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name"
_EXPOSED_HEADERS: Final = "www-authenticate, x-mcp-challenge"

_log = logging.getLogger("roundtrip")


class StreamableHttp:
    """The MCP endpoint: an HttpRequest in, an HttpResponse out. Never raises for what came in."""

    def __init__(self, server: Server, resource_server: ResourceServer, *, allowed_origins: Iterable[str] = ()) -> None:
        self._server = server
        self._resource_server = resource_server
        self._allowed_origins = frozenset(allowed_origins)

    def respond(self, request: HttpRequest, *, now: float, entropy: bytes) -> HttpResponse:
        """Answer one request. `now` is in seconds since the epoch, `entropy` 16 fresh random bytes."""
        facts: dict[str, Any] = {"request_id": request.request_id}
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._allowed_origins:
            # Streamable HTTP, Security 1: DNS rebinding reaches a server through somebody's browser.
            return _plain(403, "Origin not allowed", {"outcome": "refused", "reason": "origin"})
        if request.method == "OPTIONS" and origin is not None:
            response = _preflight()
        elif request.method != "POST":
            response = _plain(405, "Use POST", {"outcome": "refused", "reason": "method"}, {"allow": "POST"})
        else:
            response = self._answer(request, facts, now=now, entropy=entropy)
        if origin is not None:
            response = _readable_by(origin, response)
        return response

    def _answer(self, request: HttpRequest, facts: dict[str, Any], *, now: float, entropy: bytes) -> HttpResponse:
        if len(request.body) > strict_json.MAX_BODY:
            return _plain(413, f"The body is larger than {strict_json.MAX_BODY} bytes", facts | {"reason": "size"})
        try:
            access_token = self._resource_server.authenticate(request, now=now)
            facts["client_id"] = access_token.principal.client_id
            accepted = _accepted(request.headers)
            refusal = _refuse_media_types(request.headers, accepted)
            if refusal is not None:
                return _plain(*refusal, facts | {"outcome": "refused", "reason": refusal[1]})
            return self._exchange(request, access_token, accepted, facts, now=int(now), entropy=entropy)
        except (AuthorizationError, Unavailable) as error:
            response = self._resource_server.challenge(error)
            return HttpResponse(
                response.status,
                {**_NO_STORE, **response.headers},
                response.body,
                {**facts, "outcome": "refused", "reason": error.reason},
            )

    def _exchange(
        self,
        request: HttpRequest,
        access_token: AccessToken,
        accepted: frozenset[str],
        facts: dict[str, Any],
        *,
        now: int,
        entropy: bytes,
    ) -> HttpResponse:
        request_id: jsonrpc.RequestId | None = None
        try:
            try:
                message = strict_json.parse(request.body)
            except NotStrictJson as error:
                raise JSONRPCError(
                    ErrorCode.PARSE_ERROR, "The body is not valid JSON", reason=f"JSON: {error}"
                ) from None
            request_id = jsonrpc.readable_id(message)
            parsed = jsonrpc.parse(message)
            facts["method"] = parsed.method[:64]
            if isinstance(parsed, Notification):
                return HttpResponse(202, _NO_STORE, b"", facts | {"outcome": "accepted"})
            meta = _read_meta(parsed)
            check_headers(request.headers, parsed, meta)
            if meta.protocol_version not in messages.SUPPORTED_VERSIONS:
                raise messages.version_error(meta.protocol_version)
            result = self._server.dispatch(parsed, meta, access_token, now=now, entropy=entropy, facts=facts)
            return _encoded(200, jsonrpc.result_response(parsed.id, result), accepted, facts)
        except JSONRPCError as error:
            facts |= {"outcome": "refused", "code": int(error.code), "reason": error.reason}
            refusal = error
        except (AuthorizationError, Unavailable):
            raise
        except Exception as error:
            # Caught here and not at the front door: only here is the id known that the answer must have.
            _log.exception("Request %s crashed", request.request_id)
            refusal = JSONRPCError(ErrorCode.INTERNAL_ERROR, "Internal error: the server's log has the reason")
            facts |= {"outcome": "crashed", "code": int(refusal.code), "reason": type(error).__name__}
        return _encoded(HTTP_STATUS[refusal.code], jsonrpc.error_response(request_id, refusal), accepted, facts)


def _read_meta(request: Request) -> RequestMeta:
    if request.method == "initialize" and messages.META_PROTOCOL_VERSION not in _meta_of(request):
        # A legacy client has no other way to learn which versions would work (basic/versioning).
        raise messages.version_error(str(request.params.get("protocolVersion", ""))[:64])
    return RequestMeta.read(request.params)


def _meta_of(request: Request) -> JsonObject:
    meta = request.params.get(messages.META)
    return meta if isinstance(meta, dict) else {}


def check_headers(headers: Mapping[str, str], request: Request, meta: RequestMeta) -> None:
    """Require that the mirrored headers say what the body says. Raises JSONRPCError (-32020).

    A duplicate arrives joined with "," and so never equals the body (Request Metadata, Server Validation).
    """
    _match(headers, "MCP-Protocol-Version", meta.protocol_version)
    _match(headers, "Mcp-Method", request.method)
    named_by = messages.NAMED_BY.get(request.method)
    name = request.params.get(named_by) if named_by else None
    if isinstance(name, str):
        _match(headers, "Mcp-Name", name, decode=True)


def _match(headers: Mapping[str, str], name: str, expected: str, *, decode: bool = False) -> None:
    value = headers.get(name.lower())
    if value is None:
        raise _mismatch(f"the header {name} is required")
    value = value.strip(" \t")
    if not _FIELD_VALUE.match(value):
        raise _mismatch(f"the header {name} has characters outside visible ASCII: use the Base64 form")
    if decode:
        value = decode_header_value(value, name)
    if value != expected:
        raise _mismatch(f"the header {name} does not match the body")


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


def _refuse_media_types(headers: Mapping[str, str], accepted: frozenset[str]) -> tuple[int, str] | None:
    media_type, *parameters = (part.strip().lower() for part in headers.get("content-type", "").split(";"))
    if media_type != _JSON:
        return 415, f"Content-Type must be {_JSON}"
    for name, _, value in (parameter.partition("=") for parameter in parameters):
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            return 415, "The charset must be UTF-8"
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return 415, "Content-Encoding is not supported: send the body as it is"
    if not accepted:
        return 406, f"Accept must list {_JSON} and {_SSE}"
    return None


def _accepted(headers: Mapping[str, str]) -> frozenset[str]:
    """Which of our two media types the client takes. Without an Accept header it takes both.

    The most specific range decides, and a weight of 0 refuses (RFC 9110 section 12.5.1).
    """
    if "accept" not in headers:
        return frozenset((_JSON, _SSE))
    taken: dict[str, bool] = {}
    for entry in headers["accept"].split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        taken[media_range] = not any(_REFUSED_RANGE.match(parameter) for parameter in parameters)

    def takes(media_type: str) -> bool:
        ranges = (media_type, media_type.split("/")[0] + "/*", "*/*")
        return next((taken[each] for each in ranges if each in taken), False)

    return frozenset(filter(takes, (_JSON, _SSE)))


def _encoded(status: int, body: bytes, accepted: frozenset[str], facts: Mapping[str, Any]) -> HttpResponse:
    if _JSON in accepted:
        return HttpResponse(status, {**_NO_STORE, "content-type": _JSON}, body, facts)
    # The client takes an event stream only: one finished event is one.
    event = b"event: message\ndata: " + body + b"\n\n"
    return HttpResponse(status, {**_NO_STORE, "content-type": _SSE, "x-accel-buffering": "no"}, event, facts)


def _plain(
    status: int, sentence: str, facts: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> HttpResponse:
    error = JSONRPCError(ErrorCode.INVALID_REQUEST, sentence)
    return HttpResponse(
        status,
        {**_NO_STORE, "content-type": _JSON, **(headers or {})},
        jsonrpc.error_response(None, error),
        {"outcome": "refused", **facts},
    )


def _preflight() -> HttpResponse:
    headers = {
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": _PREFLIGHT_HEADERS,
        "access-control-max-age": "600",
    }
    return HttpResponse(204, {**_NO_STORE, **headers}, b"", {"outcome": "preflight"})


def _readable_by(origin: str, response: HttpResponse) -> HttpResponse:
    headers = {
        **response.headers,
        "access-control-allow-origin": origin,
        "access-control-expose-headers": _EXPOSED_HEADERS,
        "vary": "origin",
    }
    return HttpResponse(response.status, headers, response.body, response.facts)
