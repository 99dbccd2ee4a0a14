"""Judges every answer of the MCP endpoint in a test run: in this process, and on the wire of local stacks."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from pydantic import ValidationError

from app.http import HttpRequest, HttpResponse, join_headers
from app.wiring.mcp import McpFunction
from infra.local.emulator.exchange import Exchange
from infra.local.page import LocalPage
from tests.protocol.official_types import judge

# What the gateway says in the place of an environment that was killed, or ran out of time.
_OF_THE_GATEWAY = (b'{"message": "Internal Server Error"}', b'{"message": "Service Unavailable"}')


@contextmanager
def judged() -> Iterator[list[str]]:
    """Inside, what the official types do not allow is added to the list."""
    wrong: list[str] = []
    respond, observe = McpFunction.respond, LocalPage.observe

    def consider(request: HttpRequest, response: HttpResponse) -> None:
        # A version header without a version: nothing says which revision's rules hold.
        if not request.headers.get("mcp-protocol-version", "-").strip() or request.path.startswith("/.well-known/"):
            return
        try:
            judge(request, response)
        except (AssertionError, ValidationError, KeyError) as error:
            wrong.append(f"{request.method} {request.body[:500]!r} got {response.body[:500]!r}: {error!r}")

    def responded(function: McpFunction, request: HttpRequest, **chance: Any) -> HttpResponse:
        response = respond(function, request, **chance)
        consider(request, response)
        return response

    def observed(page: LocalPage, exchange: Exchange) -> None:
        response = exchange.response
        if exchange.path == "/mcp" and exchange.environment and response.body not in _OF_THE_GATEWAY:
            consider(
                HttpRequest(
                    exchange.method, exchange.path, join_headers(exchange.request_headers), exchange.request_body
                ),
                HttpResponse(response.status, join_headers(response.headers), response.body),
            )
        observe(page, exchange)

    with ExitStack() as patches:
        patches.enter_context(patch.object(McpFunction, "respond", responded))
        patches.enter_context(patch.object(LocalPage, "observe", observed))
        yield wrong
