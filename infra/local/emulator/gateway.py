"""The HTTP API as an ASGI application: one request in, one event to a function, one response out."""

import asyncio
import contextlib
import json
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Protocol, assert_never
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from infra.local.emulator.environment import EnvironmentInfo
from infra.local.emulator.errors import EmulatorError, InitError
from infra.local.emulator.event import HttpRequest, build_event, decode_path, encode_event
from infra.local.emulator.exchange import Exchange, Page
from infra.local.emulator.invocation import MAX_PAYLOAD_BYTES, Failed, Invocation, Outcome, Succeeded, TimedOut
from infra.local.emulator.pool import FunctionPool
from infra.local.emulator.response import INTERNAL_SERVER_ERROR, HttpResponse, build_response, message
from infra.local.emulator.routes import Match, RouteTable

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_HEADER_BYTES = 10_240

_CONTROL_PREFIX = "/_emulator/"
_PAGE_PREFIX = "/_emulator/page/"

# api-gateway-known-issues: the service answers these itself, whatever the routes say.
_HEALTH_CHECKS = ("/ping", "/sping")

_LOOPBACK_HOSTS = (b"127.0.0.1", b"localhost")


class Control(Protocol):
    """What the local-only endpoints may do."""

    def environments(self) -> list[EnvironmentInfo]: ...

    async def restart(self, function: str | None = None) -> None: ...


class Gateway:
    def __init__(
        self,
        *,
        routes: RouteTable,
        stage: str,
        pools: Mapping[str, FunctionPool],
        control: Control,
        port: int,
        page: Page | None = None,
    ) -> None:
        self._routes = routes
        self._stage = stage
        self._pools = pools
        self._control = control
        self._port = port
        self._page = page
        self._drop_next = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now, started = time.time(), time.perf_counter()
        path = decode_path(scope["raw_path"])
        if self._page is not None and _is_pages(scope, path) and self._is_from_here(scope):
            await self._page(scope, receive, send)
            return
        try:
            body = await _read_body(receive)
        except _ClientGone:
            return
        if path.startswith(_CONTROL_PREFIX):
            await _send(await self._answer_control(scope, path.removeprefix(_CONTROL_PREFIX)), send)
            return
        response = await self._respond(scope, path, body)
        elapsed = (time.perf_counter() - started) * 1000
        response = replace(response, headers=[*response.headers, ("x-emulator-duration-ms", f"{elapsed:.1f}")])
        dropped = self._drop_next and scope["method"] == "POST"
        self._drop_next = self._drop_next and not dropped
        if self._page is not None:
            self._page.observe(
                _exchange(scope, path, body, response, started=now, milliseconds=elapsed, dropped=dropped)
            )
        await (_hang_up if dropped else _send)(response, send)

    async def _respond(self, scope: Scope, path: str, body: bytes | None) -> HttpResponse:
        if _header_bytes(scope) > MAX_HEADER_BYTES:
            return message(431, "Request Header Fields Too Large")
        if body is None:
            return message(413, "Request Too Long")
        if path in _HEALTH_CHECKS:
            return HttpResponse(200, [("content-type", "text/plain")], b"healthy")
        # An absolute-form or asterisk-form target (RFC 9112, section 3.2) has no path to route.
        if not path.startswith("/"):
            return message(400, "Bad Request")
        match = self._routes.match(scope["method"], path)
        if match is None:
            return message(404, "Not Found")
        return await self._invoke(scope, body, match, path)

    async def _invoke(self, scope: Scope, body: bytes, match: Match, path: str) -> HttpResponse:
        now = time.time()
        # The form that API Gateway gives its ids, like JKJaXmPLvHcESHA=.
        request_id = f"{secrets.token_urlsafe(11)}="
        trace_id = f"Root=1-{int(now):08x}-{secrets.token_hex(12)}"
        request = HttpRequest(
            method=scope["method"],
            raw_path=scope["raw_path"],
            query=scope["query_string"],
            headers=scope["headers"],
            body=body,
            client=scope["client"][0] if scope["client"] else "127.0.0.1",
            port=self._port,
        )
        event = build_event(
            request, match, path=path, stage=self._stage, now=now, request_id=request_id, trace_id=trace_id
        )
        payload = encode_event(event)
        if len(payload) > MAX_PAYLOAD_BYTES:
            return message(413, "Request Too Long")
        invocation = Invocation(request_id=str(uuid.uuid4()), trace_id=f"{trace_id};Sampled=0", payload=payload)
        try:
            async with asyncio.timeout(match.route.timeout):
                environment, outcome = await self._pools[match.route.function].invoke(invocation)
        except TimeoutError:
            return message(503, "Service Unavailable")
        except EmulatorError:
            return INTERNAL_SERVER_ERROR
        response = _conclude(outcome, match)
        own = [("apigw-requestid", request_id), ("x-emulator-environment", environment)]
        return replace(response, headers=[*response.headers, *own])

    def _is_from_here(self, scope: Scope) -> bool:
        """A web page can reach the loopback interface: by a cross-origin request, or by a name that resolves to it."""
        headers = dict(scope["headers"])
        own = f"http://127.0.0.1:{self._port}".encode()
        return headers.get(b"host", b"").rsplit(b":", 1)[0] in _LOOPBACK_HOSTS and headers.get(b"origin", own) == own

    async def _answer_control(self, scope: Scope, endpoint: str) -> HttpResponse:
        if not self._is_from_here(scope):
            return message(403, "Control endpoints answer local tools, not web pages. Use curl without an Origin.")
        if (scope["method"], endpoint) == ("GET", "environments"):
            body = json.dumps([asdict(info) for info in self._control.environments()])
            return HttpResponse(200, [("content-type", "application/json")], body.encode())
        if (scope["method"], endpoint) == ("POST", "restart"):
            function = parse_qs(scope["query_string"].decode("latin-1")).get("function", [None])[-1]
            try:
                await self._control.restart(function)
            except EmulatorError as error:
                return message(500 if isinstance(error, InitError) else 404, str(error))
            return message(200, "Restarted")
        if (scope["method"], endpoint) == ("POST", "drop-response"):
            self._drop_next = True
            return message(200, "The next POST is served, and its response dropped.")
        return message(
            404, "Use GET /_emulator/environments, POST /_emulator/restart or POST /_emulator/drop-response."
        )


