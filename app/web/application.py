"""The FastAPI application: routes, bounded bodies, and the thread pool in which the synchronous cores run."""

import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.routing import Route, request_response
from starlette.types import Receive, Scope, Send

from app.http import HttpRequest, HttpResponse, internal_error, join_headers
from app.strict_json import MAX_BODY
from app.web.browser_pages import BrowserPages
from app.web.late_pages import LatePages
from app.web.visit import MAX_FORM, Reply, Visit

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_log = logging.getLogger("roundtrip")


def create_app(
    respond: Callable[..., HttpResponse],
    log: Callable[..., None],
    pages: BrowserPages | LatePages | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> FastAPI:
    """The application. `respond` answers the MCP endpoint and its metadata, `log` writes the request's line.

    Without `pages` there is no browser side, as for tools that never connect a third party.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)

    async def mcp(request: Request) -> Response:
        started = clock()
        received = HttpRequest(
            method=request.method,
            path=request.scope["path"],
            headers=_headers(request),
            body=await _bounded_body(request, MAX_BODY),
            query=request.url.query,
            request_id=_request_id(request),
        )
        # The core is synchronous: a thread of the pool keeps the loop free for other requests.
        try:
            response = await run_in_threadpool(respond, received, now=started, entropy=os.urandom(16))
        except Exception as error:
            # The framework's own answer would have none of our headers.
            _log.exception("Request %s failed", received.request_id)
            response = internal_error(error)
        log(response, request_id=received.request_id, seconds=clock() - started)
        return Response(response.body, response.status, dict(response.headers))

    if pages is not None:
        for route in pages.routes:
            endpoint = _page(pages, route, log, clock)
            # With and without the base path: front doors differ in whether they take it off.
            for path in dict.fromkeys((route, pages.site.path(route))):
                app.router.routes.append(Route(path, _AnyMethod(endpoint)))
    # Everything that is no page of ours goes to the endpoint, which knows its paths and answers 404 itself.
    app.router.routes.append(Route("/{path:path}", _AnyMethod(mcp)))
    return app


class _AnyMethod:
    """An endpoint for every method there is: to one that it does not list, a route answers without our headers."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._app = request_response(endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _page(
    pages: BrowserPages | LatePages, route: str, log: Callable[..., None], clock: Callable[[], float]
) -> Endpoint:
    async def page(request: Request) -> Response:
        started = clock()
        visit = Visit(
            method=request.method,
            path=request.path_params,
            headers=_headers(request),
            query=request.url.query,
            form=await _bounded_body(request, MAX_FORM),
            now=started,
        )
        request_id = _request_id(request)
        try:
            reply = await run_in_threadpool(pages.answer, route, visit)
        except Exception:
            # The framework's own answer would have none of our headers.
            _log.exception("Request %s failed", request_id)
            reply = pages.crashed()
        log(HttpResponse(reply.status, facts=reply.facts), request_id=request_id, seconds=clock() - started)
        return _response(reply)

    return page


def _response(reply: Reply) -> Response:
    response = Response(reply.body, reply.status, dict(reply.headers))
    for cookie in reply.cookies:
        response.headers.append("set-cookie", cookie)
    return response


def _headers(request: Request) -> dict[str, str]:
    headers = join_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
    if "cookie" in headers:
        # HTTP/2 splits this one header, and its parts are joined with a semicolon (RFC 9113 section 8.2.3).
        headers["cookie"] = "; ".join(request.headers.getlist("cookie"))
    return headers


async def _bounded_body(request: Request, limit: int) -> bytes:
    """The body, or one byte more than the endpoint takes: it answers 413 to that."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            break
    return bytes(body[: limit + 1])


def _request_id(request: Request) -> str:
    """The invocation's id where Mangum runs us, else that of a trusted front door, else none."""
    context = request.scope.get("aws.context")
    return str(getattr(context, "aws_request_id", "")) or request.headers.get("x-request-id", "")[:64]
