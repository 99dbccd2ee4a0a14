"""Serves the page, its files and what it shows: the stream of exchanges, and the keys in Valkey."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from infra.local.emulator.exchange import Exchange
from infra.local.identity.response_headers import ResponseHeaders
from infra.local.page.feed import Feed
from infra.local.page.keys import StoredKey, stored_keys
from infra.local.page.wire import encode

ASSETS: Final = Path(__file__).parent / "assets"
PREFIX: Final = "/_emulator/page"
_MEDIA_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class LocalPage:
    """Implements emulator.exchange.Page. It is a client of the authorization server at `issuer` like any other."""

    def __init__(self, *, issuer: str, valkey_port: int) -> None:
        self._feed = Feed()
        self._valkey_port = valkey_port
        files = {path.name: path for path in ASSETS.iterdir() if path.suffix in _MEDIA_TYPES}
        self._app = Starlette(
            routes=[
                Route("/", self._page),
                Route(f"{PREFIX}/client.json", self._client_metadata),
                Route(f"{PREFIX}/exchanges", self._exchanges),
                Route(f"{PREFIX}/keys", self._keys),
                *(Route(f"{PREFIX}/{name}", _file(path)) for name, path in files.items() if path.suffix != ".html"),
            ],
            middleware=[Middleware(ResponseHeaders, headers=_headers(issuer))],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def observe(self, exchange: Exchange) -> None:
        self._feed.publish(encode(exchange, self._feed.last + 1))

    def close(self) -> None:
        self._feed.close()

    def _page(self, request: Request) -> Response:
        if request.url.hostname != "127.0.0.1":
            # The server allows one origin, and tokens are for one URL: both say 127.0.0.1.
            return RedirectResponse(_origin(request))
        return FileResponse(ASSETS / "page.html")

    def _client_metadata(self, request: Request) -> Response:
        """The page as an OAuth client (MCP client registration, Client ID Metadata Documents)."""
        origin = _origin(request)
        return JSONResponse(
            {
                "client_id": f"{origin}{PREFIX}/client.json",
                "client_name": "The local page",
                "redirect_uris": [f"{origin}/"],
                "grant_types": ["authorization_code"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            }
        )

    async def _exchanges(self, request: Request) -> Response:
        if not _is_own(request):
            return Response(status_code=403)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() else 0
        return StreamingResponse(self._feed.follow(after), media_type="text/event-stream")

    async def _keys(self, request: Request) -> Response:
        if not _is_own(request):
            return Response(status_code=403)
        keys: list[StoredKey] = await run_sync(stored_keys, self._valkey_port)
        return JSONResponse([asdict(key) for key in keys])


def _headers(issuer: str) -> dict[str, str]:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        # The authorization server is the one other origin: its metadata and its token endpoint.
        f"connect-src 'self' {issuer}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }


def _file(path: Path) -> Callable[[Request], Response]:
    def serve(request: Request) -> Response:
        return FileResponse(path, media_type=_MEDIA_TYPES[path.suffix])

    return serve


def _is_own(request: Request) -> bool:
    """Whether this page asks, or a program; a page of another site is told so by its browser (Fetch Metadata)."""
    return request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _origin(request: Request) -> str:
    return f"http://127.0.0.1:{request.url.port}"