def _is_pages(scope: Scope, path: str) -> bool:
    return path.startswith(_PAGE_PREFIX) or (path == "/" and scope["method"] in ("GET", "HEAD"))


def _exchange(
    scope: Scope,
    path: str,
    body: bytes | None,
    response: HttpResponse,
    *,
    started: float,
    milliseconds: float,
    dropped: bool,
) -> Exchange:
    return Exchange(
        started=started,
        milliseconds=milliseconds,
        method=scope["method"],
        path=path,
        request_headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
        request_body=body or b"",
        response=response,
        environment=dict(response.headers).get("x-emulator-environment", ""),
        dropped=dropped,
    )


class _ClientGone(Exception):
    """The client closed the connection before its request was complete."""


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None when it is over the limit; what is over is read and dropped."""
    body = bytearray()
    too_long = False
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _ClientGone
        # A client that is still writing when the connection closes sees a reset and not the 413.
        too_long = too_long or len(body) + len(event.get("body", b"")) > MAX_BODY_BYTES
        if not too_long:
            body += event.get("body", b"")
        if not event.get("more_body"):
            return None if too_long else bytes(body)


def _header_bytes(scope: Scope) -> int:
    """The quota counts the request line and all header lines together."""
    request_line = len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"])
    return request_line + sum(len(name) + len(value) for name, value in scope["headers"])


def _conclude(outcome: Outcome, match: Match) -> HttpResponse:
    match outcome:
        case Succeeded(payload):
            return build_response(payload, response_parameters=match.route.response_parameters)
        case Failed():
            return INTERNAL_SERVER_ERROR
        case TimedOut():
            return message(503, "Service Unavailable")
        case _:
            assert_never(outcome)


async def _send(response: HttpResponse, send: Send) -> None:
    headers: Sequence[tuple[str, str]] = response.headers
    if response.status not in (204, 304):
        headers = [*headers, ("content-length", str(len(response.body)))]
    encoded = [(name.encode("latin-1"), value.encode("utf-8", errors="replace")) for name, value in headers]
    body = b"" if response.status in (204, 304) else response.body
    # The client may have left; an invocation that has ended needs nobody to hear of it.
    with contextlib.suppress(OSError):
        await send({"type": "http.response.start", "status": response.status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})


async def _hang_up(response: HttpResponse, send: Send) -> None:
    """The head of a response and nothing after it: the server closes a connection on which too little was sent."""
    length = str(len(response.body) or 1).encode()
    with contextlib.suppress(OSError):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
