"""Puts the server on the web: routes, the headers of every response, and the log of requests."""

import logging
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.browser_endpoints import BrowserEndpoints
from infra.local.identity.client_endpoints import ClientEndpoints
from infra.local.identity.pages import Pages, Refusal
from infra.local.identity.response_headers import ResponseHeaders
from infra.local.identity.settings import IdentitySettings

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    # No Cross-Origin-Opener-Policy: it would cut off clients that open these pages in a popup.
    # no-referrer would make browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def create_app(settings: IdentitySettings) -> Starlette:
    """The whole server as an ASGI app; serve it at `settings.issuer` and nowhere else."""
    return app_for(AuthorizationServer(settings))


def app_for(server: AuthorizationServer, *, request_log: list[str] | None = None) -> Starlette:
    """An app around a server that the caller keeps, with "METHOD /path" of each request added to the log."""
    settings = server.settings
    pages = Pages(users=settings.users, scope_descriptions=settings.scope_descriptions)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return pages.refusal(error)

    # At DEBUG Authlib logs tokens.
    logging.getLogger("authlib").setLevel(logging.INFO)
    return Starlette(
        routes=[*ClientEndpoints(server).routes(), *BrowserEndpoints(server, pages).routes()],
        exception_handlers={Refusal: refuse},
        middleware=_middleware(settings.issuer, request_log if request_log is not None else []),
    )


def _middleware(issuer: str, request_log: list[str]) -> Sequence[Middleware]:
    return [
        Middleware(_RequestLog, log=request_log),
        Middleware(ResponseHeaders, headers=_HEADERS),
        # A page whose name was rebound to 127.0.0.1 could otherwise sign itself in: there are no passwords.
        Middleware(TrustedHostMiddleware, allowed_hosts=[urlsplit(issuer).hostname or ""], www_redirect=False),
    ]


class _RequestLog:
    """Method and path only: queries carry codes and states."""

    def __init__(self, app: ASGIApp, *, log: list[str]) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._log.append(f"{scope['method']} {scope['path']}")
        await self._app(scope, receive, send)
