"""Streamable HTTP: one POST in, one finished answer out, of MCP 2026-07-28 and the revisions before it.

The order of checks is part of the contract: Origin, method, size, access token, media types, JSON,
envelope, `_meta`, headers, version, and then the method's own. Bytes of an unauthenticated caller never
reach the JSON parser.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from app import strict_json
from app.errors import AuthorizationError, Unavailable
from app.http import NO_STORE, HttpRequest, HttpResponse
from app.principal import AccessToken
from app.protocol import jsonrpc, legacy, messages
from app.protocol.dispatch import Server
from app.protocol.jsonrpc import HTTP_STATUS, ErrorCode, JSONRPCError, Notification, Request
from app.protocol.messages import RequestMeta
from app.protocol.notifications import Notifications
from app.protocol.request_headers import check_headers, check_parameters
from app.protocol.rounds import Exchange
from app.strict_json import JsonObject, NotStrictJson

if TYPE_CHECKING:
    from app.ports import ResourceServer

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"
_REFUSED_RANGE = re.compile(r"q=0(\.0{0,3})?\Z")
_REQUEST_HEADERS: Final = (
    "authorization",
    "content-type",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
)
_PARAMETER_HEADER = re.compile(r"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_EXPOSED_HEADERS: Final = "www-authenticate, x-mcp-challenge, mcp-session-id"

_log = logging.getLogger("roundtrip")


class StreamableHttp:
    """The MCP endpoint: an HttpRequest in, an HttpResponse out. Never raises for what came in."""

    def __init__(
        self, server: Server, resource_server: "ResourceServer", *, allowed_origins: Iterable[str] = ()
    ) -> None:
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
            response = _preflight(request.headers.get("access-control-request-headers", ""))
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
            accepted = _accepted(request.headers.get("accept"))
            refusal = _unreadable(request.headers.get("content-type", ""), request.headers.get("content-encoding"))
            if refusal is None and not accepted:
                refusal = 406, f"Accept must list {_JSON} and {_SSE}"
            if refusal is not None:
                return _plain(*refusal, facts | {"outcome": "refused", "reason": refusal[1]})
            return self._exchange(request, access_token, accepted, facts, now=int(now), entropy=entropy)
        except (AuthorizationError, Unavailable) as error:
            response = self._resource_server.challenge(error)
            return HttpResponse(
                response.status,
                {**NO_STORE, **response.headers},
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
        legacy_client = False
        notifications = Notifications()
        headers: dict[str, str] = {}
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
                return HttpResponse(202, NO_STORE, b"", facts | {"outcome": "accepted"})
            legacy_client = legacy.is_legacy(parsed, request.headers)
            if legacy_client:
                meta = self._server.legacy_clients.meta(parsed, request.headers, access_token.principal)
            else:
                meta = RequestMeta.read(parsed.params)
                self._check_headers(request.headers, parsed, meta)
            facts["protocol_version"] = meta.protocol_version
            sent_meta = parsed.params.get(messages.META)
            notifications = Notifications.read(sent_meta if isinstance(sent_meta, dict) else {})
            if legacy_client and notifications.level is None:
                notifications.level = legacy.LOG_LEVEL
            trace_context = messages.trace_context(sent_meta)
            facts |= trace_context
            exchange = Exchange(
                parsed, meta, access_token, now, entropy, notifications, facts, trace_context, request.deadline
            )
            result = self._server.dispatch(exchange)
            if parsed.method == legacy.INITIALIZE:
                session_id = self._server.legacy_clients.session_id(parsed, access_token.principal)
                headers = {} if session_id is None else {legacy.SESSION_HEADER: session_id}
            body = jsonrpc.result_response(parsed.id, result)
            return _encoded(200, body, accepted, facts, notifications.sent, headers)
        except JSONRPCError as error:
            # What a function said of its own end is better than what the wire says.
            facts["code"] = int(error.code)
            facts.setdefault("outcome", "refused")
            facts.setdefault("reason", error.reason)
            refusal = error
        except (AuthorizationError, Unavailable):
            raise
        except Exception as error:
            # Caught here and not at the front door: only here is the id known that the answer must have.
            _log.exception("Request %s crashed", request.request_id)
            refusal = JSONRPCError(ErrorCode.INTERNAL_ERROR, "Internal error: the server's log has the reason")
            facts |= {"outcome": "crashed", "code": int(refusal.code), "reason": type(error).__name__}
        # Clients of earlier revisions take any other status for a broken transport, and never read the error.
        status = 200 if legacy_client and request_id is not None else HTTP_STATUS.get(refusal.code, 400)
        return _encoded(status, jsonrpc.error_response(request_id, refusal), accepted, facts)

    def _check_headers(self, headers: Mapping[str, str], request: Request, meta: RequestMeta) -> None:
        """What mirrors the body says what the body says, and the version is one of ours. Raises JSONRPCError."""
        check_headers(headers, request, meta)
        if meta.protocol_version not in messages.SUPPORTED_VERSIONS:
            raise messages.version_error(meta.protocol_version)
        mirrored = self._server.mirrored(request)
        if mirrored:
            arguments = request.params.get("arguments")
            check_parameters(headers, arguments if isinstance(arguments, dict) else {}, mirrored)


@lru_cache(maxsize=64)
def _unreadable(content_type: str, content_encoding: str | None) -> tuple[int, str] | None:
    """Why a body is not read, as a status and a sentence."""
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if media_type != _JSON:
        return 415, f"Content-Type must be {_JSON}"
    for name, _, value in (parameter.partition("=") for parameter in parameters):
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            return 415, "The charset must be UTF-8"
    if content_encoding is not None and content_encoding.strip().lower() != "identity":
        return 415, "Content-Encoding is not supported: send the body as it is"
    return None


@lru_cache(maxsize=64)
def _accepted(accept: str | None) -> frozenset[str]:
    """Which of our two media types the client takes. Without an Accept header it takes both.

    The most specific range decides, and a weight of 0 refuses (RFC 9110 section 12.5.1).
    """
    if accept is None:
        return frozenset((_JSON, _SSE))
    taken: dict[str, bool] = {}
    for entry in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        taken[media_range] = not any(_REFUSED_RANGE.match(parameter) for parameter in parameters)

    def takes(media_type: str) -> bool:
        ranges = (media_type, media_type.split("/")[0] + "/*", "*/*")
        return next((taken[each] for each in ranges if each in taken), False)

    return frozenset(filter(takes, (_JSON, _SSE)))


def _encoded(
    status: int,
    body: bytes,
    accepted: frozenset[str],
    facts: Mapping[str, Any],
    notifications: Sequence[JsonObject] = (),
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """A response as JSON; as one finished event stream where there are notifications, or no JSON is taken."""
    own = {**NO_STORE, **(headers or {})}
    if _JSON in accepted and not (notifications and _SSE in accepted):
        return HttpResponse(status, {**own, "content-type": _JSON}, body, facts)
    events = b"".join(
        b"event: message\ndata: " + each + b"\n\n" for each in (*map(jsonrpc.encode, notifications), body)
    )
    return HttpResponse(status, {**own, "content-type": _SSE, "x-accel-buffering": "no"}, events, facts)


def _plain(
    status: int, sentence: str, facts: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> HttpResponse:
    error = JSONRPCError(ErrorCode.INVALID_REQUEST, sentence)
    return HttpResponse(
        status,
        {**NO_STORE, "content-type": _JSON, **(headers or {})},
        jsonrpc.error_response(None, error),
        {"outcome": "refused", **facts},
    )


def _preflight(wanted: str) -> HttpResponse:
    # Which parameters have headers is the tools' matter: of that shape, any may come.
    parameters = [name for name in map(str.strip, wanted.lower().split(",")) if _PARAMETER_HEADER.match(name)]
    headers = {
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": ", ".join((*_REQUEST_HEADERS, *parameters)),
        "access-control-max-age": "600",
    }
    return HttpResponse(204, {**NO_STORE, **headers}, b"", {"outcome": "preflight"})


def _readable_by(origin: str, response: HttpResponse) -> HttpResponse:
    headers = {
        **response.headers,
        "access-control-allow-origin": origin,
        "access-control-expose-headers": _EXPOSED_HEADERS,
        "vary": "origin",
    }
    return HttpResponse(response.status, headers, response.body, response.facts)
