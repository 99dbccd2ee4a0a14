"""What a real browser meets in these tests, on one loopback port: our pages, the authorization server, the provider.

Each has its own host name, so that the browser sees three sites and applies SameSite, CSP and Sec-Fetch-Site
as it would outside.
"""

import datetime
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.web.world import ORIGIN, World

HOSTS = ("mcp.example.com", "login.example.com", "notes.example", "evil.example")
EVIL = "https://evil.example"


class Outside:
    """An ASGI application that is another site for each host name."""

    def __init__(self) -> None:
        self.world = World()
        self.visited: list[str] = []
        """Every URL that was asked for, with its method."""
        self.evil_page = ""
        """What another site shows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        self.visited.append(f"{request.method} {request.url}")
        sites: dict[str | None, ASGIApp] = {
            "mcp.example.com": self.world.app,
            "login.example.com": self._login(request),
            "notes.example": self._notes(request),
            "evil.example": HTMLResponse(self.evil_page),
        }
        # Chromium asks its maker for things; it gets no further than here.
        await sites.get(request.url.hostname, Response(status_code=404))(scope, receive, send)

    def _login(self, request: Request) -> Response:
        if request.url.path != "/authorize":
            return Response(status_code=404)
        queries = {user: urlencode(self.world.issuer.sign_in(str(request.url), user)) for user in ("alice", "bob")}
        return _page("Sign in", {user: f"{ORIGIN}/auth/callback?{query}" for user, query in queries.items()})

    def _notes(self, request: Request) -> Response:
        if request.url.path != "/authorize":
            return Response(status_code=404)
        provider, url = self.world.provider, str(request.url)
        return _page(
            "Notes", {"Yes": provider.authorize(url), "No": provider.authorize(url, code=None, error="access_denied")}
        )


def _page(title: str, links: Mapping[str, str]) -> Response:
    anchors = (f'<p><a href="{escape(url)}">{text}</a>' for text, url in links.items())
    return HTMLResponse(f"<!doctype html><title>{title}</title><h1>{title}</h1>{''.join(anchors)}")


@contextmanager
def serve(app: ASGIApp, directory: Path) -> Iterator[int]:
    """Serve with TLS on a free loopback port while the block runs. Gives the port."""
    certificate, key = _certificate(directory)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="outside", daemon=True)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate that nobody signed, for the hosts of these tests."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOSTS[0])])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS]), critical=False)
        .sign(key, SHA256())
    )
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths
