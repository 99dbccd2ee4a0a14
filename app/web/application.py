"""The FastAPI application: routes, and the headers that every response carries."""

import os
import time
from collections.abc import Callable
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.http import HttpRequest, HttpResponse, join_headers
from app.strict_json import MAX_BODY

_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def create_app(respond: Callable[..., HttpResponse], log: Callable[..., None]) -> FastAPI:
    """The application. `respond` answers the MCP endpoint and its metadata, `log` writes the request's line."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)

    async def mcp(request: Request) -> Response:
        started = time.time()
        received = HttpRequest(
            method=request.method,
            path=request.scope["path"],
            headers=join_headers(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
            ),
            body=await _bounded_body(request),
            query=request.url.query,
            request_id=_request_id(request),
        )
        # The core is synchronous: a thread of the pool keeps the loop free for other requests.
        response = await run_in_threadpool(respond, received, now=started, entropy=os.urandom(16))
        log(response, request_id=received.request_id, seconds=time.time() - started)
        return Response(response.body, response.status, dict(response.headers))

    # Everything that is no page of ours goes to the endpoint, which knows its paths and answers 404 itself.
    app.add_route("/{path:path}", mcp, methods=_METHODS)
    return app


async def _bounded_body(request: Request) -> bytes:
    """The body, or one byte more than the endpoint takes: it answers 413 to that."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            break
    return bytes(body[: MAX_BODY + 1])


def _request_id(request: Request) -> str:
    """The invocation's id where Mangum runs us, else that of a trusted front door, else none."""
    context = request.scope.get("aws.context")
    return str(getattr(context, "aws_request_id", "")) or request.headers.get("x-request-id", "")[:64]
