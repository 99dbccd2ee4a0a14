"""Puts Local Hub on the web: routes, the record of requests, the headers of every response."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infra.local.identity.pages import Refusal
from infra.local.identity.response_headers import ResponseHeaders
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.browser_endpoints import BrowserEndpoints
from infra.local.provider.control_endpoints import ControlEndpoints
from infra.local.provider.metadata import CONTROL, RECORD, STYLE
from infra.local.provider.pages import Pages
from infra.local.provider.program_endpoints import ProgramEndpoints
from infra.local.provider.record import Record, arrival_of
from infra.local.provider.settings import HubSettings

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    # no-referrer would make browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_UNRECORDED: Final = (CONTROL, RECORD, STYLE)


def create_app(settings: HubSettings) -> Starlette:
    """All of Local Hub as an ASGI app; serve it at `settings.issuer` and nowhere else."""
    return app_for(HubServer(settings))


def app_for(server: HubServer) -> Starlette:
    """An app around a server that the caller keeps."""
    pages = Pages(server.settings.users)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return pages.refusal(error)

    endpoints = (ProgramEndpoints(server), BrowserEndpoints(server, pages), ControlEndpoints(server))
    return Starlette(
        routes=[route for each in endpoints for route in each.routes()],
        exception_handlers={Refusal: refuse},
        middleware=_middleware(server),
    )


def _middleware(server: HubServer) -> Sequence[Middleware]:
    host = urlsplit(server.settings.issuer).hostname or ""
    return [
        Middleware(_Recording, record=server.record),
        Middleware(ResponseHeaders, headers=_HEADERS),
        # A page whose name was rebound to 127.0.0.1 could otherwise sign itself in: there are no passwords.
        Middleware(TrustedHostMiddleware, allowed_hosts=[host], www_redirect=False),
    ]


class _Recording:
    """Notes each request before it is answered: one that is left hanging counts too."""

    def __init__(self, app: ASGIApp, *, record: Record) -> None:
        self._app = app
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNRECORDED:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        noted = False

        def note() -> None:
            nonlocal noted
            if not noted:
                noted = True
                query = scope["query_string"].decode("latin-1")
                headers = Headers(scope=scope)
                self._record.arrivals.append(arrival_of(scope["method"], scope["path"], headers, query, bytes(body)))

        async def receive_and_note() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    note()
            return message

        if scope["method"] != "POST":
            note()
        await self._app(scope, receive_and_note, send)
        note()
